// Linear recursions of vectors over time, which draw from the chain and pull a draw's cotangent back. One warp per
// sequence.
#pragma once
#include "gaussian.cuh"
#include "lanes.cuh"

namespace svae {

constexpr int kAhead = 4;  // matrices on their way: more than one hides the memory's latency

// A D x D matrix (row major) by one warp, some whole rows at a time: visit(q, i, j) of the lane's entries, q-th pass.
template <int D, class Visit>
__device__ inline void each_entry(int lane, Visit visit) {
  constexpr int rows = 32 / D;
  const int r = lane / D, j = lane % D;
#pragma unroll
  for (int q = 0; q < (D + rows - 1) / rows; q++)
    if (r < rows && r + q * rows < D) visit(q, r + q * rows, j);
}

// On its way from global to shared memory: fetched into registers now, put down later.
template <int D, class S>
struct Fetch {
  static constexpr int N = (D + 32 / D - 1) / (32 / D);
  S x[N];
  __device__ void get(const S* from, int lane) {
    each_entry<D>(lane, [&](int q, int i, int j) { x[q] = from[i * D + j]; });
  }
  __device__ void put(double* to, int lane) const {
    each_entry<D>(lane, [&](int q, int i, int j) { to[i * Team<D>::DS + j] = double(x[q]); });
  }
  __device__ void put_columns(double* to, int lane) const {
    each_entry<D>(lane, [&](int q, int i, int j) { to[j * Team<D>::DS + i] = double(x[q]); });
  }
};

// a_i . y in lane i.
template <int D>
__device__ inline double times(const double* a, const double* y, int lane) {
  if (lane >= D) return 0;
  double x[D];
  load_vector<D>(x, y);
  return dot<D>(x, a + lane * Team<D>::DS);
}

template <int D>
constexpr int kRecursionShared = kAhead * Team<D>::M + 2 * Team<D>::DS;

// in: F (T - 1 matrices), c (T vectors); out: x. Backwards: x_t = F_t x_t+1 + c_t; else x_t+1 = F_t' x_t + c_t+1.
template <int D, class S, bool Backwards>
__device__ inline void recursion(const Args& a, double* shared) {
  using Z = Team<D>;
  const int lane = threadIdx.x, T = a.T;
  const long long sequence = blockIdx.x;
  const S *F = input<S>(a, 0, sequence), *c = input<S>(a, 1, sequence);
  S* out = output<S>(a, 0, sequence, (long long)T * D);
  double *matrices = shared, *x = shared + kAhead * Z::M;
  Fetch<D, S> coming[kAhead];
  S add[kAhead];
  // step n = 1 .. T - 1 uses one matrix and makes one vector
  auto fetch = [&](int n) {
#pragma unroll
    for (int q = 0; q < kAhead; q++) {
      if (n + q >= T) continue;
      const long long t = Backwards ? T - 1 - n - q : n + q;
      coming[q].get(F + (Backwards ? t : t - 1) * D * D, lane);
      if (lane < D) add[q] = c[t * D + lane];
    }
  };
  fetch(1);
  if (lane < D) {
    const long long at = (Backwards ? T - 1LL : 0LL) * D + lane;
    x[Z::DS + lane] = c[at];
    out[at] = c[at];
  }
  for (int n = 1; n < T; n += kAhead) {
    double now[kAhead];
#pragma unroll
    for (int q = 0; q < kAhead; q++) {
      Backwards ? coming[q].put(matrices + q * Z::M, lane) : coming[q].put_columns(matrices + q * Z::M, lane);
      now[q] = add[q];
    }
    fetch(n + kAhead);
    __syncwarp();
#pragma unroll
    for (int q = 0; q < kAhead; q++) {
      if (n + q >= T) continue;
      const double v = times<D>(matrices + q * Z::M, x + ((q + 1) & 1) * Z::DS, lane) + now[q];
      if (lane < D) {
        x[(q & 1) * Z::DS + lane] = v;
        out[(Backwards ? T - 1LL - n - q : n + (long long)q) * D + lane] = S(v);
      }
      __syncwarp();
    }
  }
}

template <int D, class S>
__device__ inline void draw(const Args& a, double* shared) {
  recursion<D, S, true>(a, shared);
}

template <int D, class S>
__device__ inline void draw_vjp(const Args& a, double* shared) {
  recursion<D, S, false>(a, shared);
}

}  // namespace svae
