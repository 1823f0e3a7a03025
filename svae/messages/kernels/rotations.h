// Rows of D x D matrices under rotations, W sequences in lanes: a reflection that leaves other triangles as they are.
//
// A row (t, a) becomes (|t, a|, 0) by rotating its head with a_D-1, ..., a_0 in turn. With n_c^2 = t^2 + a_c^2 + ...
// + a_D-1^2 all of the rotations are known at once, and a row (u, y) goes through them with one running sum:
// w_c = t u + a_c y_c + ... + a_D-1 y_D-1,  y_c <- y_c n_c+1 / n_c - a_c w_c+1 / (n_c n_c+1),  u <- w_0 / n_0.
// A row that is 0 from some column on stays so, which a reflection would not let it.
#pragma once
#include "triangular.h"

namespace svae::SVAE_VARIANT {

// The rotations of one row: its head and entries, n_c+1 / n_c, a_c / (n_c n_c+1), and 1 / n_0.
template <class V>
struct Rotations {
  V head;
  const V *a, *cosine, *sine;
  V inverse;
};

// The first M entries of two rows; w and z are their running sums.
template <int M, class V>
inline void rotate_pair(int m, V* p, V* q, const Rotations<V>& r, V& w, V& z) {
  SVAE_UNROLL for (int c = (M ? M : m) - 1; c >= 0; c--) {
    const V x = p[c], y = q[c], a = r.a[c], cosine = r.cosine[c], sine = r.sine[c];
    p[c] = cosine * x - sine * w;
    q[c] = cosine * y - sine * z;
    w += a * x;
    z += a * y;
  }
}

// The rotations of row (t, a); t becomes its length.
template <class S, int W, int N>
inline Rotations<Lanes<S, W>> rotations(int d, Lanes<S, W>& t, const Lanes<S, W>* a, Lanes<S, W>* cosine,
                                        Lanes<S, W>* sine) {
  using V = Lanes<S, W>;
  const V head = t;
  V square = t * t + std::numeric_limits<S>::min(), later = reciprocal_root<S, W>(square);  // never 0
  SVAE_UNROLL for (int c = (N ? N : d) - 1; c >= 0; c--) {
    const V next = square + a[c] * a[c], inverse = reciprocal_root<S, W>(next);
    const V both = inverse * later;
    cosine[c] = square * both;
    sine[c] = a[c] * both;
    square = next;
    later = inverse;
  }
  t = square * later;
  t += (square - t * t) * (S(0.5) * later);
  return {head, a, cosine, sine, later};
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
  static __attribute__((noinline)) void root(int d, const V* Q, V* L, V* X, V* cosine, V* sine, R* __restrict r) {
    const int D = N ? N : d;
    for (int k = 0; k < D; k += 2) {
      const int other = k + 1 < D ? k + 1 : k;
      V p[kRoom<N>], q[kRoom<N>], *t = L + k * D, *u = L + other * D;
      const V *from = Q + k * D, *beside = Q + other * D;
      SVAE_ROW(c, 0) p[c] = X[k * D + c];
      SVAE_ROW(c, 0) q[c] = X[other * D + c];
      for (int j = 0; j < k; j++) {
        V w = r[j].head * from[j], z = r[j].head * beside[j];
        rotate_pair<N>(d, p, q, r[j], w, z);
        t[j] = w * r[j].inverse;
        u[j] = z * r[j].inverse;
      }
      SVAE_ROW(c, 0) X[k * D + c] = p[c];
      t[k] = from[k];
      r[k] = rotations<S, W, N>(d, t[k], X + k * D, cosine + k * D, sine + k * D);
      if (other == k) break;
      V w = r[k].head * beside[k], none{};
      rotate_pair<N>(d, q, p, r[k], w, none);
      u[k] = w * r[k].inverse;
      SVAE_ROW(c, 0) X[other * D + c] = q[c];
      u[other] = beside[other];
      r[other] = rotations<S, W, N>(d, u[other], X + other * D, cosine + other * D, sine + other * D);
    }
  }

  // Rows i and i + 1 of F, which end with the diagonal.
  template <int N, int M>
  static void carry(int d, int i, V* K, V* B, const V* F, const R* r) {
    const int D = N ? N : d, m = M ? M : i + 2 < D ? i + 2 : D, other = i + 1 < D ? i + 1 : i;
    V p[M ? M : kRoom<N>], q[M ? M : kRoom<N>];
    SVAE_UNROLL for (int c = 0; c < (M ? M : m); c++) p[c] = F[i * D + c], q[c] = F[other * D + c];
    for (int j = 0; j < D; j++) {
      V w{}, z{};
      rotate_pair<M>(m, p, q, r[j], w, z);
      K[i * D + j] = w * r[j].inverse;
      K[other * D + j] = z * r[j].inverse;
    }
    SVAE_UNROLL for (int c = 0; c < (M ? M : m); c++) B[i * D + c] = p[c], B[other * D + c] = q[c];
    for (int c = m; c < D; c++) B[i * D + c] = B[other * D + c] = V{};
  }

  template <int N, int M = 2>
  static void carry_from(V* K, V* B, const V* F, const R* r) {
    carry<N, (M < N ? M : N)>(N, M - 2, K, B, F, r);
    if constexpr (M < N) carry_from<N, M + 2>(K, B, F, r);
  }

  template <int N>
  static __attribute__((noinline)) void run(int d, const V* Q, V* L, V* scale, V* gain, V* B, V* K, const V* F,
                                            V* X, V* cosine, V* sine) {
    const int D = N ? N : d;
    R r[kRoom<N>];
    root<N>(d, Q, L, X, cosine, sine, r);
    for (int i = 0; i < D; i++) scale[i] = r[i].inverse;
    if constexpr (N > 0)
      carry_from<N>(K, B, F, r);
    else
      for (int i = 0; i < D; i += 2) carry<0, 0>(d, i, K, B, F, r);
    Solve<S, W>::template run<N>(d, gain, K, L, scale);
  }
};

}  // namespace svae::SVAE_VARIANT
