// The derivative of hmm_lanes.h, as hmm_vjp.h is that of one sequence; same notation.
#pragma once
#include "hmm_lanes.h"
#include "hmm_vjp.h"

namespace svae::SVAE_VARIANT {

// from_rows_j = sum_i x_i weights_ij and from_columns_i = sum_j y_j weights_ij in one pass, M columns at a time
template <int M, class V>
inline void weigh(int K, V* from_rows, V* from_columns, const V* x, const V* y, const V* weights) {
  V sum[M] = {}, b[M];
#pragma GCC unroll 16
  for (int m = 0; m < M; m++) b[m] = y[m];
  for (int i = 0; i < K; i++) {
    const V* w = weights + i * K;
    V even{}, odd{};
#pragma GCC unroll 16
    for (int m = 0; m < M; m++) {
      sum[m] += x[i] * w[m];
      ((m & 1) ? odd : even) += b[m] * w[m];
    }
    from_columns[i] += even + odd;
  }
#pragma GCC unroll 16
  for (int m = 0; m < M; m++) from_rows[m] = sum[m];
}

template <class V>
inline void weigh(int K, V* from_rows, V* from_columns, const V* x, const V* y, const V* weights) {
  for (int i = 0; i < K; i++) from_columns[i] = V{};
  int j = 0;
  for (; j + 10 <= K; j += 10) weigh<10>(K, from_rows + j, from_columns, x, y + j, weights + j);
  for (; j < K; j++) weigh<1>(K, from_rows + j, from_columns, x, y + j, weights + j);
}

template <class S, int W>
class HmmLanesVjp {
  using V = Lanes<S, W>;
  using H = Hmm<S, W>;
  using Pairs = PairSums<S, W>;
  const int K;
  const int64_t T;
  const H& hmm;
  const HmmLanes<S, W>& x;
  Pairs& pairs;
  const Reader<S, W> states, d_states, d_transitions, d_log_z, d_kl;
  V *weights, *kept, *ring, *c, *q, *y, *z, *now, *next, *acc, *log_z_bar, *kl_bar;

  V* slot(int which, int64_t t) const { return ring + (which * Pairs::kBlock + t % Pairs::kBlock) * K; }

 public:
  static int64_t size(int64_t K, int64_t T) {
    return K * K + T * K + 3 * Pairs::kBlock * K + 7 * (K + W) + 2 * (T + W);
  }
  HmmLanesVjp(Arena<V>& a, const H& hmm, const HmmLanes<S, W>& x, Pairs& pairs, const Call<S>& c, int64_t f)
      : K(hmm.K), T(c.T), hmm(hmm), x(x), pairs(pairs), states(c.in[4], f, c.batch), d_states(c.in[6], f, c.batch),
        d_transitions(c.in[7], f, c.batch), d_log_z(c.in[8], f, c.batch), d_kl(c.in[9], f, c.batch),
        weights(a.take(K * K)), kept(a.take(T * K)), ring(a.take(3 * Pairs::kBlock * K)), c(a.take(K + W)),
        q(a.take(K + W)), y(a.take(K + W)), z(a.take(K + W)), now(a.take(K + W)), next(a.take(K + W)),
        acc(a.take(K + W)), log_z_bar(a.take(T + W)), kl_bar(a.take(T + W)) {
    d_transitions(weights, 0, K * K);
    d_log_z(log_z_bar, 0, int(T));
    d_kl(kl_bar, 0, int(T));
    for (int i = 0; i < K; i++)
      for (int j = 0; j < K; j++) weights[i * K + j] *= hmm.table[i * hmm.P + j];
    for (int j = 0; j < K; j++) this->c[j] = acc[j] = V{};
    states(next, 0, K);
  }

  // Forward in time: c is the cotangent of the marginals of step t (up to a constant), kept that of their logarithms.
  void push() {
    for (int64_t t = 0; t < T; t++) {
      std::swap(now, next);
      marginals(t);
      const V* alpha = x.alpha + t * K;
      V* ac = t + 1 < T ? slot(0, t) : kept + t * K;
      for (int j = 0; j < K; j++) ac[j] = alpha[j] * c[j];
      if (t + 1 < T) transition(t, alpha, ac);
    }
    pairs.flush();
  }

  void marginals(int64_t t) {
    d_states(y, t * K, K);
    x.node(z, t * K, K);
    const V kl = x.real[t] != V{} ? kl_bar[t] : V{};
    V mean{};
    for (int j = 0; j < K; j++) {
      const V centred = z[j] - x.maximum[t];
      c[j] += y[j] + (centred == splat<S, W>(H::kNone) ? V{} : kl * centred);
      mean += c[j] * now[j];
    }
    for (int j = 0; j < K; j++) c[j] -= mean;
  }

  void transition(int64_t t, const V* alpha, const V* ac) {
    V *ratio = slot(1, t), *against = slot(2, t), *out = kept + t * K;
    const V* product = x.emission + t * K;
    const auto goes = x.real[t + 1] != V{};
    states(next, (t + 1) * K, K);
    for (int j = 0; j < K; j++) {
      out[j] = S(1) / product[j];
      ratio[j] = goes ? next[j] * out[j] : V{};
    }
    combine_lanes(K, hmm.P, q, ac, hmm.table);
    weigh(K, y, acc, alpha, ratio, weights);
    for (int j = 0; j < K; j++) {
      q[j] = (q[j] + y[j]) * out[j];
      z[j] = ratio[j] * q[j];
      against[j] = -z[j];
    }
    combine_lanes(K, hmm.P, y, z, hmm.flipped);
    for (int j = 0; j < K; j++) {
      out[j] = goes ? alpha[j] * (acc[j] - y[j]) + now[j] * c[j] : V{};
      c[j] = goes ? q[j] : c[j];
    }
    pairs.add(ac, ratio);
    pairs.add(alpha, against);
  }

  // Back in time through the filter.
  void pull(const Writer<S, W>& d_init, const Writer<S, W>& d_node) {
    for (int j = 0; j < K; j++) acc[j] = V{};
    for (int64_t t = T - 1; t >= 0; t--) {
      const auto real = x.real[t] != V{};
      const V *alpha = x.alpha + t * K, *out = kept + t * K;
      V sum{};
      for (int j = 0; j < K; j++) {
        acc[j] += out[j];
        sum += acc[j];
      }
      states(now, t * K, K, true);
      const V inside = log_z_bar[t] - kl_bar[t] - sum;
      for (int j = 0; j < K; j++) {
        q[j] = acc[j] + alpha[j] * inside;
        now[j] = real ? q[j] + kl_bar[t] * now[j] : V{};
      }
      d_node(now, t * K, K, true);
      if (t == 0) return d_init(q, 0, K);
      V* ratio = slot(0, t);
      const V* product = x.emission + (t - 1) * K;
      for (int j = 0; j < K; j++) ratio[j] = real ? q[j] / product[j] : V{};
      combine_lanes(K, hmm.P, y, ratio, hmm.flipped);
      for (int j = 0; j < K; j++) acc[j] = real ? y[j] * (alpha - K)[j] : acc[j];
      pairs.add(alpha - K, ratio);
    }
  }
};

// As hmm_smooth_vjp, W sequences at once where their transitions are shared.
template <class S, int W>
void hmm_smooth_vjp_lanes(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  using H = Hmm<S, W>;
  const int K = int(call.D);
  const int64_t T = call.T, last = first + W < call.batch ? first + W : call.batch;
  typename HmmLanes<S, W>::I bad;
  {
    Arena<V> arena(H::tables(K) / W + HmmLanes<S, W>::size(K, T) + PairSums<S, W>::size(K) +
                   HmmLanesVjp<S, W>::size(K, T));
    H hmm(arena, call, first, typename H::TablesOnly());
    hmm.tabulate();
    HmmLanes<S, W> x(arena, hmm, call, first);
    PairSums<S, W> pairs(arena, K);
    HmmLanesVjp<S, W> vjp(arena, hmm, x, pairs, call, first);
    x.template forward<true>();
    vjp.push();
    vjp.pull(Writer<S, W>(call.out[0], first, call.batch), Writer<S, W>(call.out[2], first, call.batch));
    pairs.flush();
    for (int64_t i = first; i < last; i++) {
      const S *transitions = call.in[5].data + call.in[5].offset[i], *bar = call.in[7].data + call.in[7].offset[i];
      S* d_trans = call.out[1].data + i * call.out[1].size;
      for (int a = 0; a < K; a++)
        for (int b = 0; b < K; b++)
          d_trans[a * K + b] = S(pairs.get(a, b, int(i - first)) * hmm.table[a * hmm.P + b] +
                                 double(bar[a * K + b]) * transitions[a * K + b]);
    }
    bad = x.bad;
  }
  for (int64_t i = first; i < last; i++)
    if (bad[i - first]) hmm_smooth_vjp<S, W>(call, i);
}

}  // namespace svae::SVAE_VARIANT
