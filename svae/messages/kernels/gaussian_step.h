// One step of the Gaussian chain in square-root covariance form, of W sequences in lanes.
//
// L is the lower root of a predicted covariance, F = L R^-1 of the filtered one, with R'R = I + L'JL, R lower.
#pragma once
#include "arena.h"
#include "factor.h"
#include "functions.h"

namespace svae::SVAE_VARIANT {

// The means of an update, by substitution: g = h - J m, pull = F'g, d = F pull, R w = pull, L'u = w.
template <class S, int W>
struct UpdateMeans {
  using V = Lanes<S, W>;
  template <int N, class X>
  static __attribute__((noinline)) void run(int d, X* s) {
    const int D = N ? N : d;
    V x[kRoom<N>], y[kRoom<N>];
    SVAE_ROW(i, 0) x[i] = s->h[i];
    for (int j = 0; j < D; j++) SVAE_ROW(i, 0) x[i] -= s->J[i * D + j] * s->m[j];
    SVAE_ROW(i, 0) s->g[i] = x[i], y[i] = V{};
    SVAE_ROW(i, 0) SVAE_UNROLL for (int c = 0; c <= i; c++) y[c] += s->F[i * D + c] * x[i];
    SVAE_ROW(i, 0) s->pull[i] = y[i], x[i] = V{};
    SVAE_ROW(c, 0) SVAE_UNROLL for (int i = c; i < D; i++) x[i] += s->F[i * D + c] * y[c];
    SVAE_ROW(i, 0) s->d[i] = x[i], s->mean[i] = s->m[i] + x[i];
    SVAE_ROW(c, 0) {
      y[c] *= s->R_scale[c];
      SVAE_UNROLL for (int i = c + 1; i < D; i++) y[i] -= s->R[i * D + c] * y[c];
    }
    SVAE_ROW(i, 0) s->w[i] = y[i];
    SVAE_UNROLL for (int c = D - 1; c >= 0; c--) {
      y[c] *= s->L_scale[c];
      SVAE_UNROLL for (int i = 0; i < c; i++) y[i] -= s->L[c * D + i] * y[c];
    }
    SVAE_ROW(i, 0) s->u[i] = y[i];
  }
};

// The moments of one step as the potential meets them, and what the update leaves.
template <class S, int W>
struct Step {
  using V = Lanes<S, W>;
  V *J, *h, *L, *L_scale, *inverse, *R, *R_scale, *R_inverse, *F, *m, *g, *pull, *d, *mean, *w, *u, *scratch;

  static int64_t size(int D) { return 7 * D * D + 10 * D; }
  Step(Arena<V>& a, int D)
      : J(a.take(D * D)), h(a.take(D)), L(a.take(D * D)), L_scale(a.take(D)), inverse(a.take(D * D)), R(a.take(D * D)),
        R_scale(a.take(D)), R_inverse(a.take(D * D)), F(a.take(D * D)), m(a.take(D)), g(a.take(D)), pull(a.take(D)),
        d(a.take(D)), mean(a.take(D)), w(a.take(D)), u(a.take(D)), scratch(a.take(D * D)) {}

  // Needs J, h, L, the inverses of its diagonal and m.
  void update(int D) {
    multiply<V, false, Full, false, Lower>(D, scratch, J, L, S(1));
    multiply<V, true, Upper, false, Full, Lower>(D, R, L, scratch, S(1));
    for (int i = 0; i < D; i++) R[i * D + i] += S(1);
    reverse_cholesky<S, W>(D, R, R_scale);
    if constexpr (W > 1) {
      solve_lower<S, W>(D, F, L, R, R_scale);
      sized<UpdateMeans, S, W>(D, this);
    } else {
      invert<S, W>(D, R_inverse, R);
      multiply<V, false, Lower, false, Lower, Lower>(D, F, L, R_inverse, S(1));
      clear_upper(D, F);
      times_transposed(D, g, J, m);  // J is symmetric
      for (int i = 0; i < D; i++) g[i] = h[i] - g[i];
      times_transposed(D, pull, F, g);
      times(D, d, F, pull);
      for (int i = 0; i < D; i++) mean[i] = m[i] + d[i];
      times(D, w, R_inverse, pull);
      times_transposed(D, u, inverse, w);
    }
  }

  // What only derivatives read.
  void invert_root(int D) {
    if constexpr (W > 1) invert<S, W>(D, R_inverse, R);
  }

  V log_determinant(int D) const {
    if constexpr (W == 1 && sizeof(S) == 4) {
      if (in_lanes<S>(D)) return log_determinant_one(D);
    }
    LogProduct<S, W> product;
    for (int i = 0; i < D; i++) product.times(R[i * D + i]);
    return product.log();
  }

  // The logarithms of one sequence's diagonal at once.
  S log_determinant_one(int D) const {
    constexpr int lanes = kLanes<S>;
    const Row<S> diagonal = lane_numbers<S>() < splat<S, lanes>(S(D)) ? load<S, lanes>(R_scale) : splat<S, lanes>(1);
    return -sum_of_lanes<S>(logarithm<S, lanes>(diagonal));
  }

  S log_z_one(int D, S logdet) const {
    const auto of = [D](const S* x) { return load_some<S, kLanes<S>>(x, D); };
    return S(0.5) * sum_of_lanes<S>(of(m) * (of(h) + of(g)) + of(pull) * of(pull)) - logdet;
  }

  V log_z(int D, V logdet) const {
    if constexpr (W == 1) {
      if (in_lanes<S>(D)) return log_z_one(D, logdet);
    }
    V s{};
    for (int i = 0; i < D; i++) s += m[i] * (h[i] + g[i]) + pull[i] * pull[i];
    return S(0.5) * s - logdet;
  }
};

}  // namespace svae::SVAE_VARIANT
