// The hidden Markov chain, one sequence at a time, its K states in SIMD lanes (K padded to P entries).
//
// A step multiplies probabilities by exp(log_trans - the maximum of its column). Where every product of a sequence can
// be trusted, probabilities suffice; if not, the sequence is done again with messages in logarithms, and the entries
// that the product has lost to underflow are summed in logarithms.
#pragma once
#include <limits>

#include "arena.h"
#include "functions.h"
#include "streams.h"

namespace svae::SVAE_VARIANT {

enum HmmInput { kInit, kTrans, kNode, kMask };

template <class S, int W>
struct Hmm {
  using V = Lanes<S, W>;
  static constexpr S kNone = -std::numeric_limits<S>::infinity();
  static constexpr S kTiny = sizeof(S) == 4 ? S(1e-25) : S(1e-200);

  const int K, N, P;  // states, vectors, padded states
  const int64_t T;
  const S *init, *trans, *node, *mask;
  S *table, *flipped, *log_flipped, *top;  // exp(trans - top) by rows and by columns, trans by columns, column maxima
  S *alpha, *predicted;  // of every step: p(z_t | nodes to t), and its product with the table
  S* states;  // log p(z_t | nodes to t), where the products cannot be trusted
  S *prior, *maximum, *increment, *probability, *outside;
  bool trusted = false;

  static int padded(int64_t K) { return int((K + W - 1) / W * W); }
  static int64_t tables(int64_t K) {
    const int64_t P = padded(K);
    return 3 * P * P + P;
  }
  static int64_t size(int64_t K, int64_t T) {
    const int64_t P = padded(K);
    return tables(K) + 3 * P + 3 * T * P + 2 * padded(T);
  }

  Hmm(Arena<V>& a, const Call<S>& c, int64_t i)
      : K(int(c.D)), N(padded(c.D) / W), P(padded(c.D)), T(c.T), init(c.in[kInit].data + c.in[kInit].offset[i]),
        trans(c.in[kTrans].data + c.in[kTrans].offset[i]), node(c.in[kNode].data + c.in[kNode].offset[i]),
        mask(c.in[kMask].data + c.in[kMask].offset[i]), table(take(a, P * P)), flipped(take(a, P * P)),
        log_flipped(take(a, P * P)), top(take(a, P)), alpha(take(a, T * P)), predicted(take(a, T * P)),
        states(take(a, T * P)), prior(take(a, P)), maximum(take(a, padded(T))), increment(take(a, padded(T))),
        probability(take(a, P)), outside(take(a, P)) {
    for (int k = 0; k < P; k++) outside[k] = k < K ? S(0) : S(1);
  }

  // The tables alone, for sequences in lanes.
  struct TablesOnly {};
  Hmm(Arena<V>& a, const Call<S>& c, int64_t i, TablesOnly)
      : K(int(c.D)), N(padded(c.D) / W), P(padded(c.D)), T(c.T), init(nullptr),
        trans(c.in[kTrans].data + c.in[kTrans].offset[i]), node(nullptr), mask(nullptr), table(take(a, P * P)),
        flipped(take(a, P * P)), log_flipped(take(a, P * P)), top(take(a, P)) {}

  static S* take(Arena<V>& a, int64_t n) { return reinterpret_cast<S*>(a.take(n / W)); }
  static V* v(S* p) { return reinterpret_cast<V*>(p); }
  static const V* v(const S* p) { return reinterpret_cast<const V*>(p); }
  bool real(int64_t t) const { return mask[t] != 0; }
  int64_t first() const {
    int64_t t = 0;
    while (t < T && !real(t)) t++;
    return t;
  }

  // Vector n of a row of K entries of an array of T rows, `fill` beyond K. It may read into the next row.
  V row(const S* rows, int64_t t, int n, S fill = kNone) const {
    V x{};
    if (t + 1 < T && P <= 2 * K)
      x = load<S, W>(rows + t * K + n * W);
    else
      std::memcpy(&x, rows + t * K + n * W, (n + 1 < N ? W : K - n * W) * sizeof(S));
    return v(outside)[n] == V{} ? x : splat<S, W>(fill);
  }
  V inside(V x, int n) const { return v(outside)[n] == V{} ? x : V{}; }

  // The K entries of x into a row of theirs.
  void put(S* row, const S* x) const {
    for (int n = 0; n + 1 < N; n++) store<S, W>(row + n * W, v(x)[n]);
    if (K == P)
      store<S, W>(row + P - W, v(x)[N - 1]);
    else
      store_some<S, W>(row + P - W, v(x)[N - 1], K - (P - W));
  }

  static S highest(V x) {
    return fold<S, W>(x, [](auto a, auto b) { return a > b ? a : b; });
  }
  static S sum_of(V x) {
    return fold<S, W>(x, [](auto a, auto b) { return a + b; });
  }

  // The largest of P entries.
  S max_of(const S* x) const {
    V best = v(x)[0];
    for (int n = 1; n < N; n++) best = v(x)[n] > best ? v(x)[n] : best;
    return highest(best);
  }

  S max_of_node(int64_t t) const {
    V best = row(node, t, 0);
    for (int n = 1; n < N; n++) {
      const V x = row(node, t, n);
      best = x > best ? x : best;
    }
    return finite(highest(best));
  }

  static S finite(S x) { return x == kNone ? S(0) : x; }

  void tabulate() {
    for (int j = 0; j < P; j++) {
      S best = kNone;
      for (int i = 0; j < K && i < K; i++) best = trans[i * K + j] > best ? trans[i * K + j] : best;
      top[j] = j < K ? finite(best) : kNone;
    }
    for (int i = 0; i < P; i++)
      for (int j = 0; j < P; j++) {
        const bool inside = i < K && j < K;
        const S x = inside ? trans[i * K + j] : kNone;
        log_flipped[j * P + i] = x;
        table[i * P + j] = inside ? x - top[j] : kNone;
      }
    for (int i = 0; i < P * N; i++) v(table)[i] = exponential<S, W>(v(table)[i]);
    for (int i = 0; i < P; i++)
      for (int j = 0; j < P; j++) flipped[j * P + i] = table[i * P + j];
  }

  // out = sum_i x_i rows[i], M vectors of it at a time, in registers: four sums of each, for they wait on each other
  template <int M>
  void combine_part(V* out, const S* x, const S* rows) const {
    V sum[4][M] = {};
    int i = 0;
    for (; i + 3 < K; i += 4)
#pragma GCC unroll 4
      for (int c = 0; c < 4; c++)
#pragma GCC unroll 4
        for (int m = 0; m < M; m++) sum[c][m] += x[i + c] * v(rows + (i + c) * P)[m];
    for (; i < K; i++)
#pragma GCC unroll 4
      for (int m = 0; m < M; m++) sum[0][m] += x[i] * v(rows + i * P)[m];
    for (int m = 0; m < M; m++) out[m] = (sum[0][m] + sum[1][m]) + (sum[2][m] + sum[3][m]);
  }
  void combine(V* out, const S* x, const S* rows) const {
    int n = 0;
    for (; n + 4 <= N; n += 4) combine_part<4>(out + n, x, rows + n * W);
    for (; n + 2 <= N; n += 2) combine_part<2>(out + n, x, rows + n * W);
    for (; n < N; n++) combine_part<1>(out + n, x, rows + n * W);
  }

  // x <- exp(x - max) / sum, and log sum exp
  S normalize(S* x) const {
    const S best = finite(max_of(x));
    V sums{};
    for (int n = 0; n < N; n++) {
      v(x)[n] = exponential<S, W>(v(x)[n] - best);
      sums += v(x)[n];
    }
    const S sum = sum_of(sums);
    if (sum == 0) return kNone;
    const S scale = 1 / sum;
    for (int n = 0; n < N; n++) v(x)[n] *= scale;
    return best + std::log(sum);
  }

  // p(z_t = . | z_t+1 = j) in logarithms, for an entry that the product has lost; log of its sum.
  S column(int64_t t, int j, S* out) const {
    for (int n = 0; n < N; n++) v(out)[n] = v(states + t * P)[n] + v(log_flipped + j * P)[n];
    return normalize(out);
  }

  void forward(S* scratch);
  void emissions();
  bool forward_in_probabilities();
  void forward_in_logarithms(S* scratch);
  void begin(S* out) const;
  void advance(int64_t t, S* next, S* scratch);
  bool lost(const S* x) const;
  void log_states(int64_t t, S* out) const;
};

}  // namespace svae::SVAE_VARIANT
