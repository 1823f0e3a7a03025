// The derivative of the Gaussian chain by two more sweeps. The cotangent of a covariance P = L L' is carried as
// omega = L' (dP) L, in the coordinates of its own root, where every step of the recursion is well scaled.
//
// Notation of one step: X = I - F F'J, u = h - J m (m filtered), d = filtered - predicted mean, e = smoothed - filtered.
#pragma once
#include "gaussian.h"

namespace svae::SVAE_VARIANT {

// What the first sweep (forward in time) leaves to the second (back in time), for every step.
template <class S, int W>
struct Kept {
  using V = Lanes<S, W>;
  V *L, *F, *R_inverse, *omega_f, *A_part, *omega_Q, *whitened_A, *mean, *u, *w, *e, *sigma, *carried;

  static int64_t size(int D) { return 7 * D * D + 6 * D; }
  Kept(V* p, int D) {
    V** matrices[] = {&L, &F, &R_inverse, &omega_f, &A_part, &omega_Q, &whitened_A};
    V** vectors[] = {&mean, &u, &w, &e, &sigma, &carried};
    for (V** x : matrices) *x = p, p += D * D;
    for (V** x : vectors) *x = p, p += D;
  }
  void step(int D, const Step<S, W>& x) const {
    copy(L, x.L, D * D);
    copy(F, x.F, D * D);
    copy(R_inverse, x.R_inverse, D * D);
    copy(mean, x.mean, D);
    copy(u, x.u, D);
    copy(w, x.w, D);
  }
};

// The second sweep: from omega_f, sigma (cotangent of the filtered mean) and the transition's parts, to the chain's
// cotangents. log_z and kl have cotangents too (kl only after a smoother).
template <class S, int W>
class Pull {
  using V = Lanes<S, W>;
  const int D, DD;
  V *inverse, *inverse_next, *omega, *omega_f, *A, *P, *M, *N, *root, *mbar, *fbar, *r, *x, *y, *v, *J;
  const ChainReader<S, W>& chain;
  const Writer<S, W> mean0, sqrt0, dA, db, dQ, dJ, dh;

 public:
  static int64_t size(int D) { return 10 * D * D + 6 * D; }
  Pull(Arena<V>& a, int D, const ChainReader<S, W>& chain, const Call<S>& c, int64_t first)
      : D(D), DD(D * D), inverse(a.take(DD)), inverse_next(a.take(DD)), omega(a.take(DD)), omega_f(a.take(DD)),
        A(a.take(DD)), P(a.take(DD)), M(a.take(DD)), N(a.take(DD)), root(a.take(DD)), mbar(a.take(D)),
        fbar(a.take(D)), r(a.take(D)), x(a.take(D)), y(a.take(D)), v(a.take(D)), J(a.take(DD)), chain(chain),
        mean0(c.out[kMean0], first, c.batch), sqrt0(c.out[kSqrt0], first, c.batch), dA(c.out[kA], first, c.batch),
        db(c.out[kB], first, c.batch), dQ(c.out[kQ], first, c.batch), dJ(c.out[kJ], first, c.batch),
        dh(c.out[kH], first, c.batch) {}

  // The transition out of step t, whose successor's cotangents are mbar and omega.
  void transition(int64_t t, const Kept<S, W>& k) {
    std::swap(inverse, inverse_next);  // of step t + 1
    for (int i = 0; i < D; i++) mbar[i] -= k.carried[i];
    db(mbar, t * D, D, true);
    chain.A(A, t * DD, DD, true);
    times_transposed(D, fbar, A, mbar);
    for (int i = 0; i < D; i++) fbar[i] += k.sigma[i];
    multiply<V, false, Full, false, Full>(D, P, omega, k.whitened_A, S(1));
    copy(omega_f, k.omega_f, DD);
    multiply<V, true, Full, false, Full, Lower, true>(D, omega_f, k.whitened_A, P, S(1));
    mirror(D, omega_f);
    for (int i = 0; i < DD; i++) P[i] = k.A_part[i] + S(2) * P[i];
    multiply<V, false, Full, true, Upper>(D, M, P, k.F, S(1));
    multiply<V, true, Upper, false, Full>(D, P, inverse_next, M, S(1));
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) P[i * D + j] += mbar[i] * k.mean[j];
    dA(P, t * DD, DD, true);
    for (int i = 0; i < DD; i++) omega[i] += k.omega_Q[i];
    chain.Q(A, t * DD, DD, true);
    through_root(inverse_next, A);
    dQ(P, t * DD, DD, true);
  }

  // P = 2 L^-T omega L^-1 Q: the cotangent of a root Q of (a part of) L L'.
  void through_root(const V* L_inverse, const V* Q) {
    multiply<V, false, Lower, false, Full>(D, M, L_inverse, Q, S(1));
    multiply<V, false, Full, false, Full>(D, N, omega, M, S(1));
    multiply<V, true, Upper, false, Full>(D, P, L_inverse, N, S(2));
  }

  void last(const Kept<S, W>& k) {
    copy(omega_f, k.omega_f, DD);
    copy(fbar, k.sigma, D);
  }

  // The potential of step t: its cotangents, and mbar and omega of the predicted moments. `smoothed` is the root of the
  // smoothed covariance, or null for a filter.
  void update(int64_t t, const Kept<S, W>& k, V log_z, V kl, const Reader<S, W>* smoothed) {
    const V half = S(0.5) * (kl - log_z);
    invert(D, inverse, k.L);
    chain.J(J, t * DD, DD, true);
    for (int i = 0; i < D; i++) omega_f[i * D + i] -= half;
    // r = F (F'(fbar + kl u) + kl R^-T L^-1 e)
    times(D, x, inverse, k.e);
    times_transposed(D, y, k.R_inverse, x);
    for (int i = 0; i < D; i++) x[i] = k.u[i];
    times_transposed(D, v, k.F, x);
    for (int i = 0; i < D; i++) y[i] = kl * (y[i] + v[i]);
    times(D, r, k.F, y);  // the part of kl
    times(D, v, J, r);
    times_transposed(D, x, k.F, fbar);
    times(D, y, k.F, x);
    for (int i = 0; i < D; i++) r[i] += y[i];
    times(D, y, k.R_inverse, x);
    times_transposed(D, x, inverse, y);
    for (int i = 0; i < D; i++) v[i] = x[i] - v[i];  // X' fbar - J r_kl
    for (int i = 0; i < D; i++) x[i] = r[i] + log_z * k.mean[i];
    dh(x, t * D, D, true);
    potential(t, k, log_z, kl, smoothed);
    predicted(k, log_z, kl, half);
  }

  void potential(int64_t t, const Kept<S, W>& k, V log_z, V kl, const Reader<S, W>* smoothed) {
    multiply<V, false, Full, true, Upper>(D, M, omega_f, k.F, S(1));
    multiply<V, false, Lower, false, Full, Lower>(D, P, k.F, M, S(-1));
    if (smoothed) {
      (*smoothed)(root, t * DD, DD, true);
      multiply<V, false, Lower, true, Upper, Lower>(D, M, root, root, S(-0.5));
    }
    for (int i = 0; i < D; i++)
      for (int j = 0; j <= i; j++) {
        if (smoothed) P[i * D + j] += kl * (M[i * D + j] - S(0.5) * k.e[i] * k.e[j]);
        P[i * D + j] -= S(0.5) * (r[i] * k.mean[j] + r[j] * k.mean[i] + log_z * k.mean[i] * k.mean[j]);
      }
    mirror(D, P);
    dJ(P, t * DD, DD, true);
  }

  void predicted(const Kept<S, W>& k, V log_z, V kl, V half) {
    multiply<V, false, Full, true, Upper>(D, M, omega_f, k.R_inverse, S(1));
    multiply<V, false, Lower, false, Full, Lower>(D, omega, k.R_inverse, M, S(1));
    times_transposed(D, x, k.L, v);
    for (int i = 0; i < D; i++) {
      for (int j = 0; j <= i; j++)
        omega[i * D + j] += S(0.5) * (x[i] * k.w[j] + x[j] * k.w[i] + (kl + log_z) * k.w[i] * k.w[j]);
      omega[i * D + i] += half;
      mbar[i] = v[i] + log_z * k.u[i];
    }
    mirror(D, omega);
  }

  void first() {
    mean0(mbar, 0, D);
    chain.sqrt0(A, 0, DD);
    through_root(inverse, A);
    sqrt0(P, 0, DD);
  }
};

// in: the chain, cotangents of mean, sqrt, log_z; out: cotangents of the chain
template <class S, int W>
void gaussian_filter_vjp(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  const int D = int(call.D), DD = D * D;
  const int64_t T = call.T, kept = Kept<S, W>::size(D);
  Arena<V> arena(Step<S, W>::size(D) + Transition<S, W>::size(D) + Pull<S, W>::size(D) + DD + T * kept);
  Step<S, W> x(arena, D);
  Transition<S, W> next(arena, D);
  const ChainReader<S, W> chain(call, first);
  Pull<S, W> pull(arena, D, chain, call, first);
  V *dF = arena.take(DD), *memory = arena.take(T * kept);
  const Reader<S, W> d_mean(call.in[7], first, call.batch), d_sqrt(call.in[8], first, call.batch),
      d_log_z(call.in[9], first, call.batch);
  chain.start(D, x, next.h);
  for (int64_t t = 0; t < T; t++) {
    const Kept<S, W> k(memory + t * kept, D);
    chain.potential(D, t, x);
    x.update(D);
    k.step(D, x);
    d_mean(k.sigma, t * D, D);
    d_sqrt(dF, t * DD, DD);
    whitened_cotangent(D, k.omega_f, x.F, dF, S(0.5));
    for (int i = 0; i < D; i++) k.e[i] = k.carried[i] = V{};
    for (int i = 0; i < DD; i++) k.A_part[i] = k.omega_Q[i] = V{};
    if (t + 1 == T) break;
    chain.transition(D, t, next);
    next.predict(D, x);
    multiply<V, false, Lower, false, Full>(D, k.whitened_A, next.inverse, next.AF, S(1));
    next.arrive(x);
  }
  for (int64_t t = T - 1; t >= 0; t--) {
    const Kept<S, W> k(memory + t * kept, D);
    V log_z;
    d_log_z(&log_z, t, 1);
    if (t + 1 < T) pull.transition(t, k);
    else pull.last(k);
    pull.update(t, k, log_z, V{}, nullptr);
  }
  pull.first();
}

// The first sweep of the smoother's derivative: the adjoint of smoothing runs forward in time, beside the filter.
template <class S, int W>
class Smoothed {
  using V = Lanes<S, W>;
  const int D, DD;
  V *root, *root_next, *root_inverse, *omega, *sigma, *epsilon, *shift, *y, *gain, *back, *back_inverse, *d_gain, *d,
      *K, *C, *V_s, *N, *ON, *H, *V_b, *Y, *total, *psi, *M, *P;
  const Reader<S, W> read_sqrt, read_gain, read_back, read_shift, d_mean, d_sqrt, d_gains, d_back, d_kl;

 public:
  static int64_t size(int D) { return 21 * D * D + 4 * D; }
  Smoothed(Arena<V>& a, int D, const Call<S>& c, int64_t f)
      : D(D), DD(D * D), root(a.take(DD)), root_next(a.take(DD)), root_inverse(a.take(DD)), omega(a.take(DD)),
        sigma(a.take(D)), epsilon(a.take(D)), shift(a.take(D)), y(a.take(D)), gain(a.take(DD)), back(a.take(DD)),
        back_inverse(a.take(DD)), d_gain(a.take(DD)), d(a.take(DD)), K(a.take(DD)), C(a.take(DD)), V_s(a.take(DD)),
        N(a.take(DD)), ON(a.take(DD)), H(a.take(DD)), V_b(a.take(DD)), Y(a.take(DD)), total(a.take(DD)),
        psi(a.take(DD)), M(a.take(DD)), P(a.take(DD)), read_sqrt(c.in[7], f, c.batch), read_gain(c.in[8], f, c.batch),
        read_back(c.in[9], f, c.batch), read_shift(c.in[10], f, c.batch), d_mean(c.in[11], f, c.batch),
        d_sqrt(c.in[12], f, c.batch), d_gains(c.in[13], f, c.batch), d_back(c.in[14], f, c.batch),
        d_kl(c.in[16], f, c.batch) {
    for (int i = 0; i < DD; i++) omega[i] = V{};
    for (int i = 0; i < D; i++) sigma[i] = V{};
    read_sqrt(root_next, 0, DD);
  }
  const Reader<S, W>* roots() const { return &read_sqrt; }

  // omega and sigma of the smoothed moments of step t, and epsilon, the cotangent of e.
  void arrive(int64_t t, const Step<S, W>& x, const Kept<S, W>& k) {
    V kl;
    d_kl(&kl, t, 1);
    std::swap(root, root_next);
    d_mean(y, t * D, D);
    for (int i = 0; i < D; i++) sigma[i] += y[i];
    times(D, y, x.J, k.e);
    for (int i = 0; i < D; i++) epsilon[i] = sigma[i] + kl * (x.u[i] - y[i]);
    copy(k.sigma, sigma, D);
    d_sqrt(d, t * DD, DD);
    whitened_cotangent(D, M, root, d, S(0.5));
    multiply<V, false, Full, false, Lower>(D, P, x.J, root, S(1));
    multiply<V, true, Upper, false, Full, Lower>(D, N, root, P, S(-0.5));
    for (int i = 0; i < D; i++)
      for (int j = 0; j <= i; j++) omega[i * D + j] += M[i * D + j] + kl * N[i * D + j];
    mirror(D, omega);
  }

  void last(const Kept<S, W>& k) { copy(k.omega_f, omega, DD); }

  // gain and e of the transition out of t, before `arrive`.
  void conditional(int64_t t, const Kept<S, W>& k) {
    read_gain(gain, t * DD, DD);
    read_shift(shift, (t + 1) * D, D);
    times(D, k.e, gain, shift);
  }

  // The transition out of t: its parts for the second sweep, and omega and sigma of step t + 1.
  void transition(int64_t t, const Step<S, W>& x, const Transition<S, W>& next, const Kept<S, W>& k) {
    read_back(back, t * DD, DD);
    read_sqrt(root_next, (t + 1) * DD, DD);
    invert(D, root_inverse, root);
    invert(D, back_inverse, back);
    multiply<V, false, Lower, false, Full>(D, k.whitened_A, next.inverse, next.AF, S(1));
    multiply<V, false, Full, false, Lower>(D, K, gain, next.L, S(1));
    multiply<V, false, Lower, false, Lower>(D, C, next.inverse, root_next, S(1));
    multiply<V, false, Lower, false, Full>(D, V_s, root_inverse, K, S(1));
    multiply<V, false, Full, false, Lower>(D, N, V_s, C, S(1));
    multiply<V, false, Full, false, Full>(D, ON, omega, N, S(1));
    multiply<V, false, Lower, false, Lower>(D, H, root_inverse, back, S(1));
    multiply<V, false, Lower, false, Full>(D, V_b, back_inverse, K, S(1));
    copy(P, x.F, DD);
    multiply<V, false, Full, false, Full, Full, true>(D, P, gain, next.AF, S(-1));
    multiply<V, false, Lower, false, Full>(D, Y, back_inverse, P, S(1));
    // total = H' omega H + the cotangent of back_sqrt, in the coordinates of back_sqrt
    d_back(d, t * DD, DD);
    whitened_cotangent(D, total, back, d, S(0.5));
    multiply<V, false, Full, false, Lower>(D, M, omega, H, S(1));
    multiply<V, true, Upper, false, Full, Lower, true>(D, total, H, M, S(1));
    mirror(D, total);
    // psi = back' (d_gain + epsilon shift') L-^-T + 2 H' (omega N) C'
    d_gains(d_gain, t * DD, DD);
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) d_gain[i * D + j] += epsilon[i] * shift[j];
    multiply<V, true, Upper, false, Full>(D, M, back, d_gain, S(1));
    multiply<V, false, Full, true, Upper>(D, psi, M, next.inverse, S(1));
    multiply<V, true, Upper, false, Full>(D, M, H, ON, S(2));
    multiply<V, false, Full, true, Upper, Full, true>(D, psi, M, C, S(1));
    parts(k);
    // on to step t + 1
    multiply<V, true, Full, false, Full, Lower>(D, omega, N, ON, S(1));
    mirror(D, omega);
    times_transposed(D, sigma, gain, epsilon);
    copy(k.carried, sigma, D);
  }

  void parts(const Kept<S, W>& k) {
    V *TY = M, *PA = P;
    multiply<V, false, Full, false, Full>(D, TY, total, Y, S(1));
    multiply<V, false, Full, false, Full>(D, PA, psi, k.whitened_A, S(1));
    for (int i = 0; i < DD; i++) {
      const V s = TY[i] + PA[i];
      PA[i] = -S(1) * (s + TY[i]);
      TY[i] = s;
    }
    multiply<V, true, Full, false, Full>(D, k.omega_f, Y, TY, S(1));
    symmetrize(D, k.omega_f, S(0.5));
    multiply<V, true, Full, false, Full>(D, k.A_part, V_b, PA, S(1));
    multiply<V, true, Full, false, Full, Full, true>(D, k.A_part, psi, Y, S(1));
    multiply<V, false, Full, false, Full, Full>(D, M, total, V_b, S(1));
    for (int i = 0; i < DD; i++) M[i] -= psi[i];
    multiply<V, true, Full, false, Full>(D, k.omega_Q, V_b, M, S(1));
    symmetrize(D, k.omega_Q, S(0.5));
  }
};

// in: the chain; sqrt, gain, back_sqrt, shift; cotangents of mean, sqrt, gain, back_sqrt, log_z, kl
// out: cotangents of the chain
template <class S, int W>
void gaussian_smooth_vjp(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  const int D = int(call.D);
  const int64_t T = call.T, kept = Kept<S, W>::size(D);
  Arena<V> arena(Step<S, W>::size(D) + Transition<S, W>::size(D) + Pull<S, W>::size(D) +
                 Smoothed<S, W>::size(D) + T * kept);
  Step<S, W> x(arena, D);
  Transition<S, W> next(arena, D);
  const ChainReader<S, W> chain(call, first);
  Pull<S, W> pull(arena, D, chain, call, first);
  Smoothed<S, W> smoothed(arena, D, call, first);
  V* memory = arena.take(T * kept);
  const Reader<S, W> d_log_z(call.in[15], first, call.batch), d_kl(call.in[16], first, call.batch);
  chain.start(D, x, next.h);
  for (int64_t t = 0; t < T; t++) {
    const Kept<S, W> k(memory + t * kept, D);
    chain.potential(D, t, x);
    x.update(D);
    k.step(D, x);
    for (int i = 0; i < D; i++) k.e[i] = V{};
    if (t + 1 < T) smoothed.conditional(t, k);
    smoothed.arrive(t, x, k);
    if (t + 1 == T) break;
    chain.transition(D, t, next);
    next.predict(D, x);
    smoothed.transition(t, x, next, k);
    next.arrive(x);
  }
  for (int64_t t = T - 1; t >= 0; t--) {
    const Kept<S, W> k(memory + t * kept, D);
    V log_z, kl;
    d_log_z(&log_z, t, 1);
    d_kl(&kl, t, 1);
    if (t + 1 < T) {
      pull.transition(t, k);
    } else {
      smoothed.last(k);
      pull.last(k);
    }
    pull.update(t, k, log_z, kl, smoothed.roots());
  }
  pull.first();
}

}  // namespace svae::SVAE_VARIANT
