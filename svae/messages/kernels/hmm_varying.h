// The hidden Markov chain with transitions of their own for every step, one sequence at a time, its K states in SIMD
// lanes (K padded to P entries). Messages in logarithms: a step needs the K x K exponentials anyway, for they are its
// own.
#pragma once
#include <limits>

#include "arena.h"
#include "functions.h"

namespace svae::SVAE_VARIANT {

template <class S, int W>
struct Varying {
  using V = Lanes<S, W>;
  static constexpr S kNone = -std::numeric_limits<S>::infinity();

  const int K, N, P;  // states, vectors, padded states
  const int64_t T;
  const S *init, *trans, *node, *mask;
  const bool steady;
  S* states;                 // log p(z_t | nodes to t)
  S *increment, *maximum;    // of log Z without the maximum of the node, and that maximum
  S* kernel;                 // p(z_t = i | z_t+1 = j) of one step
  S *prior, *top, *scratch;

  static int padded(int64_t K) { return int((K + W - 1) / W * W); }
  static int64_t size(int64_t K, int64_t T) { return (T + K + 3) * padded(K) + 2 * padded(T); }
  static S* take(Arena<V>& a, int64_t n) { return reinterpret_cast<S*>(a.take(n / W)); }
  static V* v(S* p) { return reinterpret_cast<V*>(p); }
  static const V* v(const S* p) { return reinterpret_cast<const V*>(p); }

  Varying(Arena<V>& a, const Call<S>& c, int64_t i)
      : K(int(c.D)), N(padded(c.D) / W), P(padded(c.D)), T(c.T), init(c.in[0].data + c.in[0].offset[i]),
        trans(c.in[1].data + c.in[1].offset[i]), node(c.in[2].data + c.in[2].offset[i]),
        mask(c.in[3].data + c.in[3].offset[i]), steady(c.in[1].steady), states(take(a, T * P)),
        increment(take(a, padded(T))), maximum(take(a, padded(T))), kernel(take(a, K * P)), prior(take(a, P)),
        top(take(a, P)), scratch(take(a, P)) {}

  bool real(int64_t t) const { return mask[t] != 0; }
  const S* matrix(int64_t t) const { return trans + (steady ? 0 : t * K * K); }

  // K entries into P.
  void pad(S* to, const S* from, S fill) const {
    v(to)[N - 1] = splat<S, W>(fill);
    std::memcpy(to, from, K * sizeof(S));
  }
  static S finite(S x) { return x == kNone ? S(0) : x; }
  static V largest(V a, V b) { return a > b ? a : b; }
  S max_of(const S* x) const {
    V best = v(x)[0];
    for (int n = 1; n < N; n++) best = largest(v(x)[n], best);
    return fold<S, W>(best, [](auto a, auto b) { return a > b ? a : b; });
  }
  static S sum_of(V x) {
    return fold<S, W>(x, [](auto a, auto b) { return a + b; });
  }

  // log sum exp of P entries.
  S total_of(const S* x) const {
    const S best = finite(max_of(x));
    V sums{};
    for (int n = 0; n < N; n++) sums += exponential<S, W>(v(x)[n] - best);
    const S sum = sum_of(sums);
    return sum == 0 ? kNone : best + std::log(sum);
  }

  // kernel = p(z_t | z_t+1), whose columns sum to 1, or to 0 where j cannot follow; prior = log p(z_t+1 | nodes to t).
  void step(int64_t t) {
    const S *x = states + t * P, *rows = matrix(t);
    for (int n = 0; n < N; n++) v(top)[n] = splat<S, W>(kNone);
    for (int i = 0; i < K; i++) {
      S* row = kernel + i * P;
      pad(row, rows + i * K, kNone);
      for (int n = 0; n < N; n++) {
        v(row)[n] += x[i];
        v(top)[n] = largest(v(row)[n], v(top)[n]);
      }
    }
    for (int n = 0; n < N; n++) {
      V& best = v(top)[n];
      best = best == splat<S, W>(kNone) ? V{} : best;
      V sum{};
      for (int i = 0; i < K; i++) {
        V& entry = v(kernel + i * P)[n];
        entry = exponential<S, W>(entry - best);
        sum += entry;
      }
      const V some = sum == V{} ? splat<S, W>(1) : sum, inverse = S(1) / some;
      for (int i = 0; i < K; i++) v(kernel + i * P)[n] *= inverse;
      v(prior)[n] = sum == V{} ? splat<S, W>(kNone) : best + logarithm<S, W>(some);
    }
  }

  // `after` sees each kernel between a step and the real one behind it.
  template <class After>
  void forward(After after) {
    pad(prior, init, kNone);
    for (int64_t t = 0; t < T; t++) {
      S* x = states + t * P;
      increment[t] = maximum[t] = 0;
      if (!real(t)) {
        const S total = t ? S(0) : finite(total_of(prior));
        for (int n = 0; n < N; n++) v(x)[n] = t ? v(x - P)[n] : v(prior)[n] - total;
        continue;
      }
      if (t) {
        step(t - 1);
        after(t - 1);
      }
      pad(scratch, node + t * K, kNone);
      maximum[t] = finite(max_of(scratch));
      for (int n = 0; n < N; n++) v(x)[n] = v(prior)[n] + (v(scratch)[n] - maximum[t]);
      increment[t] = total_of(x);
      const S total = finite(increment[t]);
      for (int n = 0; n < N; n++) v(x)[n] -= total;
    }
  }
};

// in: log_init, log_trans, node, mask; out: log_states, log_z
template <class S, int W>
void hmm_varying_filter(const Call<S>& call, int64_t i) {
  Arena<Lanes<S, W>> arena(Varying<S, W>::size(call.D, call.T) / W);
  Varying<S, W> hmm(arena, call, i);
  hmm.forward([](int64_t) {});
  S *log_states = call.out[0].data + i * call.out[0].size, *log_z = call.out[1].data + i * call.out[1].size;
  for (int64_t t = 0; t < hmm.T; t++) {
    std::memcpy(log_states + t * hmm.K, hmm.states + t * hmm.P, hmm.K * sizeof(S));
    log_z[t] = hmm.increment[t] + hmm.maximum[t];
  }
}

// in: log_init, log_trans, node, mask; out: states, pairs, log_z, kl
template <class S, int W>
void hmm_varying_smooth(const Call<S>& call, int64_t index) {
  using V = Lanes<S, W>;
  using H = Varying<S, W>;
  const int K = int(call.D), P = H::padded(K), N = P / W;
  Arena<V> arena((H::size(K, call.T) + 2 * P) / W);
  H hmm(arena, call, index);
  S *q = hmm.take(arena, P), *row = hmm.take(arena, P);
  auto output = [&](int n) { return call.out[n].data + index * call.out[n].size; };
  S *states = output(0), *pairs = output(1), *log_z = output(2), *kl = output(3);
  hmm.forward([&](int64_t t) {
    for (int i = 0; i < K; i++) std::memcpy(pairs + (t * K + i) * K, hmm.kernel + i * P, K * sizeof(S));
  });
  for (int64_t t = hmm.T - 1; t >= 0; t--) {
    const bool last = t + 1 == hmm.T;
    S* step = pairs + t * K * K;
    if (last) {
      for (int n = 0; n < N; n++) hmm.v(q)[n] = exponential<S, W>(hmm.v(hmm.states + t * P)[n]);
    } else if (!hmm.real(t + 1)) {
      for (int n = 0; n < K * K; n++) step[n] = 0;
    } else {
      for (int i = 0; i < K; i++) {
        hmm.pad(row, step + i * K, 0);
        V sums{};
        for (int n = 0; n < N; n++) sums += hmm.v(row)[n] *= hmm.v(q)[n];
        hmm.scratch[i] = hmm.sum_of(sums);
        std::memcpy(step + i * K, row, K * sizeof(S));
      }
      hmm.pad(q, hmm.scratch, 0);
    }
    std::memcpy(states + t * K, q, K * sizeof(S));
    log_z[t] = hmm.increment[t] + hmm.maximum[t];
    S sum = 0;
    for (int k = 0; k < K; k++) {
      const S x = hmm.node[t * K + k];
      if (x != H::kNone) sum += (x - hmm.maximum[t]) * q[k];
    }
    kl[t] = hmm.real(t) ? sum - hmm.increment[t] : S(0);
  }
}

}  // namespace svae::SVAE_VARIANT
