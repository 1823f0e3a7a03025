// Triangular matrices of W sequences in lanes: inverse and Cholesky factor, with a size of their own for small D.
#pragma once
#include "matrix.h"

namespace svae::SVAE_VARIANT {

// The inverse of a lower triangular matrix, row by row; the zeros above the diagonal are X's own.
template <class S, int W>
struct Invert {
  using V = Lanes<S, W>;
  template <int N, int M>  // the first M entries of row i, from rows from .. to - 1
  static void add_rows(V* row, const V* l, const V* X, int from, int to) {
    for (int k = from; k < to; k++) {
      const V s = l[k];
      SVAE_UNROLL for (int j = 0; j < M; j++) row[j] += s * X[k * N + j];
    }
  }

  static void any_size(int D, V* __restrict X, const V* L) {
    for (int i = 0; i < D; i++) {
      const V scale = S(1) / L[i * D + i];
      for (int j = 0; j < i; j++) X[i * D + j] = V{};
      for (int k = 0; k < i; k++) {
        const V l = L[i * D + k];
        for (int j = 0; j <= k; j++) X[i * D + j] += l * X[k * D + j];
      }
      for (int j = 0; j < i; j++) X[i * D + j] *= -scale;
      X[i * D + i] = scale;
      for (int j = i + 1; j < D; j++) X[i * D + j] = V{};
    }
  }

  template <int N>
  static __attribute__((noinline)) void run(int d, V* __restrict X, const V* __restrict L) {
    if constexpr (N == 0) {
      any_size(d, X, L);
    } else {
      constexpr int H = (N + 1) / 2;
      V scale[N];
      SVAE_UNROLL for (int i = 0; i < N; i++) scale[i] = S(1) / L[i * N + i];
      for (int i = 0; i < H; i++) {
        V row[H] = {};
        add_rows<N, H>(row, L + i * N, X, 0, i);
        SVAE_UNROLL for (int j = 0; j < H; j++) X[i * N + j] = -scale[i] * row[j];
        for (int j = H; j < N; j++) X[i * N + j] = V{};
        X[i * N + i] = scale[i];
      }
      for (int i = H; i < N; i++) {
        V row[N] = {};
        add_rows<N, H>(row, L + i * N, X, 0, H);
        add_rows<N, N>(row, L + i * N, X, H, i);
        SVAE_UNROLL for (int j = 0; j < N; j++) X[i * N + j] = -scale[i] * row[j];
        X[i * N + i] = scale[i];
      }
      for (int i = 0; i < N; i++)
        for (int j = i + 1; j < N; j++) X[i * N + j] = V{};
    }
  }
};

// The lower R with R'R = S, from the lower triangle of S, in place; what lies above the diagonal is not read later.
template <class S, int W>
struct ReverseCholesky {
  using V = Lanes<S, W>;
  template <int N, int M>
  static void row(int D, int k, V* R) {
    V r[M ? M : 1], *out = R + k * D;
    SVAE_UNROLL for (int j = 0; j < M; j++) r[j] = out[j];
    for (int m = k + 1; m < D; m++) {
      const V s = R[m * D + k];
      SVAE_UNROLL for (int j = 0; j < M; j++) r[j] -= s * R[m * D + j];
    }
    SVAE_UNROLL for (int j = 0; j < M; j++) out[j] = r[j];
    finish(D, k, R);
  }

  static void finish(int D, int k, V* R) {
    const V pivot = root<S, W>(R[k * D + k]), scale = S(1) / pivot;
    for (int j = 0; j < k; j++) R[k * D + j] *= scale;
    R[k * D + k] = pivot;
  }

  template <int N>
  static __attribute__((noinline)) void run(int d, V* __restrict R) {
    const int D = N ? N : d;
    constexpr int H = (N + 1) / 2;
    for (int k = D - 1; k >= 0; k--) {
      if constexpr (N > 0) {
        if (k >= H)
          row<N, N>(D, k, R);
        else
          row<N, H>(D, k, R);
      } else {
        for (int m = k + 1; m < D; m++) {
          const V r = R[m * D + k];
          for (int j = 0; j <= k; j++) R[k * D + j] -= r * R[m * D + j];
        }
        finish(D, k, R);
      }
    }
  }
};

}  // namespace svae::SVAE_VARIANT
