// The forward sweep over a chunk; see gaussian_forward.cuh.
#pragma once
#include "gaussian_forward.cuh"

namespace svae {

enum SmoothOutput { kOutMean, kOutSqrt, kOutGain, kOutBack, kOutLogZ, kOutKl, kOutKept };
enum FilterOutput { kFilterMean, kFilterSqrt, kFilterLogZ };

// The record of node t.
template <int D>
__device__ inline Kept<D> kept_of(const Args& a, long long sequence, int t) {
  return Kept<D>(static_cast<double*>(a.out[kOutKept]) + (sequence * a.T + t) * Kept<D>::size);
}

// Of each transition: Lambda, eta -> Y = R^-T C, X = R^-T, u = R^-T r, and Lambda' = W'W - Y'Y + J', eta' = W'w + Y'u +
// h'.
template <int D, class S>
__device__ inline void remove_nodes(const Args& a, const Item& item, int steps, const ForwardDesk<D>& s, int j) {
  constexpr int M = Team<D>::M, DD = D * D;
  const S *J = input<S>(a, kJ, item.sequence), *h = input<S>(a, kH, item.sequence);
  double Lambda[D], eta, square[D], X[2][D];
  auto show = [&](int n) {
    put<D>(s.Lambda(n), Lambda, j);
    s.Lambda(n)[M + j] = eta;
  };
  __syncthreads();
  __syncthreads();
  if (item.n == 0) {  // the chain's own first state, or as the chunks before leave it
    take<D>(Lambda, s.pair(1).WW, j);
    get<D>(square, J, j);
    eta = s.pair(1).Ww[j] + double(h[j]);
#pragma unroll
    for (int i = 0; i < D; i++) Lambda[i] += square[i];
  } else {
    const double* start = Scratch<D>(a, item.sequence).start(item.n);
    get<D>(Lambda, start, j);
    eta = start[DD + j];
  }
  show(0);
  __syncthreads();
  for (int n = 0; n < steps; n++) {
    const Prepared<D> pair = s.pair(n);
    const long long t = item.transition(n) + 1;
    S J_next[D], h_next = h[t * D + j];
    get<D>(J_next, J + t * DD, j);
    take<D>(square, pair.VV, j);
    take<D>(X[0], pair.VW, j);
    unit<D>(X[1], j);
    eta += pair.minus_Vw[j];
#pragma unroll
    for (int i = 0; i < D; i++) square[i] += Lambda[i];
    eliminate<D, 2>(square, X, eta, s.work(0), j);
    put<D>(s.Y(n), X[0], j);
    put<D>(s.X(n), X[1], j);
    s.X(n)[M + j] = eta;
    s.pivot(n)[j] = s.work(0).pivot(j);
    __syncwarp();
    dots<D>(square, s.Y(n), X[0]);
    take<D>(Lambda, pair.WW, j);
    eta = (pair.Ww[j] + dot<D>(X[0], s.X(n) + M)) + double(h_next);
#pragma unroll
    for (int i = 0; i < D; i++) Lambda[i] = (Lambda[i] - square[i]) + double(J_next[i]);
    show(n + 1);
    __syncthreads();
  }
}

// Of each node: the filtered mean and, with it, log_z.
template <int D, class S, bool Filter>
__device__ inline void filter_nodes(const Args& a, const Item& item, int steps, const ForwardDesk<D>& s, int j) {
  constexpr int DS = Team<D>::DS, M = Team<D>::M, DD = D * D;
  const int T = a.T;
  const S *J = input<S>(a, kJ, item.sequence), *h = input<S>(a, kH, item.sequence);
  const Scratch<D> scratch(a, item.sequence);
  S* log_z = output<S>(a, Filter ? int(kFilterLogZ) : int(kOutLogZ), item.sequence, T);
  const bool keeps = !Filter && a.out[kOutKept];
  double before = 0, log_Q = 0, x[D], X[1][D];  // log |Lambda| of the node before; log |Q|
  __syncthreads();
  __syncthreads();
  const double start = -s.pair(1).logdet[0];  // log |P-^-1| of the first node
  s.m[j] = double(input<S>(a, kMean0, item.sequence)[j]);
  __syncthreads();
  for (int n = 0; n <= steps; n++) {
    const int t = item.node(n);
    const bool given = n > 0, ours = item.first + n <= item.last && (given || item.n == 0);
    S J_here[D];
    get<D>(J_here, J + (long long)t * DD, j);
    const double h_here = h[(long long)t * D + j];
    take<D>(x, s.Lambda(n), j);
    if (keeps && ours) give<D>(kept_of<D>(a, item.sequence, t).Lambda, x, j);
    unit<D>(X[0], j);
    double r = s.Lambda(n)[M + j];
    eliminate<D, 1>(x, X, r, s.work(1), j);
    s.u[j] = r;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < D; i++) x[i] = double(J_here[i]);
    const double mean = dot<D>(X[0], s.u), m = s.m[j], d = mean - m, g = h_here - dot<D>(x, s.m);
    s.mf[j] = mean;
    // log |P-^-1| = log |Lambda_t-1| - log |Q| - log |S_t-1|
    s.parts[j] = logarithm<S>(s.work(1).pivot(j));
    s.parts[DS + j] = given ? logarithm<S>(s.pivot(n - 1)[j]) : 0;
    s.parts[2 * DS + j] = m * (h_here + g) + g * d;
    if (Filter || item.first + n == item.last) put<D>(s.root, X[0], j);
    __syncwarp();
    double filtered = 0, removed = 0, part = 0;
#pragma unroll
    for (int i = 0; i < D; i++) {
      filtered += s.parts[i];
      removed += s.parts[DS + i];
      part += s.parts[2 * DS + i];
    }
    const double difference = filtered - (given ? before - log_Q - removed : start);
    before = filtered;
    if (ours) {
      if (j == 0) log_z[t] = S((part - difference) / 2);
      if (Filter) {
        row<D>(x, s.root, j);
        output<S>(a, kFilterMean, item.sequence, (long long)T * D)[(long long)t * D + j] = S(mean);
        give<D>(output<S>(a, kFilterSqrt, item.sequence, (long long)T * DD) + (long long)t * DD, x, j);
      } else {
        double* node = scratch.node_at(t);
        node[j] = mean;
        node[D + j] = d;
        node[2 * D] = difference;
        if (keeps) kept_of<D>(a, item.sequence, t).mf[j] = mean;
      }
    }
    if (n == steps) break;
    row<D>(x, s.A(n), j);
    s.m[j] = dot<D>(x, s.mf) + s.A(n)[M + j];
    log_Q = s.pair(n).logdet[0];
    __syncthreads();
  }
}

// The gain X'Y and the root X' of the way back, and their offset c = X'u.
template <int D, class S>
__device__ inline void write_gain(const Args& a, const Item& item, int n, const ForwardDesk<D>& s, int j) {
  constexpr int DD = D * D;
  const long long t = item.first + n, steps = a.T - 1;
  double G[D], B[D], X[D];
  take<D>(G, s.Y(n), j);
  dots<D, kTop>(G, s.X(n), G);
  row<D>(B, s.X(n), j);
  give<D>(output<S>(a, kOutGain, item.sequence, steps * DD) + t * DD, G, j);
  give<D>(output<S>(a, kOutBack, item.sequence, steps * DD) + t * DD, B, j);
  if (!a.out[kOutKept]) return;
  const Kept<D> kept = kept_of<D>(a, item.sequence, int(t));
  give<D>(kept.G, G, j);
  give<D>(kept.B, B, j);
  take<D>(X, s.X(n), j);
  kept.c[j] = dot<D>(X, s.X(n) + Team<D>::M);
}

template <int D, class S, bool Filter>
__device__ inline void forward(const Args& a, const Item& item, const ForwardDesk<D>& s, int j) {
  const int warp = threadIdx.x / kWarp, steps = a.T > 1 ? a.chunk : 0;
  if (warp == 0) remove_nodes<D, S>(a, item, steps, s, j);
  if (warp == 1) filter_nodes<D, S, Filter>(a, item, steps, s, j);
  if (warp == 2) whiten_transitions<D, S>(a, item, steps, s, j);
  if (warp == 3)
    prepare_transitions<D>(steps, s, j, [&](int n) {
      if (!Filter && item.first + n < item.last) write_gain<D, S>(a, item, n, s, j);
    });
  __syncthreads();
}

}  // namespace svae
