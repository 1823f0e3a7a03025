// Filtering a chunk of time of several chains at once, by lanes (lanes.cuh). Four warps with one barrier a step: while
// the first removes node t, the second filters it, the third whitens the transition out of t + 2, and the fourth
// prepares that out of t + 1 and writes the gain of t - 1.
#pragma once
#include "eliminate.cuh"
#include "gaussian.cuh"

namespace svae {

constexpr int kSmoothThreads = 4 * kWarp;

// A transition as a potential (gaussian.cuh): columns of V'V, V'W and W'W; -V'w, W'w; log |Q|.
template <int D>
struct Prepared {
  using Z = Team<D>;
  static constexpr int size = 3 * Z::M + 2 * Z::DS + 2;
  double *VV, *VW, *WW, *minus_Vw, *Ww, *logdet;
  __device__ explicit Prepared(double* p)
      : VV(p), VW(p + Z::M), WW(p + 2 * Z::M), minus_Vw(p + 3 * Z::M), Ww(minus_Vw + Z::DS), logdet(Ww + Z::DS) {}
};

// On the way there: columns of W and V, w, and the terms of log |Q|.
template <int D>
struct Whitened {
  using Z = Team<D>;
  static constexpr int size = 2 * Z::M + 2 * Z::DS;
  double *W, *V, *w, *logs;
  __device__ explicit Whitened(double* p) : W(p), V(p + Z::M), w(p + 2 * Z::M), logs(w + Z::DS) {}
};

// The memory of a chain: what is made at step n for the next steps lies in places by turns. Same: one transition, made
// before the first step, serves all, so that what leads to it lies where the steps do their work afterwards.
template <int D, bool Same>
struct ForwardDesk {
  using Z = Team<D>;
  static constexpr int removed = 2 * Z::M + Z::DS, node = Z::M + Z::DS, places = Same ? 1 : 3;
  static constexpr int kept = Z::M;  // the last node's root, which the backward sweep finds there
  static constexpr int made = 2 * Whitened<D>::size + node, steps = 2 * removed + 2 * node;
  static constexpr int size = kept + places * node + 3 * Work<D>::size + 13 * Z::DS + Z::turns + 2 * Prepared<D>::size +
                              (Same && made <= steps ? 0 : made) + steps;
  double *root, *given, *works, *m, *u, *means, *pivots, *solveds, *parts, *prepared, *whitened, *Q, *inverse, *YX,
      *Lambdas;
  __device__ ForwardDesk(double* p, int group)
      : root(p), given(p + kept), works(given + places * node), m(works + 3 * Work<D>::size), u(m + Z::DS),
        means(u + Z::DS), pivots(means + 2 * Z::DS), solveds(pivots + 4 * Z::DS), parts(solveds + 2 * Z::DS),
        prepared(parts + 3 * Z::DS + group * Z::turn), whitened(prepared + 2 * Prepared<D>::size),
        Q(whitened + 2 * Whitened<D>::size), inverse(Q + Z::M), YX(Same && made <= steps ? whitened : whitened + made),
        Lambdas(YX + 2 * removed) {}
  __device__ Prepared<D> pair(int n) const { return Prepared<D>(prepared + (Same ? 0 : n & 1) * Prepared<D>::size); }
  __device__ Prepared<D> first() const { return Prepared<D>(prepared + Prepared<D>::size); }  // of the first state
  __device__ Whitened<D> white(int n) const { return Whitened<D>(whitened + (n & 1) * Whitened<D>::size); }
  __device__ double* A(int n) const { return given + n % places * node; }  // b behind
  __device__ double* Y(int n) const { return YX + (n & 1) * removed; }
  __device__ double* X(int n) const { return Y(n) + Z::M; }  // u behind
  __device__ double* Lambda(int n) const { return Lambdas + (n & 1) * node; }  // eta behind
  __device__ double* mf(int n) const { return means + (n & 1) * Z::DS; }
  __device__ double* pivot(int n) const { return pivots + (n & 3) * Z::DS; }    // of the node that is removed
  __device__ double* solved(int n) const { return solveds + (n & 1) * Z::DS; }  // of its filtered precision
  __device__ Work<D> remover(int n) const { return Work<D>(works + (n & 1) * Work<D>::size); }
  __device__ Work<D> solver() const { return Work<D>(works + 2 * Work<D>::size); }
};

// A transition on its way from memory.
template <int D, class S>
struct Arriving {
  S A[D], Q[D], b;
  __device__ void transition(const S* A_, const S* b_, const S* Q_, int j) {
    get<D>(A, A_, j);
    get<D>(Q, Q_, j);
    b = b_[j];
  }
  __device__ void first(const S* mean0, const S* sqrt0, int j) {
    get<D>(Q, sqrt0, j);
    b = mean0[j];
#pragma unroll
    for (int i = 0; i < D; i++) A[i] = 0;
  }
  // W = Q^-1 where Q is lower triangular, else that of the root of QQ'; V = W A, w = W b. `next` may use these
  // registers.
  template <bool Same, class Next>
  __device__ void whitened(int n, const ForwardDesk<D, Same>& s, int j, Next next) {
    constexpr int M = Team<D>::M, DS = Team<D>::DS;
    const Whitened<D> to = s.white(n);
    double x[D], W[D], own[D], diagonal = 0;
    bool upper = false;
#pragma unroll
    for (int i = 0; i < D; i++) {
      x[i] = double(Q[i]);
      upper = upper || (i < j && x[i] != 0);
      diagonal = i == j ? x[i] : diagonal;
    }
    double log = logarithm<S>(diagonal * diagonal);
    s.inverse[j] = reciprocal(diagonal);
    put<D>(s.Q, x, j);
#pragma unroll
    for (int i = 0; i < D; i++) x[i] = double(A[i]);
    put<D>(s.A(n), x, j);
    s.A(n)[M + j] = double(b);
    next();
    const bool turned = __any_sync(0xffffffff, upper);
    __syncwarp();
    if (turned) {
      row<D>(own, s.Q, j);
      sums<D>(x, s.Q, own);
      __syncwarp();
      whiten<D>(W, x, s.Q, j);
      log = logarithm<S>(s.Q[j * DS + j]);
      take<D>(x, s.A(n), j);
    } else {
      invert_columns<D>(W, s.Q, s.inverse, j);
    }
    put<D>(to.W, W, j);
    to.logs[j] = log;
    __syncwarp();
    sums<D, kLower>(x, to.W, x);
    put<D>(to.V, x, j);
    row<D>(own, to.W, j);
    to.w[j] = dot<D>(own, s.A(n) + M);
    __syncwarp();
  }
};

// The potential of a transition that is whitened.
template <int D>
__device__ inline void prepare(const Whitened<D>& from, const Prepared<D>& to, int j) {
  double V[D], W[D], x[D], all = 0;
  take<D>(V, from.V, j);
  take<D>(W, from.W, j);
  dots<D>(x, from.V, V);
  put<D>(to.VV, x, j);
  dots<D>(x, from.V, W);
  put<D>(to.VW, x, j);
  dots<D, kLower>(x, from.W, W);
  put<D>(to.WW, x, j);
#pragma unroll
  for (int i = 0; i < D; i++) all += from.logs[i];
  to.minus_Vw[j] = -dot<D>(V, from.w);
  to.Ww[j] = dot<D>(W, from.w);
  to.logdet[0] = all;
}

// The third warp. The first state goes before the transitions, in the place of the second of them. Where one transition
// serves all steps, the warp is free for `meanwhile`.
template <int D, class S, bool Same, class Meanwhile>
__device__ inline void whiten_transitions(const Args& a, const Item& item, int steps, const ForwardDesk<D, Same>& s,
                                          int j, Meanwhile meanwhile) {
  const S *A = input<S>(a, kA, item.sequence), *b = input<S>(a, kB, item.sequence), *Q = input<S>(a, kQ, item.sequence);
  Arriving<D, S> coming;
  auto fetch = [&](int n) {
    if (n >= (Same ? 1 : steps)) return;
    const long long t = Same ? 0 : item.transition(n);
    coming.transition(A + t * D * D, b + t * D, Q + t * D * D, j);
  };
  if (__any_sync(0xffffffff, item.n == 0)) {
    coming.first(input<S>(a, kMean0, item.sequence), input<S>(a, kSqrt0, item.sequence), j);
    coming.whitened(1, s, j, [&] { fetch(0); });
  } else {
    fetch(0);
  }
  if (steps > 0) coming.whitened(0, s, j, [&] { fetch(1); });
  __syncthreads();
  __syncthreads();
  if (Same) return meanwhile();
  if (steps > 1) coming.whitened(1, s, j, [&] { fetch(2); });
  __syncthreads();
  for (int n = 0; n < steps; n++) {
    if (n + 2 < steps) coming.whitened(n + 2, s, j, [&] { fetch(n + 3); });
    __syncthreads();
  }
}

// The fourth warp; `write` is called with the step before.
template <int D, bool Same, class Write>
__device__ inline void prepare_transitions(int steps, const ForwardDesk<D, Same>& s, int j, Write write) {
  __syncthreads();
  prepare<D>(s.white(1), s.first(), j);
  if (steps > 0) prepare<D>(s.white(0), s.pair(0), j);
  __syncthreads();
  __syncthreads();
  for (int n = 0; n <= steps; n++) {
    if (n > 0) write(n - 1);
    __syncwarp();
    if (!Same && n + 1 < steps) prepare<D>(s.white(n + 1), s.pair(n + 1), j);
    if (n < steps) __syncthreads();
  }
}
}  // namespace svae
