// Copies between global and shared memory by the lanes of a warp, side by side: steps that follow each other in time,
// a row for each.
#pragma once
#include "warp.cuh"

namespace svae {

struct alignas(16) Block16 {
  double a, b;
};

// 16 bytes go past the first cache, which does not hear of what other multiprocessors write.
template <class V>
__device__ inline void copy_later(V* to, const V* from) {
#ifdef SVAE_EMULATE
  *to = *from;
#else
  if constexpr (sizeof(V) == 16)
    asm volatile("{ .reg .u64 s; cvta.to.shared.u64 s, %0; cp.async.cg.shared.global [s], [%1], 16; }" ::"l"(to),
                 "l"(from)
                 : "memory");
  else
    asm volatile("{ .reg .u64 s; cvta.to.shared.u64 s, %0; cp.async.ca.shared.global [s], [%1], %2; }" ::"l"(to),
                 "l"(from), "n"(sizeof(V))
                 : "memory");
#endif
}

// The largest piece that a row is made of.
template <int bytes, class S>
struct PieceOf {
  using type = S;
};
template <class S>
struct PieceOf<0, S> {
  using type = Block16;
};

// Rows of W numbers, to shared memory: they are there after `arrived`.
template <int W, class S>
__device__ inline void bring(S* to, const S* from, int rows) {
  using V = typename PieceOf<W * sizeof(S) % 16, S>::type;
  V* there = together<V>(to);
  const V* here = together<const V>(from);
  for (int n = threadIdx.x % kWarp; n < rows * int(W * sizeof(S) / sizeof(V)); n += kWarp)
    copy_later(there + n, here + n);
}

// One row, by lane l of a few.
template <int W, int lanes, class S>
__device__ inline void bring_row(S* to, const S* from, int l) {
  using V = typename PieceOf<W * sizeof(S) % 16, S>::type;
  V* there = together<V>(to) + l;
  const V* here = together<const V>(from) + l;
  constexpr int pieces = W * sizeof(S) / sizeof(V);
#pragma unroll
  for (int n = 0; n < pieces; n += lanes)
    if (n + l < pieces) copy_later(there + n, here + n);
}

__device__ inline void arrived() {
#ifndef SVAE_EMULATE
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncwarp();
}

// Copies in groups, one begun behind another: all but the last N are there.
__device__ inline void close_group() {
#ifndef SVAE_EMULATE
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N>
__device__ inline void groups_arrived() {
#ifndef SVAE_EMULATE
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
  __syncwarp();
}

// Rows of W numbers, to global memory, when all lanes have written theirs; then they may write the next.
template <int W, class S>
__device__ inline void send(S* to, const S* from, int rows) {
  using V = typename PieceOf<W * sizeof(S) % 16, S>::type;
  V* there = together<V>(to);
  const V* here = together<const V>(from);
  __syncwarp();
  for (int n = threadIdx.x % kWarp; n < rows * int(W * sizeof(S) / sizeof(V)); n += kWarp) there[n] = here[n];
  __syncwarp();
}

// Several numbers of a row at once, where its width allows.
template <class S>
struct alignas(16) Quad {
  static constexpr int count = 16 / sizeof(S);
  S x[count];
};

// Entries j and j + 1 of a row of D, j even; behind the row, 0.
template <int D, class S>
__device__ inline void two_of(S& x, S& y, const S* row, int j) {
  struct alignas(2 * sizeof(S)) Two {
    S x, y;
  };
  if constexpr (D % 2 == 0) {
    const Two v = *together<const Two>(row + j);
    x = v.x, y = v.y;
  } else {
    x = row[j];
    y = j + 1 < D ? row[j + 1] : S(0);
  }
}

// Writes a thread's row: entry(n) for n < W.
template <int W, class S, class Entry>
__device__ inline void write_row(S* row, Entry entry) {
  if constexpr (W * sizeof(S) % 16 == 0) {
    constexpr int K = Quad<S>::count;
#pragma unroll
    for (int n = 0; n < W; n += K) {
      Quad<S> v;
#pragma unroll
      for (int i = 0; i < K; i++) v.x[i] = S(entry(n + i));
      *together<Quad<S>>(row + n) = v;
    }
  } else {
#pragma unroll
    for (int n = 0; n < W; n++) row[n] = S(entry(n));
  }
}

// Reads it: visit(n, x) for n < W.
template <int W, class S, class Visit>
__device__ inline void read_row(const S* row, Visit visit) {
  if constexpr (W * sizeof(S) % 16 == 0) {
    constexpr int K = Quad<S>::count;
#pragma unroll
    for (int n = 0; n < W; n += K) {
      const Quad<S> v = *together<const Quad<S>>(row + n);
#pragma unroll
      for (int i = 0; i < K; i++) visit(n + i, v.x[i]);
    }
  } else {
#pragma unroll
    for (int n = 0; n < W; n++) visit(n, row[n]);
  }
}

}  // namespace svae
