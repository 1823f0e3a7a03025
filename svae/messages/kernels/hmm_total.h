// Expected counts of pairs of states.
#pragma once
#include "hmm_forward.h"

namespace svae::SVAE_VARIANT {

// A K x K sum over time of outer products: blocks of steps in single precision, their sum in double.
template <class S, int W>
struct Total {
  using V = Lanes<S, W>;
  using H = Hmm<S, W>;
  static constexpr int kBlock = 64, kRows = 6;
  const H& hmm;
  S *left, *right;
  double *weighted, *apart;
  int steps = 0;

  static int64_t size(int64_t K) {
    const int64_t P = H::padded(K);
    return P * P * (2 * sizeof(double) / sizeof(S)) + 2 * kBlock * P;
  }
  Total(Arena<V>& a, const H& hmm) : hmm(hmm), left(hmm.take(a, kBlock * hmm.P)), right(hmm.take(a, kBlock * hmm.P)) {
    const int64_t n = hmm.P * hmm.P;
    weighted = reinterpret_cast<double*>(hmm.take(a, n * sizeof(double) / sizeof(S)));
    apart = reinterpret_cast<double*>(hmm.take(a, n * sizeof(double) / sizeof(S)));
    for (int64_t i = 0; i < n; i++) weighted[i] = apart[i] = 0;
  }

  // Adds left right'.
  void add(const S* x, const S* y) {
    std::memcpy(left + steps * hmm.P, x, hmm.P * sizeof(S));
    std::memcpy(right + steps * hmm.P, y, hmm.P * sizeof(S));
    if (++steps == kBlock) flush();
  }

  static void widen(double* to, V x) {
    using Double = Lanes<double, W>;
    store<double, W>(to, load<double, W>(to) + __builtin_convertvector(x, Double));
  }

  template <int R, int C>
  void tile(int i, int n) {
    const int P = hmm.P;
    V sum[R][C] = {};
    for (int b = 0; b < steps; b++) {
      const V* y = H::v(right + b * P) + n;
      const S* x = left + b * P + i;
#pragma GCC unroll 8
      for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int c = 0; c < C; c++) sum[r][c] += x[r] * y[c];
    }
    for (int r = 0; r < R; r++)
      for (int c = 0; c < C; c++) widen(weighted + (i + r) * P + (n + c) * W, sum[r][c]);
  }

  template <int C>
  void columns(int n) {
    int i = 0;
    for (; i + kRows <= hmm.K; i += kRows) tile<kRows, C>(i, n);
    for (; i < hmm.K; i++) tile<1, C>(i, n);
  }

  void flush() {
    int n = 0;
    for (; n + 2 <= hmm.N; n += 2) columns<2>(n);
    for (; n < hmm.N; n++) columns<1>(n);
    steps = 0;
  }

  // sum of (rows * the table) + what was added apart
  double get(int i, int j) const { return weighted[i * hmm.P + j] * hmm.table[i * hmm.P + j] + apart[i * hmm.P + j]; }
};

}  // namespace svae::SVAE_VARIANT
