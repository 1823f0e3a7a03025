// The Gaussian chain in square-root covariance form: W sequences in lanes, one step after another.
#pragma once
#include "gaussian_back_one.h"
#include "gaussian_transition.h"

namespace svae::SVAE_VARIANT {

// in: the chain; out: mean, sqrt, log_z of the filter
template <class S, int W>
void gaussian_filter(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  const int D = int(call.D);
  const int64_t T = call.T;
  Arena<V> arena(Step<S, W>::size(D) + Transition<S, W>::size(D));
  Step<S, W> x(arena, D);
  Transition<S, W> next(arena, D);
  const ChainReader<S, W> chain(call, first);
  const Writer<S, W> mean(call.out[0], first, call.batch), sqrt(call.out[1], first, call.batch),
      log_z(call.out[2], first, call.batch);
  chain.start(D, x);
  for (int64_t t = 0; t < T; t++) {
    chain.potential(D, t, x);
    x.update(D);
    const V increment = x.log_z(D, x.log_determinant(D));
    mean(x.mean, t * D, D);
    sqrt(x.F, t * D * D, D * D);
    log_z(&increment, t, 1);
    if (t + 1 == T) break;
    chain.transition(D, t, next);
    next.predict(D, x);
    next.arrive(x);
  }
}

// in: the chain; out: mean, sqrt, gain, back_sqrt, log_z, kl, shift = mean - predicted mean
template <class S, int W>
void gaussian_smooth(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  const int D = int(call.D), DD = D * D;
  const int64_t T = call.T, kept = 3 * D + 1;
  const bool flipped = W == 1 && in_lanes<S>(D);
  Arena<V> arena(Step<S, W>::size(D) + Transition<S, W>::size(D) + 2 * DD + 4 * D + T * kept);
  Step<S, W> x(arena, D);
  Transition<S, W> next(arena, D);
  // Memory that a step is done with serves again: the nearest cache holds only a few of these matrices.
  V *K = x.R_inverse, *rows = x.R, *gain = x.J, *back = arena.take(DD), *away = arena.take(DD);
  const ChainReader<S, W> chain(call, first);
  if (!chain.steady()) next.A = x.J;
  next.AF = x.scratch;
  V *shift = arena.take(D), *e = arena.take(D), *mean = arena.take(D), *Je = arena.take(D),
    *memory = arena.take(T * kept);
  const Writer<S, W> write_mean(call.out[0], first, call.batch), write_sqrt(call.out[1], first, call.batch),
      write_gain(call.out[2], first, call.batch), write_back(call.out[3], first, call.batch),
      write_log_z(call.out[4], first, call.batch), write_kl(call.out[5], first, call.batch),
      write_shift(call.out[6], first, call.batch);

  chain.start(D, x);
  for (int64_t t = 0; t < T; t++) {
    chain.potential(D, t, x);
    x.update(D);
    const V logdet = x.log_determinant(D), increment = x.log_z(D, logdet);
    write_log_z(&increment, t, 1);
    V* keep = memory + t * kept;
    copy(keep, x.m, D);
    copy(keep + D, x.d, D);
    copy(keep + 2 * D, x.u, D);
    keep[3 * D] = logdet;
    if (t + 1 == T) break;
    const bool fresh = !next.steady;
    chain.transition(D, t, next);
    if (flipped) {
      if constexpr (W == 1) {
        if (fresh) next.flip(D);
        next.begin_flipped(D, x);
      }
    } else {
      next.begin(D, x);
    }
    condition<S, W>(D, next.noise(), next.L, next.L_scale, gain, rows, K, x.F, next.AF, next.inverse, next.vectors);
    next.finish(D);
    write_gain(gain, t * DD, DD);
    write_back(rows, t * DD, DD);
    next.arrive(x);
  }

  if (flipped) {
    if constexpr (W == 1) {
      const BackOne<S> given{T,
                             x.F,
                             call.in[kJ].data + call.in[kJ].offset[first],
                             memory,
                             write_gain.p[0],
                             write_mean.p[0],
                             write_sqrt.p[0],
                             write_back.p[0],
                             write_kl.p[0],
                             write_shift.p[0]};
      smooth_back(D, given);
    }
    return;
  }
  // Back in time: shift_t = d_t + gain shift_t+1, sqrt_t = tria[back_t, gain sqrt_t+1].
  const Reader<S, W> read_gain(call.out[2], first, call.batch), read_back(call.out[3], first, call.batch);
  V* sqrt = x.F;
  for (int64_t t = T - 1; t >= 0; t--) {
    const V* keep = memory + t * kept;
    for (int64_t i = 0; i < kept && t; i += 64 / sizeof(V) + 1) __builtin_prefetch(keep - 2 * kept + i, 0, 2);
    const V *m = keep, *d = keep + D, *u = keep + 2 * D;
    for (int i = 0; i < D; i++) e[i] = V{};
    if (t + 1 < T) {
      chain.J(x.J, t * DD, DD, true);
      read_gain(away, t * DD, DD, true);
      times(D, e, away, shift);
      multiply<V, false, Full, false, Lower>(D, rows, away, sqrt, S(1));
      std::swap(sqrt, back);
      read_back(sqrt, t * DD, DD, true);
      triangularize<S, W>(D, sqrt, rows, next.h);
    }
    for (int i = 0; i < D; i++) {
      shift[i] = d[i] + e[i];
      mean[i] = m[i] + shift[i];
    }
    multiply<V, false, Lower, true, Upper, Lower>(D, K, sqrt, sqrt, S(-0.5));
    times_transposed(D, Je, x.J, e);
    V kl = trace<S, W>(D, x.J, K);
    for (int i = 0; i < D; i++) kl += (S(0.5) * d[i] + e[i]) * u[i] - S(0.5) * e[i] * Je[i];
    kl += keep[3 * D];
    write_mean(mean, t * D, D);
    write_shift(shift, t * D, D);
    write_sqrt(sqrt, t * DD, DD, true);
    write_kl(&kl, t, 1);
  }
}

}  // namespace svae::SVAE_VARIANT
