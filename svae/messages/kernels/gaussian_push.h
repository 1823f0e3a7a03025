// The derivative of smoothing itself, as gaussian_pull.h is that of the filter; same notation.
#pragma once
#include "gaussian_pull.h"

namespace svae::SVAE_VARIANT {

// The first sweep of the smoother's derivative: the adjoint of smoothing runs forward in time, beside the filter.
template <class S, int W>
class Smoothed {
  using V = Lanes<S, W>;
  const int D, DD;
  V *root, *root_next, *omega, *sigma, *epsilon, *shift, *y, *gain, *back, *d, *N, *ON, *H, *V_b, *Z, *total, *psi, *M,
      *P;
  const Reader<S, W> read_sqrt, read_gain, read_back, read_shift, d_mean, d_sqrt, d_gains, d_back, d_kl;

 public:
  static int64_t size(int D) { return 15 * D * D + 4 * D; }
  Smoothed(Arena<V>& a, int D, const Call<S>& c, int64_t f)
      : D(D), DD(D * D), root(a.take(DD)), root_next(a.take(DD)), omega(a.take(DD)), sigma(a.take(D)),
        epsilon(a.take(D)), shift(a.take(D)), y(a.take(D)), gain(a.take(DD)), back(a.take(DD)), d(a.take(DD)),
        N(a.take(DD)), ON(a.take(DD)), H(a.take(DD)), V_b(a.take(DD)), Z(a.take(DD)), total(a.take(DD)),
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
#pragma omp simd
    for (int i = 0; i < DD; i++) omega[i] += M[i] + kl * N[i];  // of lanes, the lower triangle
    complete(D, omega);
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
    // Memory serves again as soon as it is done with: the nearest cache holds only a few of these matrices.
    V *K = d, *V_s = ON, *C = psi;
    multiply<V, false, Full, false, Lower>(D, K, gain, next.L, S(1));
    solve_left<S, W, Full>(D, V_s, K, root, M);
    solve_left<S, W, Lower>(D, H, back, root, M);
    multiply<V, false, Lower, false, Lower>(D, C, next.inverse, root_next, S(1));
    multiply<V, false, Full, false, Lower>(D, N, V_s, C, S(1));
    multiply<V, false, Full, false, Full>(D, ON, omega, N, S(1));
    solve_left<S, W, Full>(D, V_b, K, back, M);
    // Z' = back^-1 (I - gain A) F, for (I - gain A) F F' = back back'
    solve_left<S, W, Lower>(D, Z, back, x.F, M);
    clear_upper(D, Z);
    // psi = 2 H' (omega N) C' + back' (d_gain + epsilon shift') L-^-T
    multiply<V, true, Upper, false, Full>(D, M, H, ON, S(2));
    multiply<V, false, Full, true, Upper>(D, P, M, C, S(1));
    d_gains(d, t * DD, DD);
    rank_one(D, d, epsilon, shift);
    multiply<V, true, Upper, false, Full>(D, M, back, d, S(1));
    multiply<V, false, Full, true, Upper, Full, true>(D, P, M, next.inverse, S(1));
    std::swap(psi, P);
    // total = H' omega H + the cotangent of back_sqrt, in the coordinates of back_sqrt
    d_back(d, t * DD, DD);
    whitened_cotangent(D, total, back, d, S(0.5));
    multiply<V, false, Full, false, Lower>(D, M, omega, H, S(1));
    multiply<V, true, Upper, false, Full, Lower, true>(D, total, H, M, S(1));
    complete(D, total);
    multiply<V, false, Lower, false, Full>(D, k.whitened_A, next.inverse, next.AF, S(1));
    parts(k);
    // on to step t + 1
    multiply<V, true, Full, false, Full, Lower>(D, omega, N, ON, S(1));
    complete(D, omega);
    times_transposed(D, sigma, gain, epsilon);
    copy(k.carried, sigma, D);
  }

  void parts(const Kept<S, W>& k) {
    V *TZ = M, *PA = P;
    multiply<V, false, Full, true, Upper>(D, TZ, total, Z, S(1));
    multiply<V, false, Full, false, Full>(D, PA, psi, k.whitened_A, S(1));
#pragma omp simd
    for (int i = 0; i < DD; i++) {
      const V s = TZ[i] + PA[i];
      PA[i] = -S(1) * (s + TZ[i]);
      TZ[i] = s;
    }
    multiply<V, false, Lower, false, Full>(D, k.omega_f, Z, TZ, S(1));
    symmetrize(D, k.omega_f, S(0.5));
    multiply<V, true, Full, false, Full>(D, k.A_part, V_b, PA, S(1));
    multiply<V, true, Full, true, Upper, Full, true>(D, k.A_part, psi, Z, S(1));
    multiply<V, false, Full, false, Full, Full>(D, M, total, V_b, S(1));
#pragma omp simd
    for (int i = 0; i < DD; i++) M[i] -= psi[i];
    multiply<V, true, Full, false, Full>(D, k.omega_Q, V_b, M, S(1));
    symmetrize(D, k.omega_Q, S(0.5));
  }
};

}  // namespace svae::SVAE_VARIANT
