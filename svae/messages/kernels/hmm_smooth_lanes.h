// The smoother of hidden Markov chains in lanes. With backward messages beta the marginals of a step are alpha beta,
// and those of a pair alpha_t table (emission beta)_t+1 / sum_t+1: no quotients of states.
#pragma once
#include "hmm_lanes.h"
#include "hmm_smooth.h"

namespace svae::SVAE_VARIANT {

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
    Arena<V> arena(H::tables(K) / W + HmmLanes<S, W>::size(K, T) + Pairs::size(K) + (Pairs::kBlock + 3) * (K + W));
    H hmm(arena, call, first, typename H::TablesOnly());
    hmm.tabulate();
    HmmLanes<S, W> x(arena, hmm, call, first);
    Pairs pairs(arena, K);
    V *beta = arena.take(K + W), *states = arena.take(K + W), *centred = arena.take(K + W),
      *ratios = arena.take(Pairs::kBlock * K);
    x.template forward<false>();
    const Writer<S, W> write_states(call.out[0], first, call.batch);
    StepWriter<S, W> write_log_z(call.out[2], first, call), write_kl(call.out[3], first, call);
    for (int j = 0; j < K; j++) beta[j] = splat<S, W>(1);
    for (int64_t t = T - 1; t >= 0; t--) {
      const V *alpha = x.alpha + t * K, *e = x.emission + t * K;
      V total{}, kl{};
      for (int j = 0; j < K; j++) {
        states[j] = alpha[j] * beta[j];
        total += states[j];
      }
      const V scale = S(1) / total;  // 1 but for rounding, which would add up over time
      x.node(centred, t * K, K, true);
      for (int j = 0; j < K; j++) {
        states[j] *= scale;
        const V c = centred[j] - x.maximum[t];
        kl += c == splat<S, W>(H::kNone) ? V{} : c * states[j];
      }
      write_states(states, t * K, K, true);
      const V increment = logarithm<S, W>(x.sum[t]);
      kl -= increment;
      if (x.padded) kl = x.real[t] != V{} ? kl : V{};
      write_log_z(t, increment + x.maximum[t]);
      write_kl(t, kl);
      if (t == 0) break;
      V *ratio = ratios + (t % Pairs::kBlock) * K, factor = scale / x.sum[t];
      if (x.padded) factor = x.real[t] != V{} ? factor : V{};
      for (int j = 0; j < K; j++) ratio[j] = e[j] * beta[j] * factor;
      pairs.add(alpha - K, ratio);
      if (x.padded)
        for (int j = 0; j < K; j++) states[j] = beta[j];
      combine_lanes(K, hmm.P, beta, ratio, hmm.flipped);
      if (x.padded)
        for (int j = 0; j < K; j++) beta[j] = x.real[t] != V{} ? beta[j] : states[j];
    }
    pairs.flush();
    for (int64_t i = first; i < last; i++) {
      S* transitions = call.out[1].data + i * call.out[1].size;
      for (int a = 0; a < K; a++)
        for (int b = 0; b < K; b++)
          transitions[a * K + b] = S(pairs.get(a, b, int(i - first)) * hmm.table[a * hmm.P + b]);
    }
    bad = x.bad;
  }
  for (int64_t i = first; i < last; i++)
    if (bad[i - first]) hmm_smooth<S, W>(call, i);
}

}  // namespace svae::SVAE_VARIANT
