// One sequence: the rows or the columns of its matrices fill the lanes, for D up to their number.
#pragma once
#include <limits>
#include <type_traits>

#include "streams.h"

namespace svae::SVAE_VARIANT {

// The reflection that takes a row (t, x) to (|t, x|, 0): t, 1 / x'x and 1 / |t, x|. With d = x'y it takes (u, y) to
// ((t u + d) / |t, x|, y - s x), s = d / x'x + (t d / x'x - u) / |t, x|: little waits for the root.
template <class V>
struct Reflection {
  V head, quotient, inverse;
};

template <class S, int W>
inline Reflection<Lanes<S, W>> reflect(Lanes<S, W>& t, Lanes<S, W> square) {
  using V = Lanes<S, W>;
  constexpr S least = std::numeric_limits<S>::min();
  const V head = t, total = (t * t + least) + square, inverse = reciprocal_root<S, W>(total);
  const V quotient = square < splat<S, W>(least) ? V{} : reciprocal<S, W>(square);
  t = total * inverse;
  t += (total - t * t) * (S(0.5) * inverse);
  return {head, quotient, inverse};
}

template <class S>
constexpr int kLanes = SVAE_BYTES / int(sizeof(S));
template <class S>
using Row = Lanes<S, kLanes<S>>;

// Sizes that are built apart: their loops are unrolled and their matrices stay in registers. Others take N = 0.
#define SVAE_ONE_SIZES(X) X(4) X(6) X(8) X(10)
#define SVAE_UNROLL _Pragma("GCC unroll 16")
#define SVAE_INLINE inline __attribute__((always_inline))

template <class S, int... I>
inline Row<S> lane_numbers(std::integer_sequence<int, I...>) {
  return Row<S>{S(I)...};
}
template <class S>
inline Row<S> lane_numbers() {
  return lane_numbers<S>(std::make_integer_sequence<int, kLanes<S>>());
}

// Lane j in all lanes.
template <class S>
inline Row<S> spread(Row<S> x, int j) {
#if SVAE_BYTES == 64 && defined(__AVX512F__)
  if constexpr (sizeof(S) == 4) return _mm512_permutexvar_ps(_mm512_set1_epi32(j), x);
  if constexpr (sizeof(S) == 8) return _mm512_permutexvar_pd(_mm512_set1_epi64(j), x);
#elif SVAE_BYTES == 32 && defined(__AVX2__)
  if constexpr (sizeof(S) == 4) return _mm256_permutevar8x32_ps(x, _mm256_set1_epi32(j));
#endif
  return splat<S, kLanes<S>>(x[j]);
}

template <class S>
inline S sum_of_lanes(Row<S> x) {
  return fold<S, kLanes<S>>(x, [](auto a, auto b) { return a + b; });
}

// The columns of M, rows in lanes (those beyond D are 0); `columns` has room for kLanes vectors.
template <class S, int N = 0>
SVAE_INLINE void load_columns(int d, Row<S>* columns, const S* M) {
  const int D = N ? N : d;
  SVAE_UNROLL for (int i = 0; i < kLanes<S>; i++) columns[i] = i < D ? load<S, kLanes<S>>(M + i * D) : Row<S>{};
  transpose<S, kLanes<S>>(columns);
}

// Row after row: a vector reaches into the next row, which is written after it.
template <class S>
SVAE_INLINE void store_row(int D, S* M, int i, Row<S> row) {
  if (i * D + kLanes<S> <= D * D)
    store<S, kLanes<S>>(M + i * D, row);
  else
    store_some<S, kLanes<S>>(M + i * D, row, D);
}

template <class S, int N = 0>
__attribute__((noinline)) void store_columns(int d, S* M, const Row<S>* columns) {
  const int D = N ? N : d;
  Row<S> rows[kLanes<S>];
  SVAE_UNROLL for (int c = 0; c < kLanes<S>; c++) rows[c] = c < D ? columns[c] : Row<S>{};
  transpose<S, kLanes<S>>(rows);
  SVAE_UNROLL for (int i = 0; i < kLanes<S>; i++) if (i < D) store_row(D, M, i, rows[i]);
}

// Rows that are columns already: a matrix that lies transposed in memory. Lanes from D on are of no use.
template <class S, int N = 0>
SVAE_INLINE void load_flipped(int d, Row<S>* columns, const S* M) {
  const int D = N ? N : d;
  SVAE_UNROLL for (int c = 0; c < kLanes<S>; c++) columns[c] = c < D ? load<S, kLanes<S>>(M + c * D) : Row<S>{};
}
template <class S, int N = 0>
SVAE_INLINE void store_flipped(int d, S* M, const Row<S>* columns) {
  const int D = N ? N : d;
  SVAE_UNROLL for (int c = 0; c < kLanes<S>; c++) if (c < D) store_row(D, M, c, columns[c]);
}
template <class S>
inline void flip(int D, S* M) {
  Row<S> columns[kLanes<S>];
  load_columns(D, columns, M);
  store_flipped(D, M, columns);
}

// Whether one sequence has its rows in lanes.
template <class S>
inline bool in_lanes(int D) {
  return D > 2 && D <= kLanes<S>;
}

enum Shape { Full, Lower, Upper };

template <class S, int N, bool TA, Shape SA, bool TB, bool Add>
inline void multiply_one(int d, S* __restrict C, const S* A, const S* B, S scale) {
  using V = Row<S>;
  const int D = N ? N : d;
  V rows[kLanes<S>];
  if (TB)
    load_columns<S, N>(D, rows, B);
  else
    SVAE_UNROLL for (int k = 0; k < (N ? N : kLanes<S>); k++) rows[k] = k < D ? load<S, kLanes<S>>(B + k * D) : V{};
  SVAE_UNROLL for (int r = 0; r < D; r++) {
    V part[2] = {};
    SVAE_UNROLL for (int k = SA == Upper ? r : 0; k < (SA == Lower ? r + 1 : D); k++) part[k & 1] +=
        (TA ? A[k * D + r] : A[r * D + k]) * rows[k];
    V sum = scale * (part[0] + part[1]);
    if (Add) {
      sum += load_some<S, kLanes<S>>(C + r * D, D);
      store_some<S, kLanes<S>>(C + r * D, sum, D);
    } else {
      store_row(D, C, r, sum);
    }
  }
}

// y = M' x, the rows of M in lanes
template <class S>
inline void times_transposed_one(int D, S* y, const S* M, const S* x) {
  Row<S> even{}, odd{};
  int i = 0;
  for (; i + 1 < D; i += 2) {
    even += x[i] * load<S, kLanes<S>>(M + i * D);
    odd += x[i + 1] * (i + 2 < D ? load<S, kLanes<S>>(M + (i + 1) * D) : load_some<S, kLanes<S>>(M + (i + 1) * D, D));
  }
  if (i < D) odd += x[i] * load_some<S, kLanes<S>>(M + i * D, D);
  store_some<S, kLanes<S>>(y, even + odd, D);
}

template <class S, int N>
inline void invert_one(int d, S* __restrict X, const S* __restrict L) {
  const int D = N ? N : d;
  Row<S> rows[kLanes<S>];
  const Row<S> lanes = lane_numbers<S>();
  SVAE_UNROLL for (int i = 0; i < D; i++) {
    const S scale = 1 / L[i * D + i];
    Row<S> sum{};
    SVAE_UNROLL for (int k = 0; k < i; k++) sum += L[i * D + k] * rows[k];
    rows[i] = lanes == splat<S, kLanes<S>>(S(i)) ? splat<S, kLanes<S>>(scale) : -scale * sum;
    store_row(D, X, i, rows[i]);
  }
}

template <class S, int N>
inline void reverse_cholesky_one(int d, S* R, S* scale) {
  const int D = N ? N : d;
  constexpr int W = kLanes<S>;
  Row<S> rows[W];
  const Row<S> lanes = lane_numbers<S>();
  SVAE_UNROLL for (int i = 0; i < D; i++) rows[i] = load_some<S, W>(R + i * D, D);
  SVAE_UNROLL for (int m = D - 1; m >= 0; m--) {
    // Rows before it wait for a quotient only; the root is needed later.
    const Row<S> pivot = spread<S>(rows[m], m), quotient = rows[m] * reciprocal<S, W>(pivot);
    SVAE_UNROLL for (int k = 0; k < m; k++) rows[k] -= spread<S>(rows[m], k) * quotient;
    const Row<S> inverse = reciprocal_root<S, W>(pivot);
    scale[m] = inverse[0];
    rows[m] = lanes > splat<S, W>(S(m)) ? Row<S>{} : rows[m] * inverse;
  }
  SVAE_UNROLL for (int i = 0; i < D; i++) store_row(D, R, i, rows[i]);
}

}  // namespace svae::SVAE_VARIANT
