// The hidden Markov chain of W sequences in lanes under one transition matrix, in probabilities.
//
// A lane in which any product is too small to trust says so, and its sequence is done again alone.
#pragma once
#include "hmm_total.h"

namespace svae::SVAE_VARIANT {

// out_j = sum_i x_i table[i * P + j], M entries at a time in registers
template <int M, class V, class S>
inline void combine_lanes(int K, int P, V* out, const V* x, const S* table) {
  V sum[M] = {};
  for (int i = 0; i < K; i++) {
    const V a = x[i];
#pragma GCC unroll 16
    for (int m = 0; m < M; m++) sum[m] += a * table[i * P + m];
  }
#pragma GCC unroll 16
  for (int m = 0; m < M; m++) out[m] = sum[m];
}

template <class V, class S>
inline void combine_lanes(int K, int P, V* out, const V* x, const S* table) {
  int j = 0;
  for (; j + 10 <= K; j += 10) combine_lanes<10>(K, P, out + j, x, table + j);
  for (; j + 4 <= K; j += 4) combine_lanes<4>(K, P, out + j, x, table + j);
  for (; j < K; j++) combine_lanes<1>(K, P, out + j, x, table + j);
}

// A K x K sum over time of outer products in every lane: blocks of steps in single precision, their sum in double.
template <class S, int W>
class PairSums {
  using V = Lanes<S, W>;

 public:
  static constexpr int kBlock = 64;

 private:
  const int K;
  const V *left_[kBlock], *right_[kBlock];
  int steps_ = 0;
  double* sum_;

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
      for (int c = 0; c < C; c++) Total<S, W>::widen(sum_ + ((i + r) * K + j + c) * W, sum[r][c]);
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
  PairSums(Arena<V>& a, int K) : K(K), sum_(reinterpret_cast<double*>(a.take(size(K)))) {
    for (int64_t i = 0; i < K * K * W; i++) sum_[i] = 0;
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
  double get(int i, int j, int lane) const { return sum_[(i * K + j) * W + lane]; }
};

// One number per step and sequence, written W steps at a time.
template <class S, int W>
class StepWriter {
  using V = Lanes<S, W>;
  const Writer<S, W> out_;
  const int64_t T;
  V kept_[W];

 public:
  StepWriter(const Output<S>& x, int64_t first, const Call<S>& call) : out_(x, first, call.batch), T(call.T) {}
  // Steps come back in time, the last one first.
  void operator()(int64_t t, V x) {
    const int64_t begin = t / W * W;
    kept_[t - begin] = x;
    if (t == begin) out_(kept_, begin, begin + W <= T ? W : int(T - begin));
  }
};

template <class S, int W>
struct HmmLanes {
  using V = Lanes<S, W>;
  using I = Lanes<typename Bits<S>::type, W>;
  const int K;
  const int64_t T;
  const Hmm<S, W>& hmm;  // the tables
  const Reader<S, W> node, mask, init;
  V *alpha, *emission, *sum, *maximum, *real, *predicted, *row;  // alpha, emission: K of every step; then one of each
  bool padded = false;
  I bad{};

  // Whether all lanes have one table, and room: one by one, sequences need less memory.
  static bool serves(const Call<S>& c) { return c.in[kTrans].shared && 3 * c.T * c.D * sizeof(V) <= kKeep; }
  static int64_t size(int64_t K, int64_t T) { return 2 * T * K + 3 * (T + W) + 2 * (K + W); }
  HmmLanes(Arena<V>& a, const Hmm<S, W>& hmm, const Call<S>& c, int64_t f)
      : K(hmm.K), T(c.T), hmm(hmm), node(c.in[kNode], f, c.batch), mask(c.in[kMask], f, c.batch),
        init(c.in[kInit], f, c.batch), alpha(a.take(T * K)), emission(a.take(T * K)), sum(a.take(T + W)),
        maximum(a.take(T + W)), real(a.take(T + W)), predicted(a.take(K + W)), row(a.take(K + W)) {
    mask(real, 0, int(T));
    for (int64_t t = 0; t < T && !padded; t++)
      for (int l = 0; l < W; l++) padded |= real[t][l] == 0;
    bad = real[0] == V{};
  }

  // emission <- exp(node + before - their maximum)
  template <class Before>
  void emit(int64_t t, Before before) {
    V *e = emission + t * K, best = splat<S, W>(Hmm<S, W>::kNone);
    node(e, t * K, K);
    for (int j = 0; j < K; j++) {
      e[j] += before(j);
      best = e[j] > best ? e[j] : best;
    }
    best = best == splat<S, W>(Hmm<S, W>::kNone) ? V{} : best;
    for (int j = 0; j < K; j++) e[j] = exponential<S, W>(e[j] - best);
    maximum[t] = best;
  }

  // With KeepPredicted the products with the table take the place of the emissions.
  template <bool KeepPredicted>
  void forward() {
    const V least = splat<S, W>(Hmm<S, W>::kTiny), one = splat<S, W>(1);
    init(row, 0, K);
    emit(0, [&](int j) { return row[j]; });
    for (int j = 0; j < K; j++) predicted[j] = one;
    for (int64_t t = 0; t < T; t++) {
      if (t) emit(t, [&](int j) { return hmm.top[j]; });
      V *x = alpha + t * K, *e = emission + t * K, total{};
      for (int j = 0; j < K; j++) {
        x[j] = e[j] * predicted[j];
        total += x[j];
      }
      sum[t] = total;
      const V scale = one / total;
      for (int j = 0; j < K; j++) x[j] *= scale;
      if (padded && t) pass(t);
      bad |= ~(sum[t] >= least);
      if (t + 1 == T) break;
      if (KeepPredicted) predicted = e;
      combine_lanes(K, hmm.P, predicted, x, hmm.table);
      V lowest = predicted[0];
      for (int j = 1; j < K; j++) lowest = predicted[j] < lowest ? predicted[j] : lowest;
      bad |= ~(lowest >= least);
    }
  }

  // Padding passes the states of the step before it unchanged.
  void pass(int64_t t) {
    V* x = alpha + t * K;
    for (int j = 0; j < K; j++) x[j] = real[t] != V{} ? x[j] : x[j - K];
    sum[t] = real[t] != V{} ? sum[t] : splat<S, W>(1);
    maximum[t] = real[t] != V{} ? maximum[t] : V{};
  }
};

}  // namespace svae::SVAE_VARIANT
