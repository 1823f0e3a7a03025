// The door between XLA and the GPU kernels. Kernels are compiled when they are first needed and registered here by
// number; this file reads the operands' shapes, picks the chunks of time, and launches. No CUDA header is needed.
#include "emulate.h"
//
#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "gaussian_chunks.cuh"
#include "kernels.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace svae {

#ifdef SVAE_RUN_ON_CPU
struct Device {
  std::vector<std::vector<double>> kept;
  double* scratch(size_t n) {
    kept.emplace_back(n + 1);
    return kept.back().data();
  }
};
#else
using Launch = int (*)(void* kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream,
                       void** parameters, void** extra);
static Launch launch_kernel = nullptr;

// CUlaunchAttribute and CUlaunchConfig: a kernel may begin before the one in front of it has ended.
struct Attribute {
  int id, none;
  int value[16];
};
struct Configuration {
  unsigned grid[3], block[3], shared;
  void* stream;
  Attribute* attributes;
  unsigned count;
};
using LaunchBeside = int (*)(const Configuration*, void* kernel, void** parameters, void** extra);
static LaunchBeside launch_beside = nullptr;
static std::mutex mutex;
static std::map<std::tuple<int, int, int>, void*> kernels;

struct Device {
  void* stream;
  ffi::ScratchAllocator& allocator;
  double* scratch(size_t n) {
    auto p = allocator.Allocate(n * sizeof(double), 16);
    return p ? static_cast<double*>(*p) : nullptr;
  }
};
#endif

// Chunks that the device holds at once: more than fill it only add work.
constexpr int64_t kResident = 1056, kResidentVjp = 3168;
constexpr int64_t kFewestBothWays = 352, kMostBothWays = 12;

// Chunks of time for T - 1 transitions of each of B sequences: few enough that the sweep over their ends stays short.
static int64_t count_chunks(int64_t T, int64_t B, bool vjp) {
  const int64_t balanced = std::lround(std::sqrt((vjp ? 4 : 1.4) * double(T - 1))),
                fill = (vjp ? kResidentVjp : kResident) / std::max<int64_t>(B, 1);
  const int64_t n = std::min(balanced, fill);
  return T < 64 || n < 2 ? 1 : n;
}

// Whether a batch of chains with one transition is smoothed both ways at once: it fills the device without chunks of
// time, and a triangle fits into registers. What is kept for the derivative then are the messages, and the derivative
// goes by the batch that they were kept for, which may be another than its own.
static bool both_ways(Kernel kernel, int64_t D, int64_t B) {
  return (kernel == kSmoothSame || kernel == kVjpBackSame) && D <= kMostBothWays && B >= kFewestBothWays;
}

static int64_t batch_of(ffi::AnyBuffer x, int axes) {
  int64_t batch = 1;
  for (size_t i = 0; i + axes < x.dimensions().size(); i++) batch *= x.dimensions()[i];
  return batch;
}

static ffi::Error fail(const char* what) { return ffi::Error(ffi::ErrorCode::kInternal, what); }

#ifdef SVAE_RUN_ON_CPU
static ffi::Error start(Device&, Kernel kernel, int D, bool wide, int64_t blocks, const Args& args, bool = false) {
  struct Body {
    EmulatedKernel run;
    const Args* args;
    double* shared;
  };
  const Shape shape = shape_of(kernel, D, wide);
  std::vector<double> shared(shape.shared + 2, NAN);
  Body body{emulated(kernel, D, wide), &args, shared.data()};
  if (!body.run) return fail("svae: this size is not emulated");
  Emulator emulator;
  emulator.data = &body;
  emulator.body = [](void* p) {
    auto* b = static_cast<Body*>(p);
    b->run(*b->args, b->shared);
  };
  for (int64_t i = 0; i < blocks; i++) {
    emulator.block = int(i);
    emulator.run(shape.threads);
  }
  if (emulator.misaligned) return fail("svae: a kernel reads or writes several numbers at once at an odd address");
  return ffi::Error::Success();
}
#else
static ffi::Error start(Device& device, Kernel kernel, int D, bool wide, int64_t blocks, const Args& args,
                        bool beside = false) {
  void* handle;
  {
    std::lock_guard<std::mutex> lock(mutex);
    const auto found = kernels.find({int(kernel), D, int(wide)});
    if (found == kernels.end() || !launch_kernel) return fail("svae: a GPU kernel was not registered");
    handle = found->second;
  }
  const Shape shape = shape_of(kernel, D, wide);
  void* parameters[] = {const_cast<Args*>(&args)};
  const unsigned grid = unsigned(blocks), threads = unsigned(shape.threads), shared = shape.shared * sizeof(double);
  if (beside && launch_beside) {
    Attribute attribute{};
    attribute.id = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value[0] = 1;
    const Configuration configuration{{grid, 1, 1}, {threads, 1, 1}, shared, device.stream, &attribute, 1};
    const int code = launch_beside(&configuration, handle, parameters, nullptr);
    return code ? fail("svae: a GPU kernel did not start") : ffi::Error::Success();
  }
  const int code = launch_kernel(handle, grid, 1, 1, threads, 1, 1, shared, device.stream, parameters, nullptr);
  return code ? fail("svae: a GPU kernel did not start") : ffi::Error::Success();
}
#endif

// The derivative: its sweep forward, then back; each first in summary and over the ends of chunks where there are
// several.
static ffi::Error start_vjp(Device& device, Kernel last, int D, bool wide, int64_t batch, const Args& args) {
  const int64_t team = team_of(D), chunks = (batch * args.chunks + team - 1) / team, ends = (batch + team - 1) / team;
  for (const Kernel kernel : {kVjpSum, kVjpLink, kVjpForward, kVjpSumBack, kVjpLinkBack, last}) {
    if (args.chunks == 1 && kernel != kVjpForward && kernel != last) continue;
    const bool link = kernel == kVjpLink || kernel == kVjpLinkBack;
    const auto error = start(device, kernel, D, wide, link ? ends : chunks, args);
    if (error.failure()) return error;
  }
  return last == kVjpBackSame ? start(device, kVjpSame, D, wide, ends, args) : ffi::Error::Success();
}

// The transitions, then messages both ways, and beside them what is made of them.
static ffi::Error start_both_ways(Device& device, int D, bool wide, int64_t batch, const Args& args) {
  const int64_t team = team_of(D), circle = circle_of(D), pairs = (args.T + 2 * kJoined - 1) / (2 * kJoined);
  auto error = start(device, kPotentialSame, D, wide, (batch + team - 1) / team, args);
  if (error.failure()) return error;
  error = start(device, kMessagesSame, D, wide, 2 * ((batch + circle - 1) / circle), args);
  if (error.failure()) return error;
  return start(device, kJoinSame, D, wide, batch * pairs, args, true);
}

// The derivative of that: of each node by itself, then along the chain, and beside that what is put together.
static ffi::Error start_vjp_both_ways(Device& device, int D, bool wide, int64_t batch, const Args& args) {
  const int64_t team = team_of(D), sweep = sweep_of(D), stretches = (args.T + kWarp - 1) / kWarp;
  auto error = start(device, kLocalSame, D, wide, batch * stretches, args);
  if (error.failure()) return error;
  error = start(device, kSweepsSame, D, wide, 2 * ((batch + sweep - 1) / sweep), args);
  if (error.failure()) return error;
  error = start(device, kMeetSame, D, wide, batch * ((stretches + 1) / 2), args, true);
  if (error.failure()) return error;
  return start(device, kTotalSame, D, wide, (batch + team - 1) / team, args);
}

static ffi::Error dispatch(const Operation& operation, Device& device, ffi::RemainingArgs& ins,
                           ffi::RemainingRets& outs, int64_t T, int64_t D) {
  if (ins.size() != operation.in.size() || outs.size() != operation.out.size())
    return fail("svae: wrong number of operands");
  Args args{};
  auto first = outs.get<ffi::AnyBuffer>(0).value();
  const auto dims = first->dimensions();
  const int axes = int(dims.size()) - operation.out[0];
  if (axes > kAxes) return fail("svae: a batch of more than three axes");
  int64_t batch = 1;
  for (int i = 0; i < kAxes; i++) args.axes[i] = 1;
  for (int i = 0; i < axes; i++) batch *= args.axes[kAxes - axes + i] = int(dims[i]);
  if (batch == 0) return ffi::Error::Success();
  for (size_t n = 0; n < ins.size(); n++) {
    auto x = ins.get<ffi::AnyBuffer>(n).value();
    const auto shape = x.dimensions();
    args.in[n] = x.untyped_data();
    int64_t size = 1;
    for (size_t i = shape.size() - operation.in[n]; i < shape.size(); i++) size *= shape[i];
    for (int i = axes - 1; i >= 0; i--) {
      args.stride[n][kAxes - axes + i] = shape[i] == 1 ? 0 : size;
      size *= shape[i];
    }
  }
  for (size_t n = 0; n < outs.size(); n++) args.out[n] = outs.get<ffi::AnyBuffer>(n).value()->untyped_data();
  const bool wide = ins.get<ffi::AnyBuffer>(0).value().element_type() == ffi::F64;
  args.T = int(T);
  const bool vjp = operation.kernel == kVjpBack || operation.kernel == kVjpBackSame;
  args.chunks = operation.chunked ? int(count_chunks(T, batch, vjp)) : 1;
  args.chunk = int((std::max<int64_t>(T - 1, 1) + args.chunks - 1) / args.chunks);
  args.chunks = std::max<int>(1, int((T - 1 + args.chunk - 1) / args.chunk));
  auto reserve = [&](Kernel kernel) {
    args.scratch_size = scratch_of(kernel, int(D), T, args.chunks, wide);
    args.scratch = device.scratch(size_t(args.scratch_size) * batch + 2);
    return args.scratch != nullptr;
  };
  const auto no_room = ffi::Error(ffi::ErrorCode::kResourceExhausted, "svae: no memory for a sweep over the chain");
  if (vjp && both_ways(operation.kernel, D, batch_of(ins.get<ffi::AnyBuffer>(kVKept).value(), operation.in[kVKept]))) {
    args.chunks = 1;
    return reserve(kLocalSame) ? start_vjp_both_ways(device, int(D), wide, batch, args) : no_room;
  }
  // Messages of all steps are kept for both ways: where there is no room for them, it is done one way at a time.
  bool both = !vjp && both_ways(operation.kernel, D, batch);
  if (both && outs.size() > kOutKept) {  // there is, where they are kept for the derivative
    args.scratch = static_cast<double*>(args.out[kOutKept]);
    args.scratch_size = outs.get<ffi::AnyBuffer>(kOutKept).value()->size_bytes() / batch / sizeof(double);
  } else {
    both = both && reserve(kJoinSame);
  }
  if (both) return start_both_ways(device, int(D), wide, batch, args);
  if (!reserve(operation.kernel)) return no_room;
  if (vjp) return start_vjp(device, operation.kernel, int(D), wide, batch, args);
  const int64_t team = operation.chunked ? team_of(int(D)) : 1, blocks = (batch * args.chunks + team - 1) / team;
  if (args.chunks > 1) {
    const bool same = operation.kernel == kSmoothSame || operation.kernel == kFilterSame;
    auto error = start(device, same ? kElementSame : kElement, int(D), wide, blocks, args);
    if (error.failure()) return error;
    error = start(device, kLink, int(D), wide, (batch + team - 1) / team, args);
    if (error.failure()) return error;
  }
  const auto error = start(device, operation.kernel, int(D), wide, blocks, args);
  if (error.failure() || operation.kernel < kHmmSmooth || operation.kernel == kHmmFilterVjp) return error;
  const Kernel rest = operation.kernel == kHmmSmooth ? kHmmSmoothLogs : kHmmSmoothVjpLogs;  // what underflowed
  return start(device, rest, int(D), wide, batch, args);
}

}  // namespace svae

#ifdef SVAE_RUN_ON_CPU
#define SVAE_CONTEXT
#define SVAE_PARAMETERS
#define SVAE_DEVICE svae::Device device;
#else
#define SVAE_CONTEXT .Ctx<ffi::PlatformStream<void*>>().Ctx<ffi::ScratchAllocator>()
#define SVAE_PARAMETERS void *stream, ffi::ScratchAllocator allocator,
#define SVAE_DEVICE svae::Device device{stream, allocator};

extern "C" void svae_gpu_launcher(void* launch, void* beside) {
  svae::launch_kernel = reinterpret_cast<svae::Launch>(launch);
  svae::launch_beside = reinterpret_cast<svae::LaunchBeside>(beside);
}
extern "C" void svae_gpu_register(int kernel, int D, int wide, void* handle) {
  std::lock_guard<std::mutex> lock(svae::mutex);
  svae::kernels[{kernel, D, wide}] = handle;
}
#endif
extern "C" int svae_gpu_shared_bytes(int kernel, int D, int wide) {
  return svae::shape_of(svae::Kernel(kernel), D, wide).shared * int(sizeof(double));
}

#define SVAE_HANDLER(name, ...)                                                                             \
  static ffi::Error name##_impl(SVAE_PARAMETERS int64_t T, int64_t D, ffi::RemainingArgs ins,               \
                                ffi::RemainingRets outs) {                                                  \
    static const svae::Operation operation{__VA_ARGS__};                                                    \
    SVAE_DEVICE                                                                                             \
    return svae::dispatch(operation, device, ins, outs, T, D);                                              \
  }                                                                                                         \
  extern "C" {                                                                                              \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(                                                                            \
      name, name##_impl,                                                                                    \
      ffi::Ffi::Bind() SVAE_CONTEXT.Attr<int64_t>("T").Attr<int64_t>("D").RemainingArgs().RemainingRets()); \
  }

SVAE_HANDLER(svae_gpu_gaussian_filter, svae::kFilterChain, true, {1, 2, 3, 2, 3, 3, 2}, {2, 3, 1})
SVAE_HANDLER(svae_gpu_gaussian_smooth, svae::kSmoothChain, true, {1, 2, 3, 2, 3, 3, 2}, {2, 3, 3, 3, 1, 1})
SVAE_HANDLER(svae_gpu_gaussian_smooth_kept, svae::kSmoothChain, true, {1, 2, 3, 2, 3, 3, 2}, {2, 3, 3, 3, 1, 1, 2})
SVAE_HANDLER(svae_gpu_gaussian_smooth_vjp, svae::kVjpBack, true, {1, 2, 3, 2, 3, 3, 2, 3, 2, 2, 3, 3, 3, 1, 1},
             {1, 2, 3, 2, 3, 3, 2})
SVAE_HANDLER(svae_gpu_gaussian_filter_same, svae::kFilterSame, true, {1, 2, 3, 2, 3, 3, 2}, {2, 3, 1})
SVAE_HANDLER(svae_gpu_gaussian_smooth_same, svae::kSmoothSame, true, {1, 2, 3, 2, 3, 3, 2}, {2, 3, 3, 3, 1, 1})
SVAE_HANDLER(svae_gpu_gaussian_smooth_kept_same, svae::kSmoothSame, true, {1, 2, 3, 2, 3, 3, 2}, {2, 3, 3, 3, 1, 1, 2})
SVAE_HANDLER(svae_gpu_gaussian_smooth_vjp_same, svae::kVjpBackSame, true, {1, 2, 3, 2, 3, 3, 2, 3, 2, 2, 3, 3, 3, 1, 1},
             {1, 2, 3, 2, 3, 3, 2})
SVAE_HANDLER(svae_gpu_gaussian_draw, svae::kDraw, false, {3, 2}, {2})
SVAE_HANDLER(svae_gpu_gaussian_draw_vjp, svae::kDrawVjp, false, {3, 2}, {2})
SVAE_HANDLER(svae_gpu_hmm_filter, svae::kHmmFilter, false, {1, 2, 2, 1}, {2, 1, 2})
SVAE_HANDLER(svae_gpu_hmm_smooth, svae::kHmmSmooth, false, {1, 2, 2, 1}, {2, 2, 1, 2, 2})
SVAE_HANDLER(svae_gpu_hmm_filter_vjp, svae::kHmmFilterVjp, false, {2, 1, 2, 2, 2, 1}, {1, 2, 2})
SVAE_HANDLER(svae_gpu_hmm_smooth_vjp, svae::kHmmSmoothVjp, false, {2, 1, 2, 2, 2, 2, 2, 2, 1}, {1, 2, 2})
