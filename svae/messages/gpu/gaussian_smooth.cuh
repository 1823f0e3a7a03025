// Smoothing: forward over a chunk of time as information filter, then back. One block of three warps per chunk, with one
// barrier a step: while the first removes node t, the second filters it and the third prepares the transition after.
#pragma once
#include "gaussian.cuh"

namespace svae {

enum SmoothOutput { kOutMean, kOutSqrt, kOutGain, kOutBack, kOutLogZ, kOutKl, kOutShift };
enum FilterOutput { kFilterMean, kFilterSqrt, kFilterLogZ };

constexpr int kWarps = 3;

template <int D>
struct Forward {
  using Z = Size<D>;
  static constexpr int node = Z::M + Z::DS, removed = 2 * Z::M + Z::DS;
  static constexpr int kept = node;  // F, which the backward sweep finds there
  static constexpr int size = kept + 2 * Pair<D>::size + Transition<D, float>::scratch + 2 * removed + 2 * node + 3 * node +
                              2 * Work<D>::size + 4 * Z::DS;
  double *F, *pairs, *make, *YX, *Lambdas, *nodes, *work, *m, *mf, *pivots;
  __device__ explicit Forward(double* p)
      : F(p), pairs(p + kept), make(pairs + 2 * Pair<D>::size), YX(make + Transition<D, float>::scratch),
        Lambdas(YX + 2 * removed), nodes(Lambdas + 2 * node), work(nodes + 3 * node), m(work + 2 * Work<D>::size),
        mf(m + Z::DS), pivots(mf + Z::DS) {}
  __device__ Pair<D> pair(int t) const { return Pair<D>(pairs + (t & 1) * Pair<D>::size); }
  __device__ double* Y(int t) const { return YX + (t & 1) * removed; }  // u behind
  __device__ double* X(int t) const { return Y(t) + Z::M + Z::DS; }
  __device__ double* Lambda(int t) const { return Lambdas + (t & 1) * node; }  // eta behind
  __device__ double* J(int t) const { return nodes + t % 3 * node; }           // h behind
  __device__ double* pivot(int t) const { return pivots + (t & 1) * Z::DS; }
};

// A node's potential on its way to shared memory.
template <int D, class S>
struct FetchNode {
  Fetch<D, S> J;
  S h;
  __device__ void get(const S* J_, const S* h_, int t, int lane) {
    J.get(J_ + (long long)t * D * D, lane);
    if (lane < D) h = h_[(long long)t * D + lane];
  }
  __device__ void zero() {
    J.zero();
    h = 0;
  }
  __device__ void put(double* to, int lane) const {
    J.put(to, lane);
    if (lane < D) to[Size<D>::M + lane] = h;
  }
};

// Filters chunk n; what the backward sweep needs goes to `gain`, `back` and the scratch of each node.
template <int D, class S, bool Filter>
__device__ inline void forward(const Args& a, long long sequence, int n, const Forward<D>& s, const double* identity) {
  using Z = Size<D>;
  constexpr int DD = D * D;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, T = a.T;
  const Chunk chunk(a, n);

  if (warp == 2) {
    const S *A = input<S>(a, kA, sequence), *b = input<S>(a, kB, sequence), *Q = input<S>(a, kQ, sequence),
            *J = input<S>(a, kJ, sequence), *h = input<S>(a, kH, sequence);
    Transition<D, S> coming;
    FetchNode<D, S> node;
    auto fetch = [&](int t) {
      if (t < chunk.last) coming.get(A + (long long)t * DD, b + (long long)t * D, Q + (long long)t * DD, lane);
    };
    for (int t = chunk.first; t <= chunk.first + 1 && t <= chunk.last; t++) {
      node.get(J, h, t, lane);
      node.put(s.J(t), lane);
    }
    // The first node: from the chain's own first state, or as the chunks before leave it.
    double* Lambda = s.Lambda(chunk.first);
    if (n == 0) {
      const Pair<D> first = s.pair(1);
      coming.first(input<S>(a, kMean0, sequence), input<S>(a, kSqrt0, sequence), lane);
      coming.make(first, s.make, identity, lane);
      __syncwarp();
      for (int i = lane; i < Forward<D>::node; i += kWarp) Lambda[i] = first.WW[i] + s.J(0)[i];
      if (lane < D) s.m[lane] = first.b[lane];
      if (lane == 0) s.m[D] = -first.logdet[0];
    } else {
      const double* start = Scratch<D>(a, sequence).starts + (long long)n * Scratch<D>::moment;
      for (int i = lane; i < Forward<D>::node; i += kWarp) Lambda[i] = start[i];
    }
    __syncwarp();
    fetch(chunk.first);
    if (chunk.first < chunk.last) coming.make(s.pair(chunk.first), s.make, identity, lane);
    fetch(chunk.first + 1);
    if (chunk.first + 2 <= chunk.last) node.get(J, h, chunk.first + 2, lane);
    __syncthreads();
    for (int t = chunk.first; t < chunk.last; t++) {
      if (t + 2 <= chunk.last) node.put(s.J(t + 2), lane);
      if (t + 3 <= chunk.last) node.get(J, h, t + 3, lane);
      if (t + 1 < chunk.last) coming.make(s.pair(t + 1), s.make, identity, lane);
      fetch(t + 2);
      __syncthreads();
    }
  }

  if (warp == 0) {
    const Work<D> work(s.work);
    __syncthreads();
    for (int t = chunk.first; t < chunk.last; t++) {
      remove<D>(s.Y(t), s.X(t), work, lane, s.pair(t), s.Lambda(t), identity);
      advance<D>(s.Lambda(t + 1), s.Y(t), s.pair(t), s.J(t + 1), lane);
      if (lane < D) s.pivot(t)[lane] = work.pivot(lane);
      __syncthreads();
    }
  }

  if (warp == 1) {
    const Work<D> work(s.work + Work<D>::size);
    const Scratch<D> scratch(a, sequence);
    S* log_z = output<S>(a, Filter ? int(kFilterLogZ) : int(kOutLogZ), sequence, T);
    S *gain = output<S>(a, Filter ? 0 : int(kOutGain), sequence, (long long)(T - 1) * DD),
      *back = output<S>(a, Filter ? 0 : int(kOutBack), sequence, (long long)(T - 1) * DD);
    double before = 0, log_Q = 0;  // log |Lambda| of the node before; log |Q| of the transition
    __syncthreads();
    const double start = s.m[D];  // log |P-^-1| of the first node
    __syncwarp();
    if (lane == 0) s.m[D] = 0;
    for (int t = chunk.first; t <= chunk.last; t++) {
      const bool given = t > chunk.first;  // the node before is in this chunk
      const double* J = s.J(t);
      invert<D>(s.F, s.Lambda(t), identity, work, lane);
      const double mean = times<D>(s.F, s.F + Z::M, lane), Jm = times<D>(J, s.m, lane);
      // log |P-^-1| = log |Lambda_t-1| - log |Q| - log |S_t-1|; in lanes below 16 the pivots of Lambda_t, above of S_t-1
      const int k = lane & 15;
      double log = k < D ? logarithm<S>(lane < 16 ? work.pivot(k) : given ? s.pivot(t - 1)[k] : 1.0) : 0;
      double part = 0, d = 0;
      if (lane < D) {
        const double m = s.m[lane], h = J[Z::M + lane], g = h - Jm;
        d = mean - m;
        part = m * (h + g) + g * d;
        s.mf[lane] = mean;
      }
#pragma unroll
      for (int i = 1; i < 16; i *= 2) {
        log += __shfl_xor_sync(0xffffffff, log, i);
        part += __shfl_xor_sync(0xffffffff, part, i);
      }
      const double other = __shfl_xor_sync(0xffffffff, log, 16), filtered = lane < 16 ? log : other;
      const double difference = filtered - (given ? before - log_Q - (lane < 16 ? other : log) : start);
      before = filtered;
      if (given || n == 0) {
        if (lane == 0) log_z[t] = S((part - difference) / 2);
        if (Filter) {
          if (lane < D) output<S>(a, kFilterMean, sequence, (long long)T * D)[(long long)t * D + lane] = S(mean);
          write<D>(output<S>(a, kFilterSqrt, sequence, (long long)T * DD) + (long long)t * DD, s.F, lane);
        } else {
          double* keep = scratch.nodes + (long long)t * Scratch<D>::node;
          if (lane < D) {
            keep[lane] = mean;
            keep[D + lane] = d;
          }
          if (lane == 0) keep[2 * D] = difference;
        }
      }
      if (!Filter && given) {
        Fragments<D> x, y;
        x.load(s.X(t - 1), lane);
        y.load(s.Y(t - 1), lane);
        S* to = gain + (long long)(t - 1) * DD;
        product<D>(x, y, lane, [&](int i, int j, double v, double w) { put_pair<D>(to + i * D, j, v, w); });
        write<D>(back + (long long)(t - 1) * DD, s.X(t - 1), lane);
      }
      __syncwarp();
      if (t == chunk.last) break;
      const Pair<D> pair = s.pair(t);
      const double next = times<D>(pair.A, s.mf, lane);
      if (lane < D) s.m[lane] = next + pair.b[lane];
      log_Q = pair.logdet[0];
      __syncthreads();
    }
  }
  __syncthreads();
}

template <int D>
struct Backward {
  using Z = Size<D>;
  static constexpr int ring = Z::G + 1;
  static constexpr int node = Z::M + 4 * Z::DS + 4;  // J, h, mf, d, e, difference
  static constexpr int size = 6 * Z::M + 3 * node + Z::M + ring * Z::M + 2 * Z::DS + Work<D, Z::G>::size;
  double *G, *B, *BB, *nodes, *GP, *P, *shift, *work;
  __device__ explicit Backward(double* p)
      : G(p), B(p + 2 * Z::M), BB(p + 4 * Z::M), nodes(p + 6 * Z::M), GP(nodes + 3 * node), P(GP + Z::M),
        shift(P + ring * Z::M), work(shift + 2 * Z::DS) {}
  __device__ double* at(double* p, int t) const { return p + (t & 1) * Z::M; }
  __device__ double* node_at(int t) const { return nodes + t % 3 * node; }
  __device__ double* P_at(int t) const { return P + t % ring * Z::M; }
};

// Back over chunk n: P_t = B B' + G P_t+1 G', e_t = G (smoothed - predicted mean)_t+1.
template <int D, class S>
__device__ inline void backward(const Args& a, long long sequence, int n, const double* F, const Backward<D>& s) {
  using Z = Size<D>;
  constexpr int DS = Z::DS, DD = D * D;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, T = a.T;
  const Chunk chunk(a, n);
  const Scratch<D> scratch(a, sequence);
  const int low = n == 0 ? 0 : chunk.first + 1;
  const double* end = scratch.ends + (long long)n * Scratch<D>::moment;

  if (warp == 0) {
    double* P = s.P_at(chunk.last);
    Fragments<D> f, g;
    if (chunk.last == T - 1) {
      f.load(F, lane);
      product<D>(f, f, lane, [&](int i, int j, double v, double w) { put_pair<D>(P + i * DS, j, v, w); });
    } else {
      for (int i = lane; i < Z::M; i += kWarp) P[i] = end[i];
    }
    __syncthreads();
    for (int t = chunk.last - 1; t >= low; t--) {
      const double* BB = s.at(s.BB, t);
      double* P = s.P_at(t);
      g.load(s.at(s.G, t), lane);
      f.load(s.P_at(t + 1), lane);
      product<D>(g, f, lane, [&](int i, int j, double v, double w) { put_pair<D>(s.GP + i * DS, j, v, w); });
      __syncwarp();
      f.load(s.GP, lane);
      product<D>(f, g, lane, [&](int i, int j, double v, double w) {
        const double2 own = pair(BB + i * DS + j);
        put_pair<D>(P + i * DS, j, v + own.x, w + own.y);
      });
      __syncthreads();
    }
  }

  if (warp == 1) {
    S *mean = output<S>(a, kOutMean, sequence, (long long)T * D), *sqrt = output<S>(a, kOutSqrt, sequence, (long long)T * DD),
      *kl = output<S>(a, kOutKl, sequence, T), *shift = output<S>(a, kOutShift, sequence, (long long)T * D);
    auto roots = [&](int t, int count) {  // of the covariances of nodes t .. t + count - 1
      const int group = lane / D < count ? lane / D : 0, j = lane % D;
      const bool mine = lane / D < count;
      double x[1][D];
      load_vector<D>(x[0], s.P_at(t + group) + j * DS);
      eliminate<D, false>(x, Work<D, Z::G>(s.work), mine ? j : D, group);
      if (!mine) return;
      S* row = sqrt + (long long)(t + group) * DD + j * D;
#pragma unroll
      for (int i = 0; i < D; i++) row[i] = i <= j ? S(x[0][i]) : S(0);
    };
    auto finish = [&](int t) {  // mean and kl of node t
      const double *J = s.node_at(t), *h = J + Z::M, *mf = h + DS, *d = mf + DS, *e = d + DS, *P = s.P_at(t);
      double part = 0;
      if (lane < D) {
        double row[D], x[D], Jm = 0, Je = 0, trace = 0;
        load_vector<D>(row, J + lane * DS);
        Jm = dot<D>(row, mf);
        Je = dot<D>(row, e);
        load_vector<D>(x, P + lane * DS);
#pragma unroll
        for (int i = 0; i < D; i++) trace = fma(row[i], x[i], trace);
        part = (d[lane] / 2 + e[lane]) * (h[lane] - Jm) - (e[lane] * Je + trace) / 2;
        mean[(long long)t * D + lane] = S(mf[lane] + e[lane]);
        shift[(long long)t * D + lane] = S(d[lane] + e[lane]);
      }
      part = sum(part);
      if (lane == 0) kl[t] = S(part + J[Z::M + 4 * DS] / 2);
    };
    int rooted = chunk.last + 1;  // nodes from here on have their roots
    __syncthreads();
    for (int t = chunk.last - 1; t >= low; t--) {
      double *d = s.node_at(t) + Z::M + 2 * DS, *e = d + DS;
      const double v = times<D>(s.at(s.G, t), s.shift + ((t + 1) & 1) * DS, lane);
      if (lane < D) {
        e[lane] = v;
        s.shift[(t & 1) * DS + lane] = d[lane] + v;
      }
      finish(t + 1);
      if (rooted - (t + 1) == Z::G) {
        roots(t + 1, Z::G);
        rooted = t + 1;
      }
      __syncthreads();
    }
    finish(low);
    roots(low, rooted - low);
  }

  if (warp == 2) {
    const S *J = input<S>(a, kJ, sequence), *h = input<S>(a, kH, sequence);
    const S *gain = output<S>(a, kOutGain, sequence, (long long)(T - 1) * DD),
            *back = output<S>(a, kOutBack, sequence, (long long)(T - 1) * DD);
    Fetch<D, S> coming_G, coming_B;
    FetchNode<D, S> node;
    double coming_mf = 0, coming_d = 0, coming_difference = 0;
    auto fetch = [&](int t) {
      if (t < low) return;
      node.get(J, h, t, lane);
      const double* kept = scratch.nodes + (long long)t * Scratch<D>::node;
      if (lane < D) {
        coming_mf = kept[lane];
        coming_d = kept[D + lane];
      }
      if (lane == 0) coming_difference = kept[2 * D];
      if (t == chunk.last) return;
      coming_G.get(gain + (long long)t * DD, lane);
      coming_B.get(back + (long long)t * DD, lane);
    };
    auto put = [&](int t) {
      if (t < low) return;
      double* to = s.node_at(t);
      node.put(to, lane);
      if (lane < D) {
        to[Z::M + DS + lane] = coming_mf;
        to[Z::M + 2 * DS + lane] = coming_d;
      }
      if (lane == 0) to[Z::M + 4 * DS] = coming_difference;
      if (t == chunk.last) return;
      double *B = s.at(s.B, t), *BB = s.at(s.BB, t);
      coming_G.put(s.at(s.G, t), lane);
      coming_B.put(B, lane);
      __syncwarp();
      Fragments<D> f;
      f.load(B, lane);
      product<D>(f, f, lane, [&](int i, int j, double v, double w) { put_pair<D>(BB + i * DS, j, v, w); });
    };
    // The last node: from the filter, or from the chunks after.
    fetch(chunk.last);
    put(chunk.last);
    double *mf = s.node_at(chunk.last) + Z::M + DS, *d = mf + DS, *e = d + DS;
    if (lane < D) {
      e[lane] = chunk.last == T - 1 ? 0 : end[Z::M + lane] - mf[lane];
      s.shift[(chunk.last & 1) * DS + lane] = d[lane] + e[lane];
    }
    fetch(chunk.last - 1);
    put(chunk.last - 1);
    fetch(chunk.last - 2);
    __syncthreads();
    for (int t = chunk.last - 1; t >= low; t--) {
      put(t - 1);
      fetch(t - 2);
      __syncthreads();
    }
  }
}

template <int D>
constexpr int kSmoothShared = Size<D>::M + Size<D>::DS + Size<D>::beyond +
                              (Forward<D>::size > Forward<D>::kept + Backward<D>::size ? Forward<D>::size
                                                                                     : Forward<D>::kept + Backward<D>::size);

template <int D, class S>
__device__ inline void smooth(const Args& a, double* shared) {
  const long long sequence = blockIdx.x / a.chunks;
  const int n = blockIdx.x % a.chunks;
  double* free = begin_shared<D>(shared, kSmoothShared<D>);
  const Forward<D> f(free);
  forward<D, S, false>(a, sequence, n, f, shared);
  for (int i = threadIdx.x; i < Backward<D>::size; i += blockDim.x) f.pairs[i] = 0;
  __syncthreads();
  backward<D, S>(a, sequence, n, f.F, Backward<D>(f.pairs));
}

template <int D, class S>
__device__ inline void filter(const Args& a, double* shared) {
  double* free = begin_shared<D>(shared, kSmoothShared<D>);
  forward<D, S, true>(a, blockIdx.x / a.chunks, blockIdx.x % a.chunks, Forward<D>(free), shared);
}

}  // namespace svae
