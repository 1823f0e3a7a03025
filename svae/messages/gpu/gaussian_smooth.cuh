// Smoothing and filtering of a chunk of time.
#pragma once
#include "gaussian_back.cuh"

namespace svae {

template <int D, bool Same>
constexpr int kDeskStride =
    Team<D>::stride(ForwardDesk<D, Same>::size > ForwardDesk<D, Same>::kept + BackwardDesk<D>::size
                        ? ForwardDesk<D, Same>::size
                        : ForwardDesk<D, Same>::kept + BackwardDesk<D>::size);

template <int D, class S, bool Same>
__device__ inline void smooth_chunk(const Args& a, double* shared) {
  const Team<D> team;
  const Item item(a, team.group, Team<D>::G);
  const ForwardDesk<D, Same> f(shared + team.group * kDeskStride<D, Same>, team.group);
  forward<D, S, false>(a, item, f, team.j);
  const BackwardDesk<D> b(f.given, team.group);
  const int warp = threadIdx.x / kWarp, steps = a.T > 1 ? a.chunk : 0;
  if (warp == 0) carry_covariances<D>(a, item, steps, f.root, b, team.j);
  if (warp == 1) finish_means<D, S>(a, item, steps, b, team.j);
  if (warp == 2) bring_gains<D, S>(a, item, steps, b, team.j);
  if (warp == 3) write_roots<D, S>(a, item, steps, b, team.j);
}

template <int D, class S>
__device__ inline void smooth(const Args& a, double* shared) {
  smooth_chunk<D, S, false>(a, shared);
}

template <int D, class S>
__device__ inline void smooth_same(const Args& a, double* shared) {
  smooth_chunk<D, S, true>(a, shared);
}

template <int D, class S, bool Same>
__device__ inline void filter_chunk(const Args& a, double* shared) {
  const Team<D> team;
  const Item item(a, team.group, Team<D>::G);
  const ForwardDesk<D, Same> s(shared + team.group * kDeskStride<D, Same>, team.group);
  forward<D, S, true>(a, item, s, team.j);
}

template <int D, class S>
__device__ inline void filter(const Args& a, double* shared) {
  filter_chunk<D, S, false>(a, shared);
}

template <int D, class S>
__device__ inline void filter_same(const Args& a, double* shared) {
  filter_chunk<D, S, true>(a, shared);
}

}  // namespace svae
