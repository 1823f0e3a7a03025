// The hidden Markov chain: one block per sequence, one thread per state.
//
// Messages are normalised logarithms. A step multiplies probabilities by exp(log_trans - the maximum of its column); an
// entry that this product leaves too small to trust is done again in logarithms, and `product` then holds its logarithm
// less the column's maximum, which is negative.
#pragma once
#include "gaussian.cuh"

namespace svae {

__device__ inline float exponential(float x) { return expf(x); }
__device__ inline double exponential(double x) { return exp(x); }
__device__ inline float log_of(float x) { return logf(x); }
__device__ inline double log_of(double x) { return log(x); }

#ifdef SVAE_EMULATE
inline float minus_infinity(float) { return -INFINITY; }
inline double minus_infinity(double) { return -INFINITY; }
#else
__device__ inline float minus_infinity(float) { return __int_as_float(0xff800000); }
__device__ inline double minus_infinity(double) { return __longlong_as_double(0xfff0000000000000ULL); }
#endif

template <class S>
struct Limits;
template <>
struct Limits<float> {
  static constexpr float tiny = 1e-25f;
};
template <>
struct Limits<double> {
  static constexpr double tiny = 1e-200;
};

template <int K, class S>
struct Hmm {
  static constexpr int P = (K + 31) / 32 * 32, W = P / 32, kFlush = 32;

  const int k;
  const S* trans;
  S *table, *flipped, *vectors, *partial;
  double* total;
  S top;
  int phase = 0, steps = 0, turns = 0;
  S counts[K];  // of pairs (k, j), since the last flush

  __device__ Hmm(double* p, const S* trans, int tables)
      : k(threadIdx.x), trans(trans), table(reinterpret_cast<S*>(p + P * P)), flipped(table + P * P),
        vectors(table + tables * P * P), partial(vectors + 12 * P), total(p) {
    S best = none();
#pragma unroll 1
    for (int i = 0; k < K && i < K; i++) best = trans[i * K + k] > best ? trans[i * K + k] : best;
    top = finite(best);
#pragma unroll 1
    for (int i = 0; i < P; i++) {
      const S x = i < K && k < K ? exponential(trans[i * K + k] - top) : S(0);
      table[i * P + k] = flipped[k * P + i] = x;
      total[i * P + k] = 0;
    }
#pragma unroll
    for (int j = 0; j < K; j++) counts[j] = 0;
    __syncthreads();
  }
  static __device__ S none() { return minus_infinity(S()); }
  static __device__ S finite(S x) { return x == none() ? S(0) : x; }
  __device__ bool valid() const { return k < K; }
  __device__ S* shelf(int n) const { return vectors + n * P; }
  __device__ int turn() { return turns ^= 1; }  // 0 and 1 in turn: a shelf is free again after the next barrier

  template <class Op>
  __device__ S reduce(S x, Op op) {
#pragma unroll
    for (int i = 1; i < 32; i *= 2) x = op(x, __shfl_xor_sync(0xffffffff, x, i));
    if (W == 1) return x;
    S* place = partial + phase * W;
    phase ^= 1;
    if (k % 32 == 0) place[k / 32] = x;
    __syncthreads();
    x = place[0];
    for (int w = 1; w < W; w++) x = op(x, place[w]);
    return x;
  }
  __device__ S add(S x) {
    return reduce(x, [](S a, S b) { return a + b; });
  }
  __device__ S maximum(S x) {
    return reduce(x, [](S a, S b) { return a > b ? a : b; });
  }

  // x <- exp(x) / sum, and log sum exp x
  __device__ S normalize(S& x) {
    const S best = finite(maximum(x));
    x = valid() ? exponential(x - best) : S(0);
    const S all = add(x);
    if (all == 0) return none();
    x /= all;
    return best + log_of(all);
  }

  // sum_i x_i table[i, k], x on a shelf; sum_j x_j table[k, j]
  __device__ S into(const S* x, const S* rows) const {
    S even = 0, odd = 0;
#pragma unroll 8
    for (int i = 0; i < K / 2 * 2; i += 2) {
      even = fma(x[i], rows[i * P + k], even);
      odd = fma(x[i + 1], rows[(i + 1) * P + k], odd);
    }
    if (K & 1) even = fma(x[K - 1], rows[(K - 1) * P + k], even);
    return even + odd;
  }

  // p(z_t = i | z_t+1 = j) of a lost entry, from its logarithm less the maximum of its column.
  __device__ S column(S log_state, int i, int j, S lost) const {
    if (lost == none()) return 0;
    S best = none();
#pragma unroll 1
    for (int l = 0; l < K; l++) best = trans[l * K + j] > best ? trans[l * K + j] : best;
    return exponential(log_state + trans[i * K + j] - (lost + finite(best)));
  }

  __device__ void flush(bool always) {
    if (!always && ++steps % kFlush) return;
    if (valid())
#pragma unroll
      for (int j = 0; j < K; j++) {
        total[j * P + k] += counts[j];
        counts[j] = 0;
      }
  }
};

// log p(z_t | nodes to t), increments, and the products of all steps.
template <int K, class S>
__device__ inline void hmm_forward(Hmm<K, S>& m, const Args& a, const S* init, const S* node, const S* mask, S* log_states,
                                   S* increments, S* products) {
  const int k = m.k, T = a.T;
  S prior = m.valid() ? init[k] : m.none(), p = prior, product = 0;
  const S all = m.finite(m.normalize(p));
  S state = prior - all;  // before the first real step
  S coming = m.valid() ? node[k] : S(0), real = mask[0];
  for (int t = 0; t < T; t++) {
    const S here = coming, now = real;
    if (t + 1 < T) {
      real = mask[t + 1];
      if (m.valid()) coming = node[(long long)(t + 1) * K + k];
    }
    S increment = 0;
    if (now != 0) {
      const S x = m.valid() ? prior + here : m.none();
      S probability = x;
      increment = m.normalize(probability);
      state = x - m.finite(increment);
      if (t + 1 < T) {
        const int side = m.turn();
        S *shelf = m.shelf(side), *logs = m.shelf(2 + side);
        shelf[k] = m.valid() ? probability : S(0);
        logs[k] = state;
        __syncthreads();
        product = m.into(shelf, m.table);
        prior = log_of(product) + m.top;
        if (product < Limits<S>::tiny && m.valid()) {
          S best = m.none(), sum = 0;
#pragma unroll 1
          for (int i = 0; i < K; i++) {
            const S x = logs[i] + m.trans[i * K + k];
            best = x > best ? x : best;
          }
          const S from = m.finite(best);
#pragma unroll 1
          for (int i = 0; i < K; i++) sum += exponential(logs[i] + m.trans[i * K + k] - from);
          prior = sum == 0 ? m.none() : from + log_of(sum);
          product = prior - m.top;
        }
      }
    }
    if (m.valid()) {
      log_states[(long long)t * K + k] = state;
      products[(long long)t * K + k] = product;
    }
    if (k == 0) increments[t] = increment;
  }
}

template <class S>
__device__ inline int first_real(const S* mask, int T) {
  int t = 0;
  while (t < T && mask[t] == 0) t++;
  return t;
}

// in: log_init, log_trans, node, mask; out: log_states, increments, products
template <int K, class S>
__device__ inline void hmm_filter(const Args& a, double* shared) {
  const long long n = blockIdx.x, size = (long long)a.T * K;
  Hmm<K, S> m(shared, input<S>(a, 1, n), 2);
  hmm_forward<K, S>(m, a, input<S>(a, 0, n), input<S>(a, 2, n), input<S>(a, 3, n), output<S>(a, 0, n, size),
                    output<S>(a, 1, n, a.T), output<S>(a, 2, n, size));
}

// in: log_init, log_trans, node, mask; out: states, transitions, increments, log_states, products
template <int K, class S>
__device__ inline void hmm_smooth(const Args& a, double* shared) {
  const long long n = blockIdx.x, size = (long long)a.T * K;
  const int T = a.T;
  Hmm<K, S> m(shared, input<S>(a, 1, n), 2);
  const S* mask = input<S>(a, 3, n);
  S *states = output<S>(a, 0, n, size), *transitions = output<S>(a, 1, n, K * K), *log_states = output<S>(a, 3, n, size),
    *products = output<S>(a, 4, n, size);
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
                 output<S>(a, 2, n, (long long)a.T * K), first_real(mask, a.T), [&](int t, S log_state) {
                   return log_state == m.none() ? S(0) : d_states[(long long)t * K + m.k];
                 });
  m.flush(true);
  if (m.valid())
    for (int j = 0; j < K; j++) d_trans[m.k * K + j] = S(m.total[j * m.P + m.k]);
}

// in: log_trans, mask, log_states, products, states, transitions, cotangents of states, transitions and increments
// out: cotangents of log_init, log_trans, node
template <int K, class S>
__device__ inline void hmm_smooth_vjp(const Args& a, double* shared) {
  const long long n = blockIdx.x;
  const int T = a.T;
  Hmm<K, S> m(shared, input<S>(a, 0, n), 4);
  const int k = m.k, P = m.P;
  const S *mask = input<S>(a, 1, n), *log_states = input<S>(a, 2, n), *products = input<S>(a, 3, n),
          *states = input<S>(a, 4, n), *transitions = input<S>(a, 5, n), *d_states = input<S>(a, 6, n),
          *d_pairs = input<S>(a, 7, n);
  S *weights = m.flipped + P * P, *weights_flipped = weights + P * P, *d_trans = output<S>(a, 1, n, K * K);
  S* kept = reinterpret_cast<S*>(a.scratch + n * a.scratch_size);
  for (int i = 0; i < P; i++)
    weights[i * P + k] = weights_flipped[k * P + i] = i < K && m.valid() ? d_pairs[i * K + k] * m.table[i * P + k] : S(0);
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
