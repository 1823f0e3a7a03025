// The cotangent of dynamics: written at every step, or of steady ones summed over them.
#pragma once
#include "gaussian.h"

namespace svae::SVAE_VARIANT {

// Blocks of steps are added plainly, the blocks with what rounding loses (Kahan): a million steps cost no digits.
template <class S, int W>
class Cotangent {
  using V = Lanes<S, W>;
  static constexpr int kBlock = 32;
  const int n;
  const Writer<S, W> write_;
  V *block_, *sum_, *lost_;
  int steps_ = 0;

  void flush() {
    for (int i = 0; i < n; i++) {
      const V x = block_[i] - lost_[i], next = sum_[i] + x;
      lost_[i] = (next - sum_[i]) - x;
      sum_[i] = next;
      block_[i] = V{};
    }
    steps_ = 0;
  }

 public:
  const bool steady;

  static int64_t size(int64_t n) { return 3 * n; }
  Cotangent(Arena<V>& a, int n, const Output<S>& out, int64_t first, int64_t batch)
      : n(n), write_(out, first, batch), block_(a.take(n)), sum_(a.take(n)), lost_(a.take(n)), steady(out.steady) {
    for (int i = 0; i < n; i++) block_[i] = sum_[i] = lost_[i] = V{};
  }

  // Of step t, in a sweep back in time.
  void operator()(const V* x, int64_t t) {
    if (!steady) return write_(x, t * n, n, true);
#pragma omp simd
    for (int i = 0; i < n; i++) block_[i] += x[i];
    if (++steps_ == kBlock) flush();
  }
  const V* sum() {
    flush();
    return sum_;
  }
  void write(const V* x) const { write_(x, 0, n); }
};

}  // namespace svae::SVAE_VARIANT
