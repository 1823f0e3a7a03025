// Paths of the hidden Markov chain: the best one, and draws.
#pragma once
#include "hmm.h"

namespace svae::SVAE_VARIANT {

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
