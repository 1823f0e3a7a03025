// The derivative of the hidden Markov chain by two more sweeps.
#pragma once
#include "hmm_total.h"

namespace svae::SVAE_VARIANT {

// Back in time through the filter, from cotangents `kept` of the log states and `increment` of the increments of log Z.
template <class S, int W, class Increment, class More>
void pull_filter(const Hmm<S, W>& hmm, Total<S, W>& total, const S* kept, S* d_init, S* d_node,
                 Arena<Lanes<S, W>>& arena, Increment increment, More more) {
  using V = Lanes<S, W>;
  const int K = hmm.K, P = hmm.P, N = hmm.N;
  S *acc = hmm.take(arena, P), *x = hmm.take(arena, P), *z = hmm.take(arena, P), *column = hmm.take(arena, P);
  const int64_t first = hmm.first();
  for (int k = 0; k < P; k++) acc[k] = 0;
  for (int k = 0; k < K; k++) d_init[k] = 0;
  for (int64_t t = hmm.T - 1; t >= 0; t--) {
    const bool real = hmm.real(t);
    V sums{};
    for (int n = 0; n < N; n++) {
      hmm.v(acc)[n] += hmm.v(kept + t * P)[n];
      sums += hmm.v(acc)[n];
    }
    const S sum = hmm.sum_of(sums);
    if (!real) {
      for (int k = 0; k < K; k++) d_node[t * K + k] = 0;
      if (t > 0) continue;  // the states of a padded step are those before it
    }
    const S *alpha = hmm.alpha + t * P, inside = real ? increment(t) - sum : -sum;
    for (int n = 0; n < N; n++) hmm.v(x)[n] = hmm.inside(hmm.v(acc)[n] + hmm.v(alpha)[n] * inside, n);
    if (real) {
      for (int n = 0; n < N; n++) hmm.v(z)[n] = hmm.v(x)[n] + more(t, n);
      hmm.put(d_node + t * K, z);
    }
    for (int n = 0; n < N; n++) hmm.v(acc)[n] = V{};
    if (t <= first) {  // before it there is log_init alone
      for (int k = 0; k < K; k++) d_init[k] += x[k];
      continue;
    }
    const S* product = hmm.predicted + (t - 1) * P;
    alpha -= P;
    for (int n = 0; n < N; n++) {
      const V p = hmm.v(product)[n];
      hmm.v(z)[n] = p != V{} ? hmm.v(x)[n] / p : V{};
    }
    hmm.combine(hmm.v(acc), z, hmm.flipped);
    for (int n = 0; n < N; n++) hmm.v(acc)[n] *= hmm.v(alpha)[n];
    total.add(alpha, z);
    for (int j = 0; j < K && !hmm.trusted; j++) {
      if (product[j] != 0 || x[j] == 0) continue;
      hmm.column(t - 1, j, column);
      for (int k = 0; k < K; k++) {
        acc[k] += column[k] * x[j];
        total.apart[k * P + j] += double(column[k]) * x[j];
      }
    }
  }
}

// in: log_init, log_trans, node, mask; cotangents of log_states, log_z; out: cotangents of log_init, log_trans, node
template <class S, int W>
void hmm_filter_vjp(const Call<S>& call, int64_t i) {
  using H = Hmm<S, W>;
  const int P = H::padded(call.D), K = int(call.D);
  Arena<Lanes<S, W>> arena((H::size(K, call.T) + Total<S, W>::size(K) + call.T * P + 5 * P) / W);
  H hmm(arena, call, i);
  Total<S, W> total(arena, hmm);
  S *kept = hmm.take(arena, call.T * P), *d_trans = call.out[1].data + i * call.out[1].size;
  const S *d_states = call.in[4].data + call.in[4].offset[i], *d_log_z = call.in[5].data + call.in[5].offset[i];
  S* scratch = hmm.take(arena, P);
  hmm.forward(scratch);
  for (int64_t t = 0; t < call.T; t++) {
    hmm.log_states(t, scratch);
    for (int k = 0; k < P; k++) kept[t * P + k] = k >= K || scratch[k] == H::kNone ? S(0) : d_states[t * K + k];
  }
  pull_filter<S, W>(
      hmm, total, kept, call.out[0].data + i * call.out[0].size, call.out[2].data + i * call.out[2].size, arena,
      [&](int64_t t) { return d_log_z[t]; }, [](int64_t, int) { return Lanes<S, W>{}; });
  total.flush();
  for (int a = 0; a < K; a++)
    for (int b = 0; b < K; b++) d_trans[a * K + b] = S(total.get(a, b));
}

// in: log_init, log_trans, node, mask; states, transitions; cotangents of states, transitions, log_z, kl
// out: cotangents of log_init, log_trans, node
template <class S, int W>
void hmm_smooth_vjp(const Call<S>& call, int64_t i) {
  using V = Lanes<S, W>;
  using H = Hmm<S, W>;
  const int P = H::padded(call.D), K = int(call.D), N = P / W;
  const int64_t T = call.T;
  Arena<V> arena((H::size(K, T) + Total<S, W>::size(K) + 2 * P * P + T * P + 12 * P) / W);
  H hmm(arena, call, i);
  Total<S, W> total(arena, hmm);
  auto take = [&] { return hmm.take(arena, P); };
  S *c = take(), *ac = take(), *ratio = take(), *q = take(), *z = take(), *y = take(), *column = take(), *x = take();
  S *weights = hmm.take(arena, P * P), *weights_flipped = hmm.take(arena, P * P), *kept = hmm.take(arena, T * P);
  auto operand = [&](int n) { return call.in[n].data + call.in[n].offset[i]; };
  const S *states = operand(4), *transitions = operand(5), *d_states = operand(6), *d_transitions = operand(7),
          *d_log_z = operand(8), *d_kl = operand(9);
  S *d_init = call.out[0].data + i * call.out[0].size, *d_trans = call.out[1].data + i * call.out[1].size,
    *d_node = call.out[2].data + i * call.out[2].size;
  hmm.forward(column);
  for (int a = 0; a < P; a++)
    for (int b = 0; b < P; b++) {
      const S w = a < K && b < K ? d_transitions[a * K + b] * hmm.table[a * P + b] : S(0);
      weights[a * P + b] = weights_flipped[b * P + a] = w;
    }
  const int64_t first = hmm.first();

  // Forward in time: c is the cotangent of the marginals of step t (up to a constant), kept that of their logarithms.
  for (int k = 0; k < P; k++) c[k] = 0;
  for (int64_t t = 0; t < T; t++) {
    const S kl = hmm.real(t) ? d_kl[t] : S(0);
    V sums{};
    for (int n = 0; n < N; n++) {
      const V centred = hmm.row(hmm.node, t, n) - hmm.maximum[t];
      hmm.v(c)[n] += hmm.row(d_states, t, n, 0);
      if (kl != 0) hmm.v(c)[n] += centred == splat<S, W>(H::kNone) ? V{} : kl * centred;
      sums += hmm.v(c)[n] * hmm.row(states, t, n, 0);
    }
    const S mean = hmm.sum_of(sums);
    for (int n = 0; n < N; n++) hmm.v(c)[n] = hmm.inside(hmm.v(c)[n] - mean, n);
    S *lbar = kept + t * P, *alpha = hmm.alpha + t * P;
    for (int n = 0; n < N; n++) hmm.v(ac)[n] = hmm.v(alpha)[n] * hmm.v(c)[n];
    if (t + 1 == T) {
      std::memcpy(lbar, ac, P * sizeof(S));
      break;
    }
    if (!hmm.real(t + 1) || t < first) {
      for (int k = 0; k < P; k++) lbar[k] = 0;
      continue;
    }
    const S *product = hmm.predicted + t * P, *next = states + (t + 1) * K;
    hmm.combine(hmm.v(q), ac, hmm.table);
    hmm.combine(hmm.v(y), alpha, weights);
    for (int n = 0; n < N; n++) {
      const V p = hmm.v(product)[n], inverse = p != V{} ? S(1) / p : V{};
      hmm.v(ratio)[n] = hmm.row(states, t + 1, n, 0) * inverse;
      hmm.v(q)[n] = (hmm.v(q)[n] + hmm.v(y)[n]) * inverse;
      hmm.v(z)[n] = hmm.v(ratio)[n] * hmm.v(q)[n];
    }
    hmm.combine(hmm.v(y), ratio, weights_flipped);
    hmm.combine(hmm.v(x), z, hmm.flipped);
    for (int n = 0; n < N; n++)
      hmm.v(lbar)[n] = hmm.v(alpha)[n] * (hmm.v(y)[n] - hmm.v(x)[n]) + hmm.row(states, t, n, 0) * hmm.v(c)[n];
    total.add(ac, ratio);
    for (int n = 0; n < N; n++) hmm.v(ac)[n] = -hmm.v(alpha)[n];
    total.add(ac, z);
    for (int j = 0; j < K && !hmm.trusted; j++) {
      if (product[j] != 0) continue;
      hmm.column(t, j, column);
      for (int k = 0; k < K; k++) q[j] += column[k] * (c[k] + d_transitions[k * K + j]);
      if (next[j] == 0) continue;
      for (int k = 0; k < K; k++) {
        const S pair = column[k] * next[j];
        lbar[k] += pair * (d_transitions[k * K + j] - q[j]);
        total.apart[k * P + j] += double(pair) * (c[k] - q[j]);
      }
    }
    std::memcpy(c, q, P * sizeof(S));
  }

  pull_filter<S, W>(
      hmm, total, kept, d_init, d_node, arena, [&](int64_t t) { return d_log_z[t] - d_kl[t]; },
      [&](int64_t t, int n) { return d_kl[t] * hmm.row(states, t, n, 0); });
  total.flush();
  for (int a = 0; a < K; a++)
    for (int b = 0; b < K; b++)
      d_trans[a * K + b] = S(total.get(a, b) + double(d_transitions[a * K + b]) * transitions[a * K + b]);
}

}  // namespace svae::SVAE_VARIANT
