// Rows of D x D matrices under rotations, W sequences in lanes: a reflection that leaves other triangles as they are.
//
// A row (t, a) becomes (|t, a|, 0) by rotating its head with a_D-1, ..., a_0 in turn. With n_c^2 = t^2 + a_c^2 + ...
// + a_D-1^2 all of the rotations are known at once, and a row (u, y) goes through them with one running sum:
// w_c = t u + a_c y_c + ... + a_D-1 y_D-1,  y_c <- (y_c - a_c w_c+1 / n_c+1^2) n_c+1 / n_c,  u <- w_0 / n_0.
// The last factor is the same for all rows, so it waits in the square d_c of a scale of column c (Gentleman 1973): two
// operations for each entry, and no root but that of the head. A row that is 0 from some column on stays so, which a
// reflection would not let it.
#pragma once
#include "triangular.h"

namespace svae::SVAE_VARIANT {

// The rotations of one row: its head, d_c a_c, a_c / n_c+1^2 and 1 / n_0.
template <class V>
struct Rotations {
  V head;
  const V *weight, *slope;
  V inverse;
};

// The first M entries of two rows; w and z are their running sums.
template <int M, class V>
inline void rotate_pair(int m, V* p, V* q, const Rotations<V>& r, V& w, V& z) {
  SVAE_UNROLL for (int c = (M ? M : m) - 1; c >= 0; c--) {
    const V x = p[c], y = q[c], weight = r.weight[c], slope = r.slope[c];
    p[c] = x - slope * w;
    q[c] = y - slope * z;
    w += weight * x;
    z += weight * y;
  }
}

// Far below the square of what rounding leaves of a row: with it no quotient is infinite.
template <class S, int N, class V>
inline V negligible(int D, const V* row) {
  constexpr S small = std::numeric_limits<S>::epsilon() * S(1e-3);
  return std::numeric_limits<S>::min() + (small * small) * row_dot<N>(D, row, row);
}

// The rotations of row (t, a) over columns of scale^2 d; t becomes its length.
template <class S, int W, int N>
inline Rotations<Lanes<S, W>> rotations(int D, Lanes<S, W>& t, const Lanes<S, W>* a, Lanes<S, W> least, Lanes<S, W>* d,
                                        Lanes<S, W>* weight, Lanes<S, W>* slope) {
  using V = Lanes<S, W>;
  const V head = t;
  V square = t * t + least, quotient = reciprocal<S, W>(square);
  SVAE_UNROLL for (int c = (N ? N : D) - 1; c >= 0; c--) {
    weight[c] = d[c] * a[c];
    const V next = square + weight[c] * a[c];
    slope[c] = a[c] * quotient;
    quotient = reciprocal<S, W>(next);
    d[c] *= square * quotient;
    square = next;
  }
  const V inverse = reciprocal_root<S, W>(square);
  t = square * inverse;
  t += (square - t * t) * (S(0.5) * inverse);
  return {head, weight, slope, inverse};
}

// From the parts of a transition, [Q, A F] with Q lower and A F in X: L its lower root with the inverses of its
// diagonal (L may be Q); the same rotations take [0, F] to [K, B]: the gain K L^-1, and the lower root of the backward
// covariance.
template <class S, int W>
struct Condition {
  using V = Lanes<S, W>;
  using R = Rotations<V>;

  // Two rows at a time; row `other` is row k again where D is odd.
  template <int N>
  static __attribute__((noinline)) void root(int d, const V* Q, V* L, V* X, V* scale, V* slope, R* __restrict r) {
    const int D = N ? N : d;
    for (int c = 0; c < D; c++) scale[c] = splat<S, W>(1);
    for (int k = 0; k < D; k += 2) {
      const int other = k + 1 < D ? k + 1 : k;
      V p[kRoom<N>], q[kRoom<N>], *t = L + k * D, *u = L + other * D;
      const V *from = Q + k * D, *beside = Q + other * D;
      SVAE_ROW(c, 0) p[c] = X[k * D + c];
      SVAE_ROW(c, 0) q[c] = X[other * D + c];
      const V least = negligible<S, N>(d, p), least_beside = negligible<S, N>(d, q);
      for (int j = 0; j < k; j++) {
        V w = r[j].head * from[j], z = r[j].head * beside[j];
        rotate_pair<N>(d, p, q, r[j], w, z);
        t[j] = w * r[j].inverse;
        u[j] = z * r[j].inverse;
      }
      t[k] = from[k];
      r[k] = rotations<S, W, N>(d, t[k], p, least, scale, X + k * D, slope + k * D);
      if (other == k) break;
      V w = r[k].head * beside[k], none{};
      rotate_pair<N>(d, q, p, r[k], w, none);
      u[k] = w * r[k].inverse;
      u[other] = beside[other];
      r[other] = rotations<S, W, N>(d, u[other], q, least_beside, scale, X + other * D, slope + other * D);
    }
  }

  // Rows i and i + 1 of F, which end with the diagonal.
  template <int N, int M>
  static void carry(int d, int i, V* K, V* B, const V* F, const R* r, const V* scale) {
    const int D = N ? N : d, m = M ? M : i + 2 < D ? i + 2 : D, other = i + 1 < D ? i + 1 : i;
    V p[M ? M : kRoom<N>], q[M ? M : kRoom<N>];
    SVAE_UNROLL for (int c = 0; c < (M ? M : m); c++) p[c] = F[i * D + c], q[c] = F[other * D + c];
    for (int j = 0; j < D; j++) {
      V w{}, z{};
      rotate_pair<M>(m, p, q, r[j], w, z);
      K[i * D + j] = w * r[j].inverse;
      K[other * D + j] = z * r[j].inverse;
    }
    SVAE_UNROLL for (int c = 0; c < (M ? M : m); c++) {
      B[i * D + c] = p[c] * scale[c];
      B[other * D + c] = q[c] * scale[c];
    }
    for (int c = m; c < D; c++) B[i * D + c] = B[other * D + c] = V{};
  }

  template <int N, int M = 2>
  static void carry_from(V* K, V* B, const V* F, const R* r, const V* scale) {
    carry<N, (M < N ? M : N)>(N, M - 2, K, B, F, r, scale);
    if constexpr (M < N) carry_from<N, M + 2>(K, B, F, r, scale);
  }

  template <int N>
  static __attribute__((noinline)) void run(int d, const V* Q, V* L, V* scale, V* gain, V* B, V* K, const V* F, V* X,
                                            V* columns, V* slope) {
    const int D = N ? N : d;
    R r[kRoom<N>];
    root<N>(d, Q, L, X, columns, slope, r);
    for (int c = 0; c < D; c++) columns[c] *= reciprocal_root<S, W>(columns[c] + std::numeric_limits<S>::min());
    for (int i = 0; i < D; i++) scale[i] = r[i].inverse;
    if constexpr (N > 0)
      carry_from<N>(K, B, F, r, columns);
    else
      for (int i = 0; i < D; i += 2) carry<0, 0>(d, i, K, B, F, r, columns);
    Solve<S, W>::template run<N>(d, gain, K, L, scale);
  }
};

}  // namespace svae::SVAE_VARIANT
