// The derivative of hmm_lanes.h, as hmm_vjp.h is that of one sequence; same notation, with x for alpha: only their
// products with ratios count, and a ratio is that of states and of the product with x.
#pragma once
#include "hmm_lanes.h"
#include "hmm_vjp.h"
#include "hmm_vjp_tiles.h"
#include "hmm_weigh.h"

namespace svae::SVAE_VARIANT {

template <class S, int W>
struct HmmLanesVjp {
  using V = Lanes<S, W>;
  using H = Hmm<S, W>;
  using Pairs = PairSums<S, W>;
  const int K;
  const int64_t T;
  const H& hmm;
  const HmmLanes<S, W>& h;
  Pairs& pairs;
  const Reader<S, W> states_in, d_states, d_transitions, d_log_z, d_kl;
  V *weights, *states, *against;  // of every step: the states, and z, later what is added to ratios by pull
  V *ring_ac, *ring_ratio;  // of the steps of a block of pairs
  V *from_rows, *from_columns;  // x weights and weights ratio, of some steps ahead
  V *c, *out, *log_z_bar, *kl_bar;
  V *kept, *inverse;  // they take the place of logs, and of the products with the table

  static bool serves(const Call<S>& c) { return HmmLanes<S, W>::has_room(c, 5); }
  static int64_t size(int64_t K, int64_t T) {
    return K * K + 2 * (T + 1) * K + 2 * Pairs::kBlock * K + 2 * kStepsAtOnce * K + (kSteps + 1) * K + 2 * (T + W);
  }
  HmmLanesVjp(Arena<V>& a, const H& hmm, const HmmLanes<S, W>& h, Pairs& pairs, const Call<S>& call, int64_t f)
      : K(hmm.K), T(call.T), hmm(hmm), h(h), pairs(pairs), states_in(call.in[4], f, call.batch),
        d_states(call.in[6], f, call.batch), d_transitions(call.in[7], f, call.batch),
        d_log_z(call.in[8], f, call.batch), d_kl(call.in[9], f, call.batch), weights(a.take(K * K)),
        states(a.take((T + 1) * K)), against(a.take((T + 1) * K)), ring_ac(a.take(Pairs::kBlock * K)),
        ring_ratio(a.take(Pairs::kBlock * K)), from_rows(a.take(kStepsAtOnce * K)),
        from_columns(a.take(kStepsAtOnce * K)), c(a.take(K)), out(a.take(kSteps * K)), log_z_bar(a.take(T + W)),
        kl_bar(a.take(T + W)), kept(h.logs), inverse(h.emission) {
    d_transitions(weights, 0, K * K);
    d_log_z(log_z_bar, 0, int(T));
    d_kl(kl_bar, 0, int(T));
    for (int i = 0; i < K; i++)
      for (int j = 0; j < K; j++) weights[i * K + j] *= hmm.table[i * hmm.P + j];
  }

  V* ratio(int64_t t) const { return ring_ratio + t % Pairs::kBlock * K; }
  V* ac(int64_t t) const { return ring_ac + t % Pairs::kBlock * K; }

  // states_t, and what step t adds to the cotangent of its marginals, in the place of logs_t
  void marginals(int64_t t) {
    V *now = states + t * K, *add = kept + t * K;
    const V kl = h.real[t] != V{} ? kl_bar[t] : V{}, most = h.maximum[t], floor = splat<S, W>(-1e20);
    const S* added = h.added(t);
    states_in(now, t * K, K);
    d_states(out, t * K, K);
    for (int j = 0; j < K; j++) {
      const V centred = (add[j] - most) - added[j];
      add[j] = out[j] + kl * (floor > centred ? floor : centred);  // of a state that cannot be: any number
    }
  }

  // What steps t .. t + n - 1 need that does not wait for the steps before them.
  void prepare(int64_t t, int n) {
    for (int64_t s = t; s < t + n; s++) {
      marginals(s + 1);
      const auto goes = h.real[s + 1] != V{};
      V *next = states + (s + 1) * K, *r = ratio(s), *product = inverse + s * K;
      for (int j = 0; j < K; j++) {
        product[j] = reciprocal<S, W>(product[j]);
        r[j] = goes ? next[j] * product[j] : V{};
      }
    }
    weigh(n, K, from_rows, h.x + t * K, weights, K, 1);
    weigh(n, K, from_columns, ratio(t), weights, 1, K);
  }

  // Forward in time: c is the cotangent of the marginals of step t (up to a constant), kept that of their logarithms.
  void push() {
    PushTile<HmmLanesVjp> step{*this};
    marginals(0);
    for (int j = 0; j < K; j++) step.mean += (c[j] = kept[j]) * states[j];
    int ahead = 0, n = 0;
    for (int64_t t = 0; t + 1 < T; t++, ahead++) {
      if (ahead == n) {
        const int64_t room = Pairs::kBlock - t % Pairs::kBlock, left = T - 1 - t < room ? T - 1 - t : room;
        prepare(t, n = int(left < kStepsAtOnce ? left : kStepsAtOnce));
        ahead = 0;
      }
      centre(t, step.mean, from_columns + ahead * K);
      step.t = t;
      step.from_rows = from_rows + ahead * K;
      step.mean = V{};
      h.tiles(step);
      pairs.add(ac(t), ratio(t));
    }
    pairs.flush();
    for (int j = 0; j < K; j++) kept[(T - 1) * K + j] = h.x[(T - 1) * K + j] * h.scale[T - 1] * (c[j] - step.mean);
  }

  void centre(int64_t t, V mean, const V* columns) {
    V *out = kept + t * K, *w = ac(t);
    const V *now = states + t * K, *x = h.x + t * K;
    const auto goes = h.real[t + 1] != V{};
    for (int j = 0; j < K; j++) {
      const V centred = c[j] - mean, y = x[j] * columns[j] + now[j] * centred;
      w[j] = x[j] * centred;
      out[j] = goes ? y : V{};
      if (h.padded) c[j] = centred;
    }
  }

  // Back in time through the filter.
  void pull(const Writer<S, W>& d_init, const Writer<S, W>& d_node) {
    PullTile<HmmLanesVjp> step{*this};
    for (int j = 0; j < K; j++) step.total += kept[(T - 1) * K + j];
    for (int64_t t = T - 1; t >= 0; t--) {
      const auto real = h.real[t] != V{};
      const V *acc = kept + t * K, *x = h.x + t * K, *now = states + t * K, kl = kl_bar[t];
      const V inside = (log_z_bar[t] - kl - step.total) * h.scale[t];
      V *ratio = against + (t ? t - 1 : T) * K, *to = out + t % kSteps * K;
      const V* product = inverse + (t ? t - 1 : T) * K;
      for (int j = 0; j < K; j++) {
        const V q = acc[j] + x[j] * inside, r = q * product[j] - ratio[j];
        to[j] = real ? q + kl * now[j] : V{};
        ratio[j] = real ? r : V{};
        if (t == 0) c[j] = q;
      }
      if (t % kSteps == 0) d_node(out, t * K, int(T - t < kSteps ? T - t : kSteps) * K, true);
      if (t == 0) return d_init(c, 0, K);
      pairs.add(x - K, ratio);
      step.t = t;
      step.total = V{};
      h.tiles(step);
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
                   HmmLanesVjp<S, W>::size(K, T) + 2 * K * K);
    H hmm(arena, call, first, typename H::TablesOnly());
    hmm.tabulate();
    HmmLanes<S, W> x(arena, hmm, call, first);
    PairSums<S, W> pairs(arena, K);
    HmmLanesVjp<S, W> vjp(arena, hmm, x, pairs, call, first);
    x.template forward<true>();
    vjp.push();
    vjp.pull(Writer<S, W>(call.out[0], first, call.batch), Writer<S, W>(call.out[2], first, call.batch));
    pairs.flush();
    V *sums = arena.take(K * K), *counts = arena.take(K * K);
    Reader<S, W>(call.in[5], first, call.batch)(counts, 0, K * K);
    vjp.d_transitions(vjp.weights, 0, K * K);
    for (int n = 0; n < K * K; n++)
      sums[n] = pairs.times(n, hmm.table[n / K * hmm.P + n % K]) + vjp.weights[n] * counts[n];
    Writer<S, W>(call.out[1], first, call.batch)(sums, 0, K * K);
    bad = x.bad;
  }
  for (int64_t i = first; i < last; i++)
    if (bad[i - first]) hmm_smooth_vjp<S, W>(call, i);
}

}  // namespace svae::SVAE_VARIANT
