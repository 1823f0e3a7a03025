// Products of small matrices of any shape in lanes, by tiles that stay in registers; a transpose is a swap of strides.
#pragma once
#include "lanes.h"

namespace svae::SVAE_VARIANT {

template <class V>
struct View {
  const V* p;
  int row, column;  // strides
};

template <class V>
inline View<V> view(const V* p, int columns) {
  return {p, columns, 1};
}
template <class V>
inline View<V> transposed(const V* p, int columns) {
  return {p, 1, columns};
}

#if defined(__AVX512F__)
constexpr int kTile = 4;
#else
constexpr int kTile = 3;
#endif

template <class V, int R, int C, class S>
inline void patch(int K, V* out, int stride, const V* A, int ar, int ak, const V* B, int bk, int bc, S scale,
                  bool add) {
  V sum[R][C] = {};
  for (int k = 0; k < K; k++, A += ak, B += bk) {
    V b[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; c++) b[c] = B[c * bc];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      const V a = A[r * ar];
#pragma GCC unroll 4
      for (int c = 0; c < C; c++) sum[r][c] += a * b[c];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int c = 0; c < C; c++) {
      V* to = out + r * stride + c;
      *to = add ? *to + scale * sum[r][c] : scale * sum[r][c];
    }
}

// out (M x N, rows `stride` apart) = scale A B, or += it; only tiles that touch the lower triangle if `lower`.
template <class S, class V>
__attribute__((noinline)) void product(int M, int N, int K, V* out, int stride, View<V> A, View<V> B, S scale,
                                       bool add = false, bool lower = false) {
  for (int r = 0; r < M; r += kTile)
    for (int c = 0; c < N; c += kTile) {
      if (lower && c >= r + kTile) break;
      const V *a = A.p + r * A.row, *b = B.p + c * B.column;
      V* to = out + r * stride + c;
      const int nr = M - r < kTile ? M - r : kTile, nc = N - c < kTile ? N - c : kTile;
      switch (nr * 4 + nc) {
#define SVAE_PATCH(R, C)                                                                 \
  case R * 4 + C:                                                                        \
    if constexpr (R <= kTile && C <= kTile)                                              \
      patch<V, R, C>(K, to, stride, a, A.row, A.column, b, B.row, B.column, scale, add); \
    break;
        SVAE_PATCH(1, 1)
        SVAE_PATCH(1, 2)
        SVAE_PATCH(1, 3)
        SVAE_PATCH(1, 4)
        SVAE_PATCH(2, 1)
        SVAE_PATCH(2, 2)
        SVAE_PATCH(2, 3)
        SVAE_PATCH(2, 4)
        SVAE_PATCH(3, 1)
        SVAE_PATCH(3, 2)
        SVAE_PATCH(3, 3)
        SVAE_PATCH(3, 4)
        SVAE_PATCH(4, 1)
        SVAE_PATCH(4, 2)
        SVAE_PATCH(4, 3)
        SVAE_PATCH(4, 4)
#undef SVAE_PATCH
      }
    }
}

}  // namespace svae::SVAE_VARIANT
