// Derivatives of the hidden Markov chain in logarithms.
#pragma once
#include "hmm_logs.cuh"

namespace svae {

// Back in time through the filter, from cotangents kept(t) of the log states of every step.
template <int K, class S, class Kept>
__device__ inline void hmm_pull(Hmm<K, S>& m, const Args& a, const S* mask, const S* log_states, const S* products,
                                const S* d_increments, S* d_init, S* d_node, int first, Kept kept) {
  const int k = m.k, T = a.T;
  auto read = [&](const S* from, int t) { return m.valid() && t >= 0 ? from[(long long)t * K + k] : S(0); };
  S pulled = 0, at_start = 0, coming = read(log_states, T - 1), coming_product = read(products, T - 2),
    coming_kept = m.valid() ? kept(T - 1, coming) : S(0);
  for (int t = T - 1; t >= 0; t--) {
    const bool real = mask[t] != 0;
    const S log_state = coming, product = coming_product;
    pulled += coming_kept;
    coming = read(log_states, t - 1);
    coming_product = read(products, t - 2);
    coming_kept = m.valid() && t > 0 ? kept(t - 1, coming) : S(0);
    if (!real) {
      if (m.valid()) d_node[(long long)t * K + k] = 0;
      if (t > 0) continue;  // the states of a padded step are those before it
    }
    const S sum = m.add(m.valid() ? pulled : S(0)), inside = (real ? d_increments[t] : S(0)) - sum;
    const S x = m.valid() ? pulled + exponential(log_state) * inside : S(0);
    if (real && m.valid()) d_node[(long long)t * K + k] = x;
    pulled = 0;
    if (t <= first) {  // before it there is log_init alone
      at_start += x;
      continue;
    }
    const int side = m.turn();
    S *shelf = m.shelf(4 + side), *own = m.shelf(6 + side), *lost = m.shelf(8 + side);
    const bool gone = product <= 0;
    shelf[k] = m.valid() && !gone ? x / product : S(0);
    own[k] = x;
    lost[k] = gone ? product : S(1);
    const bool any = __syncthreads_or(m.valid() && gone && x != 0);
    if (m.valid()) {
      const S alpha = exponential(coming);
      S total = 0;
#pragma unroll
      for (int j = 0; j < K; j++) {
        const S v = shelf[j] * m.flipped[j * m.P + k];
        total += v;
        m.counts[j] = fma(alpha, v, m.counts[j]);
      }
      pulled = alpha * total;
      if (any) {
#pragma unroll 1
        for (int j = 0; j < K; j++)
          if (lost[j] <= 0 && own[j] != 0) {
            const S v = m.column(coming, k, j, lost[j]) * own[j];
            pulled += v;
            m.total[j * m.P + k] += v;
          }
      }
    }
    m.flush(false);
  }
  if (m.valid()) d_init[k] = at_start;
}

// in: log_trans, mask, log_states, products, cotangents of log_states and increments
// out: cotangents of log_init, log_trans, node
template <int K, class S>
__device__ inline void hmm_filter_vjp(const Args& a, double* shared) {
  const long long n = blockIdx.x;
  Hmm<K, S> m(shared, input<S>(a, 0, n), 2);
  const S *mask = input<S>(a, 1, n), *d_states = input<S>(a, 4, n);
  S* d_trans = output<S>(a, 1, n, K * K);
  hmm_pull<K, S>(m, a, mask, input<S>(a, 2, n), input<S>(a, 3, n), input<S>(a, 5, n), output<S>(a, 0, n, K),
                 output<S>(a, 2, n, (long long)a.T * K), first_real(mask, a.T),
                 [&](int t, S log_state) { return log_state == m.none() ? S(0) : d_states[(long long)t * K + m.k]; });
  m.flush(true);
  if (m.valid())
    for (int j = 0; j < K; j++) d_trans[m.k * K + j] = S(m.total[j * m.P + m.k]);
}

// in: log_trans, mask, log_states, products, states, transitions, cotangents of states, transitions and increments
// out: cotangents of log_init, log_trans, node
template <int K, class S>
__device__ inline void hmm_smooth_vjp_logs(const Args& a, double* shared) {
  const long long n = blockIdx.x;
  const int T = a.T, start = first_real(input<S>(a, 1, n), T);
  if (kept_plain<K>(input<S>(a, 2, n), start < T ? start : 0)) return;
  Hmm<K, S> m(shared, input<S>(a, 0, n), 4);
  const int k = m.k, P = m.P;
  const S *mask = input<S>(a, 1, n), *log_states = input<S>(a, 2, n), *products = input<S>(a, 3, n),
          *states = input<S>(a, 4, n), *transitions = input<S>(a, 5, n), *d_states = input<S>(a, 6, n),
          *d_pairs = input<S>(a, 7, n);
  S *weights = m.flipped + P * P, *weights_flipped = weights + P * P, *d_trans = output<S>(a, 1, n, K * K);
  S* kept = reinterpret_cast<S*>(a.scratch + n * a.scratch_size);
  for (int i = 0; i < P; i++)
    weights[i * P + k] = weights_flipped[k * P + i] =
        i < K && m.valid() ? d_pairs[i * K + k] * m.table[i * P + k] : S(0);
  __syncthreads();
  const int first = first_real(mask, T);
  auto read = [&](const S* from, int t) { return m.valid() && t < T ? from[(long long)t * K + k] : S(0); };

  // Forward in time: c is the cotangent of the marginals of step t (up to a constant), kept that of their logarithms.
  S c = 0, next_state = read(states, 0), next_log = read(log_states, 0), next_d = read(d_states, 0);
  for (int t = 0; t < T; t++) {
    const S state = next_state, log_state = next_log, product = read(products, t);
    c += next_d;
    next_state = read(states, t + 1);
    next_log = read(log_states, t + 1);
    next_d = read(d_states, t + 1);
    c -= m.add(c * state);
    const S alpha = m.valid() ? exponential(log_state) : S(0), ac = alpha * c;
    S bar = t + 1 == T ? ac : S(0);
    if (t + 1 < T && mask[t + 1] != 0 && t >= first) {
      const int side = m.turn() * 6;
      S *x = m.shelf(side), *y = m.shelf(side + 1), *logs = m.shelf(side + 2), *cs = m.shelf(side + 3),
        *ratios = m.shelf(side + 4), *zs = m.shelf(side + 5);
      x[k] = ac;
      y[k] = alpha;
      logs[k] = log_state;
      cs[k] = m.valid() ? c : S(0);
      __syncthreads();
      const bool gone = product <= 0;
      const S inverse = m.valid() && !gone ? 1 / product : S(0), ratio = next_state * inverse;
      S q = (m.into(x, m.table) + m.into(y, weights)) * inverse;
      if (gone && m.valid())
#pragma unroll 1
        for (int i = 0; i < K; i++) q += m.column(logs[i], i, k, product) * (cs[i] + d_pairs[i * K + k]);
      ratios[k] = ratio;
      zs[k] = ratio * q;
      const bool any = __syncthreads_or(m.valid() && gone && next_state != 0);
      S own = 0, other = 0;
      if (m.valid()) {
#pragma unroll
        for (int j = 0; j < K; j++) {
          const S weight = m.flipped[j * P + k], r = ratios[j], z = zs[j];
          own = fma(r, weights_flipped[j * P + k], own);
          other = fma(z, weight, other);
          m.counts[j] = fma(weight, ac * r - alpha * z, m.counts[j]);
        }
        bar = alpha * (own - other) + state * c;
      }
      if (any) {  // uniform: the shelves are taken again
        __syncthreads();
        x[k] = gone && m.valid() ? product : S(1);
        y[k] = q;
        zs[k] = next_state;
        __syncthreads();
        if (m.valid()) {
#pragma unroll 1
          for (int j = 0; j < K; j++)
            if (x[j] <= 0 && zs[j] != 0) {
              const S pair = m.column(log_state, k, j, x[j]) * zs[j];
              bar += pair * (d_pairs[k * K + j] - y[j]);
              m.total[j * P + k] += pair * (c - y[j]);
            }
        }
        __syncthreads();
      }
      m.flush(false);
      c = m.valid() ? q : S(0);
    }
    if (m.valid()) kept[(long long)t * K + k] = bar;
  }
  hmm_pull<K, S>(m, a, mask, log_states, products, input<S>(a, 8, n), output<S>(a, 0, n, K),
                 output<S>(a, 2, n, (long long)T * K), first, [&](int t, S) { return kept[(long long)t * K + k]; });
  m.flush(true);
  if (m.valid())
    for (int j = 0; j < K; j++)
      d_trans[k * K + j] = S(m.total[j * P + k] + double(d_pairs[k * K + j]) * transitions[k * K + j]);
}

}  // namespace svae
