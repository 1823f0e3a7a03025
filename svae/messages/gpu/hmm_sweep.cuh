// One warp along a chain: every step waits for the one before it, so that nothing else may stand in its way. Operands
// are loaded some steps ahead, addresses differ by constants, and what is kept of a step is made while the next waits.
#pragma once
#include "hmm_steps.cuh"

#ifdef SVAE_EMULATE
#define SVAE_APART inline
#else
#define SVAE_APART __noinline__ __device__  // with registers of its own
#endif

namespace svae {

// Takes a sweep from its step 0 to step count - 1. `real` is the mask at its step 0; padding keeps the message.
//   load(u, s): operands of step s into place u;  ready(u): they are next
//   send(): the message goes into the mail;  close(s): and is kept;  step(u): the next one;  rest(s): now and then
template <int Ahead, int Step, class Sweep, class S>
__device__ inline void march(Sweep& sweep, const S* real, int count) {
  S coming[Ahead], here[Ahead];
  auto fetch = [&](int base) {
#pragma unroll
    for (int u = 0; u < Ahead; u++) {
      const int s = base + u < count ? base + u : count - 1;
      sweep.load(u, s);
      coming[u] = real[s * Step];
    }
  };
  fetch(1);
#pragma unroll 1
  for (int base = 1; base < count; base += Ahead) {
    bool full = base + Ahead <= count;
#pragma unroll
    for (int u = 0; u < Ahead; u++) {
      sweep.ready(u);
      here[u] = coming[u];
      full = full && here[u] != 0;
    }
    fetch(base + Ahead);
    if (full) {
#pragma unroll
      for (int u = 0; u < Ahead; u++) {
        sweep.send();
        sweep.close(base + u - 1);
        sweep.step(u);
      }
    } else {
#pragma unroll
      for (int u = 0; u < Ahead; u++) {
        if (base + u >= count) break;
        sweep.send();
        sweep.close(base + u - 1);
        if (here[u] != 0) sweep.step(u);
      }
    }
    sweep.rest(base + Ahead - 1 < count ? base + Ahead - 1 : count - 1);
  }
  sweep.send();
  sweep.close(count - 1);
}

// The lane's own numbers of a row; one that is past the end reads the last.
template <int K, class S>
__device__ inline Row<K, S> read(const S* row, int lane) {
  return make_row<K, S>([&](int n) { return row[lane + n * kWarp < K ? lane + n * kWarp : K - 1]; });
}

// Messages of a chain; those that go forward (Step 1) keep their scales, those that go back what arrived before a node.
template <int K, class S, int Step>
struct Messages {
  static constexpr int N = Row<K, S>::N, kAhead = N == 1 ? 8 : 4;
  const Table<K, S>& table;
  Mail<K, S> mail;
  int lane;
  const S* node;  // at step 0 of the sweep, as are
  S *sent_to, *kept_to;
  Row<K, S> top, before, sent, coming[kAhead], root[kAhead];
  Letter<K, S> letter;
  S scale = 0, peak = 0;
  bool good = true;

  __device__ void load(int u, int s) { coming[u] = read<K>(node + (long long)s * (Step * K), lane); }
  __device__ void ready(int u) { root[u] = root_of(coming[u]); }
  // The root of a node's factor, which goes in twice: the factor may be too small for one number.
  __device__ Row<K, S> root_of(const Row<K, S>& x) const {
    return make_row<K, S>([&](int n) { return exponential((x[n] + top[n]) / 2); });
  }
  __device__ void send() {
    peak = peak_of(sent);
    letter = Letter<K, S>(mail.send(sent));
  }
  __device__ void step(int u) {
    const Row<K, S> sum = weigh(letter, table);
#pragma unroll
    for (int n = 0; n < N; n++) {
      before[n] = sum[n] * scale;
      sent[n] = sum[n] * (scale * root[u][n]) * root[u][n];
    }
  }
  __device__ void close(int s) {
    good = good && peak >= 1;
    if (Step < 0) {
      S* to = kept_to + (long long)s * (Step * K);
      each_state<K>(lane, [&](int n, int k) { to[k] = before[n] * Range<S>::keep; });
    }
    each_state<K>(lane, [&](int n, int) { good = good && before[n] >= 1; });
    scale = raise(peak);
    const S factor = scale * Range<S>::keep;
    put<K>(sent_to + (long long)s * (Step * K), make_row<K, S>([&](int n) { return sent[n] * factor; }), lane);
    if (Step > 0 && lane == 0) kept_to[s] = factor;
  }
  __device__ void rest(int) {}
};

// Sends the messages of `count` steps, from that which `node`, `mask`, `sent` and `kept` point to; whether all is well.
// `before` is the first message: relative to its maximum, in logarithms.
template <int K, class S, int Step>
SVAE_APART bool send_all(const S* trans, const S* tops, const S* node, const S* mask, int count, Row<K, S> before,
                         S* sent, S* kept, S* mail, int lane) {
  constexpr int own = Step > 0 ? 1 : K, other = Step > 0 ? K : 1;
  Table<K, S> table;
  table.fill(lane, [&](int k, int l) { return exponential(trans[k * own + l * other] - tops[k]); });
  Messages<K, S, Step> m{table, Mail<K, S>(mail, lane), lane, node, sent, kept, get<K>(tops, lane)};
  m.before =
      make_row<K, S>([&](int n) { return lane + n * kWarp < K ? exponential(before[n]) * Range<S>::largest : S(0); });
  const Row<K, S> root = m.root_of(read<K>(node, lane));
#pragma unroll
  for (int n = 0; n < Row<K, S>::N; n++) m.sent[n] = m.before[n] * root[n] * root[n];
  march<Messages<K, S, Step>::kAhead, Step>(m, mask, count);
  return m.good;
}

// y_s = y_s + factor_s (table' y_s-1), in place. With `level`, y is taken down now and then by what all states share:
// the multiple of `level` that has its sum.
template <int K, class S, int Step>
struct Recursion {
  static constexpr int N = Row<K, S>::N, kAhead = 4;
  const Table<K, S>& table;
  Mail<K, S> mail;
  int lane;
  S* y;
  const S *factor, *level;
  Row<K, S> now, coming[kAhead], coming_factor[kAhead], drive[kAhead], times[kAhead];
  Letter<K, S> letter;

  __device__ void load(int u, int s) {
    coming[u] = read<K>(y + (long long)s * (Step * K), lane);
    coming_factor[u] = read<K>(factor + (long long)s * (Step * K), lane);
  }
  __device__ void ready(int u) {
    drive[u] = make_row<K, S>([&](int n) { return lane + n * kWarp < K ? coming[u][n] : S(0); });
    times[u] = coming_factor[u];
  }
  __device__ void send() { letter = Letter<K, S>(mail.send(now)); }
  __device__ void step(int u) {
    const Row<K, S> sum = weigh(letter, table);
#pragma unroll
    for (int n = 0; n < N; n++) now[n] = fma(times[u][n], sum[n], drive[u][n]);
  }
  __device__ void close(int s) { put<K>(y + (long long)s * (Step * K), now, lane); }
  __device__ void rest(int s) {
    if (!level || s % 16 >= kAhead) return;
    const Row<K, S> sent = get<K>(level + (long long)s * (Step * K), lane);
    const S mean = sum_of<K, S>([&](int n) { return now[n]; }) / sum_of<K, S>([&](int n) { return sent[n]; });
#pragma unroll
    for (int n = 0; n < N; n++) now[n] -= mean * sent[n];
  }
};

// All pointers at step 0 of the sweep. The table is that of the messages with these strides, or its transpose.
template <int K, class S, int Step>
SVAE_APART void recur(const S* trans, const S* tops, int own, int other, bool flipped, S* y, const S* factor,
                      const S* mask, int count, const S* level, S* mail, int lane) {
  Table<K, S> table;
  table.fill(lane, [&](int k, int l) {
    const int to = flipped ? l : k, from = flipped ? k : l;
    return exponential(trans[to * own + from * other] - tops[to]);
  });
  Recursion<K, S, Step> r{table, Mail<K, S>(mail, lane), lane, y, factor, level, get<K>(y, lane)};
  march<Recursion<K, S, Step>::kAhead, Step>(r, mask, count);
}

}  // namespace svae
