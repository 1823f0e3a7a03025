// The nodes between chunks: filtered forward, smoothed back. A group of lanes per sequence; while the first warp
// removes the node in front of chunk n, the second writes the way back over the chunk before.
#pragma once
#include "eliminate.cuh"
#include "gaussian.cuh"

namespace svae {

constexpr int kLinkThreads = 2 * kWarp;

template <int D>
struct LinkDesk {
  using Z = Team<D>;
  static constexpr int removed = 2 * Z::M + Z::DS, size = Z::stride(2 * removed + 2 * Z::M + Work<D>::size + 2 * Z::DS);
  static constexpr int shared = Z::G * size;
  double *YX, *G, *GP, *m;
  Work<D> work;
  __device__ LinkDesk(double* shared, int group)
      : YX(shared + group * size), G(YX + 2 * removed), GP(G + Z::M), m(GP + Z::M), work(m + 2 * Z::DS) {}
  __device__ double* Y(int n) const { return YX + (n & 1) * removed; }
  __device__ double* X(int n) const { return Y(n) + Z::M; }  // u behind
};

// The element of a chunk on its way from memory, and the potential of the node behind it.
template <int D, class S>
struct ArrivingElement {
  double first[D], E[D], last[D], eta_first, eta_last;
  S J[D], h;
  __device__ void all(const Element<D>& e, const S* J_, const S* h_, int j) {
    get<D>(first, e.first, j);
    get<D>(last, e.last, j);
    get<D>(J, J_, j);
#pragma unroll
    for (int i = 0; i < D; i++) E[i] = e.E[j * D + i];  // kept transposed
    eta_first = e.eta_first[j];
    eta_last = e.eta_last[j];
    h = h_[j];
  }
};

// The precision of the first state, with its node's potential.
template <int D, class S>
__device__ inline void begin(double (&Lambda)[D], double& eta, const Args& a, long long sequence, const LinkDesk<D>& s,
                             int j) {
  double x[D], W[D];
  get<D>(x, input<S>(a, kSqrt0, sequence), j);
  put<D>(s.G, x, j);
  s.m[j] = double(input<S>(a, kMean0, sequence)[j]);
  __syncwarp();
  row<D>(W, s.G, j);
  sums<D>(x, s.G, W);
  __syncwarp();
  whiten<D>(W, x, s.work.p, j);
  put<D>(s.G, W, j);
  __syncwarp();
  dots<D, kLower>(Lambda, s.G, W);
  get<D>(x, input<S>(a, kJ, sequence), j);
  eta = dot<D>(Lambda, s.m) + double(input<S>(a, kH, sequence)[j]);
#pragma unroll
  for (int i = 0; i < D; i++) Lambda[i] += x[i];
  __syncwarp();
}

// Lambda and eta of each node in front of a chunk, as filtered; P and m of the last.
template <int D, class S>
__device__ inline void link_forward(const Args& a, long long sequence, const Scratch<D>& scratch, const LinkDesk<D>& s,
                                    int j, double (&P)[D], double& m) {
  constexpr int M = Team<D>::M, DD = D * D;
  const S *J = input<S>(a, kJ, sequence), *h = input<S>(a, kH, sequence);
  ArrivingElement<D, S> coming;
  auto fetch = [&](int n) {
    const long long end = (long long)(n + 1) * a.chunk, t = end < a.T - 1 ? end : a.T - 1;
    coming.all(scratch.element(n), J + t * DD, h + t * D, j);
  };
  double Lambda[D], eta, square[D], X[2][D], last[D], root[1][D];
  begin<D, S>(Lambda, eta, a, sequence, s, j);
  fetch(0);
  for (int n = 0; n < a.chunks; n++) {
    const double eta_last = coming.eta_last + double(coming.h);
    give<D>(scratch.start(n), Lambda, j);
    scratch.start(n)[DD + j] = eta;
    eta += coming.eta_first;
#pragma unroll
    for (int i = 0; i < D; i++) {
      square[i] = Lambda[i] + coming.first[i];
      X[0][i] = coming.E[i];
      last[i] = coming.last[i];
      Lambda[i] = double(coming.J[i]);
    }
    unit<D>(X[1], j);
    if (n + 1 < a.chunks) fetch(n + 1);
    eliminate<D, 2>(square, X, eta, s.work, j);
    put<D>(s.Y(n), X[0], j);
    put<D>(s.X(n), X[1], j);
    s.X(n)[M + j] = eta;
    __syncwarp();
    dots<D>(square, s.Y(n), X[0]);
    eta = dot<D>(X[0], s.X(n) + M) + eta_last;
#pragma unroll
    for (int i = 0; i < D; i++) Lambda[i] += last[i] - square[i];
    __syncthreads();
  }
  unit<D>(root[0], j);
  eliminate<D, 1>(Lambda, root, eta, s.work, j);
  put<D>(s.G, root[0], j);
  s.m[j] = eta;
  __syncwarp();
  dots<D, kTop>(P, s.G, root[0]);
  m = dot<D>(root[0], s.m);
  __syncthreads();
}

// The way back over each chunk: G = X'Y, U = X'X and c = X'u.
template <int D>
__device__ inline void link_gains(const Args& a, const Scratch<D>& scratch, const LinkDesk<D>& s, int j) {
  constexpr int DD = D * D;
  for (int n = 0; n <= a.chunks; n++) {
    if (n > 0) {
      double *to = scratch.way(n - 1), X[D], x[D];
      take<D>(x, s.Y(n - 1), j);
      take<D>(X, s.X(n - 1), j);
      dots<D, kTop>(x, s.X(n - 1), x);
      give<D>(to, x, j);
      dots<D, kTop>(x, s.X(n - 1), X);
      give<D>(to + DD, x, j);
      to[2 * DD + j] = dot<D>(X, s.X(n - 1) + Team<D>::M);
    }
    __syncthreads();
  }
}

// Smoothed moments at the end of each chunk: m = c + G m, P = U + G P G'.
template <int D>
__device__ inline void link_back(const Args& a, const Scratch<D>& scratch, const LinkDesk<D>& s, int j, double (&P)[D],
                                 double m) {
  constexpr int DD = D * D;
  double G[D], U[D], G_next[D], U_next[D], c_next;
  auto fetch = [&](int n) {
    get<D>(G_next, scratch.way(n), j);
    get<D>(U_next, scratch.way(n) + DD, j);
    c_next = scratch.way(n)[2 * DD + j];
  };
  fetch(a.chunks - 1);
  for (int n = a.chunks - 1; n >= 0; n--) {
    const double c = c_next;
    give<D>(scratch.end(n), P, j);
    scratch.end(n)[DD + j] = m;
#pragma unroll
    for (int i = 0; i < D; i++) {
      G[i] = G_next[i];
      U[i] = U_next[i];
    }
    if (n == 0) break;
    fetch(n - 1);
    put<D>(s.G, G, j);
    s.m[j] = m;
    __syncwarp();
    sums<D>(P, s.G, P);
    put<D>(s.GP, P, j);
    row<D>(G, s.G, j);
    m = c + dot<D>(G, s.m);
    __syncwarp();
    sums<D>(P, s.GP, G);
#pragma unroll
    for (int i = 0; i < D; i++) P[i] += U[i];
  }
}

template <int D, class S>
__device__ inline void link(const Args& a, double* shared) {
  const Team<D> team;
  const long long sequence = sequence_of<D>(a, team.group);
  const Scratch<D> scratch(a, sequence);
  const LinkDesk<D> s(shared, team.group);
  double P[D], m;
  if (threadIdx.x >= kWarp) return link_gains<D>(a, scratch, s, team.j);
  link_forward<D, S>(a, sequence, scratch, s, team.j, P, m);
  link_back<D>(a, scratch, s, team.j, P, m);
}

}  // namespace svae
