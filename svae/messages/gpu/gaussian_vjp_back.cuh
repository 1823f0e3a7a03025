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

// What the steps of a chunk pull from a transition that all of them share.
template <int D>
struct Shared {
  double S[D], C[D], Pi[D], r = 0, pi = 0, w = 0;
  __device__ Shared() {
#pragma unroll
    for (int i = 0; i < D; i++) S[i] = C[i] = Pi[i] = 0;
  }
  __device__ void add(const double (&S_)[D], const double (&C_)[D], double r_, const double (&Pi_)[D], double pi_,
                      double w_) {
#pragma unroll
    for (int i = 0; i < D; i++) S[i] += S_[i], C[i] += C_[i], Pi[i] += Pi_[i];
    r += r_, pi += pi_, w += w_;
  }
  __device__ void give_to(double* total, int j) const {
    give<D>(total, S, j);
    give<D>(total + D * D, C, j);
    give<D>(total + 2 * D * D, Pi, j);
    double* vectors = total + 3 * D * D;
    vectors[j] = r, vectors[D + j] = pi, vectors[2 * D + j] = w;
  }
  __device__ void add(const double* total, int j) {
    double S_[D], C_[D], Pi_[D];
    get<D>(S_, total, j);
    get<D>(C_, total + D * D, j);
    get<D>(Pi_, total + 2 * D * D, j);
    const double* vectors = total + 3 * D * D;
    add(S_, C_, vectors[j], Pi_, vectors[D + j], vectors[2 * D + j]);
  }
};

// Back in time over a chunk. kSummary: only what the chunk adds to Pi and pi, and its offset; kSame: cotangents of one
// transition are summed over the chunk.
enum Back { kSummary, kEach, kSame };
template <int D, class S, Back Kind>
__device__ inline void vjp_back_chunk(const Args& a, double* shared) {
  constexpr int DD = D * D;
  const Team<D> team;
  const int j = team.j;
  const Item item(a, team.group, Team<D>::G);
  const BackMemory<D> s(shared, team.group);
  const VjpOperands<D, S> in(a, item.sequence);
  const Pulled<D> kept(a, item.sequence);
  constexpr bool Summary = Kind == kSummary;
  double Pi[D], pi = 0, kappa = 0;
  Shared<D> shared_by_all;
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
    if (!Summary) pull_product<D>(x, kept.C(t), s.a, s, j);
    if (Kind == kEach) pull_transition<D, S>({a, item.sequence, t, a.T - 1}, y, x, r, Pi, pi, w, s, j, alive);
    if (Kind == kSame && alive) shared_by_all.add(y, x, r, Pi, pi, w);
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
  if (Kind == kSame) shared_by_all.give_to(kept.total(item.n), j);
}

template <int D, class S>
__device__ inline void vjp_sum_back(const Args& a, double* shared) {
  vjp_back_chunk<D, S, kSummary>(a, shared);
}

template <int D, class S>
__device__ inline void vjp_back(const Args& a, double* shared) {
  vjp_back_chunk<D, S, kEach>(a, shared);
}

template <int D, class S>
__device__ inline void vjp_back_same(const Args& a, double* shared) {
  vjp_back_chunk<D, S, kSame>(a, shared);
}

// The cotangents of the transition that all steps share, from the sums of all chunks.
template <int D, class S>
__device__ inline void vjp_same(const Args& a, double* shared) {
  const Team<D> team;
  const long long sequence = sequence_of<D>(a, team.group);
  const Pulled<D> kept(a, sequence);
  Shared<D> all;
  for (int n = 0; n < a.chunks; n++) all.add(kept.total(n), team.j);
  const Transition<D, S> given(a, sequence, 0, 1);
  const BackMemory<D> s(shared, team.group);
  pull_transition<D, S>(given, all.S, all.C, all.r, all.Pi, all.pi, all.w, s, team.j, true);
}

}  // namespace svae
