// Symmetric and triangular D x D matrices: triangles, traces, updates of low rank; of one sequence its rows in lanes.
#pragma once
#include "matrix.h"

namespace svae::SVAE_VARIANT {

// P += x y' (+ y x'), the rows of P in lanes; all are read before any is written
template <class S, bool Two>
inline void rank_one_one(int D, S* P, const S* x, const S* y) {
  const Row<S> across = load_some<S, kLanes<S>>(y, D), other = load_some<S, kLanes<S>>(x, D);
  Row<S> rows[kLanes<S>];
  for (int i = 0; i < D; i++) {
    rows[i] = load<S, kLanes<S>>(P + i * D) + x[i] * across;
    if (Two) rows[i] += y[i] * other;
  }
  for (int i = 0; i < D; i++) store_row(D, P, i, rows[i]);
}

// The lower triangle of M row after row at p, and back with zeros above it.
template <class S>
inline void pack_one(int D, S* p, const S* M) {
  for (int i = 0; i < D; p += ++i) store_some<S, kLanes<S>>(p, load<S, kLanes<S>>(M + i * D), i + 1);
}
template <class S>
inline void unpack_one(int D, S* M, const S* p) {
  for (int i = 0; i < D; p += ++i) store_row(D, M, i, load_some<S, kLanes<S>>(p, i + 1));
}

template <class S>
inline S trace_one(int D, const S* A, const S* B) {
  Row<S> sum{};
  int i = 0;
  for (; i + kLanes<S> <= D * D; i += kLanes<S>) sum += load<S, kLanes<S>>(A + i) * load<S, kLanes<S>>(B + i);
  sum += load_some<S, kLanes<S>>(A + i, D * D - i) * load_some<S, kLanes<S>>(B + i, D * D - i);
  return sum_of_lanes<S>(sum);
}

template <class S>
inline bool is_lower_one(int D, const S* M) {
  const Row<S> lanes = lane_numbers<S>();
  Row<S> largest{};
  for (int i = 0; i + 1 < D; i++) {
    const Row<S> row = load_some<S, kLanes<S>>(M + i * D, D);
    const Row<S> above = lanes > splat<S, kLanes<S>>(S(i)) ? row : Row<S>{};
    largest += above * above;
  }
  return sum_of_lanes<S>(largest) == 0;
}

// P += x y'
template <class V>
inline void rank_one(int D, V* __restrict P, const V* x, const V* y) {
  if constexpr (std::is_floating_point_v<V>) {
    if (D <= kLanes<V>) return rank_one_one<V, false>(D, P, x, y);
  }
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) P[i * D + j] += x[i] * y[j];
}

// The lower triangle of P += x y' + y x'.
template <class V>
inline void rank_two(int D, V* __restrict P, const V* x, const V* y) {
  if constexpr (std::is_floating_point_v<V>) {
    if (D <= kLanes<V>) return rank_one_one<V, true>(D, P, x, y);
  }
  for (int i = 0; i < D; i++)
    for (int j = 0; j <= i; j++) P[i * D + j] += x[i] * y[j] + y[i] * x[j];
}

// The lower triangle row after row at p, and back; what lies above it stays.
template <class V>
inline void pack(int D, V* p, const V* M) {
  if constexpr (std::is_floating_point_v<V>) {
    if (D <= kLanes<V>) return pack_one(D, p, M);
  }
  for (int i = 0; i < D; i++) copy(p, M + i * D, i + 1), p += i + 1;
}
template <class V>
inline void unpack(int D, V* M, const V* p) {
  if constexpr (std::is_floating_point_v<V>) {
    if (D <= kLanes<V>) return unpack_one(D, M, p);
  }
  for (int i = 0; i < D; i++) copy(M + i * D, p, i + 1), p += i + 1;
}

template <class V>
inline void mirror(int D, V* A) {
  for (int i = 0; i < D; i++)
    for (int j = 0; j < i; j++) A[j * D + i] = A[i * D + j];
}

// Both triangles from the lower one; products of one sequence with its rows in lanes have both already.
template <class V>
inline void complete(int D, V* A) {
  if constexpr (std::is_floating_point_v<V>) {
    if (in_lanes<V>(D)) return;
  }
  mirror(D, A);
}

template <class V>
inline void clear_upper(int D, V* A) {
  for (int i = 0; i < D; i++)
    for (int j = i + 1; j < D; j++) A[i * D + j] = V{};
}

// A <- (A + A') / 2
template <class V, class S>
inline void symmetrize(int D, V* A, S half) {
  for (int i = 0; i < D; i++)
    for (int j = 0; j < i; j++) A[j * D + i] = A[i * D + j] = half * (A[i * D + j] + A[j * D + i]);
}

template <class S, int W>
inline bool is_lower(int D, const Lanes<S, W>* M) {
  using V = Lanes<S, W>;
  if constexpr (W == 1) {
    if (D <= kLanes<S>) return is_lower_one(D, M);
  }
  V sum{};
  for (int i = 0; i < D; i++)
    for (int j = i + 1; j < D; j++) sum += M[i * D + j] < V{} ? -M[i * D + j] : M[i * D + j];
  for (int l = 0; l < W; l++)
    if (!(get<S, W>(sum, l) == 0)) return false;
  return true;
}

// tr(A B) of symmetric matrices, from their lower triangles.
template <class S, int W>
inline Lanes<S, W> trace(int D, const Lanes<S, W>* A, const Lanes<S, W>* B) {
  if constexpr (W == 1) {
    if (D > 2 && D <= kLanes<S>) return trace_one(D, A, B);  // products of one sequence have both triangles
  }
  Lanes<S, W> diagonal{}, below[4] = {};
  for (int i = 0; i < D; i++) {
    diagonal += A[i * D + i] * B[i * D + i];
    for (int j = 0; j < i; j++) below[j & 3] += A[i * D + j] * B[i * D + j];
  }
  return diagonal + S(2) * ((below[0] + below[1]) + (below[2] + below[3]));
}

// B <- sym(phi(L' dL)): the cotangent of L L' in the coordinates of L, from that of its lower root L.
template <class V, class S>
inline void whitened_cotangent(int D, V* B, const V* L, const V* dL, S half) {
  multiply<V, true, Upper, false, Full, Lower>(D, B, L, dL, S(1));
  for (int i = 0; i < D; i++)
    for (int j = 0; j <= i; j++) B[j * D + i] = B[i * D + j] = half * B[i * D + j];
}

}  // namespace svae::SVAE_VARIANT
