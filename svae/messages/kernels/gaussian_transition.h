// The transition between two steps of the Gaussian chain, and the reading of its parts.
#pragma once
#include "gaussian_step.h"

namespace svae::SVAE_VARIANT {

enum ChainInput { kMean0, kSqrt0, kA, kB, kQ, kJ, kH };

// The transition out of a step: reads A, b, Q and makes the next predicted moments.
template <class S, int W>
struct Transition {
  using V = Lanes<S, W>;
  V *A, *b, *Q, *AF, *L, *L_scale, *inverse, *vectors, *m;
  Reflection<V>* h;
  bool steady = false;     // A, b and Q, lower, serve every step
  const S* one = nullptr;  // A of all lanes and steps

  static int64_t size(int D) { return 6 * D * D + 6 * D; }
  Transition(Arena<V>& a, int D)
      : A(a.take(D * D)), b(a.take(D)), Q(a.take(D * D)), AF(a.take(D * D)), L(a.take(D * D)), L_scale(a.take(D)),
        inverse(a.take(D * D)), vectors(a.take(D * D)), m(a.take(D)),
        h(reinterpret_cast<Reflection<V>*>(a.take(3 * D))) {}

  // The mean, and the parts of the root: `noise`, lower, and A F.
  void begin(int D, const Step<S, W>& from) {
    if (!steady && !is_lower<S, W>(D, L)) lower_root<S, W>(D, L);
    if (one)
      push(D, one, from);
    else
      push(D, A, from);
    for (int i = 0; i < D; i++) m[i] += b[i];
  }
  template <class M>
  void push(int D, const M* A, const Step<S, W>& from) {
    multiply<V, false, Full, false, Lower>(D, AF, A, from.F, S(1));
    times(D, m, A, from.mean);
  }
  V* noise() const { return steady ? Q : L; }

  // One sequence with its rows in lanes takes all of these transposed: `flip` them when they are read.
  void flip(int D) {
    if (!steady && !is_lower<S, W>(D, L)) lower_root<S, W>(D, L);
    svae::SVAE_VARIANT::flip(D, A);
    svae::SVAE_VARIANT::flip(D, noise());
  }
  void begin_flipped(int D, const Step<S, W>& from) {
    multiply<V, true, Upper, false, Full>(D, AF, from.F, A, S(1));
    times_transposed(D, m, A, from.mean);
    for (int i = 0; i < D; i++) m[i] += b[i];
  }
  void predict(int D, const Step<S, W>& from) {
    begin(D, from);
    if (steady) copy(L, Q, D * D);
    copy(vectors, AF, D * D);
    triangularize<S, W>(D, L, vectors, h);
    for (int i = 0; i < D; i++) L_scale[i] = h[i].inverse;
    finish(D);
  }
  // One sequence alone updates with the inverse.
  void finish(int D) {
    if constexpr (W == 1) invert<S, W>(D, inverse, L);
  }

  // What only derivatives read.
  void invert_root(int D) {
    if constexpr (W > 1) invert<S, W>(D, inverse, L);
  }

  // Hands the next predicted moments over.
  void arrive(Step<S, W>& to) {
    std::swap(to.L, L);
    std::swap(to.L_scale, L_scale);
    std::swap(to.inverse, inverse);
    std::swap(to.m, m);
  }
};

template <class S, int W>
struct ChainReader {
  Reader<S, W> mean0, sqrt0, A, b, Q, J, h;

  ChainReader(const Call<S>& c, int64_t first)
      : mean0(c.in[kMean0], first, c.batch), sqrt0(c.in[kSqrt0], first, c.batch), A(c.in[kA], first, c.batch),
        b(c.in[kB], first, c.batch), Q(c.in[kQ], first, c.batch), J(c.in[kJ], first, c.batch),
        h(c.in[kH], first, c.batch) {}

  void start(int D, Step<S, W>& x) const {
    mean0(x.m, 0, D);
    sqrt0(x.L, 0, D * D);
    lower_root<S, W>(D, x.L);
    for (int i = 0; i < D; i++) x.L_scale[i] = S(1) / x.L[i * D + i];
    invert<S, W>(D, x.inverse, x.L);
  }
  void potential(int D, int64_t t, Step<S, W>& x) const {
    J(x.J, t * D * D, D * D);
    h(x.h, t * D, D);
  }
  bool steady() const { return A.steady && b.steady && Q.steady; }
  void transition(int D, int64_t t, Transition<S, W>& x) const {
    if (x.steady) return;
    A(x.A, t * D * D, D * D);
    b(x.b, t * D, D);
    Q(x.L, t * D * D, D * D);
    if (steady()) keep(D, x);
  }
  // Dynamics of every step.
  void keep(int D, Transition<S, W>& x) const {
    copy(x.Q, x.L, D * D);
    if (!is_lower<S, W>(D, x.Q)) lower_root<S, W>(D, x.Q);
    if (W > 1 && A.shared) x.one = A.p[0];
    clear_upper(D, x.L);
    x.steady = true;
  }
};

}  // namespace svae::SVAE_VARIANT
