// Back in time, one sequence with its rows in lanes:
// shift_t = d_t + gain shift_t+1, sqrt_t = tria[back_t, gain sqrt_t+1].
#pragma once
#include "single_reflections.h"

namespace svae::SVAE_VARIANT {

// What the sweep forward leaves, and where answers go. `back` comes as columns of a root that is not lower yet; `kept`
// has m, d, u and log |R| of every step.
template <class S>
struct BackOne {
  int64_t T;
  const S *F, *J, *kept, *gain;  // F: the root of the last filtered covariance
  S *mean, *sqrt, *back, *kl, *shift;
};

// Rows of a matrix that others may follow: none of what lies behind it is read, and lanes beyond D are 0.
template <class S, int N>
SVAE_INLINE void load_rows(int d, Row<S>* rows, const S* M) {
  const int D = N ? N : d;
  SVAE_UNROLL for (int i = 0; i < kLanes<S>; i++) rows[i] = i < D ? load_some<S, kLanes<S>>(M + i * D, D) : Row<S>{};
}

// sum_r J_r (P_r + e_r e) of P = root root': its lanes add up to tr(J P) + e'J e. `columns` are those of the root.
template <class S, int N>
SVAE_INLINE Row<S> second_moment(int d, const S* J, const Row<S>* columns, const S* root, Row<S> e, const S* entries) {
  const int D = N ? N : d;
  Row<S> rows[kLanes<S>], sum[2] = {};
  load_rows<S, N>(d, rows, J);
  SVAE_UNROLL for (int r = 0; r < D; r++) {
    Row<S> P = entries[r] * e;
    SVAE_UNROLL for (int c = 0; c <= r; c++) P += root[c * kLanes<S> + r] * columns[c];
    sum[r & 1] += rows[r] * P;
  }
  return sum[0] + sum[1];
}

template <class S, int N>
__attribute__((noinline)) void smooth_back_one(int d, const BackOne<S>& x) {
  using V = Row<S>;
  const int D = N ? N : d, DD = D * D, kept = 3 * D + 1;
  constexpr int W = kLanes<S>;
  V heads[W], others[W], gain[W], rows[W], a[W], b[W];
  alignas(64) S root[W * W], later[W], entries[W];  // columns of the root, shift of the step after, smoothed - filtered
  const V lanes = lane_numbers<S>();
  load_rows<S, N>(d, heads, x.F);
  transpose<S, W>(heads);
  if (x.T > 1) {
    load_rows<S, N>(d, others, x.back + (x.T - 2) * DD);
    lower_columns<S, N>(d, others);
    store_columns<S, N>(D, x.back + (x.T - 2) * DD, others);
  }
  for (int64_t t = x.T - 1; t >= 0; t--) {
    const S* keep = x.kept + t * kept;
    V e{};
    if (t + 1 < x.T) {
      load_rows<S, N>(d, gain, x.gain + t * DD);
      transpose<S, W>(gain);
      SVAE_UNROLL for (int k = 0; k < D; k++) e += later[k] * gain[k];
      SVAE_UNROLL for (int c = 0; c < D; c++) {
        rows[c] = V{};
        SVAE_UNROLL for (int k = c; k < D; k++) rows[c] += root[c * W + k] * gain[k];
        heads[c] = others[c];
      }
      // The roots of step t - 1 become lower beside those of t: neither waits for the other.
      load_rows<S, N>(d, others, x.back + (t ? t - 1 : 0) * DD);
      SVAE_UNROLL for (int j = 0; j < D; j++) {
        turn<S, N>(d, j, 0, heads[j], rows, a);
        turn<S, N>(d, j, j + 1, others[j], others, b);
        others[j] = lanes < splat<S, W>(S(j)) ? V{} : others[j];
      }
      if (t) store_columns<S, N>(D, x.back + (t - 1) * DD, others);
    }
    const V m = load_some<S, W>(keep, D), step = load_some<S, W>(keep + D, D), u = load_some<S, W>(keep + 2 * D, D);
    const V shift = step + e;
    SVAE_UNROLL for (int c = 0; c < D; c++) store<S, W>(root + c * W, heads[c]);
    store<S, W>(later, shift);
    store<S, W>(entries, e);
    const V moment = second_moment<S, N>(d, x.J + t * DD, heads, root, e, entries);
    const V parts = u * (S(0.5) * step + e) - S(0.5) * moment;
    x.kl[t] = sum_of_lanes<S>(parts) + keep[3 * D];
    store_some<S, W>(x.mean + t * D, m + shift, D);
    store_some<S, W>(x.shift + t * D, shift, D);
    store_columns<S, N>(D, x.sqrt + t * DD, heads);
  }
}

template <class S>
inline void smooth_back(int D, const BackOne<S>& x) {
  switch (D) {
#define SVAE_CASE(N)                                                  \
  case N:                                                             \
    if constexpr (N <= kLanes<S>) return smooth_back_one<S, N>(D, x); \
    break;
    SVAE_ONE_SIZES(SVAE_CASE)
#undef SVAE_CASE
  }
  smooth_back_one<S, 0>(D, x);
}

}  // namespace svae::SVAE_VARIANT
