// The hidden Markov chain, one sequence at a time, its K states in SIMD lanes (K padded to P entries).
//
// Messages are normalised logarithms. A step multiplies probabilities by exp(log_trans - the maximum of its column); an
// entry that this product leaves too small to trust is done again in logarithms, so that nothing is lost to underflow.
#pragma once
#include <limits>

#include "arena.h"
#include "functions.h"

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
  S *states, *predicted;                   // of every step: log p(z_t | nodes to t), and its product with the table
  S *prior, *maximum, *increment, *probability;

  static int padded(int64_t K) { return int((K + W - 1) / W * W); }
  static int64_t size(int64_t K, int64_t T) {
    const int64_t P = padded(K);
    return 3 * P * P + 3 * P + 2 * T * P + 2 * padded(T);
  }

  Hmm(Arena<V>& a, const Call<S>& c, int64_t i)
      : K(int(c.D)), N(padded(c.D) / W), P(padded(c.D)), T(c.T), init(c.in[kInit].data + c.in[kInit].offset[i]),
        trans(c.in[kTrans].data + c.in[kTrans].offset[i]), node(c.in[kNode].data + c.in[kNode].offset[i]),
        mask(c.in[kMask].data + c.in[kMask].offset[i]), table(take(a, P * P)), flipped(take(a, P * P)),
        log_flipped(take(a, P * P)), top(take(a, P)), states(take(a, T * P)), predicted(take(a, T * P)),
        prior(take(a, P)), maximum(take(a, padded(T))), increment(take(a, padded(T))), probability(take(a, P)) {}

  static S* take(Arena<V>& a, int64_t n) { return reinterpret_cast<S*>(a.take(n / W)); }
  static V* v(S* p) { return reinterpret_cast<V*>(p); }
  static const V* v(const S* p) { return reinterpret_cast<const V*>(p); }
  bool real(int64_t t) const { return mask[t] != 0; }
  int64_t first() const {
    int64_t t = 0;
    while (t < T && !real(t)) t++;
    return t;
  }

  // Vector n of a row of K entries of an array of T rows, -inf beyond K. It may read into the next row.
  V row(const S* rows, int64_t t, int n) const {
    V x = splat<S, W>(kNone);
    if (t + 1 < T && P <= 2 * K)
      x = load<S, W>(rows + t * K + n * W);
    else
      std::memcpy(&x, rows + t * K + n * W, (n + 1 < N ? W : K - n * W) * sizeof(S));
    if (n + 1 == N)
      for (int l = 0; l < W; l++) x[l] = n * W + l < K ? x[l] : kNone;
    return x;
  }

  static S highest(V x) {
    S best = x[0];
    for (int l = 1; l < W; l++) best = x[l] > best ? x[l] : best;
    return best;
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

  // out = sum_i x_i rows[i], M vectors of it at a time, in registers
  template <int M>
  void combine_part(V* out, const S* x, const S* rows) const {
    V even[M] = {}, odd[M] = {};
    int i = 0;
    for (; i + 1 < K; i += 2)
#pragma GCC unroll 4
      for (int m = 0; m < M; m++) {
        even[m] += x[i] * v(rows + i * P)[m];
        odd[m] += x[i + 1] * v(rows + (i + 1) * P)[m];
      }
    for (; i < K; i++)
#pragma GCC unroll 4
      for (int m = 0; m < M; m++) even[m] += x[i] * v(rows + i * P)[m];
    for (int m = 0; m < M; m++) out[m] = even[m] + odd[m];
  }
  void combine(V* out, const S* x, const S* rows) const {
    int n = 0;
    for (; n + 4 <= N; n += 4) combine_part<4>(out + n, x, rows + n * W);
    for (; n + 2 <= N; n += 2) combine_part<2>(out + n, x, rows + n * W);
    for (; n < N; n++) combine_part<1>(out + n, x, rows + n * W);
  }

  // rows[i] += x_i y
  void add_outer(S* rows, const S* x, const V* y) const {
    for (int i = 0; i < K; i++) {
      const S s = x[i];
      for (int n = 0; n < N; n++) v(rows + i * P)[n] += s * y[n];
    }
  }

  // x <- exp(x - max) / sum, and log sum exp
  S normalize(S* x) const {
    const S best = finite(max_of(x));
    V sums{};
    for (int n = 0; n < N; n++) {
      v(x)[n] = exponential<S, W>(v(x)[n] - best);
      sums += v(x)[n];
    }
    S sum = 0;
    for (int l = 0; l < W; l++) sum += get<S, W>(sums, l);
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

  // log_init, normalised, stands for the states before the first real step.
  void begin(S* out) const {
    for (int k = 0; k < P; k++) probability[k] = k < K ? init[k] : kNone;
    const S total = finite(normalize(probability));
    for (int k = 0; k < P; k++) out[k] = k < K ? init[k] - total : kNone;
  }

  // log p(z_t | nodes to t) of all steps, with the nodes' maxima apart.
  void forward(S* scratch) {
    tabulate();
    for (int k = 0; k < P; k++) prior[k] = k < K ? init[k] : kNone;
    for (int64_t t = 0; t < T; t++) {
      S *x = states + t * P, *next = predicted + t * P;
      maximum[t] = increment[t] = 0;
      if (!real(t)) {
        if (t == 0) {
          begin(x);
          for (int k = 0; k < P; k++) next[k] = 0;
        } else {
          std::memcpy(x, x - P, P * sizeof(S));
          std::memcpy(next, next - P, P * sizeof(S));
        }
        continue;
      }
      maximum[t] = max_of_node(t);
      for (int n = 0; n < N; n++) v(x)[n] = v(prior)[n] + (row(node, t, n) - maximum[t]);
      std::memcpy(probability, x, P * sizeof(S));
      increment[t] = normalize(probability);
      const S total = finite(increment[t]);
      for (int n = 0; n < N; n++) v(x)[n] -= total;
      if (t + 1 < T) advance(t, next, scratch);
    }
  }

  void advance(int64_t t, S* next, S* scratch) {
    combine(v(next), probability, table);
    for (int j = K; j < P; j++) next[j] = 1;
    for (int n = 0; n < N; n++) {
      const V p = v(next)[n], one = splat<S, W>(1);
      v(prior)[n] = logarithm<S, W>(p == V{} ? one : p) + v(top)[n];
    }
    for (int j = K; j < P; j++) prior[j] = kNone;
    if (!lost(next)) return;
    for (int j = 0; j < K; j++) {
      if (next[j] >= kTiny || next[j] != next[j]) continue;
      next[j] = 0;
      prior[j] = column(t, j, scratch);
    }
  }

  // Whether any of the P entries is too small to trust.
  bool lost(const S* x) const {
    V least = v(x)[0];
    for (int n = 1; n < N; n++) least = v(x)[n] < least ? v(x)[n] : least;
    return -highest(-least) < kTiny;
  }

  void exponentiate(int64_t t, S* out) const {
    for (int n = 0; n < N; n++) v(out)[n] = exponential<S, W>(v(states + t * P)[n]);
  }
};

// in: log_init, log_trans, node, mask; out: log_states, log_z
template <class S, int W>
void hmm_filter(const Call<S>& call, int64_t i) {
  const int P = Hmm<S, W>::padded(call.D);
  Arena<Lanes<S, W>> arena((Hmm<S, W>::size(call.D, call.T) + P) / W);
  Hmm<S, W> hmm(arena, call, i);
  hmm.forward(hmm.take(arena, P));
  S *log_states = call.out[0].data + i * call.out[0].size, *log_z = call.out[1].data + i * call.out[1].size;
  for (int64_t t = 0; t < hmm.T; t++) {
    std::memcpy(log_states + t * hmm.K, hmm.states + t * P, hmm.K * sizeof(S));
    log_z[t] = hmm.increment[t] + hmm.maximum[t];
  }
}

// A K x K sum over time: single precision for a while, then double.
template <class S, int W>
struct Total {
  using H = Hmm<S, W>;
  static constexpr int kFlush = 32;
  const H& hmm;
  S* rows;
  double *weighted, *apart;
  int steps = 0;

  static int64_t size(int64_t K) { return int64_t(H::padded(K)) * H::padded(K) * (1 + 2 * sizeof(double) / sizeof(S)); }
  Total(Arena<Lanes<S, W>>& a, const H& hmm) : hmm(hmm), rows(hmm.take(a, hmm.P * hmm.P)) {
    const int64_t n = hmm.P * hmm.P;
    weighted = reinterpret_cast<double*>(hmm.take(a, n * sizeof(double) / sizeof(S)));
    apart = reinterpret_cast<double*>(hmm.take(a, n * sizeof(double) / sizeof(S)));
    for (int64_t i = 0; i < n; i++) rows[i] = weighted[i] = apart[i] = 0;
  }
  void step() {
    if (++steps % kFlush == 0) flush();
  }
  void flush() {
    for (int64_t i = 0; i < hmm.P * hmm.P; i++) {
      weighted[i] += rows[i];
      rows[i] = 0;
    }
  }
  // sum of (rows * the table) + what was added apart
  double get(int i, int j) const { return weighted[i * hmm.P + j] * hmm.table[i * hmm.P + j] + apart[i * hmm.P + j]; }
};

// in: log_init, log_trans, node, mask; out: states, transitions, log_z, kl
template <class S, int W>
void hmm_smooth(const Call<S>& call, int64_t i) {
  using V = Lanes<S, W>;
  using H = Hmm<S, W>;
  const int P = Hmm<S, W>::padded(call.D), K = int(call.D), N = P / W;
  Arena<V> arena((Hmm<S, W>::size(K, call.T) + Total<S, W>::size(K) + 4 * P) / W);
  Hmm<S, W> hmm(arena, call, i);
  Total<S, W> pairs(arena, hmm);
  S *now = hmm.take(arena, P), *ratio = hmm.take(arena, P), *sum = hmm.take(arena, P), *column = hmm.take(arena, P);
  hmm.forward(column);
  S *states = call.out[0].data + i * call.out[0].size, *transitions = call.out[1].data + i * call.out[1].size,
    *log_z = call.out[2].data + i * call.out[2].size, *kl = call.out[3].data + i * call.out[3].size;
  const int64_t T = call.T;
  const int64_t first = hmm.first();
  hmm.exponentiate(T - 1, now);
  for (int64_t t = T - 1; t >= 0; t--) {
    if (t + 1 < T && hmm.real(t + 1) && t >= first) {
      const S* product = hmm.predicted + t * P;
      hmm.exponentiate(t, hmm.probability);
      for (int j = 0; j < P; j++) ratio[j] = product[j] != 0 ? now[j] / product[j] : S(0);
      hmm.combine(hmm.v(sum), ratio, hmm.flipped);
      hmm.add_outer(pairs.rows, hmm.probability, hmm.v(ratio));
      for (int n = 0; n < N; n++) hmm.v(sum)[n] *= hmm.v(hmm.probability)[n];
      for (int j = 0; j < K; j++) {
        if (product[j] != 0 || now[j] == 0) continue;
        hmm.column(t, j, column);
        for (int k = 0; k < K; k++) {
          sum[k] += column[k] * now[j];
          pairs.apart[k * P + j] += double(column[k]) * now[j];
        }
      }
      std::memcpy(now, sum, P * sizeof(S));
      pairs.step();
    }
    std::memcpy(states + t * K, now, K * sizeof(S));
    log_z[t] = hmm.increment[t] + hmm.maximum[t];
    kl[t] = 0;
    if (!hmm.real(t)) continue;
    V sums{};
    for (int n = 0; n < N; n++) {
      const V x = hmm.row(hmm.node, t, n) - hmm.maximum[t];
      sums += x == splat<S, W>(H::kNone) ? V{} : x * hmm.v(now)[n];
    }
    S mean = 0;
    for (int l = 0; l < W; l++) mean += sums[l];
    kl[t] = mean - hmm.increment[t];
  }
  pairs.flush();
  for (int a = 0; a < K; a++)
    for (int b = 0; b < K; b++) transitions[a * K + b] = S(pairs.get(a, b));
}

// Back in time through the filter, from cotangents `kept` of the log states and `increment` of the increments of log Z.
template <class S, int W, class Increment, class More>
void pull_filter(const Hmm<S, W>& hmm, Total<S, W>& total, const S* kept, S* d_init, S* d_node,
                 Arena<Lanes<S, W>>& arena, Increment increment, More more) {
  const int K = hmm.K, P = hmm.P, N = hmm.N;
  S *acc = hmm.take(arena, P), *x = hmm.take(arena, P), *z = hmm.take(arena, P), *column = hmm.take(arena, P),
    *alpha = hmm.probability;
  const int64_t first = hmm.first();
  for (int k = 0; k < P; k++) acc[k] = 0;
  for (int k = 0; k < K; k++) d_init[k] = 0;
  for (int64_t t = hmm.T - 1; t >= 0; t--) {
    const bool real = hmm.real(t);
    S sum = 0;
    for (int k = 0; k < K; k++) sum += acc[k] += kept[t * P + k];
    if (!real) {
      for (int k = 0; k < K; k++) d_node[t * K + k] = 0;
      if (t > 0) continue;  // the states of a padded step are those before it
    }
    hmm.exponentiate(t, alpha);
    const S inside = real ? increment(t) - sum : -sum;
    for (int k = 0; k < P; k++) x[k] = k < K ? acc[k] + alpha[k] * inside : S(0);
    if (real)
      for (int k = 0; k < K; k++) d_node[t * K + k] = x[k] + more(t, k);
    for (int k = 0; k < P; k++) acc[k] = 0;
    if (t <= first) {  // before it there is log_init alone
      for (int k = 0; k < K; k++) d_init[k] += x[k];
      continue;
    }
    const S* product = hmm.predicted + (t - 1) * P;
    hmm.exponentiate(t - 1, alpha);
    for (int j = 0; j < P; j++) z[j] = product[j] != 0 ? x[j] / product[j] : S(0);
    hmm.combine(hmm.v(acc), z, hmm.flipped);
    for (int n = 0; n < N; n++) hmm.v(acc)[n] *= hmm.v(alpha)[n];
    hmm.add_outer(total.rows, alpha, hmm.v(z));
    for (int j = 0; j < K; j++) {
      if (product[j] != 0 || x[j] == 0) continue;
      hmm.column(t - 1, j, column);
      for (int k = 0; k < K; k++) {
        acc[k] += column[k] * x[j];
        total.apart[k * P + j] += double(column[k]) * x[j];
      }
    }
    total.step();
  }
}

// in: log_init, log_trans, node, mask; cotangents of log_states, log_z; out: cotangents of log_init, log_trans, node
template <class S, int W>
void hmm_filter_vjp(const Call<S>& call, int64_t i) {
  using H = Hmm<S, W>;
  const int P = H::padded(call.D), K = int(call.D);
  Arena<Lanes<S, W>> arena((H::size(K, call.T) + Total<S, W>::size(K) + call.T * P + 5 * P) / W);
  H hmm(arena, call, i);
  Total<S, W> total(arena, hmm);
  S *kept = hmm.take(arena, call.T * P), *d_trans = call.out[1].data + i * call.out[1].size;
  const S *d_states = call.in[4].data + call.in[4].offset[i], *d_log_z = call.in[5].data + call.in[5].offset[i];
  hmm.forward(hmm.take(arena, P));
  for (int64_t t = 0; t < call.T; t++)
    for (int k = 0; k < K; k++) kept[t * P + k] = hmm.states[t * P + k] == H::kNone ? S(0) : d_states[t * K + k];
  pull_filter<S, W>(
      hmm, total, kept, call.out[0].data + i * call.out[0].size, call.out[2].data + i * call.out[2].size, arena,
      [&](int64_t t) { return d_log_z[t]; }, [](int64_t, int) { return S(0); });
  total.flush();
  for (int a = 0; a < K; a++)
    for (int b = 0; b < K; b++) d_trans[a * K + b] = S(total.get(a, b));
}

// in: log_init, log_trans, node, mask; states, transitions; cotangents of states, transitions, log_z, kl
// out: cotangents of log_init, log_trans, node
template <class S, int W>
void hmm_smooth_vjp(const Call<S>& call, int64_t i) {
  using V = Lanes<S, W>;
  using H = Hmm<S, W>;
  const int P = H::padded(call.D), K = int(call.D), N = P / W;
  const int64_t T = call.T;
  Arena<V> arena((H::size(K, T) + Total<S, W>::size(K) + 2 * P * P + T * P + 12 * P) / W);
  H hmm(arena, call, i);
  Total<S, W> total(arena, hmm);
  auto take = [&] { return hmm.take(arena, P); };
  S *c = take(), *ac = take(), *ratio = take(), *q = take(), *z = take(), *y = take(), *column = take(), *x = take();
  S *weights = hmm.take(arena, P * P), *weights_flipped = hmm.take(arena, P * P), *kept = hmm.take(arena, T * P);
  auto operand = [&](int n) { return call.in[n].data + call.in[n].offset[i]; };
  const S *states = operand(4), *transitions = operand(5), *d_states = operand(6), *d_transitions = operand(7),
          *d_log_z = operand(8), *d_kl = operand(9);
  S *d_init = call.out[0].data + i * call.out[0].size, *d_trans = call.out[1].data + i * call.out[1].size,
    *d_node = call.out[2].data + i * call.out[2].size;
  hmm.forward(column);
  for (int a = 0; a < P; a++)
    for (int b = 0; b < P; b++) {
      const S w = a < K && b < K ? d_transitions[a * K + b] * hmm.table[a * P + b] : S(0);
      weights[a * P + b] = weights_flipped[b * P + a] = w;
    }
  const int64_t first = hmm.first();
  S* alpha = hmm.probability;

  // Forward in time: c is the cotangent of the marginals of step t (up to a constant), kept that of their logarithms.
  for (int k = 0; k < P; k++) c[k] = 0;
  for (int64_t t = 0; t < T; t++) {
    const S kl = hmm.real(t) ? d_kl[t] : S(0);
    S mean = 0;
    for (int k = 0; k < K; k++) {
      const S centred = hmm.node[t * K + k] - hmm.maximum[t];
      c[k] += d_states[t * K + k] + (kl != 0 && centred != H::kNone ? kl * centred : S(0));
      mean += c[k] * states[t * K + k];
    }
    for (int k = 0; k < K; k++) c[k] -= mean;
    S* lbar = kept + t * P;
    hmm.exponentiate(t, alpha);
    for (int n = 0; n < N; n++) hmm.v(ac)[n] = hmm.v(alpha)[n] * hmm.v(c)[n];
    if (t + 1 == T) {
      std::memcpy(lbar, ac, P * sizeof(S));
      break;
    }
    if (!hmm.real(t + 1) || t < first) {
      for (int k = 0; k < P; k++) lbar[k] = 0;
      continue;
    }
    const S *product = hmm.predicted + t * P, *next = states + (t + 1) * K;
    hmm.combine(hmm.v(q), ac, hmm.table);
    hmm.combine(hmm.v(y), alpha, weights);
    for (int j = 0; j < P; j++) {
      const S inverse = product[j] != 0 ? 1 / product[j] : S(0);
      ratio[j] = j < K ? next[j] * inverse : S(0);
      q[j] = (q[j] + y[j]) * inverse;
      z[j] = ratio[j] * q[j];
    }
    hmm.combine(hmm.v(y), ratio, weights_flipped);
    hmm.combine(hmm.v(x), z, hmm.flipped);
    for (int n = 0; n < N; n++) hmm.v(lbar)[n] = hmm.v(alpha)[n] * (hmm.v(y)[n] - hmm.v(x)[n]);
    for (int k = 0; k < K; k++) lbar[k] += states[t * K + k] * c[k];
    for (int a = 0; a < K; a++)
      if (alpha[a] != 0)
        for (int n = 0; n < N; n++)
          hmm.v(total.rows + a * P)[n] += ac[a] * hmm.v(ratio)[n] - alpha[a] * hmm.v(z)[n];
    for (int j = 0; j < K; j++) {
      if (product[j] != 0) continue;
      hmm.column(t, j, column);
      for (int k = 0; k < K; k++) q[j] += column[k] * (c[k] + d_transitions[k * K + j]);
      if (next[j] == 0) continue;
      for (int k = 0; k < K; k++) {
        const S pair = column[k] * next[j];
        lbar[k] += pair * (d_transitions[k * K + j] - q[j]);
        total.apart[k * P + j] += double(pair) * (c[k] - q[j]);
      }
    }
    total.step();
    std::memcpy(c, q, P * sizeof(S));
  }

  pull_filter<S, W>(
      hmm, total, kept, d_init, d_node, arena, [&](int64_t t) { return d_log_z[t] - d_kl[t]; },
      [&](int64_t t, int k) { return d_kl[t] * states[t * K + k]; });
  total.flush();
  for (int a = 0; a < K; a++)
    for (int b = 0; b < K; b++)
      d_trans[a * K + b] = S(total.get(a, b) + double(d_transitions[a * K + b]) * transitions[a * K + b]);
}

template <class S>
inline S score(const S* x, const S* into, int k) {
  return into ? x[k] + into[k] : x[k];
}

// The path that follows the best scores back in time, from scores of every step padded to P.
template <class S, int W>
void backtrack(const Hmm<S, W>& hmm, const S* scores, int64_t stride, S* z) {
  const int K = hmm.K;
  int best = 0;
  for (int64_t t = hmm.T - 1; t >= 0; t--) {
    const S* x = scores + t * stride;
    if (t + 1 == hmm.T || hmm.real(t + 1)) {
      const S* into = t + 1 == hmm.T ? nullptr : hmm.log_flipped + best * hmm.P;
      S highest = score(x, into, 0);
      best = 0;
      for (int k = 1; k < K; k++) {
        const S s = score(x, into, k);
        if (s > highest) highest = s, best = k;
      }
    }
    z[t] = S(best);
  }
}

// in: log_init, log_trans, node, mask, where node holds the scores; out: z
template <class S, int W>
void hmm_backtrack(const Call<S>& call, int64_t i) {
  Arena<Lanes<S, W>> arena(Hmm<S, W>::size(call.D, call.T) / W);
  Hmm<S, W> hmm(arena, call, i);
  hmm.tabulate();
  backtrack<S, W>(hmm, hmm.node, hmm.K, call.out[0].data + i * call.out[0].size);
}

// in: log_init, log_trans, node, mask; out: z
template <class S, int W>
void hmm_viterbi(const Call<S>& call, int64_t i) {
  using V = Lanes<S, W>;
  Arena<V> arena(Hmm<S, W>::size(call.D, call.T) / W);
  Hmm<S, W> hmm(arena, call, i);
  hmm.tabulate();
  const int K = hmm.K, P = hmm.P, N = hmm.N;
  S* rows = hmm.flipped;  // log_trans by rows, padded
  for (int a = 0; a < P; a++)
    for (int b = 0; b < P; b++) rows[a * P + b] = hmm.log_flipped[b * P + a];
  for (int k = 0; k < P; k++) hmm.prior[k] = k < K ? hmm.init[k] : hmm.kNone;
  for (int64_t t = 0; t < hmm.T; t++) {
    S* x = hmm.states + t * P;
    if (!hmm.real(t)) {
      for (int k = 0; k < P; k++) x[k] = t ? (x - P)[k] : hmm.prior[k];
      continue;
    }
    const S top = hmm.max_of_node(t);
    for (int k = 0; k < P; k++) x[k] = k < K ? hmm.prior[k] + (hmm.node[t * K + k] - top) : hmm.kNone;
    const S best = hmm.finite(hmm.max_of(x));
    for (int k = 0; k < P; k++) x[k] -= best;
    for (int n = 0; n < N; n++) hmm.v(hmm.prior)[n] = splat<S, W>(hmm.kNone);
    for (int a = 0; a < K; a++)
      for (int n = 0; n < N; n++) {
        const V s = x[a] + hmm.v(rows + a * P)[n], p = hmm.v(hmm.prior)[n];
        hmm.v(hmm.prior)[n] = s > p ? s : p;
      }
  }
  backtrack<S, W>(hmm, hmm.states, P, call.out[0].data + i * call.out[0].size);
}

}  // namespace svae::SVAE_VARIANT
