// The hidden Markov chain of W sequences in lanes under one transition matrix, in probabilities.
//
// A lane in which any product is too small to trust says so, and its sequence is done again alone.
#pragma once
#include "hmm_tiles.h"
#include "hmm_total.h"
#include "pair_sums.h"

namespace svae::SVAE_VARIANT {

constexpr int kSteps = 8;  // whose entries are written together: their lines are whole then, for most K

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

// x_t = emission_t (table' x_t-1) / sum_t-1, with sum_t that of its entries: p(z_t | nodes to t), not yet normalised.
template <class S, int W>
struct HmmLanes {
  using V = Lanes<S, W>;
  using I = Lanes<typename Bits<S>::type, W>;
  static constexpr S kLost = sizeof(S) == 4 ? S(1e-28) : S(1e-200);  // 1e-8 of it may be lost to underflow
  const int K;
  const int64_t T;
  const Hmm<S, W>& hmm;  // the tables
  const Tiles tiles;
  const Reader<S, W> node, mask, init;
  V *logs, *emission, *x;              // K of every step: node + top (node alone at the first), exp of it, x
  V *sum, *scale, *maximum, *real;     // one of every step: scale is 1 / sum
  S* before;                           // P zeros
  bool padded = false;
  I bad{};

  // Whether all lanes have one table, and room: one by one, sequences need less memory.
  static bool has_room(const Call<S>& c, int arrays) {
    return c.in[kTrans].shared && arrays * c.T * c.D * sizeof(V) <= kKeep;
  }
  static bool serves(const Call<S>& c) { return has_room(c, 3); }
  static int64_t size(int64_t K, int64_t T) { return 3 * (T + 1) * K + 4 * (T + W) + Hmm<S, W>::padded(K) / W; }
  HmmLanes(Arena<V>& a, const Hmm<S, W>& hmm, const Call<S>& c, int64_t f)
      : K(hmm.K), T(c.T), hmm(hmm), tiles(K), node(c.in[kNode], f, c.batch), mask(c.in[kMask], f, c.batch),
        init(c.in[kInit], f, c.batch), logs(a.take((T + 1) * K)), emission(a.take((T + 1) * K)), x(a.take((T + 1) * K)),
        sum(a.take(T + W)), scale(a.take(T + W)), maximum(a.take(T + W)), real(a.take(T + W)),
        before(hmm.take(a, hmm.P)) {
    mask(real, 0, int(T));
    for (int j = 0; j < hmm.P; j++) before[j] = 0;
    for (int j = 0; j < K; j++) logs[T * K + j] = V{};
    maximum[T] = V{};
    V all = real[0];
    bad = all == V{};
    for (int64_t t = 1; t < T; t++) all = real[t] == V{} ? V{} : all;
    for (int l = 0; l < W; l++) padded |= all[l] == 0;
  }

  // What is added to node_t in logs, at every step but the first.
  const S* added(int64_t t) const { return t ? hmm.top : before; }

  static V finite(V best) { return best == splat<S, W>(Hmm<S, W>::kNone) ? V{} : best; }

  void read(int64_t t) {
    V *y = logs + t * K, best = splat<S, W>(Hmm<S, W>::kNone);
    const S* top = added(t);
    node.each(t * K, K, false, [&](int j, V v) {
      y[j] = v += top[j];
      best = v > best ? v : best;
    });
    maximum[t] = finite(best);
  }

  // Four of the nodes of step t from j on, beside other work.
  void read_four(int64_t t, int j, V& best) const {
    V v[4];
    load_four(v, node.p, t * K + j);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      logs[t * K + j + i] = v[i] += hmm.top[j + i];
      best = v[i] > best ? v[i] : best;
    }
  }

  void begin() {
    V best = splat<S, W>(Hmm<S, W>::kNone), total{};
    read(0);
    init(x, 0, K);
    for (int j = 0; j < K; j++) {
      x[j] += logs[j];
      best = x[j] > best ? x[j] : best;
    }
    maximum[0] = finite(best);
    for (int j = 0; j < K; j++) total += x[j] = emission[j] = exponential<S, W>(x[j] - maximum[0]);
    finish(0, total);
    if (T == 1) return;
    read(1);
    for (int j = 0; j < K; j++) emission[K + j] = exponential<S, W>(logs[K + j] - maximum[1]);
  }

  void finish(int64_t t, V total) {
    sum[t] = total;
    scale[t] = S(1) / total;
    if (padded && t) pass(t);
    bad |= ~(sum[t] >= splat<S, W>(Hmm<S, W>::kTiny));
  }

  // Padding passes the states of the step before it unchanged.
  void pass(int64_t t) {
    const auto is = real[t] != V{};
    for (int j = 0; j < K; j++) x[t * K + j] = is ? x[t * K + j] : x[(t - 1) * K + j];
    scale[t] = is ? scale[t] : scale[t - 1];
    sum[t] = is ? sum[t] : splat<S, W>(1);
    maximum[t] = is ? maximum[t] : V{};
  }

  // Step t from t - 1, and the emissions of t + 1 beside it. With KeepPredicted the products with the table take the
  // place of the emissions of the step that they come from.
  template <bool KeepPredicted>
  struct Step {
    const HmmLanes& h;
    int64_t t;
    bool ahead;
    V total, lowest, highest;

    template <int M>
    inline void tile(int j) {
      const int K = h.K, P = h.hmm.P;
      const V *from = h.x + (t - 1) * K, *emission = h.emission + t * K + j, *next = h.logs + (t + 1) * K + j;
      V *out = h.x + t * K + j, *kept = h.emission + (t - 1) * K + j, *emitted = h.emission + (t + 1) * K + j;
      const V most = h.maximum[t + 1], scale = h.scale[t - 1];
      const S* table = h.hmm.table + j;
      V sum[M] = {};
      for (int i = 0; i < M; i++) {
        add_row(sum, from[i], table + i * P);
        emitted[i] = exponential<S, W>(next[i] - most);
      }
      int i = M;
      if constexpr (kFours<S, W> && M >= 4) {
        V best = highest;
        for (int n = 0; n < M && ahead; n += 4) {
          for (int end = i + 3 < K ? i + 3 : K; i < end; i++) add_row(sum, from[i], table + i * P);
          h.read_four(t + 2, n + 4 <= M ? j + n : j + M - 4, best);
        }
        highest = best;
      }
      for (; i < K; i++) add_row(sum, from[i], table + i * P);
      V all = total, least = lowest;
#pragma GCC unroll 16
      for (int m = 0; m < M; m++) {
        least = sum[m] < least ? sum[m] : least;
        if (KeepPredicted) kept[m] = sum[m];
        const V x = sum[m] * scale * emission[m];
        all += x;
        out[m] = x;
      }
      total = all;
      lowest = least;
    }
  };

  template <bool KeepPredicted>
  void forward() {
    begin();
    Step<KeepPredicted> step{*this, 1, false, V{}, splat<S, W>(1)};
    if (T > 2) read(2);
    for (; step.t < T; step.t++) {
      step.ahead = kFours<S, W> && K >= 16 && !node.shared && step.t + 2 < T;
      step.highest = splat<S, W>(Hmm<S, W>::kNone);
      step.total = V{};
      tiles(step);
      finish(step.t, step.total);
      if (step.ahead)
        maximum[step.t + 2] = finite(step.highest);
      else if (step.t + 2 < T)
        read(step.t + 2);
    }
    bad |= ~(step.lowest >= splat<S, W>(kLost));
  }
};

}  // namespace svae::SVAE_VARIANT
