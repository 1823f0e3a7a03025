// Roots and triangular inverses, by lanes (lanes.cuh).
#pragma once
#include "lanes.cuh"

namespace svae {

// Column j of the inverse of a lower triangular matrix, given its columns and the reciprocals of its diagonal.
template <int D>
__device__ inline void invert_columns(double (&x)[D], const double* columns, const double* inverse, int j) {
  unit<D>(x, j);
#pragma unroll
  for (int k = 0; k < D; k++) {
    x[k] *= inverse[k];
#pragma unroll
    for (int i = k + 1; i < D; i++) x[i] = fma(-columns[k * Team<D>::DS + i], x[k], x[i]);
  }
}

// Column j of W, lower, with W'W = S^-1, given column j of S. The memory is D vectors, whose diagonal then has the
// pivots, and one.
template <int D>
__device__ inline void whiten(double (&w)[D], double (&s)[D], double* memory, int j) {
  constexpr int DS = Team<D>::DS;
  unit<D>(w, j);
#pragma unroll
  for (int k = 0; k < D; k++) {
    const double* pivots = memory + k * DS;
    memory[k * DS + j] = s[k];
    __syncwarp();
    const double inverse = reciprocal(pivots[k]), f = s[k] * inverse, g = w[k] * inverse;
#pragma unroll
    for (int i = k + 1; i < D; i++) {
      const double m = pivots[i];
      s[i] = fma(-m, f, s[i]);
      w[i] = fma(-m, g, w[i]);
    }
  }
  memory[D * DS + j] = reciprocal_root(memory[j * DS + j]);
  __syncwarp();
#pragma unroll
  for (int k = 0; k < D; k++) w[k] *= memory[D * DS + k];
  __syncwarp();
}

// The inverse of [a b; b c]: two pivots for the latency of one.
struct PivotPair {
  double a, b, c;
  Over over;
  __device__ PivotPair(double a, double b, double c) : a(a), b(b), c(c), over(fma(a, c, -b * b)) {}
  __device__ void solve(double& x, double& y) const {  // [x y] <- [a b; b c]^-1 [x y]
    const double first = over(fma(c, x, -b * y));
    y = over(fma(a, y, -b * x));
    x = first;
  }
};

// Column j of the lower root of P, given column j of P: that of the Schur complement, over the root of its pivot. Two
// pivots at a time.
template <int D>
__device__ inline void root(double (&x)[D], double* memory, int j) {
  constexpr int DS = Team<D>::DS;
  double pivot = D & 1 ? x[D - 1] : 0;
  auto offer = [&](int k) {
    memory[k * DS + j] = x[k];
    if (k + 1 < D) memory[(k + 1) * DS + j] = x[k + 1];
  };
  offer(0);
#pragma unroll
  for (int k = 0; k + 1 < D; k += 2) {
    const double *w = memory + k * DS, *v = w + DS;
    __syncwarp();
    const double a = w[k], b = w[k + 1];
    const PivotPair pivots(a, b, v[k + 1]);
    double f = x[k], g = x[k + 1];
    pivots.solve(f, g);
    f = j > k + 1 ? f : j == k + 1 ? Over(a)(b) : 0;
    g = j > k + 1 ? g : 0;
    x[k + 1] = fma(-b, j == k + 1 ? f : 0, x[k + 1]);
    pivot = j == k ? a : j == k + 1 ? x[k + 1] : pivot;
#pragma unroll
    for (int i = k + 2; i < D; i++) {
      x[i] = fma(-v[i], g, fma(-w[i], f, x[i]));
      if (i == k + 3) offer(k + 2);
    }
    if (k + 3 == D) pivot = j == D - 1 ? x[D - 1] : pivot;
  }
  const double scale = reciprocal_root(pivot);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = i >= j ? x[i] * scale : 0;
  __syncwarp();
}

}  // namespace svae
