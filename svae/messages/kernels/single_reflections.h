// Reflections of one sequence, its rows in lanes: the chain of operations that wait for each other is kept short.
#pragma once
#include "single.h"

namespace svae::SVAE_VARIANT {

#define SVAE_INLINE inline __attribute__((always_inline))

// sum_c columns_c x_c
template <class S, int N>
SVAE_INLINE Row<S> lane_dot(int d, int from, const Row<S>* columns, const Row<S>* x) {
  const int D = N ? N : d;
  Row<S> part[4] = {};
  SVAE_UNROLL for (int c = from; c < D; c++) part[c & 3] += columns[c] * x[c];
  return (part[0] + part[1]) + (part[2] + part[3]);
}

// Reflection j, of the vector in lane j of `columns` from column `from` on, applied to the rows in the lanes after it.
// x takes the vector, in all lanes. With r = 1 / |t, x| the multiple of x that leaves row k is
// dots_k / q + r (t dots_k / q - heads_k), q = x'x: one operation after the root is known.
template <class S, int N>
SVAE_INLINE Reflection<Row<S>> turn(int d, int j, int from, Row<S>& heads, Row<S>* columns, Row<S>* x) {
  using V = Row<S>;
  const int D = N ? N : d;
  constexpr int W = kLanes<S>;
  SVAE_UNROLL for (int c = from; c < D; c++) x[c] = spread<S>(columns[c], j);
  const V dots = lane_dot<S, N>(d, from, columns, x), square = spread<S>(dots, j), t = spread<S>(heads, j);
  const bool back = t[0] < 0;
  if (square[0] <= std::numeric_limits<S>::min() && !back) return {V{}, V{}, reciprocal<S, W>(t)};
  const V total = t * t + square, inverse = reciprocal_root<S, W>(total);
  V s, factor, head, length = total * inverse;
  length += (total - length * length) * (S(0.5) * inverse);
  if (back) {
    head = t - length;
    factor = inverse * reciprocal<S, W>(length - t);
    s = dots * factor - heads * inverse;
  } else {
    const V of_square = reciprocal<S, W>(square), scaled = dots * of_square;
    s = scaled + inverse * (t * scaled - heads);
    factor = of_square + of_square * (t * inverse);
    head = -square * reciprocal<S, W>(length + t);
  }
  const V lanes = lane_numbers<S>();
  s = lanes > splat<S, W>(S(j)) ? s : V{};
  heads = lanes == splat<S, W>(S(j)) ? length : heads - s * head;
  SVAE_UNROLL for (int c = from; c < D; c++) columns[c] -= s * x[c];
  return {head, factor, inverse};
}

template <class S, int N>
inline void triangularize_one(int d, S* T, S* X, Reflection<S>* h) {
  const int D = N ? N : d;
  Row<S> columns[kLanes<S>], heads[kLanes<S>], x[kLanes<S>];
  load_columns(D, columns, X);
  load_columns(D, heads, T);
  SVAE_UNROLL for (int j = 0; j < D; j++) {
    const auto r = turn<S, N>(d, j, 0, heads[j], columns, x);
    h[j] = {r.head[0], r.factor[0], r.inverse[0]};
  }
  store_columns(D, T, heads);
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
  load_columns(D, columns, M);
  lower_columns<S, N>(d, columns);
  store_columns(D, M, columns);
}

// As Condition of many sequences. The rows of F go through each reflection while the next waits for its root.
template <class S, int N>
inline void condition_one(int d, S* L, S* scale, S* gain, S* B, S*, const S* F, S* X, Reflection<S>*) {
  const int D = N ? N : d;
  constexpr int W = kLanes<S>;
  Row<S> columns[W], heads[W], rest[W], K[W], x[W];
  load_columns(D, columns, X);
  load_columns(D, heads, L);
  load_columns(D, rest, F);
  SVAE_UNROLL for (int j = 0; j < D; j++) {
    const auto r = turn<S, N>(d, j, 0, heads[j], columns, x);
    const Row<S> s = lane_dot<S, N>(d, 0, rest, x) * r.factor;
    K[j] = -s * r.head;
    SVAE_UNROLL for (int c = 0; c < D; c++) rest[c] -= s * x[c];
    scale[j] = r.inverse[0];
  }
  store_columns(D, L, heads);
  SVAE_UNROLL for (int c = D - 1; c >= 0; c--) {
    K[c] *= scale[c];
    SVAE_UNROLL for (int m = 0; m < c; m++) K[m] -= K[c] * L[c * D + m];
  }
  store_columns(D, gain, K);
  lower_columns<S, N>(d, rest);
  store_columns(D, B, rest);
}

}  // namespace svae::SVAE_VARIANT
