// The products in the derivative of hmm_lanes.h, and what is made of them in registers.
#pragma once
#include "hmm_tiles.h"

namespace svae::SVAE_VARIANT {

// c of step t + 1, not yet centred, from that of step t
template <class Vjp>
struct PushTile {
  using V = typename Vjp::V;
  const Vjp& v;
  int64_t t;
  const V* from_rows;
  V mean;
  template <int M>
  inline void tile(int j) {
    const int K = v.K;
    const int64_t at = t * K + j;
    const V *ac = v.ac(t), *rows = from_rows + j, *inverse = v.inverse + at, *ratio = v.ratio(t) + j;
    const V *add = v.kept + at + K, *now = v.states + at + K;
    const auto goes = v.h.real[t + 1] != V{};
    V *against = v.against + at, *c = v.c + j, sum[M], all = mean;
#pragma GCC unroll 16
    for (int m = 0; m < M; m++) sum[m] = rows[m];
    for (int i = 0; i < K; i++) add_row(sum, ac[i], v.hmm.table + i * v.hmm.P + j);
#pragma GCC unroll 16
    for (int m = 0; m < M; m++) {
      const V q = sum[m] * inverse[m], next = (v.h.padded ? (goes ? q : c[m]) : q) + add[m];
      against[m] = ratio[m] * q;
      all += next * now[m];
      c[m] = next;
    }
    mean = all;
  }
};

// The cotangent of log x_t-1 from that of the product of step t, in the place of `kept`.
template <class Vjp>
struct PullTile {
  using V = typename Vjp::V;
  const Vjp& v;
  int64_t t;
  V total;
  template <int M>
  inline void tile(int j) {
    const int K = v.K;
    const int64_t at = (t - 1) * K + j;
    const V *from = v.against + (t - 1) * K, *x = v.h.x + at, *later = v.kept + t * K + j;
    const auto real = v.h.real[t] != V{};
    V *acc = v.kept + at, all = total, sum[M] = {};
    for (int i = 0; i < K; i++) add_row(sum, from[i], v.hmm.flipped + i * v.hmm.P + j);
#pragma GCC unroll 16
    for (int m = 0; m < M; m++) {
      const V y = x[m] * sum[m] + acc[m];
      acc[m] = v.h.padded ? (real ? y : later[m]) : y;
      all += acc[m];
    }
    total = all;
  }
};

}  // namespace svae::SVAE_VARIANT
