// Paths of the hidden Markov chain whose transitions change in time: the best one, and draws.
#pragma once
#include "hmm_varying.h"

namespace svae::SVAE_VARIANT {

// The path that follows the best scores back in time.
template <class S, int W>
void backtrack_varying(const Varying<S, W>& hmm, const S* scores, int64_t stride, S* z) {
  const int K = hmm.K;
  int best = 0;
  for (int64_t t = hmm.T - 1; t >= 0; t--) {
    const S* x = scores + t * stride;
    const bool last = t + 1 == hmm.T;
    if (last || hmm.real(t + 1)) {
      const S* into = last ? nullptr : hmm.matrix(t) + best;
      auto score = [&](int k) { return last ? x[k] : x[k] + into[k * K]; };
      S highest = score(0);
      best = 0;
      for (int k = 1; k < K; k++) {
        const S s = score(k);
        if (s > highest) highest = s, best = k;
      }
    }
    z[t] = S(best);
  }
}

// in: log_init, log_trans, node, mask, where node holds the scores; out: z
template <class S, int W>
void hmm_varying_backtrack(const Call<S>& call, int64_t i) {
  Arena<Lanes<S, W>> arena(Varying<S, W>::size(call.D, call.T) / W);
  Varying<S, W> hmm(arena, call, i);
  backtrack_varying<S, W>(hmm, hmm.node, hmm.K, call.out[0].data + i * call.out[0].size);
}

// in: log_init, log_trans, node, mask; out: z
template <class S, int W>
void hmm_varying_viterbi(const Call<S>& call, int64_t i) {
  using V = Lanes<S, W>;
  Arena<V> arena(Varying<S, W>::size(call.D, call.T) / W);
  Varying<S, W> hmm(arena, call, i);
  const int K = hmm.K, P = hmm.P, N = hmm.N;
  for (int64_t t = 0; t < hmm.T; t++) {
    S* x = hmm.states + t * P;
    if (t && !hmm.real(t)) {
      std::memcpy(x, x - P, P * sizeof(S));
      continue;
    }
    hmm.pad(hmm.prior, hmm.init, hmm.kNone);
    for (int n = 0; n < N && t; n++) hmm.v(hmm.prior)[n] = splat<S, W>(hmm.kNone);
    for (int a = 0; a < K && t; a++) {
      hmm.pad(hmm.scratch, hmm.matrix(t - 1) + a * K, hmm.kNone);
      for (int n = 0; n < N; n++)
        hmm.v(hmm.prior)[n] = hmm.largest(hmm.v(hmm.scratch)[n] + (x - P)[a], hmm.v(hmm.prior)[n]);
    }
    std::memcpy(x, hmm.prior, P * sizeof(S));
    if (!hmm.real(t)) continue;
    hmm.pad(hmm.scratch, hmm.node + t * K, hmm.kNone);
    const S most = hmm.finite(hmm.max_of(hmm.scratch));
    for (int n = 0; n < N; n++) hmm.v(x)[n] += hmm.v(hmm.scratch)[n] - most;
    const S best = hmm.finite(hmm.max_of(x));
    for (int n = 0; n < N; n++) hmm.v(x)[n] -= best;
  }
  backtrack_varying<S, W>(hmm, hmm.states, P, call.out[0].data + i * call.out[0].size);
}

}  // namespace svae::SVAE_VARIANT
