// Small dense algebra of several chains side by side in one warp: D lanes serve one chain, and lane j has column j of
// each matrix in its registers, entry j of each vector. What others need of it lies in shared memory, columns DS apart.
#pragma once
#include "args.h"
#include "warp.cuh"

namespace svae {

template <int D>
struct Team {
  static constexpr int even = (D + 1) / 2 * 2, DS = even % 4 == 2 ? even : even + 2;  // twice an odd number
  static constexpr int M = D * DS, G = 32 / D < 8 ? 32 / D : 8;  // a matrix; chains in a warp
  // The memory of a chain. Those of a warp follow each other in the banks as their lanes do, D apart; matrices whose
  // columns are put and taken lie a `turn` further in each, so that their lanes go on as well.
  __device__ static constexpr int stride(int size) { return size + ((even - size) % 16 + 16) % 16; }
  static constexpr int turn = ((D * DS - even) % 16 + 16) % 16, turns = (G - 1) * turn;
  int group, j;
  __device__ Team() {
    const int lane = threadIdx.x % kWarp;
    group = lane / D < G ? lane / D : G - 1;
    j = lane - group * D < D ? lane - group * D : D - 1;  // lanes to spare do what the last does
  }
};

// A chunk of a sequence for each group; groups to spare do what the last does.
struct Item {
  long long sequence;
  int n, first, last;  // transitions out of nodes first .. last - 1
  __device__ Item(const Args& a, int group, int groups) {
    const long long items = (long long)a.axes[0] * a.axes[1] * a.axes[2] * a.chunks,
                    own = (long long)blockIdx.x * groups + group, i = own < items ? own : items - 1;
    sequence = i / a.chunks;
    n = int(i % a.chunks);
    first = n * a.chunk;
    last = first + a.chunk < a.T - 1 ? first + a.chunk : a.T - 1;
  }
  __device__ int node(int n) const { return first + n < last ? first + n : last; }  // n steps on, or the last
  __device__ int transition(int n) const { return first + n < last ? first + n : last - 1; }  // likewise
};

// The sequence of each group, likewise.
template <int D>
__device__ inline long long sequence_of(const Args& a, int group) {
  const long long all = (long long)a.axes[0] * a.axes[1] * a.axes[2], own = (long long)blockIdx.x * Team<D>::G + group;
  return own < all ? own : all - 1;
}

// kLower: column k begins at entry k, with 0 before it; kTop: it ends there, with 0 behind.
enum Form { kAny, kLower, kTop };

__device__ constexpr bool nonzero(Form form, int column, int entry) {  // one of `entry` and the next, which is odd
  return form == kLower ? entry + 1 >= column : form == kTop ? entry <= column : true;
}

// y_i = p_i . x, the columns p_i in shared memory: column j of P'X, of K matrices X at once. All sums go side by side,
// so that none waits for itself.
template <int D, Form P = kAny, int K>
__device__ inline void dots(double (&y)[K][D], const double* p, const double (&x)[K][D]) {
  constexpr int DS = Team<D>::DS;
  double sum[K][D];
#pragma unroll
  for (int n = 0; n < K; n++)
#pragma unroll
    for (int i = 0; i < D; i++) sum[n][i] = 0;
#pragma unroll
  for (int k = 0; k + 1 < D; k += 2) {
    double2 v[D];
#pragma unroll
    for (int i = 0; i < D; i++)
      if (nonzero(P, i, k)) v[i] = pair(p + i * DS + k);
#pragma unroll
    for (int i = 0; i < D; i++)
#pragma unroll
      for (int n = 0; n < K; n++)
        if (nonzero(P, i, k)) sum[n][i] = fma(v[i].x, x[n][k], sum[n][i]);
#pragma unroll
    for (int i = 0; i < D; i++)
#pragma unroll
      for (int n = 0; n < K; n++)
        if (nonzero(P, i, k)) sum[n][i] = fma(v[i].y, x[n][k + 1], sum[n][i]);
  }
#pragma unroll
  for (int n = 0; n < K; n++)
#pragma unroll
    for (int i = 0; i < D; i++) {
      const bool odd = D & 1 && (P != kTop || i == D - 1);
      y[n][i] = odd ? fma(p[i * DS + D - 1], x[n][D - 1], sum[n][i]) : sum[n][i];
    }
}

template <int D, Form P = kAny>
__device__ inline void dots(double (&y)[D], const double* p, const double (&x)[D]) {
  dots<D, P, 1>(reinterpret_cast<double (&)[1][D]>(y), p, reinterpret_cast<const double (&)[1][D]>(x));
}

// y = sum_k p_k x_k: column j of P X.
template <int D, Form P = kAny>
__device__ inline void sums(double (&y)[D], const double* p, const double (&x)[D]) {
  constexpr int DS = Team<D>::DS;
  double sum[D];
#pragma unroll
  for (int i = 0; i < D; i++) sum[i] = 0;
#pragma unroll
  for (int k = 0; k < D; k++) {
#pragma unroll
    for (int i = 0; i + 1 < D; i += 2) {
      if (!nonzero(P, k, i)) continue;
      const double2 v = pair(p + k * DS + i);
      sum[i] = fma(v.x, x[k], sum[i]);
      sum[i + 1] = fma(v.y, x[k], sum[i + 1]);
    }
    if (D & 1) sum[D - 1] = fma(p[k * DS + D - 1], x[k], sum[D - 1]);
  }
#pragma unroll
  for (int i = 0; i < D; i++) y[i] = sum[i];
}

// Column and row j of a matrix in shared memory.
template <int D>
__device__ inline void put(double* p, const double (&x)[D], int j) {
  store_vector<D>(p + j * Team<D>::DS, x);
}
template <int D>
__device__ inline void take(double (&x)[D], const double* p, int j) {
  load_vector<D>(x, p + j * Team<D>::DS);
}
template <int D>
__device__ inline void row(double (&x)[D], const double* p, int j) {
#pragma unroll
  for (int k = 0; k < D; k++) x[k] = p[k * Team<D>::DS + j];
}

// Column j of a compact D x D matrix (row major) in global memory.
template <int D, class V, class S>
__device__ inline void get(V (&x)[D], const S* p, int j) {
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = V(p[i * D + j]);
}
template <int D, class S>
__device__ inline void give(S* p, const double (&x)[D], int j) {
#pragma unroll
  for (int i = 0; i < D; i++) p[i * D + j] = S(x[i]);
}

template <int D>
__device__ inline void unit(double (&x)[D], int j) {
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = i == j ? 1 : 0;
}

// The lower triangle of column j, its diagonal halved.
template <int D>
__device__ inline void halve(double (&x)[D], int j) {
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = phi(i, j, x[i]);
}

}  // namespace svae
