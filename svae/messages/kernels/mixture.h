// One step of a mean field mixture of regressions x | u, in lanes over steps: U regressors, call.T = U.
#pragma once
#include "arena.h"
#include "functions.h"
#include "products.h"
#include "streams.h"

namespace svae::SVAE_VARIANT {

// X = C^-1 (lower, zeros above) of the lower C with C C' = P; gives log |C|.
template <class S, int W>
Lanes<S, W> inverse_root(int D, Lanes<S, W>* X, Lanes<S, W>* C, const Lanes<S, W>* P) {
  using V = Lanes<S, W>;
  LogProduct<S, W> size;
  for (int i = 0; i < D; i++) {
    V* row = C + i * D;
    for (int j = 0; j <= i; j++) {
      V sum = P[i * D + j];
      const V* other = C + j * D;
      for (int k = 0; k < j; k++) sum -= row[k] * other[k];
      row[j] = j < i ? sum * X[j * D + j] : sum;
    }
    const V pivot = root<S, W>(row[i]);
    size.times(pivot);
    X[i * D + i] = S(1) / pivot;
  }
  for (int i = 0; i < D; i++) {
    for (int j = 0; j < i; j++) X[i * D + j] = V{};
    for (int k = 0; k < i; k++) {
      const V c = C[i * D + k];
      for (int j = 0; j <= k; j++) X[i * D + j] -= c * X[k * D + j];
    }
    for (int j = 0; j < i; j++) X[i * D + j] *= X[i * D + i];
    for (int j = i + 1; j < D; j++) X[i * D + j] = V{};
  }
  return size.log();
}

// in: [P (D, D), H (D, U), G (U, U)]; out: P^-1 H, C^-T, G - H'P^-1 H, log |C| with C C' = P
template <class S, int W>
void mixture_blend(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  const int D = call.D, U = call.T, n = D * D + D * U + U * U;
  Arena<V> arena(n + 3 * D * D + 2 * D * U);
  V *P = arena.take(n), *H = P + D * D, *G = H + D * U, *C = arena.take(D * D), *X = arena.take(D * D);
  V *half = arena.take(D * U), *N = arena.take(D * U), *turned = arena.take(D * D);
  Reader<S, W>(call.in[0], first, call.batch)(P, 0, n);
  V log_size = inverse_root<S, W>(D, X, C, P);
  product(D, U, D, half, U, view(X, D), view(H, U), S(1));
  product(D, U, D, N, U, transposed(X, D), view(half, U), S(1));
  product(U, U, D, G, U, transposed(half, U), view(half, U), S(-1), true);
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) turned[j * D + i] = X[i * D + j];
  Writer<S, W>(call.out[0], first, call.batch)(N, 0, D * U);
  Writer<S, W>(call.out[1], first, call.batch)(turned, 0, D * D);
  Writer<S, W>(call.out[2], first, call.batch)(G, 0, U * U);
  Writer<S, W>(call.out[3], first, call.batch)(&log_size, 0, 1);
}

// in: N = P^-1 H, R = C^-T, and the cotangents of the four outputs; out: that of [P, H, G], P's symmetric
//   A = R R' dN,  dH = A - N (dE + dE'),  dG = dE,  dP = R (B + dlog / 2) R' + N dE N' - A N',  B = -phi(dR' R)
template <class S, int W>
void mixture_blend_vjp(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  const int D = call.D, U = call.T, n = D * D + D * U + U * U;
  Arena<V> arena(n + 4 * D * D + 4 * D * U + U * U + 1);
  V *N = arena.take(D * U), *R = arena.take(D * D), *dN = arena.take(D * U), *dR = arena.take(D * D);
  V *dlog = arena.take(1), *dP = arena.take(n), *dH = dP + D * D, *dG = dH + D * U;
  V *half = arena.take(D * U), *both = arena.take(U * U), *B = arena.take(D * D), *M = arena.take(D * D);
  V* NE = arena.take(D * U);
  V* into[] = {N, R, dN, dR, dG, dlog};
  const int sizes[] = {D * U, D * D, D * U, D * D, U * U, 1};
  for (int i = 0; i < 6; i++) Reader<S, W>(call.in[i], first, call.batch)(into[i], 0, sizes[i]);
  product(D, U, D, half, U, transposed(R, D), view(dN, U), S(1));
  product(D, U, D, dH, U, view(R, D), view(half, U), S(1));  // A
  for (int i = 0; i < U; i++)
    for (int j = 0; j < U; j++) both[i * U + j] = dG[i * U + j] + dG[j * U + i];
  product(D, U, U, NE, U, view(N, U), view(both, U), S(1));
  product(D, D, D, B, D, transposed(dR, D), view(R, D), S(1));
  for (int i = 0; i < D; i++) {
    for (int j = 0; j <= i; j++) B[j * D + i] = B[i * D + j] = S(-0.5) * B[i * D + j];
    B[i * D + i] += S(0.5) * *dlog;
  }
  product(D, D, D, M, D, view(R, D), view(B, D), S(1));
  product(D, D, D, dP, D, view(M, D), transposed(R, D), S(1));
  product(D, D, U, dP, D, view(dH, U), transposed(N, U), S(-1), true);
  product(D, D, U, dP, D, view(NE, U), transposed(N, U), S(0.5), true);
  for (int i = 0; i < D; i++)
    for (int j = 0; j < i; j++) dP[j * D + i] = dP[i * D + j] = S(0.5) * (dP[i * D + j] + dP[j * D + i]);
  for (int i = 0; i < D * U; i++) dH[i] -= NE[i];
  Writer<S, W>(call.out[0], first, call.batch)(dP, 0, n);
}

// The roots and the mean of (x - c u, u), u = (x_, 1) and x_ = mean_ + gain (x - mean) + back e, as columns of a matrix
// of 2 D rows: D for the noise of x, D for e, one for the mean. The row of the 1 is left out.
template <class S, int W>
struct Joint {
  using V = Lanes<S, W>;
  int D, n;
  V *c, *mean, *before, *sqrt, *gain, *back, *v;

  static int64_t size(int D) { return D * (D + 1) + 2 * D + 3 * D * D + 2 * D * (2 * D + 1); }
  Joint(const Call<S>& call, int64_t first, Arena<V>& arena) : D(call.D), n(2 * D + 1) {
    V** into[] = {&c, &mean, &before, &sqrt, &gain, &back};
    const int sizes[] = {D * (D + 1), D, D, D * D, D * D, D * D};
    for (int i = 0; i < 6; i++) {
      *into[i] = arena.take(sizes[i]);
      Reader<S, W>(call.in[i], first, call.batch)(*into[i], 0, sizes[i]);
    }
    v = arena.take(2 * D * n);
    V *r = v, *u = v + D * n;
    product(D, D, D, u, n, view(gain, D), view(sqrt, D), S(1));
    for (int i = 0; i < D; i++) {
      for (int j = 0; j < D; j++) {
        u[i * n + D + j] = back[i * D + j];
        r[i * n + j] = sqrt[i * D + j];
        r[i * n + D + j] = V{};
      }
      u[i * n + 2 * D] = before[i];
      r[i * n + 2 * D] = mean[i] - c[i * (D + 1) + D];
    }
    product(D, n, D, r, n, view(c, D + 1), view(u, n), S(-1), true);
  }
};

// in: c, mean, mean before, sqrt, gain, back; out: the lower triangle of E (r, u)(r, u)', row by row
template <class S, int W>
void mixture_moments(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  const int D = call.D, n = 2 * D + 1, m = 2 * D;
  Arena<V> arena(Joint<S, W>::size(D) + m * m + n * (n + 1) / 2);
  const Joint<S, W> joint(call, first, arena);
  V *full = arena.take(m * m), *out = arena.take(n * (n + 1) / 2), *to = out;
  product(m, m, n, full, m, view(joint.v, n), transposed(joint.v, n), S(1), false, true);
  for (int i = 0; i < m; i++)
    for (int j = 0; j <= i; j++) *to++ = full[i * m + j];
  for (int i = 0; i < m; i++) *to++ = joint.v[i * n + m];
  *to = splat<S, W>(1);
  Writer<S, W>(call.out[0], first, call.batch)(out, 0, n * (n + 1) / 2);
}

// in: as above, and the cotangent of the triangle; out: cotangents of mean, mean before, sqrt, gain, back
template <class S, int W>
void mixture_moments_vjp(const Call<S>& call, int64_t first) {
  using V = Lanes<S, W>;
  const int D = call.D, n = 2 * D + 1, m = 2 * D, packed = n * (n + 1) / 2;
  Arena<V> arena(Joint<S, W>::size(D) + packed + m * m + m * n + 2 * D + 3 * D * D);
  const Joint<S, W> joint(call, first, arena);
  V *dS = arena.take(packed), *Q = arena.take(m * m), *dv = arena.take(m * n), *du = dv + D * n;
  V *d_mean = arena.take(D), *d_before = arena.take(D), *d_sqrt = arena.take(D * D), *d_gain = arena.take(D * D);
  V* d_back = arena.take(D * D);
  Reader<S, W>(call.in[6], first, call.batch)(dS, 0, packed);
  const V* from = dS;
  for (int i = 0; i < m; i++)
    for (int j = 0; j <= i; j++, from++) Q[i * m + j] = Q[j * m + i] = i == j ? *from + *from : *from;
  product(m, n, m, dv, n, view(Q, m), view(joint.v, n), S(1));
  for (int i = 0; i < m; i++) dv[i * n + m] += from[i];
  product(D, n, D, du, n, transposed(joint.c, D + 1), view(dv, n), S(-1), true);
  product(D, D, D, d_sqrt, D, transposed(joint.gain, D), view(du, n), S(1));
  product(D, D, D, d_gain, D, view(du, n), transposed(joint.sqrt, D), S(1));
  for (int i = 0; i < D; i++) {
    for (int j = 0; j < D; j++) {
      d_sqrt[i * D + j] += dv[i * n + j];
      d_back[i * D + j] = du[i * n + D + j];
    }
    d_mean[i] = dv[i * n + m];
    d_before[i] = du[i * n + m];
  }
  const V* results[] = {d_mean, d_before, d_sqrt, d_gain, d_back};
  const int sizes[] = {D, D, D * D, D * D, D * D};
  for (int i = 0; i < 5; i++) Writer<S, W>(call.out[i], first, call.batch)(results[i], 0, sizes[i]);
}

}  // namespace svae::SVAE_VARIANT
