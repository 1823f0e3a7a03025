// The door to XLA: batches of operands with broadcast axes in, groups of lanes out over XLA's threads.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "call.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace svae {

#define SVAE_DECLARE(V)           \
  namespace V {                   \
  extern Entry gaussian(Operation); \
  extern Entry hmm(Operation);    \
  }
SVAE_DECLARE(baseline)
#ifdef SVAE_X86
SVAE_DECLARE(avx2)
SVAE_DECLARE(avx512)
#endif

struct Build {
  const char* name;
  Chooser gaussian, hmm;
};
#define SVAE_BUILD(V) \
  Build { #V, V::gaussian, V::hmm }

// The build for the widest instructions that this processor has, or for fewer where SVAE_KERNELS names them.
static Build choose() {
  const char* named = std::getenv("SVAE_KERNELS");
  const std::string wish = named ? named : "avx512";
#ifdef SVAE_X86
  __builtin_cpu_init();
  if (wish == "avx512" && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    return SVAE_BUILD(avx512);
  if (wish != "baseline" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return SVAE_BUILD(avx2);
#endif
  return SVAE_BUILD(baseline);
}

static const Build& build() {
  static const Build chosen = choose();
  return chosen;
}

static Kernels<float> precision(const Entry& entry, float) { return entry.f32; }
static Kernels<double> precision(const Entry& entry, double) { return entry.f64; }

// Tasks 0 .. n - 1 over the caller and the threads of the pool. The caller takes tasks too and waits only for those
// already begun, so it makes progress even when every thread of the pool waits in a call of its own.
class Tasks : public std::enable_shared_from_this<Tasks> {
  const int64_t n_;
  const std::function<void(int64_t)> f_;
  std::atomic<int64_t> next_{0};
  int64_t done_ = 0;
  std::mutex mutex_;
  std::condition_variable finished_;

  void work() {
    int64_t mine = 0;
    for (int64_t i; (i = next_.fetch_add(1)) < n_; mine++) f_(i);
    if (!mine) return;
    std::lock_guard<std::mutex> lock(mutex_);
    done_ += mine;
    if (done_ == n_) finished_.notify_all();
  }

 public:
  Tasks(int64_t n, std::function<void(int64_t)> f) : n_(n), f_(std::move(f)) {}
  void run(ffi::ThreadPool& pool) {
    const int64_t helpers = std::min(n_, pool.num_threads()) - 1;
    for (int64_t i = 0; i < helpers; i++) pool.Schedule([self = shared_from_this()] { self->work(); });
    work();
    std::unique_lock<std::mutex> lock(mutex_);
    finished_.wait(lock, [this] { return done_ == n_; });
  }
};

struct Signature {
  Operation operation;
  std::vector<int> in, out;  // axes of one sequence; those before them are a batch
};

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

template <class S>
static ffi::Error run(const Signature& signature, ffi::ThreadPool& pool, ffi::RemainingArgs& args,
                      ffi::RemainingRets& rets, int64_t T, int64_t D) {
  auto out0 = rets.get<ffi::AnyBuffer>(0).value();
  const auto batch_dims = out0->dimensions();
  const int64_t axes = batch_dims.size() - signature.out[0];
  int64_t batch = 1;
  for (int64_t i = 0; i < axes; i++) batch *= batch_dims[i];
  if (batch == 0) return ffi::Error::Success();
  std::vector<std::vector<int64_t>> kept(args.size());
  std::vector<Operand<S>> in(args.size());
  std::vector<Output<S>> out(rets.size());
  for (size_t i = 0; i < args.size(); i++) {
    auto x = args.get<ffi::AnyBuffer>(i).value();
    bool shared;
    kept[i] = offsets(x.dimensions(), signature.in[i], batch_dims, axes, batch, &shared);
    in[i] = {static_cast<const S*>(x.untyped_data()), kept[i].data(), shared};
  }
  for (size_t i = 0; i < rets.size(); i++) {
    auto x = rets.get<ffi::AnyBuffer>(i).value();
    out[i] = {static_cast<S*>(x->untyped_data()), static_cast<int64_t>(x->element_count()) / batch};
  }
  const Call<S> call{T, D, batch, in.data(), out.data()};
  const auto kernels = precision((signature.operation < kHmmFilter ? build().gaussian : build().hmm)(signature.operation), S());
  // A group of lanes costs about as much as four sequences one by one. Which form runs never depends on the threads.
  const bool single = !kernels.lanes || (batch <= 4 && batch < kernels.width);
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

static const std::vector<int> kChain = {1, 2, 3, 2, 3, 3, 2};

static std::vector<int> chain_and(std::initializer_list<int> more) {
  std::vector<int> all = kChain;
  all.insert(all.end(), more);
  return all;
}

}  // namespace svae

#define SVAE_HANDLER(name, ...)                                                                                  \
  static ffi::Error name##_impl(ffi::ThreadPool pool, int64_t T, int64_t D, ffi::RemainingArgs args,             \
                                ffi::RemainingRets rets) {                                                       \
    static const svae::Signature signature{__VA_ARGS__};                                                         \
    return svae::dispatch(signature, pool, args, rets, T, D);                                                    \
  }                                                                                                              \
  extern "C" {                                                                                                   \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, name##_impl,                                                               \
                                ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Attr<int64_t>("T").Attr<int64_t>("D")    \
                                    .RemainingArgs().RemainingRets());                                           \
  }

SVAE_HANDLER(svae_gaussian_filter, svae::kFilter, svae::kChain, {2, 3, 1})
SVAE_HANDLER(svae_gaussian_smooth, svae::kSmooth, svae::kChain, {2, 3, 3, 3, 1, 1, 2})
SVAE_HANDLER(svae_gaussian_filter_vjp, svae::kFilterVjp, svae::chain_and({2, 3, 1}), svae::kChain)
SVAE_HANDLER(svae_gaussian_smooth_vjp, svae::kSmoothVjp, svae::chain_and({3, 3, 3, 2, 2, 3, 3, 3, 1, 1}), svae::kChain)
SVAE_HANDLER(svae_gaussian_sample, svae::kSample, {2, 2, 3, 3, 2}, {2})
SVAE_HANDLER(svae_gaussian_sample_vjp, svae::kSampleVjp, {3, 2, 2, 2}, {2, 3, 3})
SVAE_HANDLER(svae_hmm_filter, svae::kHmmFilter, {1, 2, 2, 1}, {2, 1})
SVAE_HANDLER(svae_hmm_smooth, svae::kHmmSmooth, {1, 2, 2, 1}, {2, 2, 1, 1})
SVAE_HANDLER(svae_hmm_filter_vjp, svae::kHmmFilterVjp, {1, 2, 2, 1, 2, 1}, {1, 2, 2})
SVAE_HANDLER(svae_hmm_smooth_vjp, svae::kHmmSmoothVjp, {1, 2, 2, 1, 2, 2, 2, 2, 1, 1}, {1, 2, 2})
SVAE_HANDLER(svae_hmm_backtrack, svae::kHmmBacktrack, {1, 2, 2, 1}, {1})
SVAE_HANDLER(svae_hmm_viterbi, svae::kHmmViterbi, {1, 2, 2, 1}, {1})

extern "C" const char* svae_instruction_set() { return svae::build().name; }
