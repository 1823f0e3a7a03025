// The Gaussian chain: what its kernels are given, and what they leave for each other.
//
// Potentials are carried as precisions in double precision, which holds what single precision holds as square roots: a
// precision of condition 1e14 has a root of condition 1e7. A transition is a potential on two neighbours,
//   exp(-x'(V'V)x / 2 + x'(V'W)y - y'(W'W)y / 2 - (V'w)'x + (W'w)'y),   W = root(Q)^-1, V = W A, w = W b.
#pragma once
#include "args.h"
#include "warp.cuh"

namespace svae {

enum ChainInput { kMean0, kSqrt0, kA, kB, kQ, kJ, kH };

template <class S>
__device__ inline const S* input(const Args& a, int which, long long sequence) {
  const long long *stride = a.stride[which], last = sequence % a.axes[2], rest = sequence / a.axes[2];
  return static_cast<const S*>(a.in[which]) + last * stride[2] + rest % a.axes[1] * stride[1] +
         rest / a.axes[1] * stride[0];
}

template <class S>
__device__ inline S* output(const Args& a, int which, long long sequence, long long size) {
  return static_cast<S*>(a.out[which]) + sequence * size;
}

// What smoothing keeps of node t for its derivative, in double precision: the gain and root of the way back to it and
// their offset (m_t = c + G m_t+1), the filtered precision and mean, the smoothed mean. Compact matrices. What is to
// spare makes room for messages both ways, which are kept instead where there are such (gaussian_both_ways.cuh).
template <int D>
struct Kept {
  static constexpr int size = 3 * D * D + 3 * D + 16;
  double *G, *B, *Lambda, *c, *mf, *mean;
  __device__ explicit Kept(double* p)
      : G(p), B(p + D * D), Lambda(p + 2 * D * D), c(p + 3 * D * D), mf(c + D), mean(mf + D) {}
};

// exp(-x'first x / 2 + x'E y - y'last y / 2 + eta_first'x + eta_last'y): a chunk as a potential on its two ends. E is
// transposed.
template <int D>
struct Element {
  static constexpr int size = 3 * D * D + 2 * D;
  double *first, *E, *last, *eta_first, *eta_last;
  __device__ explicit Element(double* p)
      : first(p), E(p + D * D), last(p + 2 * D * D), eta_first(p + 3 * D * D), eta_last(eta_first + D) {}
};

// What the passes leave for each other in the scratch memory of a sequence: of each node its filtered mean, its shift
// and the change of log |precision|; of each chunk its element, its filtered start, its smoothed end and the way back
// over it.
template <int D>
struct Scratch {
  static constexpr int node = 2 * D + 1, moment = D * D + D, link = 2 * D * D + D;
  double *nodes, *elements, *starts, *ends, *links;
  __device__ Scratch(const Args& a, long long sequence) {
    nodes = a.scratch + sequence * a.scratch_size;
    elements = nodes + (long long)a.T * node;
    starts = elements + (long long)a.chunks * Element<D>::size;
    ends = starts + (long long)a.chunks * moment;
    links = ends + (long long)a.chunks * moment;
  }
  __device__ static long long size(long long T, long long chunks) {
    return T * node + (chunks > 1 ? chunks * (Element<D>::size + 2 * moment + link) : 0);
  }
  __device__ double* node_at(int t) const { return nodes + (long long)t * node; }
  __device__ Element<D> element(int n) const { return Element<D>(elements + (long long)n * Element<D>::size); }
  __device__ double* start(int n) const { return starts + (long long)n * moment; }  // a vector behind each matrix
  __device__ double* end(int n) const { return ends + (long long)n * moment; }
  __device__ double* way(int n) const { return links + (long long)n * link; }  // G, U and c
};

}  // namespace svae
