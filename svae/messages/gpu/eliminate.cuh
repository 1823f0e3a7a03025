// Elimination of a symmetric matrix, by lanes (lanes.cuh).
#pragma once
#include "triangular.cuh"

namespace svae {

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
// symmetry the multipliers of pivot k are row k, of which each lane has an entry; it is on its way to the other lanes
// while the rest of the step before is done.
template <int D, int K>
__device__ inline void eliminate(double (&S)[D], double (&X)[K][D], double& r, Work<D> work, int j) {
  constexpr int DS = Team<D>::DS;
  auto offer = [&](int k) {
    work.at(k)[j] = S[k];
    if (j == k) work.at(k)[DS] = r;
  };
  offer(D - 1);
#pragma unroll
  for (int k = D - 1; k >= 0; k--) {
    const double* w = work.at(k);
    __syncwarp();
    const Over over(w[k]);
    const double s = over(S[k]), f = over(w[DS]);
    double x[K];
    r = fma(j < k ? -S[k] : 0, f, r);
    if (k > 0) {
      S[k - 1] = fma(-w[k - 1], s, S[k - 1]);
      offer(k - 1);
    }
#pragma unroll
    for (int n = 0; n < K; n++) x[n] = over(X[n][k]);
#pragma unroll
    for (int i = 0; i < k; i += 2) {
      const double2 m = pair(w + i);
      if (i < k - 1) S[i] = fma(-m.x, s, S[i]);
      if (i + 1 < k - 1) S[i + 1] = fma(-m.y, s, S[i + 1]);
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

// Columns j of R^-1 X: R has the rows that an elimination of S = R'R left.
template <int D, int K>
__device__ inline void substitute(double (&X)[K][D], Work<D> R) {
  double scale[D];
  load_vector<D>(scale, R.at(D));
#pragma unroll
  for (int k = 0; k < D; k++) {
    double even[K], odd[K];
#pragma unroll
    for (int n = 0; n < K; n++) even[n] = odd[n] = 0;
#pragma unroll
    for (int i = 0; i < k; i += 2) {
      const double2 m = pair(R.at(k) + i);
#pragma unroll
      for (int n = 0; n < K; n++) {
        even[n] = fma(m.x, X[n][i], even[n]);
        if (i + 1 < k) odd[n] = fma(m.y, X[n][i + 1], odd[n]);
      }
    }
#pragma unroll
    for (int n = 0; n < K; n++) X[n][k] = scale[k] * fma(-scale[k], even[n] + odd[n], X[n][k]);
  }
}

}  // namespace svae
