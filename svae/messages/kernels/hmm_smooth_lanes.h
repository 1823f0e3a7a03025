// The smoother of hidden Markov chains in lanes. With backward messages beta the marginals of a step are x beta, and
// those of a pair x_t table ratio_t+1, with ratio = emission beta / sum of the step before: no quotients of states.
#pragma once
#include "hmm_lanes.h"
#include "hmm_smooth.h"

namespace svae::SVAE_VARIANT {

// Step t from the ratios of t + 1, which take the place of the emissions. Padding passes the message of the step after.
template <class S, int W, bool Padded>
struct HmmBack {
  using V = Lanes<S, W>;
  const HmmLanes<S, W>& h;
  V *states, *beta;
  int64_t t;
  int rows;  // none at the last step, where the message is `start`
  V start, factor, total, kl;

  template <int M>
  inline void tile(int j) {
    const int64_t at = t * h.K + j;
    const V *from = h.emission + (t + 1) * h.K, *x = h.x + at, *logs = h.logs + at;
    V *ratio = h.emission + at, *out = states + j, *kept = beta + j;
    const S *table = h.hmm.flipped + j, *added = h.added(t) + j;
    const V most = h.maximum[t], floor = splat<S, W>(std::numeric_limits<S>::lowest()), f = factor;
    V sum[M], all = total, inside = kl;
#pragma GCC unroll 16
    for (int m = 0; m < M; m++) sum[m] = start;
    for (int i = 0; i < rows; i++) add_row(sum, from[i], table + i * h.hmm.P);
#pragma GCC unroll 16
    for (int m = 0; m < M; m++) {
      if (Padded) kept[m] = sum[m] = rows && h.real[t + 1] == V{} ? kept[m] : sum[m];
      const V state = x[m] * sum[m], centred = (logs[m] - most) - added[m];
      all += state;
      inside += state * (floor > centred ? floor : centred);  // 0 of a state that cannot be
      out[m] = state;
      ratio[m] = ratio[m] * sum[m] * f;
    }
    total = all;
    kl = inside;
  }
};

template <class S, int W, bool Padded>
void back_in_lanes(const HmmLanes<S, W>& x, PairSums<S, W>& pairs, Arena<Lanes<S, W>>& arena, const Call<S>& call,
                   int64_t first) {
  using V = Lanes<S, W>;
  const int K = x.K;
  const Writer<S, W> write_states(call.out[0], first, call.batch);
  StepWriter<S, W> write_log_z(call.out[2], first, call), write_kl(call.out[3], first, call);
  V* states = arena.take(kSteps * K);
  HmmBack<S, W, Padded> back{x, states, arena.take(K), x.T - 1, 0, x.scale[x.T - 1]};
  back.total = splat<S, W>(1);
  for (int64_t t = x.T - 1; t >= 0; t--) {
    const auto real = x.real[t] != V{};
    // The totals are 1 but for rounding, which would add up over time: half of the last one's is taken off.
    if (t) back.factor = x.scale[t - 1] * (S(1.5) - S(0.5) * back.total);
    if (Padded) back.factor = real ? back.factor : V{};
    back.total = back.kl = V{};
    back.t = t;
    back.states = states + t % kSteps * K;
    x.tiles(back);
    if (t % kSteps == 0) write_states(states, t * K, int(x.T - t < kSteps ? x.T - t : kSteps) * K, true);
    const V increment = logarithm<S, W>(x.sum[t]), kl = back.kl - increment;
    write_log_z(t, increment + x.maximum[t]);
    write_kl(t, real ? kl : V{});
    if (t) pairs.add(x.x + (t - 1) * K, x.emission + t * K);
    back.rows = K;
    back.start = V{};
  }
  pairs.flush();
}

// As hmm_smooth, W sequences at once where their transitions are shared.
template <class S, int W>
void hmm_smooth_lanes(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  using H = Hmm<S, W>;
  using Pairs = PairSums<S, W>;
  const int K = int(call.D);
  const int64_t T = call.T, last = first + W < call.batch ? first + W : call.batch;
  typename HmmLanes<S, W>::I bad;
  {
    Arena<V> arena(H::tables(K) / W + HmmLanes<S, W>::size(K, T) + Pairs::size(K) + (kSteps + 1) * K + K * K);
    H hmm(arena, call, first, typename H::TablesOnly());
    hmm.tabulate();
    HmmLanes<S, W> x(arena, hmm, call, first);
    Pairs pairs(arena, K);
    V* sums = arena.take(K * K);
    x.template forward<false>();
    (x.padded ? back_in_lanes<S, W, true> : back_in_lanes<S, W, false>)(x, pairs, arena, call, first);
    for (int n = 0; n < K * K; n++) sums[n] = pairs.times(n, hmm.table[n / K * hmm.P + n % K]);
    Writer<S, W>(call.out[1], first, call.batch)(sums, 0, K * K);
    bad = x.bad;
  }
  for (int64_t i = first; i < last; i++)
    if (bad[i - first]) hmm_smooth<S, W>(call, i);
}

}  // namespace svae::SVAE_VARIANT
