// The Gaussian chain: what every sweep over it is made of.
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
  return static_cast<const S*>(a.in[which]) + last * stride[2] + rest % a.axes[1] * stride[1] + rest / a.axes[1] * stride[0];
}

template <class S>
__device__ inline S* output(const Args& a, int which, long long sequence, long long size) {
  return static_cast<S*>(a.out[which]) + sequence * size;
}

// Columns of [S | C | r | I] for `remove`: VV, VW and -Vw lie in that order; of VV and WW, as of all precisions, only the
// entries i >= c of column c are used. A by rows; log |Q|.
template <int D>
struct Pair {
  using Z = Size<D>;
  static constexpr int size = 4 * Z::M + 3 * Z::DS + 4;
  double *VV, *VW, *minus_Vw, *WW, *Ww, *A, *b, *logdet;
  __device__ explicit Pair(double* p)
      : VV(p), VW(p + Z::M), minus_Vw(p + 2 * Z::M), WW(minus_Vw + Z::DS), Ww(WW + Z::M), A(Ww + Z::DS), b(A + Z::M),
        logdet(b + Z::DS) {}
};

// Shared memory begins as 0, with the identity in front; the space between vectors stays 0.
template <int D>
__device__ inline double* begin_shared(double* shared, int size) {
  for (int i = threadIdx.x; i < size; i += blockDim.x) shared[i] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < D; i += blockDim.x) shared[i * Size<D>::DS + i] = 1;
  __syncthreads();
  return shared + Size<D>::M + Size<D>::DS;  // the identity and a vector of zeros
}

// One column of each lane, from `main` where it lies there, else of the identity.
template <int D>
__device__ inline const double* column(const double* main, const double* identity, int c) {
  using Z = Size<D>;
  return c <= 2 * D ? main + c * Z::DS : identity + (c <= 3 * D ? c - 2 * D - 1 : D) * Z::DS;
}

// A transition fetched from memory, and made into a potential by one warp. With A = 0 it is the first state's.
template <int D, class S>
struct Transition {
  using Z = Size<D>;
  static constexpr int scratch = (3 * D + 2) * Z::DS + Work<D>::size;
  Fetch<D, S> A, Q;
  S b;

  __device__ void get(const S* A_, const S* b_, const S* Q_, int lane) {
    A.get(A_, lane);
    Q.get(Q_, lane);
    if (lane < D) b = b_[lane];
  }
  __device__ void first(const S* mean0, const S* sqrt0, int lane) {
    A.zero();
    Q.get(sqrt0, lane);
    if (lane < D) b = mean0[lane];
  }
  // QQ' is left in `covariance` where that is given.
  __device__ void make(const Pair<D>& to, double* work, const double* identity, int lane,
                       double* covariance = nullptr) const {
    constexpr int DS = Z::DS;
    double *V = work + Z::M, *w = V + Z::M, *W = w + DS, *w_too = W + Z::M;  // behind Q: the columns A, b, and of W
    A.put(to.A, lane);
    A.put_columns(V, lane);
    Q.put(W, lane);
    if (lane < D) to.b[lane] = w[lane] = b;
    __syncwarp();
    Fragments<D> f;
    f.load(W, lane);
    product<D, kUpper>(f, f, lane, [&](int i, int j, double v, double w) {
      put_pair<D>(work + i * DS, j, v, w);
      if (!covariance) return;
      covariance[i * DS + j] = covariance[j * DS + i] = v;
      if (j + 1 < D) covariance[i * DS + j + 1] = covariance[(j + 1) * DS + i] = w;
    });
    __syncwarp();
    double x[Z::NC][D];
#pragma unroll
    for (int q = 0; q < Z::NC; q++) load_vector<D>(x[q], column<D>(work, identity, lane + q * kWarp));
    const Work<D> pivots(w_too + DS);
    eliminate<D, true>(x, pivots, lane < D ? lane : D);
#pragma unroll
    for (int q = 0; q < Z::NC; q++) {
      const int c = lane + q * kWarp;
      if (c >= D && c <= 3 * D) store_vector<D>(work + c * DS, x[q]);
      if (c == 2 * D) store_vector<D>(w_too, x[q]);
    }
    __syncwarp();
    Fragments<D> g;
    f.load(V, lane);
    g.load(W, lane);
    product<D, kUpper>(f, f, lane, [&](int i, int j, double v, double u) { put_pair<D>(to.VV + i * DS, j, v, u); },
                       [&](int i, double v) { to.minus_Vw[i] = -v; });
    product<D>(g, f, lane, [&](int i, int j, double v, double u) { put_pair<D>(to.VW + i * DS, j, v, u); });
    product<D, kUpper>(g, g, lane, [&](int i, int j, double v, double u) { put_pair<D>(to.WW + i * DS, j, v, u); },
                       [&](int i, double v) { to.Ww[i] = v; });
    const double log = sum(lane < D ? logarithm<S>(pivots.pivot(lane)) : 0);
    if (lane == 0) to.logdet[0] = log;
  }
};

// Eliminates x from exp(-x'Sx / 2 + x'(C y + E'z + r)) by one warp, given columns c = lane + 32 q of [S | C | r | E'] as
// sums of two vectors each: Y = R^-T C, u = R^-T r behind it, X = R^-T E', R'R = S; the columns of R where wanted.
template <int D>
__device__ inline void remove(double* Y, double* X, Work<D> work, int lane, const double* const (&main)[Size<D>::NC],
                              const double* const (&more)[Size<D>::NC], double* R = nullptr) {
  using Z = Size<D>;
  double x[Z::NC][D];
#pragma unroll
  for (int q = 0; q < Z::NC; q++) {
    double y[D];
    load_vector<D>(x[q], main[q]);
    load_vector<D>(y, more[q]);
#pragma unroll
    for (int i = 0; i < D; i++) x[q][i] += y[i];
  }
  eliminate<D, true>(x, work, lane < D ? lane : D);
#pragma unroll
  for (int q = 0; q < Z::NC; q++) {
    const int c = lane + q * kWarp;
    if (R && c < D) {
#pragma unroll
      for (int i = 0; i < D; i++) R[c * Z::DS + i] = i >= c ? x[q][i] : 0;
    }
    if (c >= D && c <= 3 * D) store_vector<D>(c <= 2 * D ? Y + (c - D) * Z::DS : X + (c - 2 * D - 1) * Z::DS, x[q]);
  }
  __syncwarp();
}

// The usual columns: S = Lambda + VV, C = VW, r = eta - Vw (eta behind Lambda), and the identity.
template <int D>
__device__ inline void remove(double* Y, double* X, Work<D> work, int lane, const Pair<D>& pair, const double* Lambda,
                              const double* identity, double* R = nullptr) {
  using Z = Size<D>;
  const double *main[Z::NC], *more[Z::NC];
#pragma unroll
  for (int q = 0; q < Z::NC; q++) {
    const int c = lane + q * kWarp;
    main[q] = column<D>(pair.VV, identity, c);
    more[q] = c < D ? Lambda + c * Z::DS : c == 2 * D ? Lambda + Z::M : identity + Z::M;
  }
  remove<D>(Y, X, work, lane, main, more, R);
}

// Lambda' = W'W - Y'Y + J', eta' = W'w + Y'u + h'.
template <int D>
__device__ inline void advance(double* Lambda, const double* Y, const Pair<D>& pair, const double* node, int lane) {
  using Z = Size<D>;
  constexpr int DS = Z::DS;
  Fragments<D> f;
  f.load(Y, lane);
  product<D, kUpper>(
      f, f, lane,
      [&](int i, int j, double v, double w) {
        const double2 p = svae::pair(pair.WW + i * DS + j), q = svae::pair(node + i * DS + j);
        put_pair<D>(Lambda + i * DS, j, (p.x - v) + q.x, (p.y - w) + q.y);
      },
      [&](int i, double v) { Lambda[Z::M + i] = (pair.Ww[i] + v) + node[Z::M + i]; });
}

// A node's precision and its vector, as filtered: F are the columns of R^-T, R'R = Lambda, so that F'F = Lambda^-1, and
// R^-T eta lies behind them.
template <int D>
__device__ inline void invert(double* F, const double* Lambda, const double* identity, Work<D> work, int lane) {
  using Z = Size<D>;
  constexpr int NC = (2 * D + 1 + 31) / 32;
  double x[NC][D];
#pragma unroll
  for (int q = 0; q < NC; q++) {
    const int c = lane + q * kWarp;
    load_vector<D>(x[q], c <= D ? Lambda + c * Z::DS : identity + (c <= 2 * D ? c - D - 1 : D) * Z::DS);
  }
  eliminate<D, true>(x, work, lane < D ? lane : D);
#pragma unroll
  for (int q = 0; q < NC; q++) {
    const int c = lane + q * kWarp;
    if (c >= D && c <= 2 * D) store_vector<D>(c == D ? F + Z::M : F + (c - D - 1) * Z::DS, x[q]);
  }
  __syncwarp();
}

// Chunk n of the transitions of a sequence: those out of nodes first .. last - 1.
struct Chunk {
  int first, last;
  __device__ Chunk(const Args& a, int n) : first(n * a.chunk), last(first + a.chunk < a.T - 1 ? first + a.chunk : a.T - 1) {}
};

// What the passes leave for each other in the scratch memory of a sequence.
template <int D>
struct Scratch {
  using Z = Size<D>;
  static constexpr int node = 2 * D + 2, element = 3 * Z::M + 2 * Z::DS, moment = Z::M + Z::DS, link = 2 * Z::M + Z::DS;
  double *nodes, *elements, *starts, *ends, *links;
  __device__ Scratch(const Args& a, long long sequence) {
    nodes = a.scratch + sequence * a.scratch_size;
    elements = nodes + (long long)a.T * node;
    starts = elements + (long long)a.chunks * element;
    ends = starts + (long long)a.chunks * moment;
    links = ends + (long long)a.chunks * moment;
  }
  __device__ static long long size(long long T, long long chunks) {
    return T * node + (chunks > 1 ? chunks * (element + 2 * moment + link) : 0);
  }
};

}  // namespace svae
