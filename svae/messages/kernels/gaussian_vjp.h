// Cotangents of the chain from those of its filter and of its smoother.
#pragma once
#include "gaussian_push.h"

namespace svae::SVAE_VARIANT {

// in: the chain, cotangents of mean, sqrt, log_z; out: cotangents of the chain
template <class S, int W>
void gaussian_filter_vjp(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  const int D = int(call.D), DD = D * D;
  const int64_t T = call.T, kept = Kept<S, W>::packed(D);
  Arena<V> arena(Step<S, W>::size(D) + Transition<S, W>::size(D) + Pull<S, W>::size(D) + Kept<S, W>::size(D) + DD +
                 T * kept);
  Step<S, W> x(arena, D);
  Transition<S, W> next(arena, D);
  Kept<S, W> k(arena, D, T);
  const ChainReader<S, W> chain(call, first);
  Pull<S, W> pull(arena, D, chain, call, first);
  V *dF = arena.take(DD), *memory = arena.take(T * kept);
  const Reader<S, W> d_mean(call.in[7], first, call.batch), d_sqrt(call.in[8], first, call.batch),
      d_log_z(call.in[9], first, call.batch);
  chain.start(D, x);
  for (int64_t t = 0; t < T; t++) {
    chain.potential(D, t, x);
    x.update(D);
    x.invert_root(D);
    k.step(x);
    d_mean(k.sigma, t * D, D);
    d_sqrt(dF, t * DD, DD);
    whitened_cotangent(D, k.omega_f, x.F, dF, S(0.5));
    for (int i = 0; i < D; i++) k.e[i] = k.carried[i] = V{};
    for (int i = 0; i < DD; i++) k.A_part[i] = k.omega_Q[i] = V{};
    k.save(memory + t * kept);
    if (t + 1 == T) break;
    chain.transition(D, t, next);
    next.predict(D, x);
    next.arrive(x);
  }
  for (int64_t t = T - 1; t >= 0; t--) {
    k.restore(memory + t * kept);
    V log_z;
    d_log_z(&log_z, t, 1);
    if (t + 1 < T)
      pull.transition(t, k);
    else
      pull.last(k);
    pull.update(t, k, log_z, V{}, nullptr);
  }
  pull.first();
}

// in: the chain; sqrt, gain, back_sqrt, shift; cotangents of mean, sqrt, gain, back_sqrt, log_z, kl
// out: cotangents of the chain
template <class S, int W>
void gaussian_smooth_vjp(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  const int D = int(call.D);
  const int64_t T = call.T, kept = Kept<S, W>::packed(D);
  Arena<V> arena(Step<S, W>::size(D) + Transition<S, W>::size(D) + Pull<S, W>::size(D) + Smoothed<S, W>::size(D) +
                 Kept<S, W>::size(D) + T * kept);
  Step<S, W> x(arena, D);
  Transition<S, W> next(arena, D);
  Kept<S, W> k(arena, D, T);
  const ChainReader<S, W> chain(call, first);
  Pull<S, W> pull(arena, D, chain, call, first);
  Smoothed<S, W> smoothed(arena, D, call, first);
  V* memory = arena.take(T * kept);
  const Reader<S, W> d_log_z(call.in[15], first, call.batch), d_kl(call.in[16], first, call.batch);
  chain.start(D, x);
  for (int64_t t = 0; t < T; t++) {
    chain.potential(D, t, x);
    x.update(D);
    x.invert_root(D);
    k.step(x);
    for (int i = 0; i < D; i++) k.e[i] = V{};
    if (t + 1 < T) smoothed.conditional(t, k);
    smoothed.arrive(t, x, k);
    if (t + 1 == T) {
      smoothed.last(k);
    } else {
      chain.transition(D, t, next);
      next.predict(D, x);
      next.invert_root(D);
      smoothed.transition(t, x, next, k);
      next.arrive(x);
    }
    k.save(memory + t * kept);
  }
  for (int64_t t = T - 1; t >= 0; t--) {
    k.restore(memory + t * kept);
    V log_z, kl;
    d_log_z(&log_z, t, 1);
    d_kl(&kl, t, 1);
    if (t + 1 < T)
      pull.transition(t, k);
    else
      pull.last(k);
    pull.update(t, k, log_z, kl, smoothed.roots());
  }
  pull.first();
}

}  // namespace svae::SVAE_VARIANT
