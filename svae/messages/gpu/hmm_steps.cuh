// Steps of a hidden Markov chain side by side: the share of each warp, loads ahead of their use, and sums over time.
#pragma once
#include "hmm_lanes.cuh"

namespace svae {

// use(t, load(t)) for t = from .. to - 1, with the loads some steps ahead.
template <int Ahead, class Load, class Use>
__device__ inline void in_groups(int from, int to, Load load, Use use) {
  if (from >= to) return;
  decltype(load(0)) next[Ahead], now[Ahead];
#pragma unroll
  for (int u = 0; u < Ahead; u++) next[u] = load(from + u < to ? from + u : to - 1);
#pragma unroll 1
  for (int base = from; base < to; base += Ahead) {
#pragma unroll
    for (int u = 0; u < Ahead; u++) now[u] = next[u];
#pragma unroll
    for (int u = 0; u < Ahead; u++) next[u] = load(base + Ahead + u < to ? base + Ahead + u : to - 1);
#pragma unroll
    for (int u = 0; u < Ahead; u++)
      if (base + u < to) use(base + u, now[u]);
  }
}

// The steps that are not padding: the first and the last of them. A chain of padding alone has one, without a node.
template <class S>
struct Steps {
  const S* mask;
  int T, first, last;
  __device__ Steps(const S* mask, int T, int* shared) : mask(mask), T(T), first(T), last(-1) {
    for (int t = threadIdx.x; t < T; t += blockDim.x)
      if (mask[t] != 0) {
        first = t < first ? t : first;
        last = t;
      }
    for (int i = 1; i < kWarp; i *= 2) {
      const int f = __shfl_xor_sync(0xffffffff, first, i), l = __shfl_xor_sync(0xffffffff, last, i);
      first = f < first ? f : first;
      last = l > last ? l : last;
    }
    const int warp = threadIdx.x / kWarp;
    if (threadIdx.x % kWarp == 0) shared[2 * warp] = first, shared[2 * warp + 1] = last;
    __syncthreads();
    for (int w = 0; w < int(blockDim.x) / kWarp; w++) {
      first = shared[2 * w] < first ? shared[2 * w] : first;
      last = shared[2 * w + 1] > last ? shared[2 * w + 1] : last;
    }
    if (last < 0) first = last = 0;
  }
  __device__ bool real(int t) const { return t == first || mask[t] != 0; }
  __device__ bool padded_after(int t) const { return t + 1 < T && mask[t + 1] == 0; }
  // The steps that repeat step t: those of padding behind it, and before the first.
  template <class F>
  __device__ void each_repeat(int t, F f) const {
    for (int s = t + 1; s < T && mask[s] == 0; s++) f(s);
    for (int s = 0; t == first && s < first; s++) f(s);
  }
};

// The share of a warp in T steps.
struct Share {
  int from, to;
  __device__ Share(int T, int warp) {
    const int size = (T + kHmmWarps - 1) / kHmmWarps;
    from = warp * size;
    to = from + size < T ? from + size : T;
  }
};

// Sums over time of pairs (lane's state, entry): in registers, now and then added up in double precision.
template <int K, class S>
struct Pairs {
  static constexpr int N = Row<K, S>::N, P = N * kWarp, kFlush = 128;
  static constexpr long long size = (long long)K * P;
  S x[N][K];
  double* total;  // of this warp
  int lane, steps = 0;
  bool fresh = true;
  __device__ Pairs(double* total, int lane) : total(total), lane(lane) { clear(); }
  __device__ void clear() {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
      for (int l = 0; l < K; l++) x[n][l] = 0;
  }
  // The lane's numbers times the entries of a letter.
  __device__ void add(const Letter<K, S>& letter, const Row<K, S>& times) {
    letter.each([&](int l, S entry) {
#pragma unroll
      for (int n = 0; n < N; n++) x[n][l] = fma(times[n], entry, x[n][l]);
    });
  }
  template <class Weight>
  __device__ void flush(bool always, Weight weight) {
    if (!always && ++steps % kFlush) return;
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
      for (int l = 0; l < K; l++) {
        const int k = lane + n * kWarp;
        if (k < K) total[l * P + k] = (fresh ? 0.0 : total[l * P + k]) + double(x[n][l]) * double(weight(k, l));
      }
    fresh = false;
    clear();
  }
  // The sum of all warps at (own, other), after a barrier.
  __device__ static double all(const double* first, int own, int other) {
    double sum = 0;
    for (int w = 0; w < kHmmWarps; w++) sum += first[w * size + other * P + own];
    return sum;
  }
};

}  // namespace svae
