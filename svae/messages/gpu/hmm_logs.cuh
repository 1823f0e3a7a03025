// The hidden Markov chain in logarithms, a block for each sequence and a thread for each state: the filter, and what
// smoothing of chains whose messages underflow is made of.
//
// Messages are normalised logarithms. A step multiplies probabilities by exp(log_trans - the maximum of its column); an
// entry that this product leaves too small to trust is done again in logarithms, and `product` then holds its logarithm
// less the column's maximum, which is negative.
#pragma once
#include "gaussian.cuh"
#include "hmm_numbers.cuh"

namespace svae {

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
__device__ inline void hmm_forward(Hmm<K, S>& m, const Args& a, const S* init, const S* node, const S* mask,
                                   S* log_states, S* increments, S* products) {
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

}  // namespace svae
