// The cotangents of the messages that reach a node, as far as they come from its own results (gaussian_ways.cuh), and
// the gains by which cotangents leave it. Of a precision S with S^-1 = B B' and a cotangent of B it is
// S- = -B sym(phi(B'B-)) B', where phi takes the lower triangle and half the diagonal.
#pragma once
#include "gaussian_local_node.cuh"

namespace svae {

// Four precisions of a node, one after another by the same instructions: the smoothed one; that of the messages from
// behind, by which it sends to the node before; the filtered one with the transition out of the node; without it.
template <int D, class S>
struct Local : LocalNode<D, S> {
  using Node = LocalNode<D, S>;
  using Node::a, Node::s, Node::m, Node::in, Node::out, Node::given, Node::nodes, Node::DD, Node::size, Node::triangle,
      Node::row, Node::matrix, Node::has_next, Node::weight, Node::each, Node::add_messages, Node::add_potential,
      Node::phi_of, Node::write_cotangent, Node::gain, Node::write_columns, Node::write_gain, Node::sum_columns;
  enum Matrix { kSmoothed, kBehind, kLeft, kFiltered };

  // The node's results: mean, root, and E psi with weight d_kl.
  __device__ void pull_smoothed() {
    double *M = matrix(), push[D];
    const double d_kl = in.dk[nodes.t];
    __syncwarp();
    write_row<D>(s.rows + nodes.lane * D, [&](int i) { return m.v[i]; });
    send<D>(out.means + (long long)nodes.begin * D, s.rows, nodes.count);
#pragma unroll
    for (int i = 0; i < D; i++) push[i] = double(in.h[(long long)nodes.t * D + i]);
    each(in.J, [&](int i, int j, double x) {
      M[at(i, j)] = -d_kl / 2 * x;
      push[i] = fma(-x, m.v[j], push[i]);
      if (i > j) push[j] = fma(-x, m.v[i], push[j]);
    });
    __syncwarp();  // here and below: what is in memory need not stay in registers as well
    pull_through<D>(m.s, M);
    __syncwarp();
    S x[triangle];
    each(in.dL, [&](int i, int j, double y) { x[at(i, j)] = S(y); });
#pragma unroll
    for (int i = 0; i < D; i++)
#pragma unroll
      for (int j = 0; j <= i; j++) M[at(i, j)] += phi_of(x, i, j);
    __syncwarp();
    push_through<D>(m.s, M);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < D; i++) push[i] = fma(push[i], d_kl, double(in.dm[(long long)nodes.t * D + i]));
    apply<D>(m.s, push);
#pragma unroll
    for (int i = 0; i < D; i++)
#pragma unroll
      for (int j = 0; j <= i; j++) m.s[at(i, j)] = -M[at(i, j)] - (push[i] * m.v[j] + push[j] * m.v[i]) / 2;
    write_cotangent(m.s, push);
    send<size>(out.cotangent(true, nodes.begin), s.rows, nodes.count);
  }
  __device__ void pull_behind() {
    const bool alive = nodes.t > 0;
#pragma unroll 1
    for (int j = 0; j < D; j += 2) {
      double x[2][D];
      gain(x, true, j, alive);
      write_gain(x, true, j, alive);
    }
  }

  // Root and gain of the way back to the node, and the increment of log Z at the next with its weight.
  __device__ void pull_left() {
    const bool alive = nodes.ours && has_next();
    const double w = alive ? weight(nodes.t + 1) : 0;
    const long long t = has_next() ? nodes.t : 0;
    double* M = matrix();
    S x[triangle], next[2][D];
    auto fetch = [&](int j) {
#pragma unroll
      for (int i = 0; i < D; i++) two_of<D>(next[0][i], next[1][i], in.dG + t * DD + i * D, j);
    };
    read_row<DD>(in.dB + t * DD, [&](int n, S y) {
      if (n / D >= n % D) x[at(n / D, n % D)] = alive ? y : S(0);
    });
    __syncwarp();
#pragma unroll
    for (int i = 0; i < D; i++)
#pragma unroll
      for (int j = 0; j <= i; j++) M[at(i, j)] = phi_of(x, i, j) + (i == j ? w / 2 : 0);
    __syncwarp();
    fetch(0);
    push_through<D>(m.s, M);
    __syncwarp();
#pragma unroll 1
    for (int j = 0; j < D; j += 2) {
      double G[2][D], H[2][D];
#pragma unroll
      for (int i = 0; i < D; i++)
#pragma unroll
        for (int n = 0; n < 2; n++) H[n][i] = alive ? double(next[n][i]) : 0;
      if (j + 2 < D) fetch(j + 2);
      apply<D, 2>(m.s, H);
      gain(G, false, j, alive);
#pragma unroll
      for (int i = 0; i < D; i++)
#pragma unroll
        for (int k = 0; k <= i; k++) {
          const double first = fma(H[0][i], G[0][k], H[0][k] * G[0][i]);
          M[at(i, k)] = fma(0.5, fma(H[1][i], G[1][k], fma(H[1][k], G[1][i], first)), M[at(i, k)]);
        }
      write_gain(G, false, j, alive);
      write_columns(H[0], H[1]);
      sum_columns(out.pulled_C(nodes.number) + j * D, nodes.count);
    }
    double v[D];
#pragma unroll
    for (int i = 0; i < D; i++) {
      v[i] = w * m.v[i];
#pragma unroll
      for (int j = 0; j <= i; j++) m.s[at(i, j)] = -fma(v[i] / 2, m.v[j], M[at(i, j)]);
    }
    write_cotangent(m.s, v);
  }

  // The node's own log partition function with weight w, added to that.
  __device__ void pull_filtered(double w) {
    double f[triangle], v[D];
#pragma unroll
    for (int i = D - 1; i >= 0; i--) {  // rows of the root that follow are needed no more
      v[i] = w * m.v[i];
#pragma unroll
      for (int j = 0; j <= i; j++) {
        double dot = m.v[i] * m.v[j];
#pragma unroll
        for (int k = 0; k <= j; k++) dot = fma(m.s[at(i, k)], m.s[at(j, k)], dot);
        f[at(i, j)] = -w / 2 * dot;
      }
    }
    const int left = a.T - 1 - nodes.begin, last = left < nodes.count ? left : nodes.count;
#pragma unroll
    for (int begin = 0; begin < size; begin += 2 * D) {
      auto entry = [&](int n) { return begin + n < size ? entry_of<D>(begin + n, f, v) : 0; };
      write_row<2 * D>(s.columns + nodes.lane * 2 * D, entry);
      sum_columns(out.pulled_log_z(nodes.number) + begin, last);
    }
#pragma unroll
    for (int n = 0; n < size; n += 2) {
      double2 x = pair(row() + n);
      x.x += entry_of<D>(n, f, v), x.y += entry_of<D>(n + 1, f, v);
      *together<double2>(row() + n) = x;
    }
  }

  __device__ void run() {
#pragma unroll 1
    for (int matrix = kSmoothed; matrix <= kFiltered; matrix++) {
      const double w = matrix == kFiltered ? weight(nodes.t) - weight(nodes.t + 1) : 0;
      if (matrix == kFiltered && !__any_sync(0xffffffff, w != 0)) {
        for (int n = nodes.lane; n < Ways<D>::log_z; n += kWarp) out.pulled_log_z(nodes.number)[n] = 0;
        break;
      }
      s.begin(m, nodes.t > 0, matrix == kLeft || (matrix != kFiltered && has_next()));
      if (matrix < kLeft) add_messages(given.back);
      if (matrix == kBehind) add_potential();
      if (matrix == kSmoothed || matrix == kLeft) add_messages(given.there);
      if (matrix == kFiltered) m.add(given.there + (long long)nodes.t * size);  // memory has what is found so far
      root_of_inverse<D, S>(m.s);
      apply<D>(m.s, m.v);
      if (matrix == kSmoothed) pull_smoothed();
      if (matrix == kBehind) pull_behind();
      if (matrix == kLeft) pull_left();
      if (matrix == kFiltered) pull_filtered(w);
    }
    send_added<size>(out.cotangent(false, nodes.begin), s.rows, out.cotangent(true, nodes.begin), nodes.count);
  }
};

template <int D, class S>
__device__ inline void local_same(const Args& a, double* shared) {
  const long long sequence = blockIdx.x % batch_of(a);
  const LocalDesk<D, S> desk(shared);
  const BothWays<D> given = kept_ways<D, S>(a, sequence);
  desk.bring_transition(a, given, sequence, threadIdx.x);
  if (blockIdx.x < batch_of(a)) Ways<D>(a, sequence).begin_count();
  __syncwarp();
  const Stretch nodes(a.T, int(blockIdx.x / batch_of(a)));
  Local<D, S>{{a, sequence, desk, given, Ways<D>(a, sequence), VjpOperands<D, S>(a, sequence), nodes}}.run();
}

}  // namespace svae
