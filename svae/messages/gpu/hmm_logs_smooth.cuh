// Smoothing of a hidden Markov chain in logarithms.
#pragma once
#include "hmm_logs.cuh"

namespace svae {

// in: log_init, log_trans, node, mask; out: states, transitions, increments, log_states, products
// A chain that `hmm_smooth` could do is left as it is.
template <int K, class S>
__device__ inline void hmm_smooth_logs(const Args& a, double* shared) {
  const long long n = blockIdx.x, size = (long long)a.T * K;
  if (a.scratch[n * a.scratch_size] == 0) return;
  const int T = a.T;
  Hmm<K, S> m(shared, input<S>(a, 1, n), 2);
  const S* mask = input<S>(a, 3, n);
  S *states = output<S>(a, 0, n, size), *transitions = output<S>(a, 1, n, K * K),
    *log_states = output<S>(a, 3, n, size), *products = output<S>(a, 4, n, size);
  hmm_forward<K, S>(m, a, input<S>(a, 0, n), input<S>(a, 2, n), mask, log_states, output<S>(a, 2, n, T), products);
  const int k = m.k, first = first_real(mask, T);
  auto read = [&](const S* from, int t) { return m.valid() && t >= 0 ? from[(long long)t * K + k] : S(0); };
  S now = m.valid() ? exponential(read(log_states, T - 1)) : S(0);
  S coming = read(log_states, T - 2), coming_product = read(products, T - 2);
  if (m.valid()) states[(long long)(T - 1) * K + k] = now;
  for (int t = T - 2; t >= 0; t--) {
    const S log_state = coming, product = coming_product;
    coming = read(log_states, t - 1);
    coming_product = read(products, t - 1);
    if (mask[t + 1] != 0 && t >= first) {
      const int side = m.turn();
      S *shelf = m.shelf(4 + side), *next = m.shelf(6 + side), *lost = m.shelf(8 + side);
      const bool gone = product <= 0;
      shelf[k] = m.valid() && !gone ? now / product : S(0);
      next[k] = now;
      lost[k] = gone ? product : S(1);
      const bool any = __syncthreads_or(m.valid() && gone && now != 0);
      if (m.valid()) {
        const S alpha = exponential(log_state);
        S even = 0, odd = 0;
#pragma unroll
        for (int j = 0; j < K; j++) {
          const S v = shelf[j] * m.flipped[j * m.P + k];
          (j & 1 ? odd : even) += v;
          m.counts[j] = fma(alpha, v, m.counts[j]);
        }
        now = alpha * (even + odd);
        if (any) {
#pragma unroll 1
          for (int j = 0; j < K; j++)
            if (lost[j] <= 0 && next[j] != 0) {
              const S pair = m.column(log_state, k, j, lost[j]) * next[j];
              now += pair;
              m.total[j * m.P + k] += pair;
            }
        }
      }
      m.flush(false);
    }
    if (m.valid()) states[(long long)t * K + k] = now;
  }
  m.flush(true);
  if (m.valid())
    for (int j = 0; j < K; j++) transitions[k * K + j] = S(m.total[j * m.P + k]);
}

}  // namespace svae
