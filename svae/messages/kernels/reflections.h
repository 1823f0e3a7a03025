// Reflections of the rows of D x D matrices, W sequences in lanes: roots of sums of squares, without subtraction.
#pragma once
#include "single_reflections.h"
#include "symmetric.h"

namespace svae::SVAE_VARIANT {

// A loop over a row of N entries (of d when N is 0), from C on.
#define SVAE_ROW(c, C) SVAE_UNROLL for (int c = (C); c < (N ? N : d); c++)

template <int N>
constexpr int kRoom = N ? N : 64;

// What leaves a row with head t, whose product with the vector is `dot`; t becomes the new head.
template <class V>
inline V reflected(V& t, V dot, const Reflection<V>& h) {
  const V part = dot * h.quotient, s = part + h.inverse * (h.head * part - t);
  t = h.inverse * (h.head * t + dot);
  return s;
}

// Two rows p and q under the reflection of vector x; t and u are their heads.
template <int N, class V>
inline void reflect_pair(int d, V* p, V* q, const V* x, const Reflection<V>& h, V& t, V& u) {
  V a{}, b{}, a2{}, b2{};
  SVAE_UNROLL for (int c = 0; c + 1 < (N ? N : d); c += 2) {
    a += p[c] * x[c];
    b += q[c] * x[c];
    a2 += p[c + 1] * x[c + 1];
    b2 += q[c + 1] * x[c + 1];
  }
  if ((N ? N : d) & 1) {
    a += p[(N ? N : d) - 1] * x[(N ? N : d) - 1];
    b += q[(N ? N : d) - 1] * x[(N ? N : d) - 1];
  }
  const V s = reflected(t, a + a2, h), z = reflected(u, b + b2, h);
  SVAE_ROW(c, 0) {
    p[c] -= s * x[c];
    q[c] -= z * x[c];
  }
}

template <int N, class V>
inline V row_dot(int d, const V* p, const V* q) {
  V a{}, b{};
  SVAE_UNROLL for (int c = 0; c + 1 < (N ? N : d); c += 2) {
    a += p[c] * q[c];
    b += p[c + 1] * q[c + 1];
  }
  if ((N ? N : d) & 1) a += p[(N ? N : d) - 1] * q[(N ? N : d) - 1];
  return a + b;
}

template <int N, class V>
inline void reflect_row(int d, V* p, const V* x, const Reflection<V>& h, V& t) {
  const V s = reflected(t, row_dot<N>(d, p, x), h);
  SVAE_ROW(c, 0) p[c] -= s * x[c];
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
        reflect_pair<N>(d, p, q, X + j * D, h[j], a, b);
        t[j] = a;
        u[j] = b;
      }
      h[k] = reflect<S, W>(t[k], row_dot<N>(d, p, p));
      SVAE_ROW(c, 0) X[k * D + c] = p[c];
      if (other == k) break;
      reflect_row<N>(d, q, p, h[k], u[k]);
      h[other] = reflect<S, W>(u[other], row_dot<N>(d, q, q));
      SVAE_ROW(c, 0) X[other * D + c] = q[c];
    }
  }
};

// M <- the lower root of M M', in place. Row j keeps its vector beyond the diagonal, until all are done.
template <class S, int W>
struct LowerRoot {
  using V = Lanes<S, W>;
  template <int N>
  static __attribute__((noinline)) void run(int D, V* __restrict M) {
    Reflection<V> h[64];
    for (int k = 0; k < D; k++) {
      V* row = M + k * D;
      for (int j = 0; j < k; j++) reflect_row<0>(D - j - 1, row + j + 1, M + j * D + j + 1, h[j], row[j]);
      h[k] = reflect<S, W>(row[k], dot(D - k - 1, row + k + 1, row + k + 1));
    }
    clear_upper(D, M);
  }
};

}  // namespace svae::SVAE_VARIANT
