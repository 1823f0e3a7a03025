// Draws from a smoothed chain, one sequence at a time: a step is two products of a matrix and a vector.
#pragma once
#include <cstring>

#include "call.h"

namespace svae::SVAE_VARIANT {

// in: mean, sqrt of the last step, gain, back_sqrt, noise; out: x
// x_t - mean_t = gain (x_t+1 - mean_t+1) + back_sqrt noise
template <class S>
void gaussian_sample(const Call<S>& call, int64_t i) {
  const int64_t T = call.T, D = call.D;
  auto operand = [&](int n) { return call.in[n].data + call.in[n].offset[i]; };
  const S *mean = operand(0), *last = operand(1), *gain = operand(2), *back = operand(3), *noise = operand(4);
  S *x = call.out[0].data + i * call.out[0].size, e[2][64] = {};
  for (int64_t t = T - 1; t >= 0; t--) {
    const S *root = t + 1 < T ? back + t * D * D : last, *G = gain + t * D * D, *n = noise + t * D;
    const S* later = e[(t + 1) & 1];
    S* now = e[t & 1];
    for (int64_t r = 0; r < D; r++) {
      S sum = 0;
      for (int64_t c = 0; c < D; c++) sum += root[r * D + c] * n[c];
      if (t + 1 < T)
        for (int64_t c = 0; c < D; c++) sum += G[r * D + c] * later[c];
      now[r] = sum;
      x[t * D + r] = mean[t * D + r] + sum;
    }
  }
}

// in: gain, noise, x - mean, the cotangent of x
// out: cotangents of the last sqrt, gain, back_sqrt (that of the mean is that of x)
template <class S>
void gaussian_sample_vjp(const Call<S>& call, int64_t i) {
  const int64_t T = call.T, D = call.D;
  auto operand = [&](int n) { return call.in[n].data + call.in[n].offset[i]; };
  const S *gain = operand(0), *noise = operand(1), *e = operand(2), *dx = operand(3);
  auto result = [&](int n) { return call.out[n].data + i * call.out[n].size; };
  S *d_last = result(0), *d_gain = result(1), *d_back = result(2), bar[64] = {}, next[64];
  for (int64_t t = 0; t < T; t++) {
    for (int64_t r = 0; r < D; r++) bar[r] += dx[t * D + r];
    S* root = t + 1 < T ? d_back + t * D * D : d_last;
    for (int64_t r = 0; r < D; r++)
      for (int64_t c = 0; c < D; c++) root[r * D + c] = bar[r] * noise[t * D + c];
    if (t + 1 == T) break;
    for (int64_t c = 0; c < D; c++) next[c] = 0;
    for (int64_t r = 0; r < D; r++)
      for (int64_t c = 0; c < D; c++) {
        d_gain[(t * D + r) * D + c] = bar[r] * e[(t + 1) * D + c];
        next[c] += gain[(t * D + r) * D + c] * bar[r];
      }
    std::memcpy(bar, next, D * sizeof(S));
  }
}

}  // namespace svae::SVAE_VARIANT
