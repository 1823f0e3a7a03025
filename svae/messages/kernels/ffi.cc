// The door to XLA: batches of operands with broadcast axes in, groups of lanes out over XLA's threads.
#include <cstdlib>
#include <string>
#include <vector>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "call.h"
#include "mixture_call.h"
#include "tasks.h"
#ifdef SVAE_X86
#include "processor.h"
#endif

namespace svae {

#define SVAE_DECLARE(V)             \
  namespace V {                     \
  extern Entry gaussian(Operation); \
  extern Entry hmm(Operation);      \
  extern Entry mixture(Operation);  \
  }
SVAE_DECLARE(baseline)
#ifdef SVAE_X86
SVAE_DECLARE(avx2)
SVAE_DECLARE(avx512)
#endif

struct Build {
  const char* name;
  Chooser gaussian, hmm, mixture;
};
#define SVAE_BUILD(V) \
  Build { #V, V::gaussian, V::hmm, V::mixture }

// The build for the widest instructions that this processor has, or for fewer where SVAE_KERNELS names them.
static Build choose() {
  const char* named = std::getenv("SVAE_KERNELS");
  const std::string wish = named ? named : "avx512";
#ifdef SVAE_X86
  const Processor processor;
  if (wish == "avx512" && processor.avx512) return SVAE_BUILD(avx512);
  if (wish != "baseline" && processor.avx2) return SVAE_BUILD(avx2);
#endif
  return SVAE_BUILD(baseline);
}

static const Build& build() {
  static const Build chosen = choose();
  return chosen;
}

static Kernels<float> precision(const Entry& entry, float) { return entry.f32; }
static Kernels<double> precision(const Entry& entry, double) { return entry.f64; }

// The axes of one sequence in each operand and output, a letter for each (`as_long`); axes before them are a batch.
struct Signature {
  Operation operation;
  std::vector<std::string> in, out;
};

// Whether an axis is as long as its letter says: T steps, S = T - 1 of them, s as many or one for all steps, D
// dimensions or states; of a mixture U = T regressors, a row of B = D D + D U + U U, a packed triangle P of D + U.
static bool as_long(char axis, int64_t n, int64_t T, int64_t D) {
  switch (axis) {
    case 'T':
    case 'U':
      return n == T;
    case 'S':
      return n == T - 1;
    case 's':
      return n == T - 1 || n == 1;
    case 'D':
      return n == D;
    case 'B':
      return n == D * D + D * T + T * T;
    case 'P':
      return n == (D + T) * (D + T + 1) / 2;
  }
  return false;
}

// Whether an array has its type, the batch axes of the first output (or 1, where they may be shared) and its own axes:
// the kernels read and write what these say, wherever that lies.
static bool fits(const ffi::AnyBuffer& x, ffi::DataType type, const std::string& own, ffi::Span<const int64_t> batch,
                 int64_t axes, bool may_share, int64_t T, int64_t D) {
  const auto dims = x.dimensions();
  if (x.element_type() != type || dims.size() != axes + own.size()) return false;
  for (int64_t i = 0; i < axes; i++)
    if (dims[i] != batch[i] && !(may_share && dims[i] == 1)) return false;
  for (size_t i = 0; i < own.size(); i++)
    if (!as_long(own[i], dims[axes + i], T, D)) return false;
  return true;
}

static ffi::Error refused(const std::string& what, size_t i) {
  return ffi::Error(
      ffi::ErrorCode::kInvalidArgument,
      "svae: " + what + " " + std::to_string(i) + " of a kernel has another type or shape than T, D and the batch say");
}

static bool one_entry(ffi::Span<const int64_t> dims, int rank) { return rank && dims[dims.size() - rank] == 1; }

// Offsets of every sequence of the batch in an operand whose batch axes are 1 or those of the batch.
static std::vector<int64_t> offsets(ffi::Span<const int64_t> dims, int rank, ffi::Span<const int64_t> batch_dims,
                                    int64_t axes, int64_t batch, bool* shared) {
  std::vector<int64_t> stride(axes), result(batch);
  int64_t size = 1;
  for (size_t i = dims.size() - rank; i < dims.size(); i++) size *= dims[i];
  *shared = true;
  for (int64_t i = axes - 1; i >= 0; i--) {
    stride[i] = dims[i] == 1 ? 0 : size;
    size *= dims[i];
    if (stride[i]) *shared = false;
  }
  for (int64_t b = 0; b < batch; b++) {
    int64_t rest = b;
    for (int64_t i = axes - 1; i >= 0; i--) {
      result[b] += rest % batch_dims[i] * stride[i];
      rest /= batch_dims[i];
    }
  }
  return result;
}

// Asks for huge pages under a large output: its first writing is then few faults, and its lanes' streams few pages.
static void advise(void* data, size_t bytes) {
#ifdef __linux__
  constexpr uintptr_t huge = uintptr_t(2) << 20;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + huge - 1) / huge * huge;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / huge * huge;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

template <class S>
static ffi::Error run(const Signature& signature, ffi::ThreadPool& pool, ffi::RemainingArgs& args,
                      ffi::RemainingRets& rets, int64_t T, int64_t D) {
  auto out0 = rets.get<ffi::AnyBuffer>(0).value();
  const auto batch_dims = out0->dimensions();
  const int64_t axes = int64_t(batch_dims.size()) - int64_t(signature.out[0].size());
  const auto type = args.get<ffi::AnyBuffer>(0).value().element_type();
  int64_t batch = 1;
  for (int64_t i = 0; i < axes; i++) batch *= batch_dims[i];
  if (batch == 0) return ffi::Error::Success();
  std::vector<std::vector<int64_t>> kept(args.size());
  std::vector<Operand<S>> in(args.size());
  std::vector<Output<S>> out(rets.size());
  for (size_t i = 0; i < args.size(); i++) {
    auto x = args.get<ffi::AnyBuffer>(i).value();
    if (axes < 0 || !fits(x, type, signature.in[i], batch_dims, axes, true, T, D)) return refused("operand", i);
    const int rank = int(signature.in[i].size());
    bool shared;
    kept[i] = offsets(x.dimensions(), rank, batch_dims, axes, batch, &shared);
    in[i] = {static_cast<const S*>(x.untyped_data()), kept[i].data(), shared, one_entry(x.dimensions(), rank)};
  }
  for (size_t i = 0; i < rets.size(); i++) {
    auto x = rets.get<ffi::AnyBuffer>(i).value();
    if (!fits(*x, type, signature.out[i], batch_dims, axes, false, T, D)) return refused("output", i);
    out[i] = {static_cast<S*>(x->untyped_data()), static_cast<int64_t>(x->element_count()) / batch,
              one_entry(x->dimensions(), int(signature.out[i].size()))};
    advise(x->untyped_data(), x->size_bytes());
  }
  const Call<S> call{T, D, batch, in.data(), out.data()};
  const Operation operation = signature.operation;
  const auto entry = operation < kHmmFilter ? build().gaussian : operation < kBlend ? build().hmm : build().mixture;
  const auto kernels = precision(entry(operation), S());
  // Which form runs never depends on the number of threads.
  const bool single =
      !kernels.lanes || (batch <= kernels.alone && batch < kernels.width) || (kernels.serves && !kernels.serves(call));
  const int64_t width = single ? 1 : kernels.width;
  const auto kernel = single ? kernels.one : kernels.lanes;
  auto tasks = std::make_shared<Tasks>((batch + width - 1) / width, [&](int64_t i) { kernel(call, i * width); });
  tasks->run(pool);
  return ffi::Error::Success();
}

static ffi::Error dispatch(const Signature& signature, ffi::ThreadPool& pool, ffi::RemainingArgs& args,
                           ffi::RemainingRets& rets, int64_t T, int64_t D) {
  if (args.size() != signature.in.size() || rets.size() != signature.out.size())
    return ffi::Error(ffi::ErrorCode::kInvalidArgument, "svae: wrong number of operands");
  const auto type = args.get<ffi::AnyBuffer>(0).value().element_type();
  if (type == ffi::F32) return run<float>(signature, pool, args, rets, T, D);
  if (type == ffi::F64) return run<double>(signature, pool, args, rets, T, D);
  return ffi::Error(ffi::ErrorCode::kInvalidArgument, "svae: a chain is float32 or float64");
}

using Shapes = std::vector<std::string>;
static const Shapes kChain = {"D", "DD", "sDD", "sD", "sDD", "TDD", "TD"};
static const Shapes kHidden = {"D", "DD", "TD"};
static const Shapes kVarying = {"D", "sDD", "TD"};

static Shapes joined(Shapes all, std::initializer_list<std::string> more) {
  all.insert(all.end(), more);
  return all;
}

}  // namespace svae

#define SVAE_HANDLER(name, ...)                                                                                       \
  static ffi::Error name##_impl(ffi::ThreadPool pool, int64_t T, int64_t D, ffi::RemainingArgs args,                  \
                                ffi::RemainingRets rets) {                                                            \
    static const svae::Signature signature{__VA_ARGS__};                                                              \
    return svae::dispatch(signature, pool, args, rets, T, D);                                                         \
  }                                                                                                                   \
  extern "C" {                                                                                                        \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(                                                                                      \
      name, name##_impl,                                                                                              \
      ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Attr<int64_t>("T").Attr<int64_t>("D").RemainingArgs().RemainingRets()); \
  }

SVAE_HANDLER(svae_gaussian_filter, svae::kFilter, svae::kChain, {"TD", "TDD", "T"})
SVAE_HANDLER(svae_gaussian_smooth, svae::kSmooth, svae::kChain, {"TD", "TDD", "SDD", "SDD", "T", "T", "TD"})
SVAE_HANDLER(svae_gaussian_filter_vjp, svae::kFilterVjp, svae::joined(svae::kChain, {"TD", "TDD", "T"}), svae::kChain)
SVAE_HANDLER(svae_gaussian_smooth_vjp, svae::kSmoothVjp,
             svae::joined(svae::kChain, {"TDD", "SDD", "SDD", "TD", "TD", "TDD", "SDD", "SDD", "T", "T"}), svae::kChain)
SVAE_HANDLER(svae_gaussian_sample, svae::kSample, {"TD", "DD", "SDD", "SDD", "TD"}, {"TD"})
SVAE_HANDLER(svae_gaussian_sample_vjp, svae::kSampleVjp, {"SDD", "TD", "TD", "TD"}, {"DD", "SDD", "SDD"})
SVAE_HANDLER(svae_hmm_filter, svae::kHmmFilter, svae::joined(svae::kHidden, {"T"}), {"TD", "T"})
SVAE_HANDLER(svae_hmm_smooth, svae::kHmmSmooth, svae::joined(svae::kHidden, {"T"}), {"TD", "DD", "T", "T"})
SVAE_HANDLER(svae_hmm_filter_vjp, svae::kHmmFilterVjp, svae::joined(svae::kHidden, {"T", "TD", "T"}), svae::kHidden)
SVAE_HANDLER(svae_hmm_smooth_vjp, svae::kHmmSmoothVjp,
             svae::joined(svae::kHidden, {"T", "TD", "DD", "TD", "DD", "T", "T"}), svae::kHidden)
SVAE_HANDLER(svae_hmm_backtrack, svae::kHmmBacktrack, svae::joined(svae::kHidden, {"T"}), {"T"})
SVAE_HANDLER(svae_hmm_viterbi, svae::kHmmViterbi, svae::joined(svae::kHidden, {"T"}), {"T"})
SVAE_HANDLER(svae_hmm_varying_filter, svae::kHmmVaryingFilter, svae::joined(svae::kVarying, {"T"}), {"TD", "T"})
SVAE_HANDLER(svae_hmm_varying_smooth, svae::kHmmVaryingSmooth, svae::joined(svae::kVarying, {"T"}),
             {"TD", "SDD", "T", "T"})
SVAE_HANDLER(svae_hmm_varying_filter_vjp, svae::kHmmVaryingFilterVjp, svae::joined(svae::kVarying, {"T", "TD", "T"}),
             svae::kVarying)
SVAE_HANDLER(svae_hmm_varying_smooth_vjp, svae::kHmmVaryingSmoothVjp,
             svae::joined(svae::kVarying, {"T", "TD", "SDD", "TD", "SDD", "T", "T"}), svae::kVarying)
SVAE_HANDLER(svae_hmm_varying_backtrack, svae::kHmmVaryingBacktrack, svae::joined(svae::kVarying, {"T"}), {"T"})
SVAE_HANDLER(svae_hmm_varying_viterbi, svae::kHmmVaryingViterbi, svae::joined(svae::kVarying, {"T"}), {"T"})
SVAE_HANDLER(svae_mixture_blend, svae::kBlend, {"B"}, {"DU", "DD", "UU", ""})
SVAE_HANDLER(svae_mixture_blend_vjp, svae::kBlendVjp, {"DU", "DD", "DU", "DD", "UU", ""}, {"B"})
SVAE_HANDLER(svae_mixture_moments, svae::kMoments, {"DU", "D", "D", "DD", "DD", "DD"}, {"P"})
SVAE_HANDLER(svae_mixture_moments_vjp, svae::kMomentsVjp, {"DU", "D", "D", "DD", "DD", "DD", "P"},
             {"D", "D", "DD", "DD", "DD"})

extern "C" const char* svae_instruction_set() { return svae::build().name; }
