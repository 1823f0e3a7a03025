// The cotangents of messages from both sides (gaussian_ways.cuh) put together: of each node those of its potential, and
// of their sums those of the transition and the first state.
#pragma once
#include "gaussian_vjp_back.cuh"
#include "gaussian_ways.cuh"

namespace svae {

template <int D, class S>
struct MeetDesk {
  static constexpr int matrix = (D * D * int(sizeof(S)) + 7) / 8, message = Message<D>::size,
                       size = kWarp * (message > matrix ? message : matrix);
};

// A thread for each node.
template <int D, class S>
__device__ inline void meet(const Args& a, long long sequence, const Ways<D>& ways, const Stretch& nodes,
                            double* shared) {
  constexpr int DD = D * D, size = Message<D>::size;
  const VjpOperands<D, S> in(a, sequence);
  S *numbers = reinterpret_cast<S*>(shared), *row = numbers + nodes.lane * DD, root[kTriangle<D>];
  bring<DD>(numbers, in.L + (long long)nodes.begin * DD, nodes.count);
  arrived();
  read_row<DD>(row, [&](int n, S x) {
    if (n / D >= n % D) root[at(n / D, n % D)] = x;
  });
  Message<D> m;  // what comes with E psi; then with messages
  const double d_kl = in.dk[nodes.t];
#pragma unroll
  for (int i = 0; i < D; i++) m.v[i] = ways.means[(long long)nodes.t * D + i];
#pragma unroll
  for (int i = 0; i < D; i++)
#pragma unroll
    for (int j = 0; j <= i; j++) {
      double second = m.v[i] * m.v[j];
#pragma unroll
      for (int k = 0; k <= j; k++) second = fma(double(root[at(i, k)]), double(root[at(j, k)]), second);
      m.s[at(i, j)] = -d_kl / 2 * second;
    }
#pragma unroll
  for (int i = 0; i < D; i++) m.v[i] *= d_kl;
#pragma unroll 1
  for (int way = 0; way < 2; way++) {
    wait_until(ways.done + way, way ? nodes.begin + nodes.count : a.T - nodes.begin);
    bring<size>(shared, ways.cotangent(way, nodes.begin), nodes.count);
    arrived();
    m.add(shared + nodes.lane * size);
  }
  __syncwarp();
  write_row<DD>(row, [&](int n) { return m.s[at(n / D, n % D)]; });
  send<DD>(output<S>(a, kJ, sequence, (long long)a.T * DD) + (long long)nodes.begin * DD, numbers, nodes.count);
  write_row<D>(numbers + nodes.lane * D, [&](int n) { return m.v[n]; });
  send<D>(output<S>(a, kH, sequence, (long long)a.T * D) + (long long)nodes.begin * D, numbers, nodes.count);
}

// Two stretches of a sequence, as far from the middle, as in joining.
template <int D, class S>
__device__ inline void meet_same(const Args& a, double* shared) {
  const int stretches = Stretch::all(a.T), rank = int(blockIdx.x / batch_of(a));
  const long long sequence = blockIdx.x % batch_of(a);
  const Ways<D> ways(a, sequence);
#pragma unroll 1
  for (int side = 0; side < 2; side++) {
    const int stretch = side ? stretches / 2 + rank : stretches / 2 - 1 - rank;
    if (stretch >= 0 && stretch < stretches) meet<D, S>(a, sequence, ways, Stretch(a.T, stretch), shared);
  }
  if (stretches / 2 + rank + 1 >= stretches) wait_for_previous();  // this kernel ends last
}

// Of one sequence: the sums over its nodes that the transition takes part in.
template <int D>
struct Sums {
  using C = Circle<D>;
  static constexpr int DS = Team<D>::DS;
  const Ways<D> ways;
  // Of each node with a transition out of it (less its own log Z), or into it: entry m of the message.
  __device__ double entry(int m, bool into) const {
    double sum = ways.total_nodes(false)[m] + ways.total_nodes(true)[m];
    if (into) return sum + ways.cotangent(false, ways.T - 1)[m] + ways.cotangent(true, ways.T - 1)[m];
    for (int n = 0; n < Stretch::all(ways.T); n++) sum -= ways.pulled_log_z(n)[m];
    return sum + ways.cotangent(false, 0)[m];
  }
  // Column j of the matrix and entry j of the vector of a message, given by its entries.
  template <class Entry>
  __device__ static double column(double (&x)[D], double* memory, int j, Entry entry) {
    __syncwarp();
    for (int m = j; m < C::products * C::L; m += D) {
      const int n = m / C::L, l = m % C::L;
      if (!C::inside(n, l)) continue;
      const int i = C::own(n, l), k = C::other(n, l);
      memory[i * DS + k] = memory[k * DS + i] = entry(m);
    }
    __syncwarp();
    take<D>(x, memory, j);
    return entry(C::products * C::L + j);  // l, then l + L
  }
  // Row j of what is pulled from C.
  __device__ void row(double (&x)[D], int j) const {
#pragma unroll
    for (int i = 0; i < D; i++) x[i] = ways.total_C(false)[j * D + i] + ways.total_C(true)[i * D + j];
    for (int n = 0; n < Stretch::all(ways.T); n++)
#pragma unroll
      for (int i = 0; i < D; i++) x[i] += ways.pulled_C(n)[i / 2 * 2 * D + 2 * j + i % 2];
  }
};

template <int D, class S>
__device__ inline void total_same(const Args& a, double* shared) {
  const Team<D> team;
  const int j = team.j;
  const Item item(a, team.group, Team<D>::G);
  const BackMemory<D> s(shared, team.group);
  const VjpOperands<D, S> in(a, item.sequence);
  const Sums<D> sums{Ways<D>(a, item.sequence)};
  double left[D], C[D], Pi[D], w = 0;
  for (int t = 1 + j; t < a.T; t += D) w += in.weight(t);
  s.spare[j] = w;
  __syncwarp();
  w = 0;
#pragma unroll
  for (int i = 0; i < D; i++) w += s.spare[i];
  double pi = sums.column(Pi, s.a, j, [&](int m) { return sums.ways.cotangent(false, 0)[m]; });
  pull_first<D, S>(a, item, Pi, pi, in.weight(0), s, j);
  const double r = sums.column(left, s.a, j, [&](int m) { return sums.entry(m, false); });
  pi = sums.column(Pi, s.a, j, [&](int m) { return sums.entry(m, true); });
  sums.row(C, j);
  pull_transition<D, S>({a, item.sequence, 0, 1}, left, C, r, Pi, pi, w, s, j, true);
}

}  // namespace svae
