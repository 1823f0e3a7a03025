// A symmetric matrix in the registers of one thread: its lower triangle, row by row. No other thread is waited for.
#pragma once
#include "warp.cuh"

namespace svae {

template <int D>
constexpr int kTriangle = D * (D + 1) / 2;

__device__ constexpr int at(int i, int j) { return i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i; }

// S = L' diag(p) L with L unit lower triangular: leaves L, and 1 / p in the place of its diagonal. `visit(k, p_k)` is
// called when row k is there, from the last to the first: what it eliminates has row k to go by.
template <int D, class Visit>
__device__ inline void decompose(double (&s)[kTriangle<D>], Visit visit) {
#pragma unroll
  for (int k = D - 1; k >= 0; k--) {
    const double pivot = s[at(k, k)], inverse = reciprocal(pivot);
    double scaled[D];
#pragma unroll
    for (int j = k - 1; j >= 0; j--) {
      scaled[j] = s[at(k, j)] * inverse;
#pragma unroll
      for (int i = k - 1; i >= j; i--) s[at(i, j)] = fma(-s[at(k, i)], scaled[j], s[at(i, j)]);
    }
#pragma unroll
    for (int j = 0; j < k; j++) s[at(k, j)] = scaled[j];
    s[at(k, k)] = inverse;
    visit(k, pivot);
  }
}

// The logarithm of a product of positive numbers: their exponents are summed, so that it stays in range.
struct LogProduct {
  double rest = 1;
  int power = 0, signs = 0;
  __device__ void times(double x) {
    const int high = __double2hiint(x), exponent = ((high >> 20) & 0x7ff) - 1023;
    rest *= __hiloint2double(high - exponent * 0x100000, __double2loint(x));
    power += exponent;
    signs |= high;
  }
  template <class S>
  __device__ double log() const {
    return logarithm<S>(signs < 0 ? -1.0 : rest) + power * 0.693147180559945309417;
  }
};

// The lower root of S^-1 in the place of S, and log |S|.
template <int D, class S>
__device__ inline double root_of_inverse(double (&s)[kTriangle<D>]) {
  LogProduct determinant;
  double scale[D];
  decompose<D>(s, [&](int k, double pivot) {
    determinant.times(pivot);
    scale[k] = reciprocal_root(pivot);
  });
#pragma unroll
  for (int i = 0; i < D; i++) {  // row i of L^-1 in the place of that of L
#pragma unroll
    for (int j = 0; j < i; j++) {
      double sum = s[at(i, j)];
#pragma unroll
      for (int k = j + 1; k < i; k++) sum = fma(s[at(i, k)], s[at(k, j)], sum);
      s[at(i, j)] = -sum;
    }
  }
#pragma unroll
  for (int i = 0; i < D; i++)
#pragma unroll
    for (int j = 0; j <= i; j++) s[at(i, j)] = j < i ? s[at(i, j)] * scale[j] : scale[i];
  return determinant.log<S>();
}

// x <- B B'x, of K vectors at once.
template <int D, int K>
__device__ inline void apply(const double (&B)[kTriangle<D>], double (&x)[K][D]) {
  double y[K][D];
#pragma unroll
  for (int j = 0; j < D; j++)
#pragma unroll
    for (int n = 0; n < K; n++) {
      y[n][j] = 0;
#pragma unroll
      for (int i = j; i < D; i++) y[n][j] = fma(B[at(i, j)], x[n][i], y[n][j]);
    }
#pragma unroll
  for (int i = 0; i < D; i++)
#pragma unroll
    for (int n = 0; n < K; n++) {
      x[n][i] = 0;
#pragma unroll
      for (int j = 0; j <= i; j++) x[n][i] = fma(B[at(i, j)], y[n][j], x[n][i]);
    }
}

template <int D>
__device__ inline void apply(const double (&B)[kTriangle<D>], double (&x)[D]) {
  apply<D, 1>(B, reinterpret_cast<double (&)[1][D]>(x));
}

// M <- B'MB, of a symmetric matrix in memory: its lower triangle, row by row. Column j needs what is behind it alone.
template <int D>
__device__ inline void pull_through(const double (&B)[kTriangle<D>], double* M) {
#pragma unroll
  for (int j = 0; j < D; j++) {
    double y[D] = {};
#pragma unroll
    for (int k = j; k < D; k++)
#pragma unroll
      for (int l = j; l <= k; l++) {
        const double x = M[at(k, l)];
        y[k] = fma(x, B[at(l, j)], y[k]);
        if (l < k) y[l] = fma(x, B[at(k, j)], y[l]);
      }
#pragma unroll
    for (int i = j; i < D; i++) {
      double sum = 0;
#pragma unroll
      for (int k = i; k < D; k++) sum = fma(B[at(k, i)], y[k], sum);
      M[at(i, j)] = sum;
    }
  }
}

// M <- B M B'. Row i needs what is before it alone.
template <int D>
__device__ inline void push_through(const double (&B)[kTriangle<D>], double* M) {
#pragma unroll
  for (int i = D - 1; i >= 0; i--) {
    double y[D] = {};
#pragma unroll
    for (int k = 0; k <= i; k++)
#pragma unroll
      for (int l = 0; l <= k; l++) {
        const double x = M[at(k, l)];
        y[k] = fma(x, B[at(i, l)], y[k]);
        if (l < k) y[l] = fma(x, B[at(i, k)], y[l]);
      }
#pragma unroll
    for (int j = 0; j <= i; j++) {
      double sum = 0;
#pragma unroll
      for (int l = 0; l <= j; l++) sum = fma(B[at(j, l)], y[l], sum);
      M[at(i, j)] = sum;
    }
  }
}

}  // namespace svae
