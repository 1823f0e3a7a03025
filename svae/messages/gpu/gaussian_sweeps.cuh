// The cotangents of messages on their way (gaussian_ways.cuh): one warp has those of several chains that go back in
// time, another those that go forward. Lanes on a circle, as for the messages, each with two rows of G: what it reads
// of Pi and of others' rows serves both. No lane has the vector alone, so that more chains share a warp.
#pragma once
#include "gaussian_ways.cuh"

namespace svae {

template <int D>
struct SweepDesk {
  using C = Circle<D>;
  __device__ static constexpr int twice_odd(int n) { return (n + 1) / 2 * 2 + (n % 4 == 1 || n % 4 == 2 ? 0 : 2); }
  static constexpr int G = 32 / C::L < 8 ? 32 / C::L : 8, row = twice_odd(C::pairs), places = 3;
  static constexpr int used = C::L * row + C::N + 2 + places * Ways<D>::step;
  static constexpr int size = used + ((2 * C::L - used) % 16 + 16) % 16, shared = G * size;
  double *node, *vector, *steps;  // Pi, a row of pairs for each lane; pi; what arrives
  __device__ explicit SweepDesk(double* p) : node(p), vector(node + C::L * row), steps(vector + C::N + 2) {}
};

template <int D>
struct Sweep {
  using C = Circle<D>;
  static constexpr int L = C::L, pairs = C::pairs, products = C::products, row = SweepDesk<D>::row;
  const SweepDesk<D> s;
  const double kept;  // whether the node's own cotangent is part of what is left
  const int l;
  double M[pairs], total[pairs], C_[2][D];  // the cotangent; sums over steps, -1 / 2 of those of C
  __device__ Sweep(const SweepDesk<D>& s, bool forward, int l) : s(s), kept(forward ? 0 : 1), l(l) {
#pragma unroll
    for (int n = 0; n < pairs; n++) M[n] = total[n] = 0;
#pragma unroll
    for (int i = 0; i < D; i++) C_[0][i] = C_[1][i] = 0;
  }
  __device__ void fetch(double* to, const double* gain, long long stride, const double* cotangent) const {
    constexpr int columns = Ways<D>::columns;
#pragma unroll
    for (int p = 0; p < Ways<D>::pairs; p++) bring_row<columns, L>(to + p * columns, gain + p * stride, l);
    bring_row<Message<D>::size, L>(to + Ways<D>::gain, cotangent, l);
    close_group();
  }
  // Rows l and l + L of another lane's gain and offset.
  __device__ void load_rows(double (&g)[2][D], double (&c)[2], const double* gain, int l) const {
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
      for (int j = 0; j <= D; j += 2) {
        const double2 x = pair(gain + j * D + 2 * (l + k * L));
        if (j < D) g[k][j] = x.x;
        if (j + 1 < D) g[k][j + 1] = x.y;
        if (j == D || j + 1 == D) c[k] = j == D ? x.x : x.y;
      }
  }
  // Pi g of both rows.
  __device__ void multiply(double (&z)[2][D], const double (&g)[2][D]) const {
#pragma unroll
    for (int l = 0; l < L; l++) {  // the diagonal
      const double2 x = pair(s.node + l * row);
#pragma unroll
      for (int k = 0; k < 2; k++) {
        z[k][l] = x.x * g[k][l];
        if (l + L < D) z[k][l + L] = x.y * g[k][l + L];
      }
    }
    auto use = [&](int n, int l, double x) {
      if (n >= products || !C::inside(n, l)) return;
      const int i = C::own(n, l), j = C::other(n, l);
#pragma unroll
      for (int k = 0; k < 2; k++) {
        z[k][i] = fma(x, g[k][j], z[k][i]);
        z[k][j] = fma(x, g[k][i], z[k][j]);
      }
    };
#pragma unroll
    for (int l = 0; l < L; l++)
#pragma unroll
      for (int n = 2; n < products; n += 2) {
        const double2 x = pair(s.node + l * row + n);
        use(n, l, x.x);
        use(n + 1, l, x.y);
      }
  }
  __device__ static double product(const double (&z)[D], const double (&g)[D]) {
    double sum = z[0] * g[0];
#pragma unroll
    for (int k = 1; k < D; k++) sum = fma(z[k], g[k], sum);
    return sum;
  }
  __device__ static double product(const double (&z)[D], const double (&g)[D], double u, double c) {
    return fma(u, c, product(z, g));
  }
  // What goes over to the next node: M <- G Pi G' - sym(G pi c'), G pi.
  __device__ void go(const double* gain) {
    double g[2][D], z[2][D], c[2], pi[D], u[2];
    load_rows(g, c, gain, l);
    load_vector<D>(pi, s.vector);
    multiply(z, g);
#pragma unroll
    for (int k = 0; k < 2; k++) {
      M[products + k] = product(pi, g[k]);
      u[k] = M[products + k] / -2;
#pragma unroll
      for (int i = 0; i < D; i++) {
        z[k][i] = fma(c[k] / -2, pi[i], z[k][i]);
        C_[k][i] += z[k][i];
      }
    }
    M[0] = product(z[0], g[0], u[0], c[0]);
    M[1] = product(z[1], g[1], u[1], c[1]);
    M[2] = product(z[0], g[1], u[0], c[1]);
#pragma unroll
    for (int ahead = 1; ahead <= L / 2; ahead++) {
      load_rows(g, c, gain, l + ahead < L ? l + ahead : l + ahead - L);
      M[4 * ahead - 1] = product(z[1], g[0], u[1], c[0]);
      M[4 * ahead] = product(z[0], g[0], u[0], c[0]);
      M[4 * ahead + 1] = product(z[1], g[1], u[1], c[1]);
      M[4 * ahead + 2] = product(z[0], g[1], u[0], c[1]);
    }
    __syncwarp();
  }
  // The node's own cotangent is added, of which a lane has every L-th number. In its place is left what came from other
  // nodes, on the way back with its own.
  __device__ void arrive(const double* own, double* out, double inner) {
#pragma unroll
    for (int n = 0; n < pairs; n++) {
      const double x = own[n * L], left = fma(x, kept, M[n]);
      M[n] += x;
      total[n] = fma(inner, left, total[n]);
      out[n * L] = left;
    }
    static_assert(products % 2 == 1);
#pragma unroll
    for (int n = 0; n < products; n += 2) *together<double2>(s.node + l * row + n) = double2{M[n], M[n + 1]};
    s.vector[l] = M[products];
    s.vector[l + L] = M[products + 1];
    __syncwarp();
  }
  __device__ void give_totals(double* to_C, double* to_nodes) const {
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
      for (int i = 0; i < D; i++) to_C[(l + k * L) * D + i] = -2 * C_[k][i];
#pragma unroll
    for (int n = 0; n < pairs; n++) to_nodes[n * L + l] = total[n];
  }
};

template <int D, class S>
__device__ inline void sweeps_same(const Args& a, double* shared) {
  let_next_begin();
  constexpr int G = SweepDesk<D>::G, L = Circle<D>::L;
  const int lane = threadIdx.x % kWarp, group = lane / L < G ? lane / L : G - 1,
            l = lane - group * L < L ? lane - group * L : L - 1;  // lanes to spare do what the last does
  const bool forward = blockIdx.x % 2 == 1;
  const long long batch = batch_of(a), own = (long long)(blockIdx.x / 2) * G + group,
                  sequence = own < batch ? own : batch - 1;  // likewise groups
  const Ways<D> ways(a, sequence);
  Sweep<D> sweep(SweepDesk<D>(shared + group * SweepDesk<D>::size), forward, l);
  const int begin = forward ? 0 : a.T - 1, way = forward ? 1 : -1,
            due = forward ? 0 : a.T % kWarp;  // when all nodes of a stretch are done
  constexpr int places = SweepDesk<D>::places;
  const double* gain = ways.columns_of(forward, 0, begin);
  double *here = ways.cotangent(forward, begin), *now = sweep.s.steps, *end = now + places * Ways<D>::step,
         *free = end - Ways<D>::step;
  auto fetch = [&](double* to, int n) {  // of the node n steps on
    sweep.fetch(to, gain + n * way * Ways<D>::columns, (long long)a.T * Ways<D>::columns,
                here + n * way * Message<D>::size);
  };
  for (int n = 0; n + 1 < places; n++) fetch(now + n * Ways<D>::step, n < a.T ? n : 0);
  for (int n = 0; n < a.T; n++) {
    groups_arrived<places - 2>();
    fetch(free, n + places - 1 < a.T ? places - 1 : 0);
    if (n > 0) sweep.go(now);
    sweep.arrive(now + Ways<D>::gain + l, here + l, n > 0 && n + 1 < a.T ? 1 : 0);
    if ((n + 1) % kWarp == due) tell(ways.done + (forward ? 1 : 0), n + 1, l == 0);
    free = now;
    now = now + Ways<D>::step < end ? now + Ways<D>::step : sweep.s.steps;
    gain += way * Ways<D>::columns;
    here += way * Message<D>::size;
  }
  tell(ways.done + (forward ? 1 : 0), a.T, l == 0);
  sweep.give_totals(ways.total_C(forward), ways.total_nodes(forward));
  groups_arrived<0>();
}

}  // namespace svae
