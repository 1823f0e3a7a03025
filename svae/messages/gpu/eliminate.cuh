// Triangular inverses, by lanes (lanes.cuh).
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

// The memory of `eliminate`: a row for each pivot, with the entry of r beside it, and their scales.
template <int D>
struct Work {
  static constexpr int DS = Team<D>::DS, row = DS + 2, size = D * row + DS;
  double* p;
  __device__ explicit Work(double* p) : p(p) {}
  __device__ double* at(int k) const { return p + k * row; }
  __device__ double pivot(int k) const { return p[k * row + k]; }
};

// Column j of S and of right-hand sides X, entry j of r: leaves R^-T X and R^-T r, where S = R'R with R lower. By
// symmetry the multipliers of pivot k are row k, of which each lane has an entry.
template <int D, int K>
__device__ inline void eliminate(double (&S)[D], double (&X)[K][D], double& r, Work<D> work, int j) {
  constexpr int DS = Team<D>::DS;
#pragma unroll
  for (int k = D - 1; k >= 0; k--) {
    double* w = work.at(k);
    w[j] = S[k];
    if (j == k) w[DS] = r;
    __syncwarp();
    const double inverse = reciprocal(w[k]), f = w[DS] * inverse, s = S[k] * inverse;
    double x[K];
#pragma unroll
    for (int n = 0; n < K; n++) x[n] = X[n][k] * inverse;
    r = fma(j < k ? -S[k] : 0, f, r);
#pragma unroll
    for (int i = 0; i < k; i += 2) {
      const double2 m = pair(w + i);
      S[i] = fma(-m.x, s, S[i]);
      if (i + 1 < k) S[i + 1] = fma(-m.y, s, S[i + 1]);
#pragma unroll
      for (int n = 0; n < K; n++) {
        X[n][i] = fma(-m.x, x[n], X[n][i]);
        if (i + 1 < k) X[n][i + 1] = fma(-m.y, x[n], X[n][i + 1]);
      }
    }
  }
  double *scales = work.at(D), scale[D];
  const double own = reciprocal_root(work.pivot(j));
  scales[j] = own;
  r *= own;
  __syncwarp();
  load_vector<D>(scale, scales);
#pragma unroll
  for (int n = 0; n < K; n++)
#pragma unroll
    for (int i = 0; i < D; i++) X[n][i] *= scale[i];
}

// Column j of the lower root of P, given column j of P: that of the Schur complement, over the root of its pivot.
template <int D>
__device__ inline void root(double (&x)[D], double* memory, int j) {
  constexpr int DS = Team<D>::DS;
#pragma unroll
  for (int k = 0; k < D; k++) {
    double* w = memory + k * DS;
    w[j] = x[k];
    __syncwarp();
    const double f = j > k ? x[k] * reciprocal(w[k]) : 0;
#pragma unroll
    for (int i = k + 1; i < D; i++) x[i] = fma(-w[i], f, x[i]);
  }
  const double scale = reciprocal_root(memory[j * DS + j]);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = i >= j ? x[i] * scale : 0;
  __syncwarp();
}

}  // namespace svae
