// What drives the tangents of messages, made by all warps before the sweeps: see hmm_smooth_vjp.cuh.
#pragma once
#include "hmm_smooth.cuh"

namespace svae {

// in: log_trans, mask, messages sent forward and back, states, transitions, cotangents of states, transitions and
// increments
// out: cotangents of log_init, log_trans, node
// scratch: pair sums of each warp; y and factors forward and back, z; E[G] of each step
template <int K, class S>
struct VjpOfSmooth {
  const S *trans, *mask, *forward, *back, *states, *transitions, *d_states, *d_pairs, *d_increments;
  S *d_init, *d_trans, *d_node, *y, *factor, *back_y, *back_factor, *z, *shifts;
  double* totals;
  __device__ VjpOfSmooth(const Args& a, long long n) {
    const S** in[] = {&trans, &mask, &forward, &back, &states, &transitions, &d_states, &d_pairs, &d_increments};
#pragma unroll
    for (int i = 0; i < 9; i++) *in[i] = input<S>(a, i, n);
    const long long size = (long long)a.T * K;
    d_init = output<S>(a, 0, n, K);
    d_trans = output<S>(a, 1, n, K * K);
    d_node = output<S>(a, 2, n, size);
    totals = a.scratch + n * a.scratch_size;
    y = reinterpret_cast<S*>(totals + kHmmWarps * Pairs<K, S>::size);
    factor = y + size;
    back_y = factor + size;
    back_factor = back_y + size;
    z = back_factor + size;
    shifts = z + size;
  }
};

// One direction: what is sent on, its tangent (at first the drive of it), the factor of a step; table and strides.
template <int K, class S>
struct Tangent {
  const S* sent;
  S *y, *factor;
  const S* tops;
  int own, other, offset, edge;  // the step before t is t + offset; `edge` has none
  __device__ S weight(const S* trans, int k, int l) const { return exponential(trans[k * own + l * other] - tops[k]); }
  __device__ Row<K, S> message_before(int t, int lane) const {
    return t == edge ? Row<K, S>{} : get<K>(sent + (long long)(t + offset) * K, lane);
  }
};

// g_t, with those of the steps that repeat it; `here` is its own, `after` the mask of the next step.
template <int K, class S>
__device__ inline Row<K, S> cotangent(const VjpOfSmooth<K, S>& v, const Steps<S>& steps, int t, Row<K, S> here, S after,
                                      int lane) {
  if (after == 0 || t == steps.first)
    steps.each_repeat(t, [&](int s) {
      const Row<K, S> more = get<K>(v.d_states + (long long)s * K, lane);
#pragma unroll
      for (int i = 0; i < Row<K, S>::N; i++) here[i] += more[i];
    });
  return here;
}

// c_t - c of the next step that is no padding.
template <int K, class S>
__device__ inline S cotangent_of_increment(const VjpOfSmooth<K, S>& v, const Steps<S>& steps, int t) {
  int s = t + 1;
  while (s < steps.T && v.mask[s] == 0) s++;
  return (v.mask[t] == 0 ? S(0) : v.d_increments[t]) - (s < steps.T ? v.d_increments[s] : S(0));
}

// What is read of a step to drive its tangent.
template <int K, class S>
struct Driven {
  Row<K, S> earlier, before, sent, g, state;
  S real, after, c, c_after;
};

// The drives and factors of a direction, in the share of this warp.
template <int K, class S>
__device__ inline void drive(const VjpOfSmooth<K, S>& v, const Tangent<K, S>& d, const Steps<S>& steps, Share share,
                             Mail<K, S>& mail) {
  constexpr int N = Row<K, S>::N;
  const int lane = mail.lane, T = steps.T;
  const bool on = d.offset < 0;
  share.from = share.from < steps.first ? steps.first : share.from;
  share.to = share.to <= steps.last ? share.to : steps.last + 1;
  Table<K, S> table;
  table.fill(lane, [&](int k, int l) { return d.weight(v.trans, k, l); });
  in_groups<4>(
      share.from, share.to, [&](int t) { return d.message_before(t, lane); },
      [&](int t, const Row<K, S>& row) {
        Row<K, S> before = make_row<K, S>([&](int) { return S(1); });
        if (t != d.edge) before = weigh(Letter<K, S>(mail.send(row)), table);
        put<K>(d.factor + (long long)t * K, before, lane);
      });
  table.fill(lane, [&](int k, int l) { return d.weight(v.trans, k, l) * v.d_pairs[k * d.own + l * d.other]; });
  in_groups<N == 1 ? 3 : 1>(
      share.from, share.to,
      [&](int t) {
        const long long at = (long long)t * K;
        const int next = t + 1 < T ? t + 1 : t;
        auto row = [&](const S* x) { return get<K>(x + at, lane); };
        return Driven<K, S>{d.message_before(t, lane),
                            row(d.factor),
                            row(d.sent),
                            row(v.d_states),
                            row(v.states),
                            t == steps.first ? S(1) : v.mask[t],
                            next == t ? S(1) : v.mask[next],
                            v.d_increments[t],
                            next == t ? S(0) : v.d_increments[next]};
      },
      [&](int t, const Driven<K, S>& m) {
        if (m.real == 0) return;
        const long long at = (long long)t * K;
        Row<K, S> H{}, times{};
        if (t != d.edge) H = weigh(Letter<K, S>(mail.send(m.earlier)), table);
        each_state<K>(lane, [&](int i, int) {
          H[i] /= m.before[i];
          times[i] = m.sent[i] / m.before[i];
        });
        const Row<K, S> g = cotangent(v, steps, t, m.g, m.after, lane);
        put<K>(d.factor + at, times, lane);
        put<K>(d.y + at, make_row<K, S>([&](int i) { return m.sent[i] * (H[i] + g[i]); }), lane);
        if (!on) return;
        const S shift = sum_of<K, S>([&](int i) { return m.state[i] * H[i]; }),
                c = m.after == 0 || t == steps.first ? cotangent_of_increment(v, steps, t) : m.c - m.c_after,
                part = c / sum_of<K, S>([&](int i) { return m.sent[i]; });
        put<K>(v.z + at, make_row<K, S>([&](int i) { return times[i] * part; }), lane);
        if (lane == 0) v.shifts[t] = shift;
      });
}

}  // namespace svae
