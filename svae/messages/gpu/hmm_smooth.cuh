// Smoothing of a hidden Markov chain, one block per sequence: a warp sends messages forward while another sends them
// back, then all of them join the two, each in its own share of time.
//
// Forward, with its own table E[i, j] = exp(log_trans[i, j] - top[j]), and likewise back with rows for columns:
//   before_t = E' sent_t-1,   sent_t = before_t exp(node_t + top), scaled.
#pragma once
#include "hmm_sweep.cuh"

namespace svae {

// The shared memory of a block: tops of columns and of rows, mail of each warp.
template <int K, class S>
struct Desk {
  static constexpr int P = Row<K, S>::N * kWarp, letters = 2, shared = kHmmWarps + 2 * P + kHmmWarps * letters * 2 * P;
  int warp, lane, *numbers;
  S *columns, *rows, *mail;
  __device__ explicit Desk(double* p)
      : warp(threadIdx.x / kWarp), lane(threadIdx.x % kWarp), numbers(reinterpret_cast<int*>(p)),
        columns(reinterpret_cast<S*>(p + kHmmWarps)), rows(columns + P), mail(rows + P) {}
  __device__ Mail<K, S> letter(int n) const { return Mail<K, S>(mail + (warp * letters + n) * 2 * P, lane); }

  // The maximum of each column and row of log_trans, 0 where all are impossible.
  __device__ void find_tops(const S* trans) const {
    for (int l = threadIdx.x; l < 2 * P; l += blockDim.x) {
      const int k = l % P, own = l < P ? 1 : K, other = l < P ? K : 1;
      S best = minus_infinity(S());
#pragma unroll 4
      for (int i = 0; k < K && i < K; i++) {
        const S x = trans[k * own + i * other];
        best = x > best ? x : best;
      }
      columns[l] = best == minus_infinity(S()) ? S(0) : best;
    }
    __syncthreads();
  }
};

// The maximum of a row, 0 where all are impossible; the row is left relative to it.
template <int K, class S>
__device__ inline S relative(Row<K, S>& row, int lane) {
  S best = minus_infinity(S());
  each_state<K>(lane, [&](int n, int) { best = row[n] > best ? row[n] : best; });
  best = warp_maximum(best);
  if (best == minus_infinity(S())) best = 0;
#pragma unroll
  for (int n = 0; n < Row<K, S>::N; n++) row[n] -= best;
  return best;
}

// in: log_init, log_trans, node, mask; out: states, transitions, increments, messages sent forward and back
// scratch: whether numbers were lost; pair sums of each warp; scales of the messages sent forward, and of the first
template <int K, class S>
struct Smoothing {
  const S *init, *trans, *node, *mask;
  S *states, *transitions, *increments, *forward, *back, *scales;
  double *lost, *totals;
  __device__ Smoothing(const Args& a, long long n)
      : init(input<S>(a, 0, n)), trans(input<S>(a, 1, n)), node(input<S>(a, 2, n)), mask(input<S>(a, 3, n)) {
    const long long size = (long long)a.T * K;
    states = output<S>(a, 0, n, size);
    transitions = output<S>(a, 1, n, K * K);
    increments = output<S>(a, 2, n, a.T);
    forward = output<S>(a, 3, n, size);
    back = output<S>(a, 4, n, size);
    lost = a.scratch + n * a.scratch_size;
    totals = lost + 2;
    scales = reinterpret_cast<S*>(totals + kHmmWarps * Pairs<K, S>::size);
  }
};

// Messages forward by the first warp and back by the second; whether numbers were lost. `states` holds what came back
// before each node.
template <int K, class S>
__device__ inline bool send_both(const Smoothing<K, S>& q, const Desk<K, S>& desk, const Steps<S>& steps) {
  if (desk.warp > 1) return false;
  const int lane = desk.lane, count = steps.last - steps.first + 1;
  const long long at = desk.warp == 0 ? steps.first : steps.last;
  const S* tops = desk.warp == 0 ? desk.columns : desk.rows;
  Row<K, S> start{};
  if (desk.warp == 0) start = get<K>(q.init, lane);
  each_state<K>(lane, [&](int n, int k) { start[n] -= tops[k]; });
  const S best = relative<K>(start, lane);
  S* mail = desk.letter(0).place;
  if (desk.warp == 1)
    return !send_all<K, S, -1>(q.trans, tops, q.node + at * K, q.mask + at, count, start, q.back + at * K,
                               q.states + at * K, mail, lane);
  if (lane == 0) q.scales[steps.T] = best;
  return !send_all<K, S, 1>(q.trans, tops, q.node + at * K, q.mask + at, count, start, q.forward + at * K,
                            q.scales + at, mail, lane);
}

// What is read of a step to join the messages.
template <int K, class S>
struct Meeting {
  Row<K, S> forward, before, back;
  S scale, real;
  bool padded_after;
};

// exp(row tops - their maximum): the rest of what came back before a node; whether one of them is lost.
template <int K, class S>
__device__ inline bool find_rise(Row<K, S>& rise, const Desk<K, S>& desk) {
  bool lost = false;
  rise = get<K>(desk.rows, desk.lane);
  relative<K>(rise, desk.lane);
  each_state<K>(desk.lane, [&](int n, int) {
    rise[n] = exponential(rise[n]);
    lost = lost || rise[n] < Range<S>::least;
  });
  return lost;
}

// Joins the messages in the share of this warp; whether numbers were lost.
template <int K, class S>
__device__ inline bool meet(const Smoothing<K, S>& q, const Desk<K, S>& desk, const Steps<S>& steps) {
  const int lane = desk.lane, first = steps.first, last = steps.last;
  const Share share(steps.T, desk.warp);
  Row<K, S> rise;
  bool lost = find_rise(rise, desk);
  Pairs<K, S> pairs(q.totals + desk.warp * Pairs<K, S>::size, lane);
  Mail<K, S> mail = desk.letter(0);
  auto weight = [&](int k, int l) { return exponential(q.trans[k * K + l] - desk.rows[k]); };
  S earlier = 1;  // the sum of the message before
  if (share.from > first && share.from <= last) {
    const Row<K, S> row = get<K>(q.forward + (long long)(share.from - 1) * K, lane);
    earlier = sum_of<K, S>([&](int i) { return row[i]; });
  }
  in_groups<Row<K, S>::N == 1 ? 4 : 2>(
      share.from < first ? first : share.from, share.to <= last ? share.to : last + 1,
      [&](int t) {
        const long long at = (long long)t * K;
        return Meeting<K, S>{get<K>(q.forward + at, lane),
                             get<K>(q.states + at, lane),
                             t < last ? get<K>(q.back + at + K, lane) : Row<K, S>{},
                             q.scales[t],
                             q.mask[t],
                             steps.padded_after(t)};
      },
      [&](int t, const Meeting<K, S>& m) {
        const S all = sum_of<K, S>([&](int i) { return m.forward[i]; }), sum = all / m.scale;
        if (lane == 0)
          q.increments[t] = m.real == 0  ? S(0)
                            : t == first ? log_of(sum / Range<S>::largest) + q.scales[steps.T]
                                         : log_of(sum / (earlier / Range<S>::keep));
        earlier = all;
        if (t != first && m.real == 0) return;
        const Row<K, S> left = make_row<K, S>([&](int i) { return (m.forward[i] * Range<S>::half) * rise[i]; });
        const S norm = sum_of<K, S>([&](int i) { return left[i] * m.before[i]; });
        lost = lost || !(norm >= Range<S>::least);
        const Row<K, S> state = make_row<K, S>([&](int i) { return left[i] * m.before[i] / norm; });
        put<K>(q.states + (long long)t * K, state, lane);
        if (m.padded_after || t == first)
          steps.each_repeat(t, [&](int s) { put<K>(q.states + (long long)s * K, state, lane); });
        if (t == last) return;
        pairs.add(Letter<K, S>(mail.send(m.back)), make_row<K, S>([&](int i) { return left[i] / norm; }));
        pairs.flush(false, weight);
      });
  pairs.flush(true, weight);
  return lost;
}

template <int K, class S>
__device__ inline void hmm_smooth(const Args& a, double* shared) {
  const Smoothing<K, S> q(a, blockIdx.x);
  const Desk<K, S> desk(shared);
  desk.find_tops(q.trans);
  const Steps<S> steps(q.mask, a.T, desk.numbers);
  bool lost = __syncthreads_or(send_both(q, desk, steps));
  if (!lost) lost = __syncthreads_or(meet(q, desk, steps));
  if (threadIdx.x == 0) q.lost[0] = lost;
  if (lost) return;
  for (int t = threadIdx.x; t < a.T; t += blockDim.x)
    if (t < steps.first || t > steps.last) q.increments[t] = 0;
  for (int i = threadIdx.x; i < K * K; i += blockDim.x) q.transitions[i] = S(Pairs<K, S>::all(q.totals, i / K, i % K));
}

}  // namespace svae
