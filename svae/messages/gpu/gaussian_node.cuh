// What the forward sweep makes of a node: its filtered moments and its share of log Z.
#pragma once
#include "gaussian_forward.cuh"

namespace svae {

enum SmoothOutput { kOutMean, kOutSqrt, kOutGain, kOutBack, kOutLogZ, kOutKl, kOutKept };
enum FilterOutput { kFilterMean, kFilterSqrt, kFilterLogZ };

// The record of node t.
template <int D>
__device__ inline Kept<D> kept_of(const Args& a, long long sequence, int t) {
  return Kept<D>(static_cast<double*>(a.out[kOutKept]) + (sequence * a.T + t) * Kept<D>::size);
}

// Node n: whether it belongs to this chunk. The first node of a chunk is the last of the one before.
__device__ inline bool belongs(const Item& item, int n) {
  return item.first + n <= item.last && (n > 0 || item.n == 0);
}

// Of node n: its filtered mean and root; the pivots of its precision.
template <int D, class S, bool Filter, bool Same>
__device__ inline void solve_node(const Args& a, const Item& item, int n, const ForwardDesk<D, Same>& s, int j) {
  constexpr int M = Team<D>::M, DD = D * D;
  const long long t = item.node(n);
  double x[D], X[1][D];
  take<D>(x, s.Lambda(n), j);
  if (!Filter && a.out[kOutKept] && belongs(item, n)) give<D>(kept_of<D>(a, item.sequence, int(t)).Lambda, x, j);
  unit<D>(X[0], j);
  double r = s.Lambda(n)[M + j];
  eliminate<D, 1>(x, X, r, s.solver(), j);
  s.u[j] = r;
  s.solved(n)[j] = s.solver().pivot(j);
  if (Filter || item.first + n == item.last) put<D>(s.root, X[0], j);
  __syncwarp();
  s.mf(n)[j] = dot<D>(X[0], s.u);
  if (!Filter || !belongs(item, n)) return;
  row<D>(x, s.root, j);
  give<D>(output<S>(a, kFilterSqrt, item.sequence, (long long)a.T * DD) + t * DD, x, j);
}

// The predicted mean of a node and, with it, log_z; then the next one.
template <int D, class S, bool Filter, bool Same>
struct Predicted {
  static constexpr int DS = Team<D>::DS, M = Team<D>::M, DD = D * D;
  const Args& a;
  const Item& item;
  const ForwardDesk<D, Same>& s;
  const S *J, *h;
  int j;
  double A[D], before = 1, log_Q;  // the pivot of the node before; log |Q|, of the first node log |P-|
  __device__ Predicted(const Args& a, const Item& item, const ForwardDesk<D, Same>& s, int j)
      : a(a), item(item), s(s), J(input<S>(a, kJ, item.sequence)), h(input<S>(a, kH, item.sequence)), j(j),
        log_Q(s.first().logdet[0]) {
    s.m[j] = double(input<S>(a, kMean0, item.sequence)[j]);
    if (Same) row<D>(A, s.A(0), j);
    __syncwarp();
  }
  // log |Lambda_t| - log |P-^-1|, where log |P-^-1| = log |Lambda_t-1| - log |Q| - log |S_t-1|
  __device__ void node(int n) {
    const long long t = item.node(n);
    S J_here[D];
    get<D>(J_here, J + t * DD, j);
    double x[D], difference = log_Q, part = 0;
    const double h_here = h[t * D + j], mean = s.mf(n)[j], m = s.m[j], d = mean - m, solved = s.solved(n)[j];
#pragma unroll
    for (int i = 0; i < D; i++) x[i] = double(J_here[i]);
    const double g = h_here - dot<D>(x, s.m);
    s.parts[j] = logarithm<S>(Over(before)(n > 0 ? solved * s.pivot(n - 1)[j] : solved));
    s.parts[DS + j] = m * (h_here + g) + g * d;
    before = solved;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < D; i++) {
      difference += s.parts[i];
      part += s.parts[DS + i];
    }
    if (belongs(item, n)) write(int(t), mean, d, difference, part);
  }
  __device__ void write(int t, double mean, double d, double difference, double part) {
    S* log_z = output<S>(a, Filter ? int(kFilterLogZ) : int(kOutLogZ), item.sequence, a.T);
    if (j == 0) log_z[t] = S((part - difference) / 2);
    if (Filter) {
      output<S>(a, kFilterMean, item.sequence, (long long)a.T * D)[(long long)t * D + j] = S(mean);
      return;
    }
    double* node = Scratch<D>(a, item.sequence).node_at(t);
    node[j] = mean;
    node[D + j] = d;
    node[2 * D] = difference;
    if (a.out[kOutKept]) kept_of<D>(a, item.sequence, t).mf[j] = mean;
  }
  __device__ void predict(int n) {
    if (!Same) row<D>(A, s.A(n), j);
    s.m[j] = dot<D>(A, s.mf(n)) + s.A(n)[M + j];
    log_Q = s.pair(n).logdet[0];
    __syncwarp();
  }
};

}  // namespace svae
