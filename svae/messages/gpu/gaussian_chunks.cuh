// Chunks of time, so that few long sequences fill the chip: each becomes one potential on the nodes at its two ends,
// and a short sweep over those nodes gives every chunk its filtered start and its smoothed end.
#pragma once
#include "gaussian_smooth.cuh"

namespace svae {

// exp(-x'first x / 2 + x'E y - y'last y / 2 + eta_first'x + eta_last'y), E by rows.
template <int D>
struct Element {
  using Z = Size<D>;
  double *first, *eta_first, *E, *last, *eta_last;
  __device__ explicit Element(double* p)
      : first(p), eta_first(p + Z::M), E(eta_first + Z::DS), last(E + Z::M), eta_last(last + Z::M) {}
};

template <int D>
struct Elements {
  using Z = Size<D>;
  static constexpr int node = Z::M + Z::DS, removed = 2 * (Z::M + Z::DS);
  static constexpr int size =
      2 * Pair<D>::size + Transition<D, float>::scratch + 2 * removed + 3 * node + Work<D>::size + Scratch<D>::element;
  static constexpr int shared = Z::M + Z::DS + size + Z::beyond;
  double *pairs, *make, *YX, *nodes, *work;
  Element<D> element;  // of the chunk so far; `last` is the precision of the node to be removed next
  __device__ explicit Elements(double* p)
      : pairs(p), make(p + 2 * Pair<D>::size), YX(make + Transition<D, float>::scratch), nodes(YX + 2 * removed),
        work(nodes + 3 * node), element(work + Work<D>::size) {}
  __device__ Pair<D> pair(int t) const { return Pair<D>(pairs + (t & 1) * Pair<D>::size); }
  __device__ double* Y(int t) const { return YX + (t & 1) * removed; }
  __device__ double* X(int t) const { return Y(t) + Z::M + Z::DS; }  // u behind both
  __device__ double* J(int t) const { return nodes + t % 3 * node; }
};

// The potential of chunk n on its ends: the nodes between are removed one after another. One block of three warps.
template <int D, class S>
__device__ inline void element(const Args& a, double* shared) {
  using Z = Size<D>;
  constexpr int DS = Z::DS, DD = D * D;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, n = blockIdx.x % a.chunks;
  const long long sequence = blockIdx.x / a.chunks;
  const Chunk chunk(a, n);
  const double* identity = shared;
  const Elements<D> s(begin_shared<D>(shared, Elements<D>::shared));
  const Element<D>& e = s.element;

  if (warp == 2) {
    const S *A = input<S>(a, kA, sequence), *b = input<S>(a, kB, sequence), *Q = input<S>(a, kQ, sequence),
            *J = input<S>(a, kJ, sequence), *h = input<S>(a, kH, sequence);
    Transition<D, S> coming;
    FetchNode<D, S> node;
    auto fetch = [&](int t) {
      if (t < chunk.last) coming.get(A + (long long)t * DD, b + (long long)t * D, Q + (long long)t * DD, lane);
    };
    auto fetch_node = [&](int t) {  // the last node's own potential is not part of the chunk
      node.zero();
      if (t < chunk.last) node.get(J, h, t, lane);
    };
    const Pair<D> pair = s.pair(chunk.first);
    fetch(chunk.first);
    coming.make(pair, s.make, identity, lane);
    for (int t = chunk.first + 1; t <= chunk.first + 2; t++) {
      fetch_node(t);
      node.put(s.J(t), lane);
    }
    __syncwarp();
    const double* J1 = s.J(chunk.first + 1);
    for (int i = lane; i < Elements<D>::node; i += kWarp) {
      e.first[i] = i < Z::M ? pair.VV[i] : pair.minus_Vw[i - Z::M];
      e.last[i] = pair.WW[i] + J1[i];
    }
    for (int i = lane; i < DD; i += kWarp) e.E[i / D * DS + i % D] = pair.VW[i % D * DS + i / D];
    fetch(chunk.first + 1);
    if (chunk.first + 1 < chunk.last) coming.make(s.pair(chunk.first + 1), s.make, identity, lane);
    fetch(chunk.first + 2);
    fetch_node(chunk.first + 3);
    __syncthreads();
    for (int t = chunk.first + 1; t < chunk.last; t++) {
      node.put(s.J(t + 2), lane);
      fetch_node(t + 3);
      if (t + 1 < chunk.last) coming.make(s.pair(t + 1), s.make, identity, lane);
      fetch(t + 2);
      __syncthreads();
    }
  }
  if (warp == 0) {
    __syncthreads();
    for (int t = chunk.first + 1; t < chunk.last; t++) {
      const Pair<D> next = s.pair(t);
      const double *main[Z::NC], *more[Z::NC];
#pragma unroll
      for (int q = 0; q < Z::NC; q++) {
        const int c = lane + q * kWarp;
        main[q] = c > 2 * D && c <= 3 * D ? e.E + (c - 2 * D - 1) * DS : column<D>(next.VV, identity, c);
        more[q] = c < D ? e.last + c * DS : c == 2 * D ? e.eta_last : identity + Z::M;
      }
      remove<D>(s.Y(t), s.X(t), Work<D>(s.work), lane, main, more);
      if (lane < D) s.X(t)[Z::M + lane] = s.Y(t)[Z::M + lane];
      advance<D>(e.last, s.Y(t), next, s.J(t + 1), lane);
      Fragments<D> x, y;
      x.load(s.X(t), lane);
      y.load(s.Y(t), lane);
      product<D>(x, y, lane, [&](int i, int j, double v, double w) { put_pair<D>(e.E + i * DS, j, v, w); });
      __syncthreads();
    }
  }
  if (warp == 1) {
    __syncthreads();
    for (int t = chunk.first + 1; t <= chunk.last; t++) {
      if (t > chunk.first + 1) {  // one step behind
        Fragments<D> x;
        x.load(s.X(t - 1), lane);
        product<D, kUpper>(
            x, x, lane,
            [&](int i, int j, double v, double w) {
              double* to = e.first + i * DS;
              const double2 old = pair(to + j);
              put_pair<D>(to, j, old.x - v, old.y - w);
            },
            [&](int i, double v) { e.eta_first[i] += v; });
      }
      if (t < chunk.last) __syncthreads();
    }
  }
  __syncthreads();
  double* to = Scratch<D>(a, sequence).elements + (long long)n * Scratch<D>::element;
  for (int i = threadIdx.x; i < Scratch<D>::element; i += blockDim.x) to[i] = e.first[i];
}

template <int D>
constexpr int kLinkShared = Size<D>::M + Size<D>::DS + Scratch<D>::element + 7 * Size<D>::M + 6 * Size<D>::DS +
                            Work<D>::size + Transition<D, float>::scratch + Pair<D>::size + Size<D>::beyond;

// The nodes between chunks: filtered forward, smoothed back. One warp per sequence.
template <int D, class S>
__device__ inline void link(const Args& a, double* shared) {
  using Z = Size<D>;
  constexpr int DS = Z::DS, node = Z::M + Z::DS;
  const int lane = threadIdx.x;
  const long long sequence = blockIdx.x;
  const S *J = input<S>(a, kJ, sequence), *h = input<S>(a, kH, sequence);
  const Scratch<D> scratch(a, sequence);
  const double* identity = shared;
  double* free = begin_shared<D>(shared, kLinkShared<D>);
  const Element<D> e(free);
  double *Y = free + Scratch<D>::element, *X = Y + node, *Lambda = X + Z::M, *P = Lambda + node, *GP = P + Z::M,
         *G = GP + Z::M, *own = G + node, *m = own + node, *make = m + Z::DS;
  const Work<D> work(make + Transition<D, float>::scratch);
  const Pair<D> initial(work.p + Work<D>::size);
  Transition<D, S> first;
  FetchNode<D, S> potential;
  first.first(input<S>(a, kMean0, sequence), input<S>(a, kSqrt0, sequence), lane);
  first.make(initial, make, identity, lane);
  __syncwarp();
  auto add_node = [&](const double* precision, int t) {
    potential.get(J, h, t, lane);
    potential.put(own, lane);
    __syncwarp();
    for (int i = lane; i < node; i += kWarp) Lambda[i] = precision[i] + own[i];
    __syncwarp();
  };
  add_node(initial.WW, 0);
  for (int n = 0; n < a.chunks; n++) {
    double *start = scratch.starts + (long long)n * Scratch<D>::moment, *to = scratch.links + (long long)n * Scratch<D>::link;
    const double* from = scratch.elements + (long long)n * Scratch<D>::element;
    for (int i = lane; i < Scratch<D>::element; i += kWarp) e.first[i] = from[i];
    for (int i = lane; i < node; i += kWarp) start[i] = Lambda[i];
    __syncwarp();
    for (int i = lane; i < D * D; i += kWarp) G[i % D * DS + i / D] = e.E[i / D * DS + i % D];
    __syncwarp();
    const double *main[Z::NC], *more[Z::NC];
#pragma unroll
    for (int q = 0; q < Z::NC; q++) {
      const int c = lane + q * kWarp;
      main[q] = c < D ? e.first + c * DS : c < 2 * D ? G + (c - D) * DS : c == 2 * D ? e.eta_first : column<D>(e.first, identity, c);
      more[q] = c < D ? Lambda + c * DS : c == 2 * D ? Lambda + Z::M : identity + Z::M;
    }
    remove<D>(Y, X, work, lane, main, more);
    Fragments<D> x, y;
    x.load(X, lane);
    y.load(Y, lane);
    product<D>(x, y, lane, [&](int i, int j, double v, double w) { put_pair<D>(to + i * DS, j, v, w); },
               [&](int i, double v) { to[2 * Z::M + i] = v; });
    for (int i = lane; i < Z::M; i += kWarp) to[Z::M + i] = X[i];
    product<D, kUpper>(
        y, y, lane,
        [&](int i, int j, double v, double w) {
          double* at = e.last + i * DS;
          const double2 old = pair(at + j);
          put_pair<D>(at, j, old.x - v, old.y - w);
        },
        [&](int i, double v) { e.eta_last[i] += v; });
    __syncwarp();
    add_node(e.last, Chunk(a, n).last);
  }
  invert<D>(X, Lambda, identity, work, lane);  // R^-T eta lies where Lambda was
  const double last = times<D>(X, X + Z::M, lane);
  if (lane < D) m[lane] = last;
  gram<D>(X, X, lane, [&](int i, int j, double v) { P[i * DS + j] = v; });
  __syncwarp();
  for (int n = a.chunks - 1; n >= 0; n--) {
    double* end = scratch.ends + (long long)n * Scratch<D>::moment;
    const double* from = scratch.links + (long long)n * Scratch<D>::link;
    for (int i = lane; i < Z::M; i += kWarp) end[i] = P[i];
    for (int i = lane; i < D * D; i += kWarp) {
      const int at = i / D * DS + i % D;
      G[at] = from[at];
      X[at] = from[Z::M + at];
    }
    const double c = lane < D ? from[2 * Z::M + lane] : 0;
    if (lane < D) end[Z::M + lane] = m[lane];
    __syncwarp();
    gram<D>(G, P, lane, [&](int i, int j, double v) { GP[i * DS + j] = v; });
    const double v = times<D>(G, m, lane);
    __syncwarp();
    gram<D>(X, X, lane, [&](int i, int j, double w) { P[i * DS + j] = w; });
    gram<D>(GP, G, lane, [&](int i, int j, double w) { P[i * DS + j] += w; });
    if (lane < D) m[lane] = c + v;
    __syncwarp();
  }
}

}  // namespace svae
