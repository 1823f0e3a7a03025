// The cotangents of the messages that reach a node, as far as they come from the node's own results (gaussian_ways.cuh),
// and the gains by which cotangents leave it: a thread for each node. Of a precision S with S^-1 = B B' and a
// cotangent of B it is S- = -B sym(phi(B'B-)) B', where phi takes the lower triangle and half the diagonal.
#pragma once
#include "gaussian_join.cuh"
#include "gaussian_ways.cuh"

namespace svae {

// The memory of joining; cotangents of the nodes; two columns of a matrix of each node.
template <int D, class S>
struct LocalDesk : JoinDesk<D, S> {
  using Base = JoinDesk<D, S>;
  static constexpr int size = Base::size + kWarp * (Message<D>::size + 2 * D);
  double *sums, *columns;
  __device__ explicit LocalDesk(double* p)
      : Base(p), sums(p + Base::size), columns(sums + kWarp * Message<D>::size) {}
};

template <int D, class S>
struct Local {
  static constexpr int DD = D * D, DS = Team<D>::DS, triangle = kTriangle<D>, size = Message<D>::size,
                       apart = triangle | 1;  // of triangles in banks of their own
  enum Matrix { kSmoothed, kBehind, kFiltered, kLeft };
  const Args& a;
  const long long sequence;
  const LocalDesk<D, S>& s;
  const BothWays<D> given;
  const Ways<D> out;
  const VjpOperands<D, S> in;
  const Stretch nodes;
  Message<D> m;  // a precision and vector; then the root of its inverse, and the mean

  __device__ double* sum() const { return s.sums + nodes.lane * size; }
  __device__ const S* number_row() const { return s.numbers() + nodes.lane * DD; }
  __device__ bool has_next() const { return nodes.t + 1 < a.T; }
  __device__ double weight(int t) const { return t < a.T ? in.weight(t) : 0; }

  // Matrices of the stretch's nodes, of which a sequence has `steps`.
  __device__ void bring_matrices(const S* from, int steps) {
    const int left = steps - nodes.begin, rows = left < nodes.count ? left : nodes.count;
    __syncwarp();
    bring<DD>(s.numbers(), from + (long long)nodes.begin * DD, rows);
    arrived();
  }
  __device__ void add_messages(const double* from) {
    __syncwarp();
    bring<size>(s.rows, from + (long long)nodes.begin * size, nodes.count);
    arrived();
    m.add(s.rows + nodes.lane * size);
  }
  __device__ void add_potential() {
    bring_matrices(in.J, a.T);
    read_row<DD>(number_row(), [&](int n, S x) {
      if (n / D >= n % D) m.s[at(n / D, n % D)] += double(x);
    });
#pragma unroll
    for (int i = 0; i < D; i++) m.v[i] += double(in.h[(long long)nodes.t * D + i]);
  }

  // M += tril(B'x) / 2 + w I / 2 = sym(phi(B'B-)), the cotangents x in shared memory and M anywhere but there. In their
  // place, M begins as 0.
  template <bool InPlace>
  __device__ void add_root(double* M, double w, bool alive) {
    float_row x;
    read_row<DD>(number_row(), [&](int n, S y) {
      if (n / D >= n % D) x[at(n / D, n % D)] = alive ? y : S(0);
    });
    if (InPlace) __syncwarp();
#pragma unroll
    for (int i = 0; i < D; i++)
#pragma unroll
      for (int j = 0; j <= i; j++) {
        double dot = i == j ? w : 0;
#pragma unroll
        for (int k = i; k < D; k++) dot = fma(m.s[at(k, i)], double(x[at(k, j)]), dot);
        M[at(i, j)] = InPlace ? dot / 2 : fma(dot, 0.5, M[at(i, j)]);
      }
  }
  using float_row = S[triangle];

  // The node's results: mean, root, and E psi with weight d_kl.
  __device__ void pull_smoothed() {
    double *M = s.sums + nodes.lane * apart, push[D];
    const double d_kl = in.dk[nodes.t];
    __syncwarp();
    write_row<D>(s.rows + nodes.lane * D, [&](int i) { return m.v[i]; });
    send<D>(out.means + (long long)nodes.begin * D, s.rows, nodes.count);
#pragma unroll
    for (int i = 0; i < D; i++) push[i] = double(in.h[(long long)nodes.t * D + i]);
    bring_matrices(in.J, a.T);
    read_row<DD>(number_row(), [&](int n, S x) {
      const int i = n / D, j = n % D;
      if (i < j) return;
      M[at(i, j)] = -d_kl / 2 * double(x);
      push[i] = fma(-double(x), m.v[j], push[i]);
      if (i > j) push[j] = fma(-double(x), m.v[i], push[j]);
    });
    pull_through<D>(m.s, M);
    bring_matrices(in.dL, a.T);
    add_root<false>(M, 0, true);
    push_through<D>(m.s, M);
#pragma unroll
    for (int i = 0; i < D; i++) push[i] = fma(push[i], d_kl, double(in.dm[(long long)nodes.t * D + i]));
    apply<D>(m.s, push);
#pragma unroll
    for (int i = 0; i < D; i++)
#pragma unroll
      for (int j = 0; j <= i; j++) m.s[at(i, j)] = -M[at(i, j)] - (push[i] * m.v[j] + push[j] * m.v[i]) / 2;
    __syncwarp();  // the triangles were otherwise placed
    write_row<size>(sum(), [&](int n) { return entry_of<D>(n, m.s, push); });
    send_apart<size>(out.cotangent(true, nodes.begin), Ways<D>::step, s.sums, nodes.count);
  }

  // Two columns of the gain S^-1 C, or of S^-1 C', from the root of S^-1.
  __device__ void gain(double (&x)[2][D], bool back, int j, bool alive) const {
#pragma unroll
    for (int i = 0; i < D; i++) {
      const double* p = back ? s.VW + j * DS + i : s.VW + i * DS + j;
      x[0][i] = p[0];
      x[1][i] = j + 1 < D ? p[back ? DS : 1] : 0;
    }
    apply<D, 2>(m.s, x);
#pragma unroll
    for (int i = 0; i < D; i++)
#pragma unroll
      for (int n = 0; n < 2; n++) x[n][i] = alive ? x[n][i] : 0;
  }
  __device__ void write_columns(const double (&x)[D], const double (&y)[D]) const {
    write_row<2 * D>(s.columns + nodes.lane * 2 * D, [&](int n) { return n % 2 ? y[n / 2] : x[n / 2]; });
  }
  // Columns j and j + 1 of a gain, and the offset as column D.
  __device__ void write_gain(const double (&x)[2][D], bool back, int j, bool alive) const {
    auto write = [&](int j) { send_apart<2 * D>(out.gain(back, nodes.begin) + j * D, Ways<D>::step, s.columns, nodes.count); };
    double c[D], none[D], second[D];
#pragma unroll
    for (int i = 0; i < D; i++) {
      none[i] = 0;
      c[i] = alive ? m.v[i] : 0;
      second[i] = j + 1 < D ? x[1][i] : c[i];
    }
    write_columns(x[0], second);
    write(j);
    if (D % 2 || j + 2 < D) return;
    write_columns(c, none);
    write(D);
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

  // Column n of the rows of W numbers in shared memory, summed over nodes before `last`.
  template <int W>
  __device__ void sum_up(double* to, const double* rows, int last) const {
    __syncwarp();
    for (int n = nodes.lane; n < W; n += kWarp) {
      double all = 0;
      for (int k = 0; k < last; k++) all += rows[k * W + n];
      to[n] = all;
    }
    __syncwarp();
  }

  // The node's own log partition function with weight w.
  __device__ void pull_filtered(double w) {
    double* row = s.rows + nodes.lane * size;
    __syncwarp();
    double f[triangle], v[D];
#pragma unroll
    for (int i = 0; i < D; i++) {
      v[i] = w * m.v[i];
#pragma unroll
      for (int j = 0; j <= i; j++) {
        double dot = m.v[i] * m.v[j];
#pragma unroll
        for (int k = 0; k <= j; k++) dot = fma(m.s[at(i, k)], m.s[at(j, k)], dot);
        f[at(i, j)] = -w / 2 * dot;
      }
    }
    write_row<size>(row, [&](int n) { return entry_of<D>(n, f, v); });
#pragma unroll
    for (int n = 0; n < size; n++) sum()[n] += row[n];
    const int last = a.T - 1 - nodes.begin;
    sum_up<size>(out.pulled_log_z(nodes.number), s.rows, last < nodes.count ? last : nodes.count);
  }

  // Adds -x_ij to the cotangent of the precision, v_i to that of the vector.
  template <class Entry>
  __device__ void add(Entry entry, const double (&v)[D], double w) {
    using C = Circle<D>;
#pragma unroll
    for (int m = 0; m < size; m += 2) {
      double x[2] = {0, 0};
#pragma unroll
      for (int k = 0; k < 2; k++) {
        const int n = (m + k) / C::L, l = (m + k) % C::L;
        if (!C::inside(n, l)) continue;
        x[k] = n < C::products ? -entry(C::own(n, l), C::other(n, l)) : w * v[C::own(n, l)];
      }
      double2 y = pair(sum() + m);
      y.x += x[0], y.y += x[1];
      *together<double2>(sum() + m) = y;
    }
  }

  // Root and gain of the way back to the node, and the increment of log Z at the next with its weight.
  __device__ void pull_left() {
    const bool alive = has_next();
    const double w = alive ? weight(nodes.t + 1) : 0;
    double* M = s.rows + nodes.lane * apart;
    bring_matrices(in.dB, a.T - 1);
    add_root<true>(M, w, alive);
    push_through<D>(m.s, M);
    add([&](int i, int j) { return fma(w / 2 * m.v[i], m.v[j], M[at(i, j)]); }, m.v, w);
    bring_matrices(in.dG, a.T - 1);
#pragma unroll 1
    for (int j = 0; j < D; j += 2) {
      double G[2][D], H[2][D];
#pragma unroll
      for (int i = 0; i < D; i++) {
        H[0][i] = alive ? double(number_row()[i * D + j]) : 0;
        H[1][i] = alive && j + 1 < D ? double(number_row()[i * D + j + 1]) : 0;
      }
      apply<D, 2>(m.s, H);
      gain(G, false, j, alive);
      add([&](int i, int k) {
            return (fma(H[0][i], G[0][k], H[0][k] * G[0][i]) + fma(H[1][i], G[1][k], H[1][k] * G[1][i])) / 2;
          }, m.v, 0);
      write_gain(G, false, j, alive);
      write_columns(H[0], H[1]);
      sum_up<2 * D>(out.pulled_C(nodes.number) + j * D, s.columns, nodes.count);
    }
    send_apart<size>(out.cotangent(false, nodes.begin), Ways<D>::step, s.sums, nodes.count);
  }

  __device__ void run() {
#pragma unroll 1
    for (int matrix = kSmoothed; matrix <= kLeft; matrix++) {
      const double w = weight(nodes.t) - weight(nodes.t + 1);
      if (matrix == kFiltered && !__any_sync(0xffffffff, w != 0)) {
        for (int n = nodes.lane; n < size; n += kWarp) out.pulled_log_z(nodes.number)[n] = 0;
        continue;
      }
      s.begin(m, nodes.t > 0, matrix == kLeft || (matrix != kFiltered && has_next()));
      if (matrix != kBehind) add_messages(given.there);
      if (matrix < kFiltered) add_messages(given.back);
      if (matrix == kBehind) add_potential();
      root_of_inverse<D, S>(m.s);
      apply<D>(m.s, m.v);
      if (matrix == kSmoothed) pull_smoothed();
      if (matrix == kBehind) pull_behind();
      if (matrix == kFiltered) pull_filtered(w);
      if (matrix == kLeft) pull_left();
    }
  }
};

template <int D, class S>
__device__ inline void local_same(const Args& a, double* shared) {
  const long long sequence = blockIdx.x % batch_of(a);
  const LocalDesk<D, S> desk(shared);
  const BothWays<D> given = kept_ways<D, S>(a, sequence);
  desk.bring_transition(a, given, sequence, threadIdx.x);
  __syncwarp();
  const Stretch nodes(a.T, int(blockIdx.x / batch_of(a)));
  Local<D, S>{a, sequence, desk, given, Ways<D>(a, sequence), VjpOperands<D, S>(a, sequence), nodes}.run();
}

}  // namespace svae
