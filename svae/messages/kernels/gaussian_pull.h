// The derivative of the Gaussian chain by two more sweeps. The cotangent of a covariance P = L L' is carried as
// omega = L' (dP) L, in the coordinates of its own root, where every step of the recursion is well scaled.
//
// Notation of one step: X = I - F F'J, u = h - J m (m filtered), d = filtered - predicted mean, e = smoothed -
// filtered.
#pragma once
#include "gaussian_kept.h"
#include "gaussian_sums.h"

namespace svae::SVAE_VARIANT {

// The second sweep: from omega_f, sigma (cotangent of the filtered mean) and the transition's parts, to the chain's
// cotangents. log_z and kl have cotangents too (kl only after a smoother).
template <class S, int W>
class Pull {
  using V = Lanes<S, W>;
  const int D, DD;
  V *inverse, *inverse_next, *omega, *omega_f, *A, *P, *M, *N, *root, *mbar, *fbar, *r, *x, *y, *v, *J;
  const ChainReader<S, W>& chain;
  const Writer<S, W> mean0, sqrt0, dJ, dh;
  Cotangent<S, W> dA, db, dQ;
  bool read_ = false;

 public:
  static int64_t size(int D) { return 10 * D * D + 6 * D + Cotangent<S, W>::size(2 * D * D + D); }
  Pull(Arena<V>& a, int D, const ChainReader<S, W>& chain, const Call<S>& c, int64_t first)
      : D(D), DD(D * D), inverse(a.take(DD)), inverse_next(a.take(DD)), omega(a.take(DD)), omega_f(a.take(DD)),
        A(a.take(DD)), P(a.take(DD)), M(a.take(DD)), N(a.take(DD)), root(a.take(DD)), mbar(a.take(D)), fbar(a.take(D)),
        r(a.take(D)), x(a.take(D)), y(a.take(D)), v(a.take(D)), J(a.take(DD)), chain(chain),
        mean0(c.out[kMean0], first, c.batch), sqrt0(c.out[kSqrt0], first, c.batch), dJ(c.out[kJ], first, c.batch),
        dh(c.out[kH], first, c.batch), dA(a, DD, c.out[kA], first, c.batch), db(a, D, c.out[kB], first, c.batch),
        dQ(a, DD, c.out[kQ], first, c.batch) {}

  // The transition out of step t, whose successor's cotangents are mbar and omega.
  void transition(int64_t t, const Kept<S, W>& k) {
    std::swap(inverse, inverse_next);  // of step t + 1
    for (int i = 0; i < D; i++) mbar[i] -= k.carried[i];
    db(mbar, t);
    if (!read_) chain.A(A, t * DD, DD, true);
    read_ = chain.A.steady && dQ.steady;
    times_transposed(D, fbar, A, mbar);
    for (int i = 0; i < D; i++) fbar[i] += k.sigma[i];
    multiply<V, false, Full, false, Lower>(D, M, A, k.F, S(1));
    multiply<V, false, Lower, false, Full>(D, k.whitened_A, inverse_next, M, S(1));
    multiply<V, false, Full, false, Full>(D, P, omega, k.whitened_A, S(1));
    copy(omega_f, k.omega_f, DD);
    multiply<V, true, Full, false, Full, Lower, true>(D, omega_f, k.whitened_A, P, S(1));
    complete(D, omega_f);
#pragma omp simd
    for (int i = 0; i < DD; i++) P[i] = k.A_part[i] + S(2) * P[i];
    multiply<V, false, Full, true, Upper>(D, M, P, k.F, S(1));
    multiply<V, true, Upper, false, Full>(D, P, inverse_next, M, S(1));
    rank_one(D, P, mbar, k.mean);
    dA(P, t);
#pragma omp simd
    for (int i = 0; i < DD; i++) omega[i] += k.omega_Q[i];
    noise(t);
  }

  // The cotangent of Q is 2 L^-T omega L^-1 Q; where Q is steady it joins the sum of the others last.
  void noise(int64_t t) {
    if (dQ.steady) {
      multiply<V, false, Full, false, Lower>(D, N, omega, inverse_next, S(2));
      multiply<V, true, Upper, false, Full, Lower>(D, P, inverse_next, N, S(1));
    } else {
      chain.Q(A, t * DD, DD, true);
      through_root(inverse_next, A);
    }
    dQ(P, t);
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
    invert<S, W>(D, inverse, k.L);
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
      (*smoothed)(root, t* DD, DD, true);
      multiply<V, false, Lower, true, Upper, Lower>(D, M, root, root, S(-0.5));
    }
    if (smoothed) {
#pragma omp simd
      for (int i = 0; i < DD; i++) P[i] += kl * M[i];
      for (int i = 0; i < D; i++) x[i] = S(-0.25) * kl * k.e[i];
      rank_two(D, P, x, k.e);
    }
    for (int i = 0; i < D; i++) x[i] = S(-0.5) * r[i] - S(0.25) * log_z * k.mean[i];
    rank_two(D, P, x, k.mean);
    complete(D, P);
    dJ(P, t * DD, DD, true);
  }

  void predicted(const Kept<S, W>& k, V log_z, V kl, V half) {
    multiply<V, false, Full, true, Upper>(D, M, omega_f, k.R_inverse, S(1));
    multiply<V, false, Lower, false, Full, Lower>(D, omega, k.R_inverse, M, S(1));
    times_transposed(D, x, k.L, v);
    for (int i = 0; i < D; i++) x[i] = S(0.5) * x[i] + S(0.25) * (kl + log_z) * k.w[i];
    rank_two(D, omega, x, k.w);
    for (int i = 0; i < D; i++) {
      omega[i * D + i] += half;
      mbar[i] = v[i] + log_z * k.u[i];
    }
    complete(D, omega);
  }

  void first() {
    mean0(mbar, 0, D);
    chain.sqrt0(A, 0, DD);
    through_root(inverse, A);
    sqrt0(P, 0, DD);
    if (db.steady) db.write(db.sum());
    if (dA.steady) dA.write(dA.sum());
    if (dQ.steady) steady_noise();
  }

  void steady_noise() {
    copy(M, dQ.sum(), DD);
    mirror(D, M);
    chain.Q(A, 0, DD);
    multiply<V, false, Full, false, Full>(D, P, M, A, S(1));
    dQ.write(P);
  }
};

}  // namespace svae::SVAE_VARIANT
