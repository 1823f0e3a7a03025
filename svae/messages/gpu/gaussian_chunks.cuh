// Chunks of time, so that few long sequences fill the chip: each becomes one potential on the nodes at its two ends,
// and a short sweep over those nodes (gaussian_link.cuh) gives every chunk its filtered start and its smoothed end.
#pragma once
#include "gaussian_forward.cuh"

namespace svae {

// Removes the nodes between the ends, one after another: E <- E S^-1 C, last <- W'W - C'S^-1 C + J, with S = last +
// V'V.
template <int D, class S, bool Same>
__device__ inline void shorten(const Args& a, const Item& item, int steps, const Element<D>& e,
                               const ForwardDesk<D, Same>& s, int j) {
  constexpr int M = Team<D>::M;
  const S *J = input<S>(a, kJ, item.sequence), *h = input<S>(a, kH, item.sequence);
  double last[D], E[D], eta = 0, square[D], X[2][D], products[2][D];  // E transposed
  __syncthreads();
  __syncthreads();
  __syncthreads();
  for (int n = 0; n < steps; n++) {
    const Prepared<D> pair = s.pair(n);
    const bool alive = item.first + n < item.last;
    const double own = item.first + n + 1 < item.last ? 1 : 0;  // the last node's potential is not part of the chunk
    const long long next = item.node(n + 1);
    S J_next[D], h_next = h[next * D + j];
    get<D>(J_next, J + next * D * D, j);
    double r = pair.Ww[j];
    if (n == 0) {
      row<D>(products[1], pair.VW, j);
#pragma unroll
      for (int i = 0; i < D; i++) products[0][i] = 0;
    } else {
      take<D>(square, pair.VV, j);
      take<D>(X[0], pair.VW, j);
      double u = eta + pair.minus_Vw[j];
#pragma unroll
      for (int i = 0; i < D; i++) {
        square[i] += last[i];
        X[1][i] = E[i];
      }
      eliminate<D, 2>(square, X, u, s.remover(0), j);
      put<D>(s.Y(n), X[0], j);
      put<D>(s.X(n), X[1], j);
      s.X(n)[M + j] = u;
      __syncwarp();
      dots<D>(products, s.Y(n), X);
      r += dot<D>(X[0], s.X(n) + M);
    }
    if (alive) {
      take<D>(last, pair.WW, j);
      eta = r + own * double(h_next);
#pragma unroll
      for (int i = 0; i < D; i++) {
        last[i] = (last[i] - products[0][i]) + own * double(J_next[i]);
        E[i] = products[1][i];
      }
    }
    __syncthreads();
  }
  give<D>(e.last, last, j);
  give<D>(e.E, E, j);
  e.eta_last[j] = eta;
}

// What that leaves on the first node, one step behind: first <- first - E S^-1 E', eta_first <- eta_first + E S^-1 r.
template <int D, bool Same>
__device__ inline void leave_first(const Item& item, int steps, const Element<D>& e, const ForwardDesk<D, Same>& s,
                                   int j) {
  double first[D], eta = 0, X[D], square[D];
  __syncthreads();
  __syncthreads();
  __syncthreads();
  for (int n = 0; n <= steps; n++) {
    if (n == 0) {
      take<D>(first, s.pair(0).VV, j);
      eta = s.pair(0).minus_Vw[j];
    } else if (n > 1 && item.first + n - 1 < item.last) {
      take<D>(X, s.X(n - 1), j);
      dots<D>(square, s.X(n - 1), X);
      eta += dot<D>(X, s.X(n - 1) + Team<D>::M);
#pragma unroll
      for (int i = 0; i < D; i++) first[i] -= square[i];
    }
    if (n < steps) __syncthreads();
  }
  give<D>(e.first, first, j);
  e.eta_first[j] = eta;
}

template <int D, bool Same>
constexpr int kElementStride = Team<D>::stride(ForwardDesk<D, Same>::size);

template <int D, class S, bool Same>
__device__ inline void shorten_chunk(const Args& a, double* shared) {
  const Team<D> team;
  const int warp = threadIdx.x / kWarp, steps = a.chunk, j = team.j;
  const Item item(a, team.group, Team<D>::G);
  const ForwardDesk<D, Same> s(shared + team.group * kElementStride<D, Same>, team.group);
  const Element<D> e = Scratch<D>(a, item.sequence).element(item.n);
  auto wait = [&] {
    for (int n = 0; n <= steps; n++) __syncthreads();
  };
  if (warp == 0) shorten<D, S>(a, item, steps, e, s, j);
  if (warp == 1) leave_first<D>(item, steps, e, s, j);
  if (warp == 2) whiten_transitions<D, S>(a, item, steps, s, j, wait);
  if (warp == 3) prepare_transitions<D>(steps, s, j, [](int) {});
}

template <int D, class S>
__device__ inline void element(const Args& a, double* shared) {
  shorten_chunk<D, S, false>(a, shared);
}

template <int D, class S>
__device__ inline void element_same(const Args& a, double* shared) {
  shorten_chunk<D, S, true>(a, shared);
}

}  // namespace svae
