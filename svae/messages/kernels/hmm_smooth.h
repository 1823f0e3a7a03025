// Filter and smoother of the hidden Markov chain.
#pragma once
#include "hmm_total.h"

namespace svae::SVAE_VARIANT {

// in: log_init, log_trans, node, mask; out: log_states, log_z
template <class S, int W>
void hmm_filter(const Call<S>& call, int64_t i) {
  const int P = Hmm<S, W>::padded(call.D);
  Arena<Lanes<S, W>> arena((Hmm<S, W>::size(call.D, call.T) + P) / W);
  Hmm<S, W> hmm(arena, call, i);
  S* scratch = hmm.take(arena, P);
  hmm.forward(scratch);
  S *log_states = call.out[0].data + i * call.out[0].size, *log_z = call.out[1].data + i * call.out[1].size;
  for (int64_t t = 0; t < hmm.T; t++) {
    hmm.log_states(t, scratch);
    hmm.put(log_states + t * hmm.K, scratch);
    log_z[t] = hmm.increment[t] + hmm.maximum[t];
  }
}

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
  std::memcpy(now, hmm.alpha + (T - 1) * P, P * sizeof(S));
  for (int64_t t = T - 1; t >= 0; t--) {
    if (t + 1 < T && hmm.real(t + 1) && t >= first) {
      const S *product = hmm.predicted + t * P, *alpha = hmm.alpha + t * P;
      for (int n = 0; n < N; n++) {
        const V p = hmm.v(product)[n];
        hmm.v(ratio)[n] = p != V{} ? hmm.v(now)[n] / p : V{};
      }
      hmm.combine(hmm.v(sum), ratio, hmm.flipped);
      pairs.add(alpha, ratio);
      for (int n = 0; n < N; n++) hmm.v(sum)[n] *= hmm.v(alpha)[n];
      for (int j = 0; j < K && !hmm.trusted; j++) {
        if (product[j] != 0 || now[j] == 0) continue;
        hmm.column(t, j, column);
        for (int k = 0; k < K; k++) {
          sum[k] += column[k] * now[j];
          pairs.apart[k * P + j] += double(column[k]) * now[j];
        }
      }
      std::swap(now, sum);
    }
    hmm.put(states + t * K, now);
    log_z[t] = hmm.increment[t] + hmm.maximum[t];
    kl[t] = 0;
    if (!hmm.real(t)) continue;
    V sums{};
    for (int n = 0; n < N; n++) {
      const V x = hmm.row(hmm.node, t, n) - hmm.maximum[t];
      sums += x == splat<S, W>(H::kNone) ? V{} : x * hmm.v(now)[n];
    }
    kl[t] = hmm.sum_of(sums) - hmm.increment[t];
  }
  pairs.flush();
  for (int a = 0; a < K; a++)
    for (int b = 0; b < K; b++) transitions[a * K + b] = S(pairs.get(a, b));
}

}  // namespace svae::SVAE_VARIANT
