// Algebra of D x D matrices (row major, D * D lanes each), triangular ones with their zeros stored.
#pragma once
#include "panels.h"

namespace svae::SVAE_VARIANT {

#if defined(__AVX512F__)
constexpr int kRows = 4, kColumns = 4;  // accumulators that fit the registers
#else
constexpr int kRows = 4, kColumns = 2;
#endif

// C (+)= scale op(A) op(B), one tile of NR x NC entries.
template <class V, bool TA, bool TB, bool Add, int NR, int NC, class M, class S>
inline void tile(int D, V* C, const M* A, const V* B, int r0, int c0, int from, int to, S scale) {
  V sum[NR][NC];
#pragma GCC unroll 4
  for (int r = 0; r < NR; r++)
#pragma GCC unroll 4
    for (int c = 0; c < NC; c++) sum[r][c] = V{};
  for (int k = from; k < to; k++) {
    M a[NR];
    V b[NC];
#pragma GCC unroll 4
    for (int r = 0; r < NR; r++) a[r] = TA ? A[k * D + r0 + r] : A[(r0 + r) * D + k];
#pragma GCC unroll 4
    for (int c = 0; c < NC; c++) b[c] = TB ? B[(c0 + c) * D + k] : B[k * D + c0 + c];
#pragma GCC unroll 4
    for (int r = 0; r < NR; r++)
#pragma GCC unroll 4
      for (int c = 0; c < NC; c++) sum[r][c] += a[r] * b[c];
  }
#pragma GCC unroll 4
  for (int r = 0; r < NR; r++)
#pragma GCC unroll 4
    for (int c = 0; c < NC; c++) {
      V* out = C + (r0 + r) * D + c0 + c;
      if (Add)
        *out += scale * sum[r][c];
      else
        *out = scale * sum[r][c];
    }
}

template <class V, bool TA, bool TB, bool Add, int NR, class M, class S>
inline void tile_columns(int nc, int D, V* C, const M* A, const V* B, int r0, int c0, int from, int to, S scale) {
  if (nc == kColumns) return tile<V, TA, TB, Add, NR, kColumns>(D, C, A, B, r0, c0, from, to, scale);
  if (kColumns > 2 && nc == 3) return tile<V, TA, TB, Add, NR, 3>(D, C, A, B, r0, c0, from, to, scale);
  if (kColumns > 2 && nc == 2) return tile<V, TA, TB, Add, NR, 2>(D, C, A, B, r0, c0, from, to, scale);
  return tile<V, TA, TB, Add, NR, 1>(D, C, A, B, r0, c0, from, to, scale);
}

// C = scale op(A) op(B), or C += it: SA and SB are the shapes of op(A) and op(B); only the lower triangle of C if SC is
// Lower. A may be of numbers, one matrix for all lanes.
template <class V, bool TA, Shape SA, bool TB, Shape SB, Shape SC = Full, bool Add = false, class M, class S>
__attribute__((noinline)) void multiply(int D, V* __restrict C, const M* A, const V* B, S scale) {
  if constexpr (sizeof(V) == sizeof(S)) {
    switch (D) {
#define SVAE_CASE(N)                                                                             \
  case N:                                                                                        \
    if constexpr (N <= kLanes<S>) return multiply_one<S, N, TA, SA, TB, Add>(D, C, A, B, scale); \
    break;
      SVAE_ONE_SIZES(SVAE_CASE)
#undef SVAE_CASE
    }
    if (D > 2 && D <= kLanes<S>) return multiply_one<S, 0, TA, SA, TB, Add>(D, C, A, B, scale);
  } else {
    switch (D) {
#define SVAE_CASE(N) \
  case N:            \
    return panels<N, TA, SA, TB, SB, SC, Add>(C, A, B, scale);
      SVAE_PANEL_SIZES(SVAE_CASE)
#undef SVAE_CASE
    }
  }
  for (int r = 0; r < D; r += kRows) {
    const int nr = D - r < kRows ? D - r : kRows;
    for (int c = 0; c < D; c += kColumns) {
      const int nc = D - c < kColumns ? D - c : kColumns;
      if (SC == Lower && c > r + nr - 1) break;
      int from = 0, to = D;
      if (SA == Lower && r + nr < to) to = r + nr;
      if (SA == Upper && r > from) from = r;
      if (SB == Lower && c > from) from = c;
      if (SB == Upper && c + nc < to) to = c + nc;
      if (nr == 4)
        tile_columns<V, TA, TB, Add, 4>(nc, D, C, A, B, r, c, from, to, scale);
      else if (nr == 3)
        tile_columns<V, TA, TB, Add, 3>(nc, D, C, A, B, r, c, from, to, scale);
      else if (nr == 2)
        tile_columns<V, TA, TB, Add, 2>(nc, D, C, A, B, r, c, from, to, scale);
      else
        tile_columns<V, TA, TB, Add, 1>(nc, D, C, A, B, r, c, from, to, scale);
    }
  }
}

// y = A x, R rows at a time
template <int R, class V, class M>
inline void times_rows(int D, V* y, const M* A, const V* x) {
  V s[R] = {};
  for (int j = 0; j < D; j++)
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) s[r] += A[r * D + j] * x[j];
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) y[r] = s[r];
}

template <class V, class M>
inline void times(int D, V* __restrict y, const M* __restrict A, const V* __restrict x) {
  int i = 0;
  if constexpr (std::is_floating_point_v<V>)
    for (; i + 10 <= D; i += 10) times_rows<10>(D, y + i, A + i * D, x);
  for (; i + 5 <= D; i += 5) times_rows<5>(D, y + i, A + i * D, x);
  for (; i + 2 <= D; i += 2) times_rows<2>(D, y + i, A + i * D, x);
  for (; i < D; i++) times_rows<1>(D, y + i, A + i * D, x);
}

// y = A' x, C columns at a time
template <int C, class V>
inline void times_columns(int D, V* y, const V* A, const V* x) {
  V s[C] = {};
  for (int i = 0; i < D; i++)
#pragma GCC unroll 8
    for (int c = 0; c < C; c++) s[c] += A[i * D + c] * x[i];
#pragma GCC unroll 8
  for (int c = 0; c < C; c++) y[c] = s[c];
}

template <class V>
inline void times_transposed(int D, V* __restrict y, const V* __restrict A, const V* __restrict x) {
  if constexpr (std::is_floating_point_v<V>) {
    if (D > 2 && D <= kLanes<V>) return times_transposed_one(D, y, A, x);
  }
  int j = 0;
  for (; j + 5 <= D; j += 5) times_columns<5>(D, y + j, A + j, x);
  for (; j + 2 <= D; j += 2) times_columns<2>(D, y + j, A + j, x);
  for (; j < D; j++) times_columns<1>(D, y + j, A + j, x);
}

template <class V>
inline V dot(int D, const V* x, const V* y) {
  V s{};
  for (int i = 0; i < D; i++) s += x[i] * y[i];
  return s;
}

}  // namespace svae::SVAE_VARIANT
