// Products of vectors in lanes with a table of every lane's own, several steps at a time: the table is larger than the
// nearest cache, and each of its entries serves all steps of a tile.
#pragma once
#include "lanes.h"

namespace svae::SVAE_VARIANT {

#if SVAE_BYTES == 64
constexpr int kStepsAtOnce = 5, kColumnsAtOnce = 5;
#else
constexpr int kStepsAtOnce = 3, kColumnsAtOnce = 3;
#endif

// out_rc = sum_i x_ri table[i * row + c * column], R steps and C columns of them
template <int R, int C, class V>
inline void weigh_tile(int K, V* out, const V* x, const V* table, int row, int column) {
  V sum[R][C] = {};
  for (int i = 0; i < K; i++)
#pragma GCC unroll 8
    for (int c = 0; c < C; c++) {
      const V w = table[i * row + c * column];
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) sum[r][c] += x[r * K + i] * w;
    }
#pragma GCC unroll 8
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int c = 0; c < C; c++) out[r * K + c] = sum[r][c];
}

template <int R, class V>
inline void weigh_steps(int K, V* out, const V* x, const V* table, int row, int column) {
  int j = 0;
  for (; j + kColumnsAtOnce <= K; j += kColumnsAtOnce)
    weigh_tile<R, kColumnsAtOnce>(K, out + j, x, table + j * column, row, column);
  for (; j < K; j++) weigh_tile<R, 1>(K, out + j, x, table + j * column, row, column);
}

// out = x table for n <= kStepsAtOnce steps, or x table' where rows and columns change places
template <class V>
inline void weigh(int n, int K, V* out, const V* x, const V* table, int row, int column) {
  if (n == kStepsAtOnce) return weigh_steps<kStepsAtOnce>(K, out, x, table, row, column);
  for (int r = 0; r < n; r++) weigh_steps<1>(K, out + r * K, x + r * K, table, row, column);
}

}  // namespace svae::SVAE_VARIANT
