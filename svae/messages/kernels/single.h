// One sequence: the rows or the columns of its matrices fill the lanes, for D up to their number.
#pragma once
#include "streams.h"

namespace svae::SVAE_VARIANT {

// One reflection I - f v v' with v = (head, x) takes a row (t, x) to (|t, x|, 0).
template <class V>
struct Reflection {
  V head, factor;
};

template <class S, int W>
inline Reflection<Lanes<S, W>> reflect(Lanes<S, W>& t, Lanes<S, W> square) {
  using V = Lanes<S, W>;
  const V length = root<S, W>(t * t + square), size = t < V{} ? -t : t, sum = length + size;
  // For t >= 0 the head t - length cancels: it is -square / (t + length). None of these quotients waits for another.
  const V ratio = square / sum, one = splat<S, W>(1), inverse = one / length;
  const V quotient = (t < V{} ? one : sum) / (t < V{} ? sum : square);
  const V none = V{}, changes = t < V{} ? sum : square, otherwise = changes != changes ? changes : none;
  const V head = changes > none ? (t < V{} ? -sum : -ratio) : otherwise;
  const V factor = changes > none ? quotient * inverse : otherwise;
  t = length;
  return {head, factor};
}

template <class S>
constexpr int kLanes = SVAE_BYTES / int(sizeof(S));
template <class S>
using Row = Lanes<S, kLanes<S>>;

// Sizes that are built apart: their loops are unrolled and their matrices stay in registers. Others take N = 0.
#define SVAE_ONE_SIZES(X) X(4) X(6) X(8) X(10)
#define SVAE_UNROLL _Pragma("GCC unroll 16")

template <class S, int... I>
inline Row<S> lane_numbers(std::integer_sequence<int, I...>) {
  return Row<S>{S(I)...};
}
template <class S>
inline Row<S> lane_numbers() {
  return lane_numbers<S>(std::make_integer_sequence<int, kLanes<S>>());
}

// Lane j in all lanes; j is known when this is compiled.
template <class S>
inline Row<S> spread(Row<S> x, int j) {
  return Row<S>{} + x[j];
}

// The columns of M, rows in lanes (those beyond D are 0); `columns` has room for kLanes vectors.
template <class S>
inline void load_columns(int D, Row<S>* columns, const S* M) {
  SVAE_UNROLL for (int i = 0; i < kLanes<S>; i++) columns[i] = i < D ? load<S, kLanes<S>>(M + i * D) : Row<S>{};
  transpose<S, kLanes<S>>(columns);
}

// Row after row: a vector reaches into the next row, which is written after it.
template <class S>
inline void store_row(int D, S* M, int i, Row<S> row) {
  if (i * D + kLanes<S> <= D * D)
    store<S, kLanes<S>>(M + i * D, row);
  else
    store_some<S, kLanes<S>>(M + i * D, row, D);
}

template <class S>
inline void store_columns(int D, S* M, const Row<S>* columns) {
  Row<S> rows[kLanes<S>];
  SVAE_UNROLL for (int c = 0; c < kLanes<S>; c++) rows[c] = c < D ? columns[c] : Row<S>{};
  transpose<S, kLanes<S>>(rows);
  SVAE_UNROLL for (int i = 0; i < kLanes<S>; i++)
    if (i < D) store_row(D, M, i, rows[i]);
}

enum Shape { Full, Lower, Upper };

template <class S, int N, bool TA, Shape SA, bool TB, bool Add>
inline void multiply_one(int d, S* __restrict C, const S* A, const S* B, S scale) {
  using V = Row<S>;
  const int D = N ? N : d;
  V rows[kLanes<S>];
  if (TB)
    load_columns(D, rows, B);
  else
    SVAE_UNROLL for (int k = 0; k < (N ? N : kLanes<S>); k++) rows[k] = k < D ? load<S, kLanes<S>>(B + k * D) : V{};
  for (int r = 0; r < D; r++) {
    V even{}, odd{};
    SVAE_UNROLL for (int k = 0; k + 1 < D; k += 2) {
      even += (TA ? A[k * D + r] : A[r * D + k]) * rows[k];
      odd += (TA ? A[(k + 1) * D + r] : A[r * D + k + 1]) * rows[k + 1];
    }
    if (D & 1) even += (TA ? A[(D - 1) * D + r] : A[r * D + D - 1]) * rows[D - 1];
    V sum = scale * (even + odd);
    if (Add) {
      sum += load_some<S, kLanes<S>>(C + r * D, D);
      store_some<S, kLanes<S>>(C + r * D, sum, D);
    } else {
      store_row(D, C, r, sum);
    }
  }
}

// The vector of reflection j in its lane of `columns` from column `from` on, applied to the rows in the lanes after it.
template <class S, int N>
inline Reflection<S> reflect_lanes(int d, int j, int from, Row<S>& heads, Row<S>* columns) {
  using V = Row<S>;
  const int D = N ? N : d;
  constexpr int W = kLanes<S>;
  V x[W], square{}, more{}, even{}, odd{};
  SVAE_UNROLL for (int c = from; c < D; c++) x[c] = spread<S>(columns[c], j);
  SVAE_UNROLL for (int c = from; c < D; c++) {
    ((c & 1) ? square : more) += x[c] * x[c];
    ((c & 1) ? even : odd) += columns[c] * x[c];
  }
  V length = spread<S>(heads, j);
  const Reflection<V> h = reflect<S, W>(length, square + more);
  const V lanes = lane_numbers<S>();
  V s = (heads * h.head + (even + odd)) * h.factor;
  s = lanes > splat<S, W>(S(j)) ? s : V{};
  heads = lanes == splat<S, W>(S(j)) ? length : heads - s * h.head;
  SVAE_UNROLL for (int c = from; c < D; c++) columns[c] -= s * x[c];
  return {h.head[0], h.factor[0]};
}

template <class S, int N>
inline void triangularize_one(int d, S* T, S* X, Reflection<S>* h) {
  const int D = N ? N : d;
  Row<S> columns[kLanes<S>], heads[kLanes<S>];
  load_columns(D, columns, X);
  load_columns(D, heads, T);
  SVAE_UNROLL for (int j = 0; j < D; j++) h[j] = reflect_lanes<S, N>(d, j, 0, heads[j], columns);
  store_columns(D, T, heads);
  store_columns(D, X, columns);
}

template <class S, int N>
inline void carry_rows_one(int d, S* K, S* B, const S* F, const S* X, const Reflection<S>* h) {
  const int D = N ? N : d;
  Row<S> columns[kLanes<S>], heads[kLanes<S>];
  load_columns(D, columns, F);
  SVAE_UNROLL for (int j = 0; j < D; j++) {
    const S* x = X + j * D;
    Row<S> even{}, odd{};
    SVAE_UNROLL for (int c = 0; c < D; c++) ((c & 1) ? even : odd) += columns[c] * x[c];
    const Row<S> s = (even + odd) * h[j].factor;
    heads[j] = -s * h[j].head;
    SVAE_UNROLL for (int c = 0; c < D; c++) columns[c] -= s * x[c];
  }
  store_columns(D, K, heads);
  store_columns(D, B, columns);
}

template <class S, int N>
inline void lower_root_one(int d, S* M) {
  const int D = N ? N : d;
  Row<S> columns[kLanes<S>];
  load_columns(D, columns, M);
  const Row<S> lanes = lane_numbers<S>();
  SVAE_UNROLL for (int j = 0; j < D; j++) {
    reflect_lanes<S, N>(d, j, j + 1, columns[j], columns);
    columns[j] = lanes < splat<S, kLanes<S>>(S(j)) ? Row<S>{} : columns[j];
  }
  store_columns(D, M, columns);
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
inline void reverse_cholesky_one(int d, S* R) {
  const int D = N ? N : d;
  Row<S> rows[kLanes<S>];
  const Row<S> lanes = lane_numbers<S>();
  SVAE_UNROLL for (int i = 0; i < D; i++) rows[i] = load_some<S, kLanes<S>>(R + i * D, D);
  SVAE_UNROLL for (int m = D - 1; m >= 0; m--) {
    const S pivot = std::sqrt(rows[m][m]);
    rows[m] = lanes > splat<S, kLanes<S>>(S(m)) ? Row<S>{} : rows[m] * (1 / pivot);
    SVAE_UNROLL for (int k = 0; k < m; k++) rows[k] -= spread<S>(rows[m], k) * rows[m];
  }
  SVAE_UNROLL for (int i = 0; i < D; i++) store_row(D, R, i, rows[i]);
}

}  // namespace svae::SVAE_VARIANT
