// What the first sweep of a derivative (forward in time) leaves to the second (back in time).
#pragma once
#include "gaussian.h"

namespace svae::SVAE_VARIANT {

// Between the sweeps it lies packed, triangles only, and what a product restores is left out: writing it out costs more
// than the arithmetic.
template <class S, int W>
class Kept {
  using V = Lanes<S, W>;
  static constexpr int64_t kCached = int64_t(8) << 20;
  const int D;
  const bool far_;  // more than the caches hold until it is read
  V** triangles_[4] = {&L, &R_inverse, &omega_f, &omega_Q};
  V** vectors_[6] = {&mean, &u, &w, &e, &sigma, &carried};

 public:
  V *L, *F, *R_inverse, *omega_f, *A_part, *omega_Q, *whitened_A, *mean, *u, *w, *e, *sigma, *carried;

  static constexpr int kLine = sizeof(V) < 64 ? 64 / sizeof(V) : 1;
  static int64_t size(int D) { return 7 * D * D + 6 * D; }
  static int64_t packed(int D) { return 2 * D * (D + 1) + D * D + 6 * D; }
  Kept(Arena<V>& a, int D, int64_t T) : D(D), far_(W > 1 && T * packed(D) * int64_t(sizeof(V)) > kCached) {
    for (V** x : {&L, &F, &R_inverse, &omega_f, &A_part, &omega_Q, &whitened_A}) {
      *x = a.take(D * D);
      for (int i = 0; i < D * D; i++) (*x)[i] = V{};
    }
    for (V** x : vectors_) *x = a.take(D);
  }
  Kept(const Kept&) = delete;

  void step(const Step<S, W>& x) {
    copy(L, x.L, D * D);
    copy(R_inverse, x.R_inverse, D * D);
    copy(mean, x.mean, D);
    copy(u, x.u, D);
    copy(w, x.w, D);
  }
  void save(V* p) const {
    if (far_) return send(p);
    const V* following = p + packed(D);  // asked for a step ahead, as what `restore` will read
    for (int64_t i = 0; i < packed(D); i += kLine) __builtin_prefetch(following + i, 1, 2);
    for (V** x : triangles_) pack(D, p, *x), p += D * (D + 1) / 2;
    copy(p, A_part, D * D), p += D * D;
    for (V** x : vectors_) copy(p, *x, D), p += D;
  }
  void send(V* p) const {
    for (V** x : triangles_)
      for (int i = 0; i < D; i++)
        for (int j = 0; j <= i; j++) stream(p++, (*x)[i * D + j]);
    for (int i = 0; i < D * D; i++) stream(p++, A_part[i]);
    for (V** x : vectors_)
      for (int i = 0; i < D; i++) stream(p++, (*x)[i]);
  }
  void restore(const V* p) {
    for (int64_t i = 1; i <= packed(D); i += kLine) __builtin_prefetch(p - i, 0, 2);
    for (V** x : triangles_) unpack(D, *x, p), p += D * (D + 1) / 2;
    copy(A_part, p, D * D), p += D * D;
    for (V** x : vectors_) copy(*x, p, D), p += D;
    mirror(D, omega_f);
    mirror(D, omega_Q);
    multiply<V, false, Lower, false, Lower, Lower>(D, F, L, R_inverse, S(1));
    clear_upper(D, F);
  }
};

}  // namespace svae::SVAE_VARIANT
