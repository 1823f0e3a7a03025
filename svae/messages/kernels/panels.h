// Products and solves of N x N matrices for one small N: panels of two rows stay in registers.
#pragma once
#include "lanes.h"
#include "single.h"

namespace svae::SVAE_VARIANT {

#define SVAE_PANEL_SIZES(X) X(4) X(8) X(10)
#if defined(__AVX512F__)
constexpr int kPanel = 2;
#else
constexpr int kPanel = 1;
#endif

// Rows r .. r + NR - 1, columns from C0 to C1 - 1, of C (+)= scale op(A) op(B).
template <int N, int NR, int C0, int C1, bool TA, Shape SA, bool TB, Shape SB, bool Add, class V, class M, class S>
inline void row_panel(V* __restrict C, const M* __restrict A, const V* __restrict B, int r, S scale) {
  constexpr int NC = C1 - C0;
  V sum[NR][NC] = {};
  const int from = SA == Upper ? r : 0, to = SA == Lower ? r + NR : N;
  auto add = [&](int k, int c0, int c1) __attribute__((always_inline)) {
    M a[NR];
    SVAE_UNROLL for (int i = 0; i < NR; i++) a[i] = TA ? A[k * N + r + i] : A[(r + i) * N + k];
    SVAE_UNROLL for (int c = 0; c < NC; c++) {
      if (C0 + c < c0 || C0 + c >= c1) continue;
      const V b = TB ? B[(C0 + c) * N + k] : B[k * N + C0 + c];
      SVAE_UNROLL for (int i = 0; i < NR; i++) sum[i][c] += a[i] * b;
    }
  };
  if constexpr (SB == Full) {
    for (int k = from; k < to; k++) add(k, 0, N);
  } else {
    SVAE_UNROLL for (int k = 0; k < N; k++) {
      if (SA == Lower && k >= to) break;
      if (SA == Upper && k < from) continue;
      add(k, SB == Upper ? k : 0, SB == Lower ? k + 1 : N);
    }
  }
  SVAE_UNROLL for (int i = 0; i < NR; i++) SVAE_UNROLL for (int c = 0; c < NC; c++) {
    V* out = C + (r + i) * N + C0 + c;
    if (Add)
      *out += scale * sum[i][c];
    else
      *out = scale * sum[i][c];
  }
}

// C (+)= scale op(A) op(B); of a lower C, the columns of the first half only where the rows are in it.
template <int N, bool TA, Shape SA, bool TB, Shape SB, Shape SC, bool Add, class V, class M, class S>
__attribute__((noinline)) void panels(V* __restrict C, const M* A, const V* B, S scale) {
  constexpr int H = (N / 2 + kPanel - 1) / kPanel * kPanel, from = SC == Lower ? H : 0, even = N - N % kPanel;
  if constexpr (SC == Lower)
    for (int r = 0; r < H; r += kPanel) row_panel<N, kPanel, 0, H, TA, SA, TB, SB, Add>(C, A, B, r, scale);
  for (int r = from; r < even; r += kPanel) row_panel<N, kPanel, 0, N, TA, SA, TB, SB, Add>(C, A, B, r, scale);
  if constexpr (even < N) row_panel<N, 1, 0, N, TA, SA, TB, SB, Add>(C, A, B, even, scale);
}

}  // namespace svae::SVAE_VARIANT
