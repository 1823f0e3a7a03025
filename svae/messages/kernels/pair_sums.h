// Sums over time of outer products, in every lane.
#pragma once
#include "arena.h"
#include "lanes.h"

namespace svae::SVAE_VARIANT {

// A K x K sum: blocks of steps in single precision, their sum in double.
template <class S, int W>
class PairSums {
  using V = Lanes<S, W>;
  using Double = Lanes<double, W / 2>;

 public:
  static constexpr int kBlock = 120;

 private:
  const int K;
  const V *left_[kBlock], *right_[kBlock];
  int steps_ = 0;
  Double* sum_;  // both halves of each

  static Double* widened(Double* to, V x, int from) {
    constexpr std::make_integer_sequence<int, W / 2> all{};
    if constexpr (W == 2)
      *to += Double{} + x[from];
    else
      *to += __builtin_convertvector(half<S, W>(x, from, all), Double);
    return to + 1;
  }

  template <int R, int C>
  void tile(int i, int j) {
    V sum[R][C] = {};
    for (int b = 0; b < steps_; b++) {
      const V *x = left_[b] + i, *y = right_[b] + j;
#pragma GCC unroll 8
      for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int c = 0; c < C; c++) sum[r][c] += x[r] * y[c];
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
      for (int c = 0; c < C; c++) widened(widened(sum_ + 2 * ((i + r) * K + j + c), sum[r][c], 0), sum[r][c], W / 2);
  }
  template <int R>
  void rows(int i) {
    int j = 0;
    for (; j + kColumns <= K; j += kColumns) tile<R, kColumns>(i, j);
    for (; j < K; j++) tile<R, 1>(i, j);
  }
#if defined(__AVX512F__)
  static constexpr int kRows = 5, kColumns = 5;
#else
  static constexpr int kRows = 3, kColumns = 3;
#endif

 public:
  static int64_t size(int64_t K) { return K * K * sizeof(double) / sizeof(S); }
  PairSums(Arena<V>& a, int K) : K(K), sum_(reinterpret_cast<Double*>(a.take(size(K)))) {
    for (int64_t i = 0; i < 2 * K * K; i++) sum_[i] = Double{};
  }
  // Both stay where they are until the block is full.
  void add(const V* left, const V* right) {
    left_[steps_] = left;
    right_[steps_] = right;
    if (++steps_ == kBlock) flush();
  }
  void flush() {
    int i = 0;
    for (; i + kRows <= K; i += kRows) rows<kRows>(i);
    for (; i < K; i++) rows<1>(i);
    steps_ = 0;
  }
  // Sum n of the K K, times a factor that all lanes share.
  V times(int n, S factor) const {
    V out;
    const double* sum = reinterpret_cast<const double*>(sum_ + 2 * n);
    for (int l = 0; l < W; l++) out[l] = S(sum[l] * factor);
    return out;
  }
};

}  // namespace svae::SVAE_VARIANT
