// Reflections of the rows of D x D matrices, W sequences in lanes: roots of sums of squares, without subtraction.
#pragma once
#include "single_reflections.h"
#include "symmetric.h"

namespace svae::SVAE_VARIANT {

// A loop over a row of N entries (of d when N is 0), from C on.
#define SVAE_ROW(c, C) SVAE_UNROLL for (int c = (C); c < (N ? N : d); c++)

template <int N>
constexpr int kRoom = N ? N : 64;

// Two rows p and q under the reflection of vector x, from column C on; t and u are their heads.
template <int N, int C, class V>
inline void reflect_pair(int d, V* p, V* q, const V* x, const Reflection<V>& h, V& t, V& u) {
  V a = t * h.head, b = u * h.head, a2{}, b2{};
  SVAE_UNROLL for (int c = C; c + 1 < (N ? N : d); c += 2) {
    a += p[c] * x[c];
    b += q[c] * x[c];
    a2 += p[c + 1] * x[c + 1];
    b2 += q[c + 1] * x[c + 1];
  }
  if (((N ? N : d) - C) & 1) {
    a += p[(N ? N : d) - 1] * x[(N ? N : d) - 1];
    b += q[(N ? N : d) - 1] * x[(N ? N : d) - 1];
  }
  a = (a + a2) * h.factor;
  b = (b + b2) * h.factor;
  t -= a * h.head;
  u -= b * h.head;
  SVAE_ROW(c, C) {
    p[c] -= a * x[c];
    q[c] -= b * x[c];
  }
}

template <int N, int C, class V>
inline V row_dot(int d, const V* p, const V* q) {
  V a{}, b{};
  SVAE_UNROLL for (int c = C; c + 1 < (N ? N : d); c += 2) {
    a += p[c] * q[c];
    b += p[c + 1] * q[c + 1];
  }
  if (((N ? N : d) - C) & 1) a += p[(N ? N : d) - 1] * q[(N ? N : d) - 1];
  return a + b;
}

template <int N, int C, class V>
inline void reflect_row(int d, V* p, const V* x, const Reflection<V>& h, V& t) {
  const V s = (t * h.head + row_dot<N, C>(d, p, x)) * h.factor;
  t -= s * h.head;
  SVAE_ROW(c, C) p[c] -= s * x[c];
}

// T <- the lower root of T T' + X X', T lower; X is lost (of many sequences it keeps the
// vectors of the reflections). Two rows at a time.
template <class S, int W>
struct Triangularize {
  using V = Lanes<S, W>;
  template <int N>
  static __attribute__((noinline)) void run(int d, V* __restrict T, V* __restrict X, Reflection<V>* __restrict h) {
    const int D = N ? N : d;
    for (int k = 0; k < D; k += 2) {
      const int other = k + 1 < D ? k + 1 : k;
      V p[kRoom<N>], q[kRoom<N>], *t = T + k * D, *u = T + other * D;
      SVAE_ROW(c, 0) p[c] = X[k * D + c];
      SVAE_ROW(c, 0) q[c] = X[other * D + c];
      for (int j = 0; j < k; j++) {
        V a = t[j], b = u[j];
        reflect_pair<N, 0>(d, p, q, X + j * D, h[j], a, b);
        t[j] = a;
        u[j] = b;
      }
      h[k] = reflect<S, W>(t[k], row_dot<N, 0>(d, p, p));
      SVAE_ROW(c, 0) X[k * D + c] = p[c];
      if (other == k) break;
      reflect_row<N, 0>(d, q, p, h[k], u[k]);
      h[other] = reflect<S, W>(u[other], row_dot<N, 0>(d, q, q));
      SVAE_ROW(c, 0) X[other * D + c] = q[c];
    }
  }
};

// The reflections of vectors X applied to the rows (0, F_i): (K_i, B_i).
template <class S, int W>
struct CarryRows {
  using V = Lanes<S, W>;
  template <int N>
  static __attribute__((noinline)) void run(int d, V* __restrict K, V* __restrict B, const V* __restrict F,
                                            const V* __restrict X, const Reflection<V>* __restrict h) {
    const int D = N ? N : d;
    for (int i = 0; i < D; i += 2) {
      const int other = i + 1 < D ? i + 1 : i;
      V p[kRoom<N>], q[kRoom<N>];
      SVAE_ROW(c, 0) p[c] = F[i * D + c];
      SVAE_ROW(c, 0) q[c] = F[other * D + c];
      for (int j = 0; j < D; j++) {
        V a{}, b{};
        reflect_pair<N, 0>(d, p, q, X + j * D, h[j], a, b);
        K[i * D + j] = a;
        K[other * D + j] = b;
      }
      SVAE_ROW(c, 0) B[i * D + c] = p[c];
      SVAE_ROW(c, 0) B[other * D + c] = q[c];
    }
  }
};

// M <- the lower root of M M', in place. Row j becomes the vector of reflection j, zeros before it, until all are done.
template <class S, int W>
struct LowerRoot {
  using V = Lanes<S, W>;

  template <int N, int C>
  static void two_rows(int d, V* p, V* q, const V* vectors, const V* factor, int from, int to) {
    const int D = N ? N : d;
    const V none{};
    for (int j = from; j < to; j++) {
      V a{}, b{};
      reflect_pair<N, C>(d, p, q, vectors + j * D, {none, factor[j], none}, a, b);
    }
  }

  // Of any size: row j keeps its vector beyond the diagonal, until all are done.
  static void in_place(int D, V* __restrict M) {
    Reflection<V> h[64];
    for (int k = 0; k < D; k++) {
      V* row = M + k * D;
      for (int j = 0; j < k; j++) reflect_row<0, 0>(D - j - 1, row + j + 1, M + j * D + j + 1, h[j], row[j]);
      h[k] = reflect<S, W>(row[k], dot(D - k - 1, row + k + 1, row + k + 1));
    }
    clear_upper(D, M);
  }

  template <int N>
  static __attribute__((noinline)) void run(int d, V* __restrict M) {
    if constexpr (N == 0) return in_place(d, M);
    const int D = N, half = N / 2;
    constexpr int H = N / 2;
    V vectors[kRoom<N> * kRoom<N>], factor[kRoom<N>];
    for (int k = 0; k < D; k += 2) {
      const int other = k + 1 < D ? k + 1 : k;
      V p[kRoom<N>], q[kRoom<N>];
      SVAE_ROW(c, 0) p[c] = M[k * D + c];
      SVAE_ROW(c, 0) q[c] = M[other * D + c];
      two_rows<N, 0>(d, p, q, vectors, factor, 0, k < half ? k : half);
      two_rows<N, H>(d, p, q, vectors, factor, half, k);
      finish<N>(d, k, p, M, vectors, factor);
      if (other == k) break;
      const V s = row_dot<N, 0>(d, q, vectors + k * D) * factor[k];
      SVAE_ROW(c, 0) q[c] -= s * vectors[k * D + c];
      finish<N>(d, other, q, M, vectors, factor);
    }
  }

  // Row k of the root, and the vector and factor of its reflection.
  template <int N>
  static void finish(int d, int k, const V* row, V* M, V* vectors, V* factor) {
    const int D = N ? N : d;
    V *out = M + k * D, *v = vectors + k * D;
    SVAE_ROW(c, 0) out[c] = row[c];
    V square{};
    for (int c = 0; c <= k; c++) v[c] = V{};
    for (int c = k + 1; c < D; c++) {
      v[c] = out[c];
      square += v[c] * v[c];
      out[c] = V{};
    }
    const auto h = reflect<S, W>(out[k], square);
    v[k] = h.head;
    factor[k] = h.factor;
  }
};

}  // namespace svae::SVAE_VARIANT
