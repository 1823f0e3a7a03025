// A thread for each node of a stretch, and what all parts of gaussian_local.cuh have: the precision that is at hand,
// its gain, and rows on their way to memory.
#pragma once
#include "gaussian_join.cuh"
#include "gaussian_ways.cuh"

namespace svae {

// The memory of joining, and two columns of a matrix of each node.
template <int D, class S>
struct LocalDesk : JoinDesk<D, S> {
  using Base = JoinDesk<D, S>;
  static constexpr int size = Base::size + kWarp * 2 * D;
  double* columns;
  __device__ explicit LocalDesk(double* p) : Base(p), columns(p + Base::size) {}
};

template <int D, class S>
struct LocalNode {
  static constexpr int DD = D * D, DS = Team<D>::DS, triangle = kTriangle<D>, size = Message<D>::size,
                       apart = triangle | 1;  // of triangles in banks of their own
  const Args& a;
  const long long sequence;
  const LocalDesk<D, S>& s;
  const BothWays<D> given;
  const Ways<D> out;
  const VjpOperands<D, S> in;
  const Stretch nodes;
  Message<D> m;  // a precision and vector; then the root of its inverse, and the mean

  __device__ double* row() const { return s.rows + nodes.lane * size; }
  __device__ double* matrix() const { return s.rows + nodes.lane * apart; }  // in their place, a lower triangle
  __device__ bool has_next() const { return nodes.t + 1 < a.T; }
  __device__ double weight(int t) const { return t < a.T ? in.weight(t) : 0; }

  // visit(i, j, x_ij) of the lower triangle of the node's own.
  template <class Visit>
  __device__ void each(const S* matrices, Visit visit) const {
    read_row<DD>(matrices + (long long)nodes.t * DD, [&](int n, S x) {
      if (n / D >= n % D) visit(n / D, n % D, double(x));
    });
  }
  __device__ void add_messages(const double* from) {
    __syncwarp();
    bring<size>(s.rows, from + (long long)nodes.begin * size, nodes.count);
    arrived();
    m.add(s.rows + nodes.lane * size);
  }
  __device__ void add_potential() {
    each(in.J, [&](int i, int j, double x) { m.s[at(i, j)] += x; });
#pragma unroll
    for (int i = 0; i < D; i++) m.v[i] += double(in.h[(long long)nodes.t * D + i]);
  }

  // Entry (i, j) of sym(phi(B'x)), the lower triangle of B'x with its diagonal, halved.
  __device__ double phi_of(const S (&x)[triangle], int i, int j) const {
    double dot = 0;
#pragma unroll
    for (int k = i; k < D; k++) dot = fma(m.s[at(k, i)], double(x[at(k, j)]), dot);
    return dot / 2;
  }

  // A cotangent of the node's precision and vector, as a row.
  __device__ void write_cotangent(const double (&s_)[triangle], const double (&v)[D]) const {
    __syncwarp();
    write_row<size>(row(), [&](int n) { return entry_of<D>(n, s_, v); });
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
    auto write = [&](int j) { send<2 * D>(out.columns_of(back, j / 2, nodes.begin), s.columns, nodes.count); };
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
  // The sum of two columns over the nodes before `last`.
  __device__ void sum_columns(double* to, int last) const {
    __syncwarp();
    for (int n = nodes.lane; n < 2 * D; n += kWarp) {
      double all = 0;
#pragma unroll 8
      for (int k = 0; k < last; k++) all += s.columns[k * 2 * D + n];
      to[n] = all;
    }
    __syncwarp();
  }
};

}  // namespace svae
