// The derivative of smoothing. Marginals and pair counts are the gradient of log Z, so the derivative of their product
// with cotangents (g, G) is theirs along the direction node += g, log_trans += G. Logarithms of messages follow it by
//   a_t+1[j] = sum_i p(z_t = i | z_t+1 = j) (a_t[i] + g_t[i] + G[i, j]),   given the nodes to t,
// forward, and b alike back; then dstates = states (a + g + b - mean). With y = sent (a + g) a step is
//   y_t = sent_t (g_t + H_t) + (sent_t / before_t) (E' y_t-1),
// where H and before are sums over sent_t-1 that all warps make beforehand. The cotangents c of the increments go back
// through the filter by the same form of step: x_t = z_t before_t,
//   z_t = (sent_t / before_t) ((c_t - c_t+1) / sum sent_t + E z_t+1).
#pragma once
#include "hmm_tangents.cuh"

namespace svae {

// y forward and back and z back, by a warp each.
template <int K, class S>
__device__ inline void recur_all(const VjpOfSmooth<K, S>& v, const Tangent<K, S>& on, const Tangent<K, S>& off,
                                 const Desk<K, S>& desk, const Steps<S>& steps) {
  const int count = steps.last - steps.first + 1, lane = desk.lane;
  const long long begin = (long long)steps.first * K, end = (long long)steps.last * K;
  const S *first = v.mask + steps.first, *last = v.mask + steps.last;
  S* mail = desk.letter(0).place;
  if (desk.warp == 0)
    recur<K, S, 1>(v.trans, on.tops, on.own, on.other, false, v.y + begin, v.factor + begin, first, count,
                   v.forward + begin, mail, lane);
  else if (desk.warp == 1)
    recur<K, S, -1>(v.trans, off.tops, off.own, off.other, false, v.back_y + end, v.back_factor + end, last, count,
                    v.back + end, mail, lane);
  else if (desk.warp == 2)
    recur<K, S, -1>(v.trans, on.tops, on.own, on.other, true, v.z + end, v.factor + end, last, count, nullptr, mail,
                    lane);
}

// What is read of a step to join the tangents.
template <int K, class S>
struct Joined {
  Row<K, S> state, sent, y, factor, back, back_y, z, g, earlier_state, earlier_sent, earlier_y;
  S shift, real, after;
};

// y / sent: the tangent of a logarithm, of no account where nothing was sent.
template <class S>
__device__ inline S ratio(S y, S sent) {
  return sent > Range<S>::least ? y / sent : S(0);
}

// Cotangents of the nodes and of log_init; those of log_trans are left in `pairs`, which weighs by the forward table.
template <int K, class S>
__device__ inline void join(const VjpOfSmooth<K, S>& v, const Tangent<K, S>& on, const Desk<K, S>& desk,
                            const Steps<S>& steps, const Share& share, Pairs<K, S>& pairs) {
  constexpr int N = Row<K, S>::N;
  const int lane = desk.lane, first = steps.first, last = steps.last, T = steps.T;
  Mail<K, S> plain = desk.letter(0), moved = desk.letter(1);
  auto weight = [&](int k, int l) { return on.weight(v.trans, k, l); };
  in_groups<N == 1 ? 2 : 1>(
      share.from, share.to,
      [&](int step) {
        const int t = step < first ? first : step > last ? last : step, next = t + 1 < T ? t + 1 : t;
        const long long at = (long long)t * K, earlier = t > first ? at - K : at;
        auto row = [&](const S* x, long long where) { return get<K>(x + where, lane); };
        return Joined<K, S>{row(v.states, at),
                            row(v.forward, at),
                            row(v.y, at),
                            row(v.factor, at),
                            row(v.back, at),
                            row(v.back_y, at),
                            row(v.z, at),
                            row(v.d_states, at),
                            row(v.states, earlier),
                            row(v.forward, earlier),
                            row(v.y, earlier),
                            v.shifts[t],
                            v.mask[t],
                            next == t ? S(1) : v.mask[next]};
      },
      [&](int t, const Joined<K, S>& m) {
        S* d_here = v.d_node + (long long)t * K;
        if (t < first || t > last || (m.real == 0 && t != first)) return put<K>(d_here, Row<K, S>{}, lane);
        const Row<K, S> g = cotangent(v, steps, t, m.g, m.after, lane);
        const Row<K, S> ahead = make_row<K, S>([&](int i) { return ratio(m.y[i], m.sent[i]); }),
                        behind = make_row<K, S>([&](int i) { return ratio(m.back_y[i], m.back[i]); });
        const S level = sum_of<K, S>([&](int i) { return m.state[i] * behind[i]; }),
                mean = level + sum_of<K, S>([&](int i) { return m.state[i] * (ahead[i] - g[i]); }),
                before =
                    sum_of<K, S>([&](int i) { return m.earlier_state[i] * ratio(m.earlier_y[i], m.earlier_sent[i]); });
        const Row<K, S> d = make_row<K, S>([&](int i) {
          const S x = m.factor[i] > 0 ? m.z[i] / m.factor[i] * m.sent[i] : S(0);
          return m.state[i] * (ahead[i] + behind[i] - g[i] - mean) + x;
        });
        put<K>(d_here, m.real == 0 ? Row<K, S>{} : d, lane);
        if (t == first) return put<K>(v.d_init, d, lane);
        const S off = level + m.shift;
        const Row<K, S> part = make_row<K, S>([&](int i) { return ratio(m.state[i] * m.factor[i], m.sent[i]); }),
                        change = make_row<K, S>([&](int i) { return part[i] * (behind[i] - off) + m.z[i]; });
        const S* sent = plain.send(m.earlier_sent);
        const S* tangent =
            moved.send(make_row<K, S>([&](int i) { return m.earlier_y[i] - before * m.earlier_sent[i]; }));
        pairs.add(Letter<K, S>(sent), change);
        pairs.add(Letter<K, S>(tangent), part);
        pairs.flush(false, weight);
      });
  pairs.flush(true, weight);
}

template <int K, class S>
__device__ inline void hmm_smooth_vjp(const Args& a, double* shared) {
  const VjpOfSmooth<K, S> v(a, blockIdx.x);
  const Desk<K, S> desk(shared);
  const Steps<S> steps(v.mask, a.T, desk.numbers);
  if (!kept_plain<K>(v.forward, steps.first)) return;  // for the kernel in logarithms
  desk.find_tops(v.trans);
  const Share share(a.T, desk.warp);
  const Tangent<K, S> on{v.forward, v.y, v.factor, desk.columns, 1, K, -1, steps.first},
      off{v.back, v.back_y, v.back_factor, desk.rows, K, 1, 1, steps.last};
  Mail<K, S> mail = desk.letter(0);
  drive(v, on, steps, share, mail);
  drive(v, off, steps, share, mail);
  __syncthreads();
  recur_all(v, on, off, desk, steps);
  __syncthreads();
  Pairs<K, S> pairs(v.totals + desk.warp * Pairs<K, S>::size, desk.lane);
  join(v, on, desk, steps, share, pairs);
  __syncthreads();
  for (int i = threadIdx.x; i < K * K; i += blockDim.x)
    v.d_trans[i] = S(Pairs<K, S>::all(v.totals, i % K, i / K) + double(v.d_pairs[i]) * v.transitions[i]);
}

}  // namespace svae
