// The filter of a hidden Markov chain: in probabilities where they can be trusted, in logarithms where not.
#pragma once
#include "hmm.h"

namespace svae::SVAE_VARIANT {

// alpha <- exp(top + node_t - their maximum) of every real step (log_init in place of top at the first).
template <class S, int W>
void Hmm<S, W>::emissions() {
  for (int64_t t = 0; t < T; t++) {
    maximum[t] = 0;
    increment[t] = 1;
    if (!real(t)) continue;
    S* x = alpha + t * P;
    const S* before = t ? top : prior;
    V best = splat<S, W>(kNone);
    for (int n = 0; n < N; n++) {
      v(x)[n] = row(node, t, n) + v(before)[n];
      best = v(x)[n] > best ? v(x)[n] : best;
    }
    const S most = maximum[t] = finite(highest(best));
    for (int n = 0; n < N; n++) v(x)[n] = exponential<S, W>(v(x)[n] - most);
  }
}

// alpha_t = predicted_t-1 * its emission / its sum. False where a product cannot be trusted.
template <class S, int W>
bool Hmm<S, W>::forward_in_probabilities() {
  if (!real(0)) return false;
  emissions();
  V least = splat<S, W>(1);
  for (int64_t t = 0; t < T; t++) {
    S *x = alpha + t * P, *next = predicted + t * P;
    if (!real(t)) {
      std::memcpy(x, x - P, P * sizeof(S));
      std::memcpy(next, next - P, P * sizeof(S));
      continue;
    }
    V sums{};
    for (int n = 0; n < N; n++) {
      if (t) v(x)[n] *= v(next - P)[n];
      sums += v(x)[n];
    }
    const S sum = sum_of(sums), scale = 1 / sum;
    increment[t] = sum;
    if (t + 1 < T) combine(v(next), x, table);
    for (int n = 0; n < N; n++) v(x)[n] *= scale;
    if (!(sum >= kTiny)) return false;
    if (t + 1 == T) break;
    for (int n = 0; n < N; n++) {
      const V p = v(next)[n] *= scale;
      const V inside = p + v(outside)[n];
      least = inside < least ? inside : least;
    }
  }
  if (!(-highest(-least) >= kTiny)) return false;
  for (int64_t t = 0; t < padded(T) / W; t++) v(increment)[t] = logarithm<S, W>(v(increment)[t]);
  return true;
}

template <class S, int W>
void Hmm<S, W>::forward(S* scratch) {
  tabulate();
  for (int k = 0; k < P; k++) prior[k] = k < K ? init[k] : kNone;
  for (int64_t t = T; t < padded(T); t++) increment[t] = 1;
  trusted = forward_in_probabilities();
  if (trusted) return;
  forward_in_logarithms(scratch);
  for (int64_t t = 0; t < T; t++)
    for (int n = 0; n < N; n++) v(alpha + t * P)[n] = exponential<S, W>(v(states + t * P)[n]);
}

// log p(z_t | nodes to t), also where the probability itself is too small for a number.
template <class S, int W>
void Hmm<S, W>::log_states(int64_t t, S* out) const {
  if (!trusted) {
    std::memcpy(out, states + t * P, P * sizeof(S));
    return;
  }
  while (!real(t)) t--;
  for (int n = 0; n < N; n++) {
    v(out)[n] = row(node, t, n) - (maximum[t] + increment[t]) + v(t ? top : prior)[n];
    if (t) v(out)[n] += logarithm<S, W>(v(predicted + (t - 1) * P)[n] + v(outside)[n]);
  }
}

// log_init, normalised, stands for the states before the first real step.
template <class S, int W>
void Hmm<S, W>::begin(S* out) const {
  for (int k = 0; k < P; k++) probability[k] = k < K ? init[k] : kNone;
  const S total = finite(normalize(probability));
  for (int k = 0; k < P; k++) out[k] = k < K ? init[k] - total : kNone;
}

// log p(z_t | nodes to t) of all steps, with the nodes' maxima apart.
template <class S, int W>
void Hmm<S, W>::forward_in_logarithms(S* scratch) {
  for (int64_t t = 0; t < T; t++) {
    S *x = states + t * P, *next = predicted + t * P;
    maximum[t] = increment[t] = 0;
    if (!real(t)) {
      if (t == 0) {
        begin(x);
        for (int k = 0; k < P; k++) next[k] = 0;
      } else {
        std::memcpy(x, x - P, P * sizeof(S));
        std::memcpy(next, next - P, P * sizeof(S));
      }
      continue;
    }
    maximum[t] = max_of_node(t);
    for (int n = 0; n < N; n++) v(x)[n] = v(prior)[n] + (row(node, t, n) - maximum[t]);
    std::memcpy(probability, x, P * sizeof(S));
    increment[t] = normalize(probability);
    const S total = finite(increment[t]);
    for (int n = 0; n < N; n++) v(x)[n] -= total;
    if (t + 1 < T) advance(t, next, scratch);
  }
}

template <class S, int W>
void Hmm<S, W>::advance(int64_t t, S* next, S* scratch) {
  combine(v(next), probability, table);
  for (int j = K; j < P; j++) next[j] = 1;
  for (int n = 0; n < N; n++) {
    const V p = v(next)[n], one = splat<S, W>(1);
    v(prior)[n] = logarithm<S, W>(p == V{} ? one : p) + v(top)[n];
  }
  for (int j = K; j < P; j++) prior[j] = kNone;
  if (!lost(next)) return;
  for (int j = 0; j < K; j++) {
    if (next[j] >= kTiny || next[j] != next[j]) continue;
    next[j] = 0;
    prior[j] = column(t, j, scratch);
  }
}

// Whether any of the P entries is too small to trust.
template <class S, int W>
bool Hmm<S, W>::lost(const S* x) const {
  V least = v(x)[0];
  for (int n = 1; n < N; n++) least = v(x)[n] < least ? v(x)[n] : least;
  return -highest(-least) < kTiny;
}

}  // namespace svae::SVAE_VARIANT
