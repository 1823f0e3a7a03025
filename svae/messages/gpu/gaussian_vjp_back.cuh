// The filter's adjoint, back in time: Pi and pi are the cotangents of a node's precision and vector, and go to those of
// the node before by G, Pi_t = G Pi G' - sym(G pi c') + .. With them come the cotangents of everything that was given.
//
// The increments of log Z, with weights w_t: the first node's prior, and every transition, take part with the weight of
// the node behind them, and a node's own log partition function with w_t - w_t+1, which is mostly 0.
#pragma once
#include "gaussian_vjp_noise.cuh"

namespace svae {

// J- and h- of node t, from Pi and pi and from E psi_t itself.
template <int D, class S>
__device__ inline void pull_node(const Args& a, const Item& item, const VjpOperands<D, S>& in, int t,
                                 const double (&Pi)[D], double pi, const BackMemory<D>& s, int j, bool alive) {
  constexpr int DD = D * D;
  const double d_kl = in.dk[t], m = in.keep(t).mean[j];
  double x[D];
  get<D>(x, in.L + (long long)t * DD, j);
  put<D>(s.A, x, j);
  s.mean[j] = m;
  __syncwarp();
  covariance<D>(x, s.A, j);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = Pi[i] - d_kl / 2 * (x[i] + s.mean[i] * m);
  __syncwarp();
  if (!alive) return;
  give<D>(output<S>(a, kJ, item.sequence, (long long)a.T * DD) + (long long)t * DD, x, j);
  output<S>(a, kH, item.sequence, (long long)a.T * D)[(long long)t * D + j] = S(pi + d_kl * m);
}

// The node's own log partition function with weight w.
template <int D, class S>
__device__ inline void add_filtered(double (&Pi)[D], double& pi, const VjpOperands<D, S>& in, int t, double w,
                                    const BackMemory<D>& s, int j) {
  const Kept<D> kept = in.keep(t);
  const double m = kept.mf[j];
  double x[D], W[D];
  get<D>(x, kept.Lambda, j);
  s.mean[j] = m;
  whiten<D>(W, x, s.c, j);
  put<D>(s.b, W, j);
  __syncwarp();
  dots<D, kLower>(x, s.b, W);
#pragma unroll
  for (int i = 0; i < D; i++) Pi[i] -= w / 2 * (x[i] + s.mean[i] * m);
  pi += w * m;
  __syncwarp();
}

// Back in time over a chunk. Summary: only what the chunk adds to Pi and pi, and its offset.
template <int D, class S, bool Summary>
__device__ inline void vjp_back_chunk(const Args& a, double* shared) {
  constexpr int DD = D * D;
  const Team<D> team;
  const int j = team.j;
  const Item item(a, team.group, Team<D>::G);
  const BackMemory<D> s(shared, team.group);
  const VjpOperands<D, S> in(a, item.sequence);
  const Pulled<D> kept(a, item.sequence);
  double Pi[D], pi = 0, kappa = 0;
#pragma unroll
  for (int i = 0; i < D; i++) Pi[i] = 0;
  if (!Summary) {
    const bool ends = item.last == a.T - 1;
    get<D>(Pi, ends ? kept.S(a.T - 1) : kept.end(item.n), j);
    pi = ends ? kept.r(a.T - 1)[j] : kept.end(item.n)[DD + j];
    if (__any_sync(0xffffffff, ends)) pull_node<D, S>(a, item, in, a.T - 1, Pi, pi, s, j, ends);
  }
  for (int step = a.chunk - 1; step >= 0 && a.T > 1; step--) {
    const bool alive = item.first + step < item.last;
    const int t = alive ? item.first + step : item.last - 1;
    const double w = in.weight(t + 1), own = in.weight(t) - w, c = in.keep(t).c[j];
    double G[D], x[D], y[D];
    get<D>(G, in.keep(t).G, j);
    put<D>(s.G, G, j);
    s.offset[j] = c;
    s.pi[j] = pi;
    s.kappa[j] = kappa;
    __syncwarp();
    sums<D>(x, s.G, Pi);
    put<D>(s.a, x, j);
    row<D>(G, s.G, j);
    const double Gpi = dot<D>(G, s.pi), r = kept.r(t)[j] + Gpi, back = c + dot<D>(G, s.kappa);
    s.Gpi[j] = Gpi;
    get<D>(y, kept.S(t), j);
    __syncwarp();
    sums<D>(x, s.a, G);
#pragma unroll
    for (int i = 0; i < D; i++) y[i] += x[i] - (s.Gpi[i] * c + s.offset[i] * Gpi) / 2;
    if (!Summary) pull_transition<D, S>(a, item, t, kept, y, r, Pi, pi, w, s.a, s, j, alive);
    double next = r;
    if (__any_sync(0xffffffff, own != 0)) add_filtered<D, S>(y, next, in, t, own, s, j);
    if (!Summary) pull_node<D, S>(a, item, in, t, y, next, s, j, alive);
    __syncwarp();
    if (!alive) continue;
#pragma unroll
    for (int i = 0; i < D; i++) Pi[i] = y[i];
    pi = next;
    kappa = back;
  }
  if (Summary) {
    give<D>(kept.sum_back(item.n), Pi, j);
    kept.sum_back(item.n)[DD + j] = pi;
    kept.offset(item.n)[j] = kappa;
  } else if (__any_sync(0xffffffff, item.n == 0)) {
    pull_first<D, S>(a, item, Pi, pi, in.weight(0), s, j);
  }
}

template <int D, class S>
__device__ inline void vjp_sum_back(const Args& a, double* shared) {
  vjp_back_chunk<D, S, true>(a, shared);
}

template <int D, class S>
__device__ inline void vjp_back(const Args& a, double* shared) {
  vjp_back_chunk<D, S, false>(a, shared);
}

}  // namespace svae
