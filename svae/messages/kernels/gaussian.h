// The Gaussian chain in square-root covariance form: W sequences in lanes, one step after another.
//
// L is the lower root of a predicted covariance, F = L R^-1 of the filtered one, with R'R = I + L'JL, R lower.
#pragma once
#include "arena.h"
#include "matrix.h"

namespace svae::SVAE_VARIANT {

enum ChainInput { kMean0, kSqrt0, kA, kB, kQ, kJ, kH };

// The moments of one step as the potential meets them, and what the update leaves.
template <class S, int W>
struct Step {
  using V = Lanes<S, W>;
  V *J, *h, *L, *inverse, *R, *R_inverse, *F, *m, *g, *pull, *d, *mean, *w, *u, *scratch;

  static int64_t size(int D) { return 7 * D * D + 8 * D; }
  Step(Arena<V>& a, int D)
      : J(a.take(D * D)), h(a.take(D)), L(a.take(D * D)), inverse(a.take(D * D)), R(a.take(D * D)),
        R_inverse(a.take(D * D)), F(a.take(D * D)), m(a.take(D)), g(a.take(D)), pull(a.take(D)), d(a.take(D)),
        mean(a.take(D)), w(a.take(D)), u(a.take(D)), scratch(a.take(D * D)) {}

  // Needs J, h, L, its inverse and m.
  void update(int D) {
    multiply<V, false, Full, false, Lower>(D, scratch, J, L, S(1));
    multiply<V, true, Upper, false, Full, Lower>(D, R, L, scratch, S(1));
    for (int i = 0; i < D; i++) R[i * D + i] += S(1);
    reverse_cholesky<S, W>(D, R);
    invert(D, R_inverse, R);
    multiply<V, false, Lower, false, Lower, Lower>(D, F, L, R_inverse, S(1));
    clear_upper(D, F);
    times(D, g, J, m);
    for (int i = 0; i < D; i++) g[i] = h[i] - g[i];
    times_transposed(D, pull, F, g);
    times(D, d, F, pull);
    for (int i = 0; i < D; i++) mean[i] = m[i] + d[i];
    times(D, w, R_inverse, pull);
    times_transposed(D, u, inverse, w);
  }

  V log_determinant(int D) const {
    LogProduct<S, W> product;
    for (int i = 0; i < D; i++) product.times(R[i * D + i]);
    return product.log();
  }

  V log_z(int D, V logdet) const {
    V s{};
    for (int i = 0; i < D; i++) s += m[i] * (h[i] + g[i]) + pull[i] * pull[i];
    return S(0.5) * s - logdet;
  }
};

// The transition out of a step: reads A, b, Q and makes the next predicted moments.
template <class S, int W>
struct Transition {
  using V = Lanes<S, W>;
  V *A, *b, *Q, *AF, *L, *inverse, *vectors, *m;
  Reflection<V>* h;

  static int64_t size(int D) { return 6 * D * D + 4 * D; }
  Transition(Arena<V>& a, int D)
      : A(a.take(D * D)), b(a.take(D)), Q(a.take(D * D)), AF(a.take(D * D)), L(a.take(D * D)),
        inverse(a.take(D * D)), vectors(a.take(D * D)), m(a.take(D)), h(reinterpret_cast<Reflection<V>*>(a.take(2 * D))) {}

  void predict(int D, const Step<S, W>& from) {
    copy(L, Q, D * D);
    if (!is_lower<S, W>(D, L)) lower_root<S, W>(D, L, h);
    multiply<V, false, Full, false, Lower>(D, AF, A, from.F, S(1));
    copy(vectors, AF, D * D);
    triangularize<S, W>(D, L, vectors, h);
    invert(D, inverse, L);
    times(D, m, A, from.mean);
    for (int i = 0; i < D; i++) m[i] += b[i];
  }

  // Hands the next predicted moments over.
  void arrive(Step<S, W>& to) {
    std::swap(to.L, L);
    std::swap(to.inverse, inverse);
    std::swap(to.m, m);
  }
};

template <class S, int W>
struct ChainReader {
  Reader<S, W> mean0, sqrt0, A, b, Q, J, h;

  ChainReader(const Call<S>& c, int64_t first)
      : mean0(c.in[kMean0], first, c.batch), sqrt0(c.in[kSqrt0], first, c.batch), A(c.in[kA], first, c.batch),
        b(c.in[kB], first, c.batch), Q(c.in[kQ], first, c.batch), J(c.in[kJ], first, c.batch),
        h(c.in[kH], first, c.batch) {}

  void start(int D, Step<S, W>& x, Reflection<Lanes<S, W>>* reflections) const {
    mean0(x.m, 0, D);
    sqrt0(x.L, 0, D * D);
    lower_root<S, W>(D, x.L, reflections);
    invert(D, x.inverse, x.L);
  }
  void potential(int D, int64_t t, Step<S, W>& x) const {
    J(x.J, t * D * D, D * D);
    h(x.h, t * D, D);
  }
  void transition(int D, int64_t t, Transition<S, W>& x) const {
    A(x.A, t * D * D, D * D);
    b(x.b, t * D, D);
    Q(x.Q, t * D * D, D * D);
  }
};

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
  chain.start(D, x, next.h);
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
  Arena<V> arena(Step<S, W>::size(D) + Transition<S, W>::size(D) + 4 * DD + 4 * D + T * kept);
  Step<S, W> x(arena, D);
  Transition<S, W> next(arena, D);
  V *K = arena.take(DD), *rows = arena.take(DD), *gain = arena.take(DD), *back = arena.take(DD),
    *shift = arena.take(D), *e = arena.take(D), *mean = arena.take(D),
    *Je = arena.take(D), *memory = arena.take(T * kept);
  const ChainReader<S, W> chain(call, first);
  const Writer<S, W> write_mean(call.out[0], first, call.batch), write_sqrt(call.out[1], first, call.batch),
      write_gain(call.out[2], first, call.batch), write_back(call.out[3], first, call.batch),
      write_log_z(call.out[4], first, call.batch), write_kl(call.out[5], first, call.batch),
      write_shift(call.out[6], first, call.batch);

  chain.start(D, x, next.h);
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
    chain.transition(D, t, next);
    next.predict(D, x);
    // The reflections that make L- from [A F, Q] take [F, 0] to [gain L-, a root of the backward covariance].
    copy(rows, x.F, DD);
    carry_rows<S, W>(D, K, rows, next.vectors, next.h);
    multiply<V, false, Full, false, Lower>(D, gain, K, next.inverse, S(1));
    lower_root<S, W>(D, rows, next.h);
    write_gain(gain, t * DD, DD);
    write_back(rows, t * DD, DD);
    next.arrive(x);
  }

  // Back in time: shift_t = d_t + gain shift_t+1, sqrt_t = tria[back_t, gain sqrt_t+1].
  const Reader<S, W> read_gain(call.out[2], first, call.batch), read_back(call.out[3], first, call.batch);
  V* sqrt = x.F;
  for (int64_t t = T - 1; t >= 0; t--) {
    const V* keep = memory + t * kept;
    const V *m = keep, *d = keep + D, *u = keep + 2 * D;
    for (int i = 0; i < D; i++) e[i] = V{};
    if (t + 1 < T) {
      chain.J(x.J, t * DD, DD, true);
      read_gain(gain, t * DD, DD, true);
      read_back(back, t * DD, DD, true);
      times(D, e, gain, shift);
      multiply<V, false, Full, false, Lower>(D, rows, gain, sqrt, S(1));
      std::swap(sqrt, back);
      triangularize<S, W>(D, sqrt, rows, next.h);
    }
    for (int i = 0; i < D; i++) {
      shift[i] = d[i] + e[i];
      mean[i] = m[i] + shift[i];
    }
    multiply<V, false, Full, false, Lower, Lower>(D, K, x.J, sqrt, S(1));
    times(D, Je, x.J, e);
    V kl{};
    for (int i = 0; i < D; i++) {
      kl += (S(0.5) * d[i] + e[i]) * u[i] - S(0.5) * e[i] * Je[i];
      for (int j = 0; j <= i; j++) kl -= S(0.5) * K[i * D + j] * sqrt[i * D + j];
    }
    kl += keep[3 * D];
    write_mean(mean, t * D, D, true);
    write_shift(shift, t * D, D, true);
    write_sqrt(sqrt, t * DD, DD, true);
    write_kl(&kl, t, 1);
  }
}

}  // namespace svae::SVAE_VARIANT
