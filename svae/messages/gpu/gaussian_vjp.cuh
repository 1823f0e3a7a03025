// The derivative of smoothing: one block of four warps per sequence.
//
// With U = S^-1 the backward sweep is m_t = c + G m_t+1, P_t = U + G P_t+1 G', where G = U C and c = U r; its adjoint runs
// forward in time beside the filter (sigma and Omega are the cotangents of m_t and P_t). The filter's own adjoint runs
// back: Pi- and pi- are the cotangents of P-^-1 and P-^-1 m-. Everything is formed from values in double precision.
#pragma once
#include "gaussian_smooth.cuh"

namespace svae {

enum VjpInput { kVSqrt = 7, kVGain, kVBack, kVShift, kDMean, kDSqrt, kDGain, kDBack, kDLogZ, kDKl };

constexpr int kVjpThreads = 128;

// What one step leaves for the sweep back.
template <int D>
struct Saved {
  using Z = Size<D>;
  static constexpr int size = 7 * Z::M + 6 * Z::DS;
  double *G, *S, *C, *K, *node, *before, *direct;  // cotangents of S and C so far; of Lambda and P-^-1; of J directly
  double *c, *r, *node_eta, *before_eta, *direct_h, *m;
  __device__ explicit Saved(double* p)
      : G(p), S(G + Z::M), C(S + Z::M), K(C + Z::M), node(K + Z::M), before(node + Z::M), direct(before + Z::M),
        c(direct + Z::M), r(c + Z::DS), node_eta(r + Z::DS), before_eta(node_eta + Z::DS),
        direct_h(before_eta + Z::DS), m(direct_h + Z::DS) {}
  __device__ static long long total(long long T) { return (T + 1) * size; }
};

template <int D>
struct VjpShared {
  using Z = Size<D>;
  static constexpr int matrices = 31, vectors = 14, node = Z::M + Z::DS;
  static constexpr int size = 2 * Pair<D>::size + Transition<D, float>::scratch + matrices * Z::M + vectors * Z::DS +
                              2 * node + 2 * Work<D>::size + kMostInputs + 1;
  static constexpr int shared = Z::M + Z::DS + size + Z::beyond;
  const double* identity;
  double* next;
  Pair<D> pair0, pair1;
  double *make, *work, *J, *pointers;
  double *Y, *X, *R, *F, *Lambda, *Pf, *Pm, *AP, *Q0, *Q1, *Gr, *Gc, *U, *P0, *P1, *Om, *Om2, *OGr, *OGc, *Gb, *Cb, *T1,
      *Ut, *UU, *T2, *root, *root_columns, *Ps, *Ub, *a, *b;
  double *u, *y, *eta, *m, *mf, *sigma, *sigma2, *mean, *mean1, *Us, *c;
  __device__ double* matrix() { return (next += Z::M) - Z::M; }
  __device__ double* vector() { return (next += Z::DS) - Z::DS; }
  __device__ VjpShared(double* p, const double* identity)
      : identity(identity), next(p + 2 * Pair<D>::size), pair0(p), pair1(p + Pair<D>::size) {
    make = next;
    work = make + Transition<D, float>::scratch;
    J = work + 2 * Work<D>::size;
    pointers = J + 2 * node;
    next = pointers + kMostInputs + 1;
    double** all[] = {&Y,   &X,   &R,  &F,  &Lambda, &Pf, &Pm, &AP, &Q0, &Q1, &Gr,   &Gc,           &U,  &P0, &P1, &Om,
                      &Om2, &OGr, &OGc, &Gb, &Cb,     &T1, &Ut, &UU, &T2, &root, &root_columns, &Ps, &Ub, &a,  &b};
    for (double** x : all) {
      *x = matrix();
      if (x == &Y) u = vector();
      if (x == &F) y = vector();
      if (x == &Lambda) eta = vector();
    }
    double** few[] = {&m, &mf, &sigma, &sigma2, &mean, &mean1, &Us, &c};
    for (double** x : few) *x = vector();
  }
  __device__ Pair<D> pair(int t) const { return Pair<D>(pair0.VV + (t & 1) * Pair<D>::size); }

  // Where the operands of the sequence begin: found once.
  template <class S>
  __device__ void find(const Args& a, long long sequence) {
    if (threadIdx.x < kMostInputs)
      reinterpret_cast<const S**>(pointers)[threadIdx.x] = input<S>(a, threadIdx.x, sequence);
    __syncthreads();
  }
  template <class S>
  __device__ const S* in(int which, long long size, int t) const {
    return reinterpret_cast<const S* const*>(pointers)[which] + size * t;
  }
};

// A whole matrix from its entries i <= j.
template <int D>
__device__ inline void symmetric(double* to, const double* from, int lane) {
  constexpr int DS = Size<D>::DS;
  for (int n = lane; n < D * D; n += kWarp) {
    const int i = n / D, j = n % D;
    to[i * DS + j] = i <= j ? from[i * DS + j] : from[j * DS + i];
  }
}

// P- of a root's cotangent: sym(L^-T phi(L' dL) L^-1), left unsymmetrised; L given by rows and columns.
template <int D, class S>
__device__ inline void root_cotangent(double* out, double* rows, double* columns, double* a, double* b,
                                      const Fetch<D, S>& L, const Fetch<D, S>& d, int lane) {
  constexpr int DS = Size<D>::DS;
  L.put(rows, lane);
  L.put_columns(columns, lane);
  d.put_columns(a, lane);
  __syncwarp();
  gram<D>(columns, a, lane, [&](int i, int j, double v) { b[i * DS + j] = phi(i, j, v); });
  __syncwarp();
  invert_lower<D>(columns, rows, lane);
  __syncwarp();
  gram<D>(b, columns, lane, [&](int i, int j, double v) { a[j * DS + i] = v; });
  __syncwarp();
  gram<D>(columns, a, lane, [&](int i, int j, double v) { out[i * DS + j] = v; });
}

template <int D, class S>
__device__ inline void vjp_forward(const Args& a, long long sequence, VjpShared<D>& s) {
  using Z = Size<D>;
  constexpr int DS = Z::DS, DD = D * D;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, T = a.T, thread = threadIdx.x;
  auto in = [&](int which, long long size, int t) { return s.template in<S>(which, size, t); };
  double* scratch = a.scratch + sequence * a.scratch_size;
  Transition<D, S> coming;
  // Warp 2 fetches nodes and cotangents of the means and gains ahead, warp 3 roots and their cotangents.
  FetchNode<D, S> node;
  Fetch<D, S> root, d_root, d_other;
  S shift = 0, shift_next = 0, d_mean = 0;
  double d_kl_next = in(kDKl, 1, 0)[0], d_log_z_next = in(kDLogZ, 1, 0)[0];
  auto put_node = [&](int t) {
    if (t < T) node.put(s.J + (t & 1) * VjpShared<D>::node, lane);
  };
  auto get_node = [&](int t) {
    if (t < T) node.get(in(kJ, 0, 0), in(kH, 0, 0), t, lane);
  };
  auto get_root = [&](int t) {
    if (t >= T) return;
    root.get(in(kVSqrt, DD, t), lane);
    d_root.get(in(kDSqrt, DD, t), lane);
  };
  auto covariance = [&](double* P) {  // of the smoothed node whose root is at hand
    root.put(s.T1, lane);
    __syncwarp();
    gram<D>(s.T1, s.T1, lane, [&](int i, int j, double v) { P[i * DS + j] = v; });
  };

  if (warp == 2) {
    get_node(0);
    put_node(0);
    get_node(1);
    put_node(1);
    if (lane < D) shift_next = in(kVShift, D, 0)[lane];
    coming.first(in(kMean0, D, 0), in(kSqrt0, DD, 0), lane);
    coming.make(s.pair1, s.make, s.identity, lane, s.Pm);
    __syncwarp();
    const double *J0 = s.J, *h0 = J0 + Z::M;
    const Saved<D> first(scratch + (long long)T * Saved<D>::size);
    for (int i = lane; i < Z::M; i += kWarp) {
      s.Lambda[i] = s.pair1.WW[i] + J0[i];
      s.Om[i] = 0;
    }
    symmetric<D>(first.K, s.pair1.WW, lane);
    if (lane < D) {
      s.eta[lane] = s.pair1.Ww[lane] + h0[lane];
      s.m[lane] = s.pair1.b[lane];
      s.sigma[lane] = 0;
    }
    __syncwarp();
    if (T > 1) {
      coming.get(in(kA, DD, 0), in(kB, D, 0), in(kQ, DD, 0), lane);
      coming.make(s.pair0, s.make, s.identity, lane, s.Q0);
    }
    if (T > 2) coming.get(in(kA, DD, 1), in(kB, D, 1), in(kQ, DD, 1), lane);
  }
  if (warp == 3) {
    get_root(0);
    covariance(s.P0);
  }
  __syncthreads();

  for (int t = 0; t < T; t++) {
    const Pair<D> pair = s.pair(t);
    const bool more = t + 1 < T;
    const Saved<D> saved(scratch + (long long)t * Saved<D>::size);
    double *P = t & 1 ? s.P1 : s.P0, *P_next = t & 1 ? s.P0 : s.P1, *Q = t & 1 ? s.Q1 : s.Q0,
           *Q_next = t & 1 ? s.Q0 : s.Q1;
    const double *J = s.J + (t & 1) * VjpShared<D>::node, *h = J + Z::M;
    const double d_kl = d_kl_next, weight = d_log_z_next - d_kl;
    if (more) {
      d_kl_next = in(kDKl, 1, t + 1)[0];
      d_log_z_next = in(kDLogZ, 1, t + 1)[0];
    }

    if (warp == 0 && more) remove<D>(s.Y, s.X, Work<D>(s.work), lane, pair, s.Lambda, s.identity, s.R);
    if (warp == 1) {
      invert<D>(s.F, s.Lambda, s.identity, Work<D>(s.work + Work<D>::size), lane);
      const double mean = times<D>(s.F, s.y, lane);
      if (lane < D) s.mf[lane] = mean;
    }
    if (warp == 2) {
      shift = shift_next;
      if (lane < D) {
        d_mean = in(kDMean, D, t)[lane];
        if (more) shift_next = in(kVShift, D, t + 1)[lane];
      }
      if (more) d_other.get(in(kDGain, DD, t), lane);
      get_node(t + 2);
    }
    if (warp == 2 && t + 2 < T) {
      coming.make(s.pair(t + 1), s.make, s.identity, lane, Q_next);
      if (t + 3 < T) coming.get(in(kA, DD, t + 2), in(kB, D, t + 2), in(kQ, DD, t + 2), lane);
    }
    if (warp == 3) {
      if (more) d_other.get(in(kDBack, DD, t), lane);
      root_cotangent<D, S>(s.Ps, s.root, s.root_columns, s.a, s.b, root, d_root, lane);
      get_root(t + 1);
    }
    __syncthreads();

    if (warp == 0 && more) advance<D>(s.Lambda, s.Y, pair, s.J + ((t + 1) & 1) * VjpShared<D>::node, lane);
    if (warp == 1) {  // of log_z: the filtered and the predicted moments
      gram<D>(s.F, s.F, lane, [&](int i, int j, double v) {
        s.Pf[i * DS + j] = v;
        saved.node[i * DS + j] = -weight / 2 * (s.mf[i] * s.mf[j] + v);
        saved.before[i * DS + j] = weight / 2 * (s.m[i] * s.m[j] + s.Pm[i * DS + j]);
      });
      if (lane < D) {
        saved.node_eta[lane] = weight * s.mf[lane];
        saved.before_eta[lane] = -weight * s.m[lane];
      }
      __syncwarp();
      if (more) {
        gram<D>(pair.A, s.Pf, lane, [&](int i, int j, double v) { s.AP[i * DS + j] = v; });
        __syncwarp();
        gram<D>(s.AP, pair.A, lane, [&](int i, int j, double v) { s.Pm[i * DS + j] = v + Q[i * DS + j]; });
      }
    }
    if (warp == 2) {  // the cotangents of m_t and P_t
      if (lane < D) s.mean[lane] = s.m[lane] + double(shift);
      __syncwarp();
      const double Jm = times<D>(J, s.mean, lane);
      if (lane < D) {
        s.sigma[lane] += double(d_mean) + d_kl * (h[lane] - Jm);
        saved.direct_h[lane] = d_kl * s.mean[lane];
      }
      for (int n = lane; n < DD; n += kWarp) {
        const int i = n / D, j = n % D, at = i * DS + j;
        s.Om[at] += (s.Ps[at] + s.Ps[j * DS + i] - d_kl * J[at]) / 2;
        saved.direct[at] = -d_kl / 2 * (s.mean[i] * s.mean[j] + P[at]);
      }
    }
    if (warp == 3 && more) {  // of the backward root B = R^-1: sym(R' phi(B' dB) R)
      d_other.put_columns(s.a, lane);
      for (int n = lane; n < DD; n += kWarp) s.b[n / D * DS + n % D] = s.X[n % D * DS + n / D];
      __syncwarp();
      gram<D>(s.b, s.a, lane, [&](int i, int j, double v) { s.root[i * DS + j] = phi(i, j, v); });
      __syncwarp();
      gram<D>(s.root, s.R, lane, [&](int i, int j, double v) { s.a[j * DS + i] = v; });
      __syncwarp();
      gram<D>(s.R, s.a, lane, [&](int i, int j, double v) { s.Ub[i * DS + j] = v; });
    }
    __syncthreads();

    if (!more) {  // m_T = Lambda^-1 eta, P_T = Lambda^-1
      if (warp == 0) {
        gram<D>(s.Pf, s.Om, lane, [&](int i, int j, double v) { s.T1[i * DS + j] = v; });
        const double v = times<D>(s.Pf, s.sigma, lane);
        if (lane < D) s.Us[lane] = v;
        __syncwarp();
        gram<D>(s.T1, s.Pf, lane, [&](int i, int j, double w) {
          saved.node[i * DS + j] -= w + (s.Us[i] * s.mf[j] + s.mf[i] * s.Us[j]) / 2;
        });
        if (lane < D) saved.node_eta[lane] += v;
      }
      break;
    }
    if (warp == 0) {
      gram<D>(s.X, s.Y, lane, [&](int i, int j, double v) { s.Gr[i * DS + j] = s.Gc[j * DS + i] = saved.G[i * DS + j] = v; });
      __syncwarp();
      gram<D>(s.Om, s.Gc, lane, [&](int i, int j, double v) { s.OGr[i * DS + j] = s.OGc[j * DS + i] = v; });
    }
    if (warp == 1) {
      gram<D>(s.X, s.X, lane, [&](int i, int j, double v) {
        s.U[i * DS + j] = v;
        s.Ut[i * DS + j] = s.Om[i * DS + j] + (s.Ub[i * DS + j] + s.Ub[j * DS + i]) / 2;
      });
      __syncwarp();
      gram<D>(s.U, s.Ut, lane, [&](int i, int j, double v) { s.UU[i * DS + j] = v; });
      __syncwarp();
      gram<D>(s.UU, s.U, lane, [&](int i, int j, double v) { s.T2[i * DS + j] = v; });
      const double v = times<D>(s.U, s.sigma, lane);
      if (lane < D) s.Us[lane] = saved.r[lane] = v;
    }
    if (warp == 2) {
      const double c = times<D>(s.X, s.u, lane), m = times<D>(pair.A, s.mf, lane);
      if (lane < D) {
        s.c[lane] = saved.c[lane] = c;
        s.m[lane] = m + pair.b[lane];
        s.mean1[lane] = s.m[lane] + double(shift_next);
      }
      symmetric<D>(saved.K, pair.WW, lane);
      d_other.put(s.Ps, lane);  // the cotangent of the gain
    }
    if (warp == 3) covariance(P_next);
    __syncthreads();

    if (warp == 1) {
      gram<D>(s.OGr, P_next, lane, [&](int i, int j, double v) {
        s.Gb[j * DS + i] = s.Ps[i * DS + j] + s.sigma[i] * s.mean1[j] + 2 * v;
      });
      __syncwarp();
      gram<D>(s.U, s.Gb, lane, [&](int i, int j, double v) { s.Cb[i * DS + j] = saved.C[i * DS + j] = v; });
      __syncwarp();
      gram<D>(s.Cb, s.Gr, lane, [&](int i, int j, double v) { s.T1[i * DS + j] = v; });
    }
    if (warp == 0) {
      gram<D>(s.Gc, s.OGc, lane, [&](int i, int j, double v) { s.Om2[i * DS + j] = v; });
      const double v = times<D>(s.Gc, s.sigma, lane);
      if (lane < D) s.sigma2[lane] = v;
    }
    if (warp == 2) put_node(t + 2);
    __syncthreads();
    for (int n = thread; n < DD; n += kVjpThreads) {
      const int i = n / D, j = n % D, at = i * DS + j, other = j * DS + i;
      saved.S[at] = -(s.T1[at] + s.T1[other] + s.Us[i] * s.c[j] + s.Us[j] * s.c[i]) / 2 - s.T2[at];
      s.Om[at] = (s.Om2[at] + s.Om2[other]) / 2;
    }
    if (thread < D) s.sigma[thread] = s.sigma2[thread];
    __syncthreads();
  }
  __syncthreads();
}

template <int D, class S>
__device__ inline void vjp_backward(const Args& a, long long sequence, VjpShared<D>& s) {
  using Z = Size<D>;
  constexpr int DS = Z::DS, DD = D * D;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, T = a.T, thread = threadIdx.x;
  auto in = [&](int which, long long size, int t) { return s.template in<S>(which, size, t); };
  auto out = [&](int which, long long size, int t, long long steps) {
    return output<S>(a, which, sequence, size * steps) + (long long)t * size;
  };
  double* scratch = a.scratch + sequence * a.scratch_size;
  double *Pi = s.Om, *pi = s.sigma, *G = s.Gr, *GPi = s.OGr, *Sb = s.T1, *K = s.U, *A = s.Pf, *H1 = s.AP,
         *HA = s.OGc, *HK = s.Y, *Kb = s.Ut, *KK = s.UU, *Qb = s.T2, *Q = s.Gc, *gp = s.u, *r = s.y, *c = s.c, *b = s.m,
         *v = s.mf, *Kbs = s.R, *Sl = s.X, *Cl = s.F, *rl = s.mean;

  Fetch<D, S> root;
  // The cotangent of Q's root (or of the first state's) from that of K = Q^-1; by warp 0, which has the root at hand.
  auto noise = [&](S* d_root) {
    if (warp != 0) return;
    root.put_columns(Q, lane);
    __syncwarp();
    gram<D>(K, Kbs, lane, [&](int i, int j, double x) { KK[i * DS + j] = x; });
    __syncwarp();
    gram<D>(KK, K, lane, [&](int i, int j, double x) { Qb[i * DS + j] = -2 * x; });
    __syncwarp();
    gram<D>(Qb, Q, lane, [&](int i, int j, double x) { d_root[i * D + j] = S(x); });
  };

  // Each thread fetches its entries of the step before ahead.
  constexpr int N = (DD + kVjpThreads - 1) / kVjpThreads;
  double at_G[N], at_K[N], at_S[N], at_C[N], at_node[N], at_before[N], at_direct[N], own[5];
  S at_A[N], at_b = 0;
  auto fetch = [&](int t) {
    if (t < 0) return;
    const Saved<D> saved(scratch + (long long)t * Saved<D>::size);
    const bool more = t + 1 < T;
#pragma unroll
    for (int q = 0; q < N; q++) {
      const int n = thread + q * kVjpThreads, at = n / D * DS + n % D;
      if (n >= DD) continue;
      at_node[q] = saved.node[at];
      at_before[q] = saved.before[at];
      at_direct[q] = saved.direct[at];
      if (!more) continue;
      at_G[q] = saved.G[at];
      at_K[q] = saved.K[at];
      at_S[q] = saved.S[at];
      at_C[q] = saved.C[at];
      at_A[q] = in(kA, DD, t)[n];
    }
    if (thread < D) {
      own[0] = saved.node_eta[thread];
      own[1] = saved.before_eta[thread];
      own[2] = saved.direct_h[thread];
      if (more) {
        own[3] = saved.c[thread];
        own[4] = saved.r[thread];
        at_b = in(kB, D, t)[thread];
      }
    }
    if (warp == 0 && more) root.get(in(kQ, DD, t), lane);
  };
  fetch(T - 1);
  for (int t = T - 1; t >= 0; t--) {
    const bool more = t + 1 < T;
    if (more) {
#pragma unroll
      for (int q = 0; q < N; q++) {
        const int n = thread + q * kVjpThreads, at = n / D * DS + n % D;
        if (n >= DD) continue;
        G[at] = at_G[q];
        K[at] = at_K[q];
        A[at] = at_A[q];
        Sl[at] = at_S[q];
        Cl[at] = at_C[q];
      }
      if (thread < D) {
        c[thread] = own[3];
        rl[thread] = own[4];
        b[thread] = at_b;
      }
      __syncthreads();
      if (warp == 0) gram<D>(G, Pi, lane, [&](int i, int j, double x) { GPi[i * DS + j] = x; });
      if (warp == 1) {
        const double x = times<D>(G, pi, lane);
        if (lane < D) {
          gp[lane] = x;
          r[lane] = rl[lane] + x;
        }
        __syncwarp();
        const double y = times<D>(A, r, lane);
        if (lane < D) v[lane] = pi[lane] - y;
        __syncwarp();
        const double d_b = times<D>(K, v, lane);
        if (lane < D) out(kB, D, t, T - 1)[lane] = S(d_b);
      }
      __syncthreads();
      if (warp == 0) {
        gram<D>(GPi, G, lane, [&](int i, int j, double x) {
          Sb[i * DS + j] = Sl[i * DS + j] + x - (gp[i] * c[j] + gp[j] * c[i]) / 2;
        });
        __syncwarp();
        gram<D>(A, Sb, lane, [&](int i, int j, double x) {
          const double H2 = Cl[j * DS + i] - 2 * GPi[j * DS + i] + c[j] * pi[i] - b[i] * r[j];
          HA[j * DS + i] = 2 * x + H2;
          HK[i * DS + j] = x + H2;
        });
      }
      __syncthreads();
      if (warp == 1) gram<D>(K, HA, lane, [&](int i, int j, double x) { out(kA, DD, t, T - 1)[i * D + j] = S(x); });
      if (warp == 0) {
        gram<D>(HK, A, lane, [&](int i, int j, double x) { Kb[i * DS + j] = x + pi[i] * b[j]; });
        __syncwarp();
        for (int n = lane; n < DD; n += kWarp) {
          const int i = n / D, j = n % D, at = i * DS + j;
          Kbs[at] = Pi[at] + (Kb[at] + Kb[j * DS + i]) / 2;
        }
        __syncwarp();
        noise(out(kQ, DD, t, T - 1));
      }
      __syncthreads();
    }
#pragma unroll
    for (int q = 0; q < N; q++) {
      const int n = thread + q * kVjpThreads, i = n / D, j = n % D, at = i * DS + j;
      if (n >= DD) continue;
      const double node = at_node[q] + (more ? (Sb[at] + Sb[j * DS + i]) / 2 : 0);
      out(kJ, DD, t, T)[n] = S(node + at_direct[q]);
      Pi[at] = node + at_before[q];
    }
    if (thread < D) {
      const double node = own[0] + (more ? r[thread] : 0);
      out(kH, D, t, T)[thread] = S(node + own[2]);
      pi[thread] = node + own[1];
    }
    fetch(t - 1);
    __syncthreads();
  }
  const Saved<D> first(scratch + (long long)T * Saved<D>::size);
  for (int n = thread; n < DD; n += kVjpThreads) {
    const int i = n / D, j = n % D;
    K[i * DS + j] = first.K[i * DS + j];
    const S* mean0 = in(kMean0, D, 0);
    Kbs[i * DS + j] = Pi[i * DS + j] + (pi[i] * mean0[j] + pi[j] * mean0[i]) / 2;
  }
  __syncthreads();
  root.get(in(kSqrt0, DD, 0), lane);
  noise(out(kSqrt0, DD, 0, 1));
  if (warp == 1) {
    const double x = times<D>(K, pi, lane);
    if (lane < D) out(kMean0, D, 0, 1)[lane] = S(x);
  }
}

template <int D, class S>
__device__ inline void smooth_vjp(const Args& a, double* shared) {
  VjpShared<D> s(begin_shared<D>(shared, VjpShared<D>::shared), shared);
  s.template find<S>(a, blockIdx.x);
  vjp_forward<D, S>(a, blockIdx.x, s);
  vjp_backward<D, S>(a, blockIdx.x, s);
}

}  // namespace svae
