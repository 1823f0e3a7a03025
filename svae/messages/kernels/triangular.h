// Triangular matrices of W sequences in lanes: inverse and Cholesky factor, with a size of their own for small D.
#pragma once
#include "reflections.h"

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

// The lower R with R'R = S, from the lower triangle of S, in place, and the inverses of its diagonal;
// what lies above the diagonal is not read later.
template <class S, int W>
struct ReverseCholesky {
  using V = Lanes<S, W>;
  // Row by row from the last: only a quotient stands between one pivot and the next.
  template <int N>
  static __attribute__((noinline)) void run(int d, V* __restrict R, V* __restrict scale) {
    const int D = N ? N : d;
    SVAE_UNROLL for (int k = D - 1; k >= 0; k--) {
      V* row = R + k * D;
      const V pivot = row[k], quotient = reciprocal<S, W>(pivot), s = scale[k] = reciprocal_root<S, W>(pivot);
      SVAE_UNROLL for (int m = k - 1; m >= 0; m--) {
        const V part = row[m] * quotient;
        SVAE_UNROLL for (int j = m; j >= 0; j--) R[m * D + j] -= part * row[j];
      }
      SVAE_UNROLL for (int j = 0; j <= k; j++) row[j] *= s;
    }
  }
};

// X L = B, L lower with `scale` the inverses of its diagonal: of every row at once. Where B is lower, so is X.
template <class S, int W>
struct Solve {
  using V = Lanes<S, W>;
  template <int N, int NR, bool Low>
  static void rows(int d, int r, V* __restrict X, const V* B, const V* L, const V* scale) {
    const int D = N ? N : d;
    V x[NR][kRoom<N>];
    SVAE_UNROLL for (int i = 0; i < NR; i++) SVAE_ROW(c, 0) x[i][c] = B[(r + i) * D + c];
    SVAE_UNROLL for (int j = D - 1; j >= 0; j--) {
      if (Low && j >= r + NR) continue;
      SVAE_UNROLL for (int i = 0; i < NR; i++) x[i][j] *= scale[j];
      SVAE_UNROLL for (int c = 0; c < j; c++) SVAE_UNROLL for (int i = 0; i < NR; i++) x[i][c] -=
          x[i][j] * L[j * D + c];
    }
    SVAE_UNROLL for (int i = 0; i < NR; i++) SVAE_ROW(c, 0) X[(r + i) * D + c] = x[i][c];
  }
  template <int N>
  static __attribute__((noinline)) void run(int d, V* __restrict X, const V* B, const V* L, const V* scale) {
    any<N, false>(d, X, B, L, scale);
  }
  template <int N, bool Low>
  static void any(int d, V* __restrict X, const V* B, const V* L, const V* scale) {
    const int D = N ? N : d;
    int r = 0;
    for (; r + kPanel <= D; r += kPanel) rows<N, kPanel, Low>(d, r, X, B, L, scale);
    for (; r < D; r++) rows<N, 1, Low>(d, r, X, B, L, scale);
  }
};

// L X = B, L lower, by rows: those above go into each two rows at once. Where B is lower, so is X.
template <class S, int W>
struct SolveLeft {
  using V = Lanes<S, W>;
  template <int N, int NR, int M>  // the first M entries of rows r .. r + NR - 1
  static void rows(int d, int r, V* __restrict X, const V* B, const V* L) {
    const int D = N ? N : d;
    V x[NR][kRoom<N>];
    SVAE_UNROLL for (int i = 0; i < NR; i++) SVAE_UNROLL for (int c = 0; c < (N ? M : d); c++) x[i][c] =
        B[(r + i) * D + c];
    for (int k = 0; k < r; k++)
      SVAE_UNROLL for (int c = 0; c < (N ? M : d); c++) SVAE_UNROLL for (int i = 0; i < NR; i++) x[i][c] -=
          L[(r + i) * D + k] * X[k * D + c];
    SVAE_UNROLL for (int i = 0; i < NR; i++) {
      SVAE_UNROLL for (int k = 0; k < i; k++) SVAE_UNROLL for (int c = 0; c < (N ? M : d); c++) x[i][c] -=
          L[(r + i) * D + r + k] * x[k][c];
      const V scale = reciprocal<S, W>(L[(r + i) * D + r + i]);
      SVAE_UNROLL for (int c = 0; c < (N ? M : d); c++) X[(r + i) * D + c] = x[i][c] *= scale;
    }
  }
  template <int N, bool Low>
  static void any(int d, V* __restrict X, const V* B, const V* L) {
    constexpr int H = Low && N >= 4 ? (N / 2 + kPanel - 1) / kPanel * kPanel : 0;
    const int D = N ? N : d;
    int r = 0;
    for (; r < H; r += kPanel) {
      rows<N, kPanel, H>(d, r, X, B, L);
      for (int i = r; i < r + kPanel; i++) SVAE_UNROLL for (int c = H; c < N; c++) X[i * N + c] = V{};
    }
    for (; r + kPanel <= D; r += kPanel) rows<N, kPanel, N>(d, r, X, B, L);
    for (; r < D; r++) rows<N, 1, N>(d, r, X, B, L);
  }
  template <int N>
  static __attribute__((noinline)) void run(int d, V* __restrict X, const V* B, const V* L) {
    any<N, false>(d, X, B, L);
  }
};

template <class S, int W>
struct SolveLeftLower {
  using V = Lanes<S, W>;
  template <int N>
  static __attribute__((noinline)) void run(int d, V* __restrict X, const V* B, const V* L) {
    SolveLeft<S, W>::template any<N, true>(d, X, B, L);
  }
};

template <class S, int W>
struct SolveLower {
  using V = Lanes<S, W>;
  template <int N>
  static __attribute__((noinline)) void run(int d, V* __restrict X, const V* B, const V* L, const V* scale) {
    Solve<S, W>::template any<N, true>(d, X, B, L, scale);
  }
};

}  // namespace svae::SVAE_VARIANT
