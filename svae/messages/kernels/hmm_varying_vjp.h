// The derivative of the hidden Markov chain whose transitions change in time.
#pragma once
#include "hmm_varying.h"

namespace svae::SVAE_VARIANT {

// Cotangents of log_trans: of each step, or their sum in double precision where one matrix serves all.
template <class S, int W>
struct PairCotangents {
  const int K, P;
  const bool steady;
  S* out;
  double* sums;

  static int64_t size(int64_t K) { return K * Varying<S, W>::padded(K) * int64_t(sizeof(double) / sizeof(S)); }
  PairCotangents(Arena<Lanes<S, W>>& arena, const Varying<S, W>& hmm, const Output<S>& output, int64_t index)
      : K(hmm.K), P(hmm.P), steady(hmm.steady), out(output.data + index * output.size),
        sums(reinterpret_cast<double*>(hmm.take(arena, size(hmm.K)))) {
    for (int64_t n = 0; n < output.size; n++) out[n] = 0;
    for (int n = 0; n < K * P; n++) sums[n] = 0;
  }
  void add(int64_t t, int i, const S* row) {
    S* step = out + (t * K + i) * K;
    for (int j = 0; j < K && !steady; j++) step[j] += row[j];
    for (int j = 0; j < K && steady; j++) sums[i * P + j] += row[j];
  }
  void finish() {
    for (int n = 0; n < K * K && steady; n++) out[n] = S(sums[n / K * P + n % K]);
  }
};

// Back in time through the filter, from cotangents `kept` of the log states and `weight` of the increments of log Z.
template <class S, int W, class Weight, class More>
void pull_varying(Varying<S, W>& hmm, PairCotangents<S, W>& pairs, const S* kept, S* d_init, S* d_node,
                  Arena<Lanes<S, W>>& arena, Weight weight, More more) {
  using V = Lanes<S, W>;
  const int K = hmm.K, P = hmm.P, N = hmm.N;
  S *acc = hmm.take(arena, P), *u = hmm.take(arena, P), *row = hmm.take(arena, P);
  for (int k = 0; k < P; k++) acc[k] = 0;
  for (int64_t t = hmm.T - 1; t >= 0; t--) {
    const bool real = hmm.real(t);
    V sums{};
    for (int n = 0; n < N; n++) sums += hmm.v(acc)[n] += hmm.v(kept + t * P)[n];
    for (int k = 0; k < K && !real; k++) d_node[t * K + k] = 0;
    if (!real && t) continue;  // its states are those before it
    const S inside = (real ? weight(t) : S(0)) - hmm.sum_of(sums);
    for (int n = 0; n < N; n++) hmm.v(u)[n] = hmm.v(acc)[n] + exponential<S, W>(hmm.v(hmm.states + t * P)[n]) * inside;
    for (int k = 0; k < K && real; k++) d_node[t * K + k] = u[k] + more(t, k);
    if (!t) break;
    hmm.step(t - 1);
    for (int i = 0; i < K; i++) {
      V total{};
      for (int n = 0; n < N; n++) total += hmm.v(row)[n] = hmm.v(hmm.kernel + i * P)[n] * hmm.v(u)[n];
      acc[i] = hmm.sum_of(total);
      pairs.add(t - 1, i, row);
    }
  }
  std::memcpy(d_init, u, K * sizeof(S));
  pairs.finish();
}

// in: log_init, log_trans, node, mask; cotangents of log_states, log_z; out: cotangents of log_init, log_trans, node
template <class S, int W>
void hmm_varying_filter_vjp(const Call<S>& call, int64_t index) {
  using H = Varying<S, W>;
  const int K = int(call.D), P = H::padded(K);
  Arena<Lanes<S, W>> arena((H::size(K, call.T) + PairCotangents<S, W>::size(K) + call.T * P + 3 * P) / W);
  H hmm(arena, call, index);
  PairCotangents<S, W> pairs(arena, hmm, call.out[1], index);
  S* kept = hmm.take(arena, call.T * P);
  const S *d_states = call.in[4].data + call.in[4].offset[index], *d_log_z = call.in[5].data + call.in[5].offset[index];
  hmm.forward([](int64_t) {});
  for (int64_t t = 0; t < call.T; t++)
    for (int k = 0; k < P; k++)
      kept[t * P + k] = k >= K || hmm.states[t * P + k] == H::kNone ? S(0) : d_states[t * K + k];
  pull_varying<S, W>(
      hmm, pairs, kept, call.out[0].data + index * call.out[0].size, call.out[2].data + index * call.out[2].size, arena,
      [&](int64_t t) { return d_log_z[t]; }, [](int64_t, int) { return S(0); });
}

// in: log_init, log_trans, node, mask; states, pairs; cotangents of states, pairs, log_z, kl
// out: cotangents of log_init, log_trans, node
template <class S, int W>
void hmm_varying_smooth_vjp(const Call<S>& call, int64_t index) {
  using V = Lanes<S, W>;
  using H = Varying<S, W>;
  const int K = int(call.D), P = H::padded(K), N = P / W;
  const int64_t T = call.T;
  Arena<V> arena((H::size(K, T) + PairCotangents<S, W>::size(K) + T * P + 8 * P) / W);
  H hmm(arena, call, index);
  PairCotangents<S, W> total(arena, hmm, call.out[1], index);
  S *kept = hmm.take(arena, T * P), *c = hmm.take(arena, P), *mean = hmm.take(arena, P), *weighed = hmm.take(arena, P),
    *pair = hmm.take(arena, P), *row = hmm.take(arena, P);
  auto operand = [&](int n) { return call.in[n].data + call.in[n].offset[index]; };
  const S *states = operand(4), *pairs = operand(5), *d_states = operand(6), *d_pairs = operand(7),
          *d_log_z = operand(8), *d_kl = operand(9);
  hmm.forward([](int64_t) {});

  // Forward in time: c is the cotangent of the marginals of step t, up to a constant; kept that of the log states.
  for (int k = 0; k < P; k++) c[k] = 0;
  for (int64_t t = 0; t < T; t++) {
    S centre = 0;
    for (int k = 0; k < K; k++) {
      const S x = hmm.node[t * K + k];
      c[k] += d_states[t * K + k];
      if (hmm.real(t) && x != H::kNone) c[k] += d_kl[t] * (x - hmm.maximum[t]);
      centre += c[k] * states[t * K + k];
    }
    for (int k = 0; k < K; k++) c[k] -= centre;
    S* lbar = kept + t * P;
    for (int k = 0; k < P; k++) lbar[k] = 0;
    if (t + 1 == T)
      for (int k = 0; k < K; k++) lbar[k] = c[k] * states[t * K + k];
    if (t + 1 == T || !hmm.real(t + 1)) continue;
    hmm.step(t);
    for (int n = 0; n < N; n++) hmm.v(mean)[n] = V{};
    for (int i = 0; i < K; i++) {
      hmm.pad(row, d_pairs + (t * K + i) * K, 0);
      for (int n = 0; n < N; n++) hmm.v(mean)[n] += hmm.v(hmm.kernel + i * P)[n] * (hmm.v(row)[n] + c[i]);
    }
    for (int i = 0; i < K; i++) {
      hmm.pad(row, d_pairs + (t * K + i) * K, 0);
      hmm.pad(pair, pairs + (t * K + i) * K, 0);
      V sums{};
      for (int n = 0; n < N; n++) sums += hmm.v(weighed)[n] = hmm.v(pair)[n] * (hmm.v(row)[n] + c[i] - hmm.v(mean)[n]);
      lbar[i] = hmm.sum_of(sums);
      total.add(t, i, weighed);
    }
    std::memcpy(c, mean, P * sizeof(S));
  }

  pull_varying<S, W>(
      hmm, total, kept, call.out[0].data + index * call.out[0].size, call.out[2].data + index * call.out[2].size, arena,
      [&](int64_t t) { return d_log_z[t] - d_kl[t]; }, [&](int64_t t, int k) { return d_kl[t] * states[t * K + k]; });
}

}  // namespace svae::SVAE_VARIANT
