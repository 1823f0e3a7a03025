// Reflections of one sequence, its rows in lanes: the chain of operations that wait for each other is kept short.
#pragma once
#include "single.h"

namespace svae::SVAE_VARIANT {

// sum_c columns_c x_c
template <class S, int N>
SVAE_INLINE Row<S> lane_dot(int d, int from, const Row<S>* columns, const Row<S>* x) {
  const int D = N ? N : d;
  Row<S> part[4] = {};
  SVAE_UNROLL for (int c = from; c < D; c++) part[c & 3] += columns[c] * x[c];
  return (part[0] + part[1]) + (part[2] + part[3]);
}

// Reflection j, of the vector in lane j of `columns` from column `from` on, applied to the rows in the lanes after it.
// x takes the vector, in all lanes.
template <class S, int N>
SVAE_INLINE Reflection<Row<S>> turn(int d, int j, int from, Row<S>& heads, Row<S>* columns, Row<S>* x) {
  using V = Row<S>;
  const int D = N ? N : d;
  constexpr int W = kLanes<S>;
  SVAE_UNROLL for (int c = from; c < D; c++) x[c] = spread<S>(columns[c], j);
  const V dots = lane_dot<S, N>(d, from, columns, x);
  V length = spread<S>(heads, j);
  const auto h = reflect<S, W>(length, spread<S>(dots, j));
  const V part = dots * h.quotient, lanes = lane_numbers<S>();
  V s = part + h.inverse * (h.head * part - heads);
  s = lanes > splat<S, W>(S(j)) ? s : V{};
  const V turned = h.inverse * (h.head * heads + dots);
  heads = lanes == splat<S, W>(S(j)) ? length : lanes > splat<S, W>(S(j)) ? turned : heads;
  SVAE_UNROLL for (int c = from; c < D; c++) columns[c] -= s * x[c];
  return h;
}

template <class S, int N>
inline void triangularize_one(int d, S* T, S* X, Reflection<S>* h) {
  const int D = N ? N : d;
  Row<S> columns[kLanes<S>], heads[kLanes<S>], x[kLanes<S>];
  load_columns<S, N>(D, columns, X);
  load_columns<S, N>(D, heads, T);
  SVAE_UNROLL for (int j = 0; j < D; j++) {
    const auto r = turn<S, N>(d, j, 0, heads[j], columns, x);
    h[j] = {r.head[0], r.quotient[0], r.inverse[0]};
  }
  store_columns<S, N>(D, T, heads);
}

// The lower root of columns, which stay in lanes.
template <class S, int N>
SVAE_INLINE void lower_columns(int d, Row<S>* columns) {
  const int D = N ? N : d;
  Row<S> x[kLanes<S>];
  const Row<S> lanes = lane_numbers<S>();
  SVAE_UNROLL for (int j = 0; j < D; j++) {
    turn<S, N>(d, j, j + 1, columns[j], columns, x);
    columns[j] = lanes < splat<S, kLanes<S>>(S(j)) ? Row<S>{} : columns[j];
  }
}

template <class S, int N>
inline void lower_root_one(int d, S* M) {
  const int D = N ? N : d;
  Row<S> columns[kLanes<S>];
  load_columns<S, N>(D, columns, M);
  lower_columns<S, N>(d, columns);
  store_columns<S, N>(D, M, columns);
}

// As Condition of many sequences, from Q' and X' to that of a B which is not lower yet. The rows of F
// go through each reflection while the next waits for its root.
template <class S, int N>
inline void condition_one(int d, const S* Q, S* L, S* scale, S* gain, S* B, S*, const S* F, S* X, S*, S*) {
  const int D = N ? N : d;
  constexpr int W = kLanes<S>;
  Row<S> columns[W], heads[W], rest[W], K[W], x[W];
  load_flipped<S, N>(D, columns, X);
  load_flipped<S, N>(D, heads, Q);
  load_columns<S, N>(D, rest, F);
  SVAE_UNROLL for (int j = 0; j < D; j++) {
    const auto r = turn<S, N>(d, j, 0, heads[j], columns, x);
    const Row<S> dots = lane_dot<S, N>(d, 0, rest, x), part = dots * r.quotient;
    const Row<S> s = part + r.inverse * (r.head * part);
    K[j] = dots * r.inverse;
    SVAE_UNROLL for (int c = 0; c < D; c++) rest[c] -= s * x[c];
    scale[j] = r.inverse[0];
  }
  store_columns<S, N>(D, L, heads);
  SVAE_UNROLL for (int c = D - 1; c >= 0; c--) {
    K[c] *= scale[c];
    SVAE_UNROLL for (int m = 0; m < c; m++) K[m] -= K[c] * L[c * D + m];
  }
  store_columns<S, N>(D, gain, K);
  store_flipped<S, N>(D, B, rest);
}

}  // namespace svae::SVAE_VARIANT
