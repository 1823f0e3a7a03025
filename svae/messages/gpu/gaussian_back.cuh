// Back over a chunk of time, by the four warps of the forward sweep: while the first goes from P_t+1 to P_t,
// the second makes the mean and kl of node t + 1, the fourth its root, and the third brings the next gain.
#pragma once
#include "gaussian_filter.cuh"

namespace svae {

template <int D>
struct BackwardDesk {
  using Z = Team<D>;
  static constexpr int size = 9 * Z::M + 5 * Z::DS + Z::turns;
  double *Gs, *B, *work, *shifts, *mf, *e, *parts, *Us, *Ps, *GP;
  __device__ BackwardDesk(double* p, int group)
      : Gs(p), B(p + 2 * Z::M), work(B + Z::M), shifts(work + Z::M), mf(shifts + 2 * Z::DS), e(mf + Z::DS),
        parts(e + Z::DS), Us(parts + Z::DS + group * Z::turn), Ps(Us + 2 * Z::M), GP(Ps + 2 * Z::M) {}
  __device__ double* G(int n) const { return Gs + (n & 1) * Z::M; }
  __device__ double* U(int n) const { return Us + (n & 1) * Z::M; }
  __device__ double* P(int n) const { return Ps + (n & 1) * Z::M; }
  __device__ double* shift(int n) const { return shifts + (n & 1) * Z::DS; }
};

// P_t = U + G P_t+1 G'.
template <int D>
__device__ inline void carry_covariances(const Args& a, const Item& item, int steps, const double* root,
                                         const BackwardDesk<D>& s, int j) {
  double P[D], x[D], y[D];
  if (item.last == a.T - 1) {
    take<D>(x, root, j);
    dots<D, kTop>(P, root, x);
  } else {
    get<D>(P, Scratch<D>(a, item.sequence).end(item.n), j);
  }
  put<D>(s.P(steps), P, j);
  __syncthreads();
  for (int n = steps - 1; n >= 0; n--) {
    sums<D>(x, s.G(n), P);
    put<D>(s.GP, x, j);
    row<D>(y, s.G(n), j);
    __syncwarp();
    sums<D>(x, s.GP, y);
    take<D>(y, s.U(n), j);
#pragma unroll
    for (int i = 0; i < D; i++) P[i] = item.first + n < item.last ? x[i] + y[i] : P[i];
    put<D>(s.P(n), P, j);
    __syncthreads();
  }
}

// What the filter kept of a node, and its potential: fetched a step ahead.
template <int D, class S>
struct Node {
  double mf, d, difference;
  S J[D], h;
};

// e_t = G (smoothed - predicted mean)_t+1; with it the mean and kl.
template <int D, class S>
__device__ inline void finish_means(const Args& a, const Item& item, int steps, const BackwardDesk<D>& s, int j) {
  constexpr int DD = D * D;
  const int T = a.T;
  const Scratch<D> scratch(a, item.sequence);
  const S *J = input<S>(a, kJ, item.sequence), *h = input<S>(a, kH, item.sequence);
  S *means = output<S>(a, kOutMean, item.sequence, (long long)T * D), *kl = output<S>(a, kOutKl, item.sequence, T);
  Node<D, S> here, next;
  auto fetch = [&](int n) {
    const int t = item.node(n);
    const double* node = scratch.node_at(t);
    next.mf = node[j];
    next.d = node[D + j];
    next.difference = node[2 * D];
    get<D>(next.J, J + (long long)t * DD, j);
    next.h = h[(long long)t * D + j];
  };
  auto finish = [&](int n, double e, bool ours) {
    const int t = item.node(n);
    double x[D], P[D], part = 0, trace = 0;
    s.mf[j] = here.mf;
    s.e[j] = e;
    take<D>(P, s.P(n), j);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < D; i++) {
      x[i] = double(here.J[i]);
      trace = fma(x[i], P[i], trace);
    }
    s.parts[j] = (here.d / 2 + e) * (double(here.h) - dot<D>(x, s.mf)) - (e * dot<D>(x, s.e) + trace) / 2;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < D; i++) part += s.parts[i];
    if (!ours) return;
    if (j == 0) kl[t] = S(part + here.difference / 2);
    means[(long long)t * D + j] = S(here.mf + e);
    if (a.out[kOutKept]) kept_of<D>(a, item.sequence, t).mean[j] = here.mf + e;
  };
  fetch(steps);
  here = next;
  double e = item.last == T - 1 ? 0 : scratch.end(item.n)[DD + j] - here.mf, x[D];
  s.shift(steps)[j] = here.d + e;
  if (steps > 0) fetch(steps - 1);
  __syncthreads();
  for (int n = steps - 1; n >= 0; n--) {
    finish(n + 1, e, item.first + n + 1 <= item.last);
    here = next;
    if (n > 0) fetch(n - 1);
    row<D>(x, s.G(n), j);
    const double pulled = dot<D>(x, s.shift(n + 1));
    e = item.first + n < item.last ? pulled : e;
    s.shift(n)[j] = here.d + e;
    __syncthreads();
  }
  if (__any_sync(0xffffffff, item.n == 0)) finish(0, e, item.n == 0);
}

template <int D, class S>
__device__ inline void bring_gains(const Args& a, const Item& item, int steps, const BackwardDesk<D>& s, int j) {
  constexpr int DD = D * D;
  const S *gain = output<S>(a, kOutGain, item.sequence, (long long)(a.T - 1) * DD),
          *back = output<S>(a, kOutBack, item.sequence, (long long)(a.T - 1) * DD);
  S G[D], B[D];
  auto fetch = [&](int n) {
    if (n < 0) return;
    const long long t = item.transition(n);
    get<D>(G, gain + t * DD, j);
    get<D>(B, back + t * DD, j);
  };
  auto bring = [&](int n) {
    if (n < 0) return;
    double x[D], y[D];
#pragma unroll
    for (int i = 0; i < D; i++) {
      x[i] = double(G[i]);
      y[i] = double(B[i]);
    }
    put<D>(s.G(n), x, j);
    put<D>(s.B, y, j);
    fetch(n - 1);
    __syncwarp();
    row<D>(x, s.B, j);
    sums<D, kLower>(y, s.B, x);
    put<D>(s.U(n), y, j);
    __syncwarp();
  };
  fetch(steps - 1);
  bring(steps - 1);
  __syncthreads();
  for (int n = steps - 1; n >= 0; n--) {
    bring(n - 1);
    __syncthreads();
  }
}

template <int D, class S>
__device__ inline void write_roots(const Args& a, const Item& item, int steps, const BackwardDesk<D>& s, int j) {
  constexpr int DD = D * D;
  S* out = output<S>(a, kOutSqrt, item.sequence, (long long)a.T * DD);
  auto write = [&](int n, bool ours) {
    double x[D];
    take<D>(x, s.P(n), j);
    root<D>(x, s.work, j);
    if (ours) give<D>(out + (long long)(item.first + n) * DD, x, j);
  };
  __syncthreads();
  for (int n = steps - 1; n >= 0; n--) {
    write(n + 1, item.first + n + 1 <= item.last);
    __syncthreads();
  }
  if (__any_sync(0xffffffff, item.n == 0)) write(0, item.n == 0);
}

}  // namespace svae
