// The derivative of smoothing, by lanes (lanes.cuh), several chunks of time in a warp.
//
// Smoothing is m_t = c + G m_t+1, P_t = U + G P_t+1 G', with U = S^-1 = B B', G = U C and c = U r. Its adjoint runs
// forward in time: sigma and Omega, the cotangents of m_t and P_t, go to those of the next node by G'. That gives the
// cotangents of S, C and r; the filter's own adjoint then runs back (gaussian_vjp_back.cuh).
#pragma once
#include "gaussian_pulled.cuh"

namespace svae {

// Adds what node t itself gives to the cotangents of its mean and covariance.
template <int D, class S>
__device__ inline void add_node(double (&Omega)[D], double& sigma, const VjpOperands<D, S>& in, int t,
                                const ForwardMemory<D>& s, int j) {
  constexpr int DD = D * D;
  double x[D], y[D], J[D], inverse[D];
  const double d_kl = in.dk[t];
  get<D>(x, in.L + (long long)t * DD, j);
  put<D>(s.L, x, j);
  s.inverse[j] = reciprocal(double(in.L[(long long)t * DD + j * D + j]));
  s.mean[j] = in.keep(t).mean[j];
  get<D>(y, in.dL + (long long)t * DD, j);
  get<D>(J, in.J + (long long)t * DD, j);
  __syncwarp();
  // of P = L L': sym(L^-T phi(L' dL) L^-1)
  dots<D, kLower>(y, s.L, y);
  halve<D>(y, j);
  put<D>(s.a, y, j);
  invert_columns<D>(inverse, s.L, s.inverse, j);
  put<D>(s.b, inverse, j);
  sigma += double(in.dm[(long long)t * D + j]) + d_kl * (double(in.h[(long long)t * D + j]) - dot<D>(J, s.mean));
  __syncwarp();
  sums<D, kLower>(y, s.a, inverse);
  dots<D, kLower>(y, s.b, y);
  put<D>(s.c, y, j);
  s.sigma[j] = sigma;
  __syncwarp();
  row<D>(x, s.c, j);
#pragma unroll
  for (int i = 0; i < D; i++) Omega[i] += (x[i] + y[i] - d_kl * J[i]) / 2;
}

// Column j of a covariance from its root, whose columns are in shared memory.
template <int D>
__device__ inline void covariance(double (&P)[D], const double* L, int j) {
  double own[D];
  row<D>(own, L, j);
  sums<D, kLower>(P, L, own);
}

// The cotangents of S, C and r that come by way of U, G and c. `product` are the columns of G' Omega.
template <int D, class S>
__device__ inline void pull_gain(const Pulled<D>& out, const VjpOperands<D, S>& in, int t, const double (&Omega)[D],
                                 const double* product, const ForwardMemory<D>& s, int j, bool alive) {
  constexpr int DD = D * D;
  const Kept<D> kept = in.keep(t);
  const double w = in.weight(t + 1), c = kept.c[j], m = in.keep(t + 1).mean[j];
  double x[D], y[D], z[D], B[D];
  get<D>(x, in.L + (long long)(t + 1) * DD, j);
  put<D>(s.L, x, j);
  get<D>(B, kept.B, j);
  put<D>(s.B, B, j);
  s.offset[j] = c;
  s.Bs[j] = dot<D>(B, s.sigma);
  __syncwarp();
  dots<D, kLower>(x, s.B, Omega);
  put<D>(s.b, x, j);
  // of G: sigma m' + 2 Omega G P, and its own
  covariance<D>(x, s.L, j);
  dots<D>(x, product, x);
  get<D>(y, in.dG + (long long)t * DD, j);
  load_vector<D>(z, s.sigma);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = 2 * x[i] + (y[i] + z[i] * m);
  dots<D, kLower>(x, s.B, x);
  sums<D, kLower>(x, s.B, x);
  put<D>(s.d, x, j);
  // of S by way of U: -B (phi(B' dB) + B' Omega B) B', and half the weight of log |S|
  get<D>(y, in.dB + (long long)t * DD, j);
  dots<D, kLower>(y, s.B, y);
  halve<D>(y, j);
  __syncwarp();
  sums<D>(x, s.b, B);
#pragma unroll
  for (int i = 0; i < D; i++) y[i] += x[i] + (i == j ? w / 2 : 0);
  sums<D, kLower>(y, s.B, y);
  put<D>(s.c, y, j);
  row<D>(B, s.B, j);
  const double Us = dot<D>(B, s.Bs);
  s.Us[j] = Us;
  __syncwarp();
  row<D>(z, s.G, j);
  sums<D>(x, s.d, z);
  sums<D>(y, s.c, B);
  load_vector<D>(z, s.Us);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] += y[i] + z[i] * c;
  load_vector<D>(z, s.offset);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] += w / 2 * z[i] * c;
  put<D>(s.a, x, j);
  row<D>(z, s.d, j);
  __syncwarp();
  row<D>(y, s.a, j);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = -(x[i] + y[i]) / 2;
  if (!alive) return;
  give<D>(out.S(t), x, j);
  give<D>(out.C(t), z, j);
  out.r(t)[j] = Us + w * c;
}

// The last node: m = Lambda^-1 eta, P = Lambda^-1.
template <int D, class S>
__device__ inline void pull_last(const Pulled<D>& out, const VjpOperands<D, S>& in, int t, const double (&Omega)[D],
                                 const ForwardMemory<D>& s, int j, bool alive) {
  const double w = in.weight(t);
  double P[D], x[D], m[D];
  put<D>(s.a, Omega, j);
  covariance<D>(P, s.L, j);
  put<D>(s.b, P, j);
  s.Us[j] = dot<D>(P, s.sigma);
  __syncwarp();
  dots<D>(x, s.a, P);
  dots<D>(x, s.b, x);
  load_vector<D>(m, s.mean);
#pragma unroll
  for (int i = 0; i < D; i++)
    x[i] = -x[i] - (s.Us[i] * s.mean[j] + m[i] * s.Us[j]) / 2 - w / 2 * (P[i] + m[i] * s.mean[j]);
  if (!alive) return;
  give<D>(out.S(t), x, j);
  out.r(t)[j] = s.Us[j] + w * s.mean[j];
}

// Forward in time over a chunk. Summary: only what the chunk adds and the product of its gains.
template <int D, class S, bool Summary>
__device__ inline void vjp_forward_chunk(const Args& a, double* shared) {
  constexpr int DD = D * D;
  const Team<D> team;
  const int j = team.j;
  const Item item(a, team.group, Team<D>::G);
  const ForwardMemory<D> s(shared, team.group);
  const VjpOperands<D, S> in(a, item.sequence);
  const Pulled<D> out(a, item.sequence);
  double Omega[D], gains[D], sigma = 0;
#pragma unroll
  for (int i = 0; i < D; i++) Omega[i] = 0;
  unit<D>(gains, j);
  if (!Summary && item.n > 0) {
    get<D>(Omega, out.start(item.n), j);
    sigma = out.start(item.n)[DD + j];
  }
  for (int step = 0; step < a.chunk && a.T > 1; step++) {
    const bool alive = item.first + step < item.last;
    const int t = alive ? item.first + step : item.last - 1;
    double G[D], x[D], now[D], gains_next[D], sigma_now = sigma;
#pragma unroll
    for (int i = 0; i < D; i++) now[i] = Omega[i];
    get<D>(G, in.keep(t).G, j);
    put<D>(s.G, G, j);
    add_node<D, S>(now, sigma_now, in, t, s, j);
    dots<D>(x, s.G, now);
    if (Summary) dots<D>(gains_next, s.G, gains);  // row j
    put<D>(s.a, x, j);
    const double next = dot<D>(G, s.sigma);
    __syncwarp();
    sums<D>(x, s.a, G);
    if (!Summary) pull_gain<D, S>(out, in, t, now, s.a, s, j, alive);
    __syncwarp();
    if (!alive) continue;  // no barrier is left in this step
#pragma unroll
    for (int i = 0; i < D; i++) {
      Omega[i] = x[i];
      if (Summary) gains[i] = gains_next[i];
    }
    sigma = next;
  }
  if (Summary) {
    give<D>(out.sum(item.n), Omega, j);
    out.sum(item.n)[DD + j] = sigma;
#pragma unroll
    for (int i = 0; i < D; i++) out.gains(item.n)[j * D + i] = gains[i];
  } else if (__any_sync(0xffffffff, item.last == a.T - 1)) {
    add_node<D, S>(Omega, sigma, in, a.T - 1, s, j);
    pull_last<D, S>(out, in, a.T - 1, Omega, s, j, item.last == a.T - 1);
  }
}

template <int D, class S>
__device__ inline void vjp_sum(const Args& a, double* shared) {
  vjp_forward_chunk<D, S, true>(a, shared);
}

template <int D, class S>
__device__ inline void vjp_forward(const Args& a, double* shared) {
  vjp_forward_chunk<D, S, false>(a, shared);
}

}  // namespace svae
