// The forward sweep over a chunk; see gaussian_forward.cuh.
#pragma once
#include "gaussian_node.cuh"

namespace svae {

// Of each transition: Lambda, eta -> Y = R^-T C, u = R^-T r, and Lambda' = W'W - Y'Y + J', eta' = W'w + Y'u + h'.
template <int D, class S, bool Same>
__device__ inline void remove_nodes(const Args& a, const Item& item, int steps, const ForwardDesk<D, Same>& s, int j) {
  constexpr int M = Team<D>::M, DD = D * D;
  const S *J = input<S>(a, kJ, item.sequence), *h = input<S>(a, kH, item.sequence);
  double Lambda[D], eta, square[D], Y[1][D], VV[D], VW[D], WW[D];
  auto show = [&](int n) {
    put<D>(s.Lambda(n), Lambda, j);
    s.Lambda(n)[M + j] = eta;
  };
  __syncthreads();
  __syncthreads();
  if (item.n == 0) {  // the chain's own first state, or as the chunks before leave it
    take<D>(Lambda, s.first().WW, j);
    get<D>(square, J, j);
    eta = s.first().Ww[j] + double(h[j]);
#pragma unroll
    for (int i = 0; i < D; i++) Lambda[i] += square[i];
  } else {
    const double* start = Scratch<D>(a, item.sequence).start(item.n);
    get<D>(Lambda, start, j);
    eta = start[DD + j];
  }
  show(0);
  if (Same && steps > 0) {
    take<D>(VV, s.pair(0).VV, j);
    take<D>(VW, s.pair(0).VW, j);
    take<D>(WW, s.pair(0).WW, j);
  }
  __syncthreads();
  for (int n = 0; n < steps; n++) {
    const Prepared<D> pair = s.pair(n);
    const long long t = item.transition(n) + 1;
    S J_next[D], h_next = h[t * D + j];
    get<D>(J_next, J + t * DD, j);
    if (!Same) take<D>(VV, pair.VV, j);
    if (!Same) take<D>(VW, pair.VW, j);
    eta += pair.minus_Vw[j];
#pragma unroll
    for (int i = 0; i < D; i++) square[i] = VV[i] + Lambda[i], Y[0][i] = VW[i];
    eliminate<D, 1>(square, Y, eta, s.remover(n), j);
    put<D>(s.Y(n), Y[0], j);
    s.X(n)[M + j] = eta;
    s.pivot(n)[j] = s.remover(n).pivot(j);
    __syncwarp();
    dots<D>(square, s.Y(n), Y[0]);
    if (!Same) take<D>(WW, pair.WW, j);
    eta = (pair.Ww[j] + dot<D>(Y[0], s.X(n) + M)) + double(h_next);
#pragma unroll
    for (int i = 0; i < D; i++) Lambda[i] = (WW[i] - square[i]) + double(J_next[i]);
    show(n + 1);
    __syncthreads();
  }
}

// The second warp.
template <int D, class S, bool Filter, bool Same>
__device__ inline void filter_nodes(const Args& a, const Item& item, int steps, const ForwardDesk<D, Same>& s, int j) {
  __syncthreads();
  __syncthreads();
  Predicted<D, S, Filter, Same> predicted(a, item, s, j);
  __syncthreads();
  for (int n = 0; n <= steps; n++) {
    solve_node<D, S, Filter>(a, item, n, s, j);
    __syncwarp();
    predicted.node(n);
    if (n == steps) break;
    predicted.predict(n);
    __syncthreads();
  }
}

// The second and the third warp where one transition serves all: log_z is a step behind.
template <int D, class S, bool Filter>
__device__ inline void solve_nodes(const Args& a, const Item& item, int steps, const ForwardDesk<D, true>& s, int j) {
  __syncthreads();
  __syncthreads();
  __syncthreads();
  for (int n = 0; n <= steps; n++) {
    solve_node<D, S, Filter>(a, item, n, s, j);
    if (n < steps) __syncthreads();
  }
}
template <int D, class S, bool Filter>
__device__ inline void weigh_nodes(const Args& a, const Item& item, int steps, const ForwardDesk<D, true>& s, int j) {
  Predicted<D, S, Filter, true> predicted(a, item, s, j);
  __syncthreads();
  for (int n = 0; n < steps; n++) {
    if (n > 0) {
      predicted.node(n - 1);
      predicted.predict(n - 1);
    }
    __syncthreads();
  }
  if (steps > 0) {
    predicted.node(steps - 1);
    predicted.predict(steps - 1);
  }
  __syncthreads();
  predicted.node(steps);
}

// The gain R^-1 Y and the root R^-1 of the way back, and their offset c = R^-1 u.
template <int D, class S, bool Same>
__device__ inline void write_gain(const Args& a, const Item& item, int n, const ForwardDesk<D, Same>& s, int j) {
  constexpr int DD = D * D;
  const long long t = item.first + n, steps = a.T - 1;
  double X[2][D];
  take<D>(X[0], s.Y(n), j);
  unit<D>(X[1], j);
  substitute<D, 2>(X, s.remover(n));
  if (item.first + n < item.last) {
    give<D>(output<S>(a, kOutGain, item.sequence, steps * DD) + t * DD, X[0], j);
    give<D>(output<S>(a, kOutBack, item.sequence, steps * DD) + t * DD, X[1], j);
  }
  if (!a.out[kOutKept]) return;
  put<D>(s.X(n), X[1], j);
  __syncwarp();
  if (item.first + n >= item.last) return;
  const Kept<D> kept = kept_of<D>(a, item.sequence, int(t));
  give<D>(kept.G, X[0], j);
  give<D>(kept.B, X[1], j);
  row<D>(X[1], s.X(n), j);
  kept.c[j] = dot<D>(X[1], s.X(n) + Team<D>::M);
}

template <int D, class S, bool Filter, bool Same>
__device__ inline void forward(const Args& a, const Item& item, const ForwardDesk<D, Same>& s, int j) {
  const int warp = threadIdx.x / kWarp, steps = a.T > 1 ? a.chunk : 0;
  if (warp == 0) remove_nodes<D, S>(a, item, steps, s, j);
  if (warp == 1) {
    if constexpr (Same)
      solve_nodes<D, S, Filter>(a, item, steps, s, j);
    else
      filter_nodes<D, S, Filter>(a, item, steps, s, j);
  }
  if (warp == 2)
    whiten_transitions<D, S>(a, item, steps, s, j, [&] {
      if constexpr (Same) weigh_nodes<D, S, Filter>(a, item, steps, s, j);
    });
  if (warp == 3)
    prepare_transitions<D>(steps, s, j, [&](int n) {
      if (!Filter) write_gain<D, S>(a, item, n, s, j);
    });
  if (Same && warp != 2) __syncthreads();
  __syncthreads();
}

}  // namespace svae
