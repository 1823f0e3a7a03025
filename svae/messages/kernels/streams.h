// Bringing W sequences into lanes and out of them, by transposing tiles.
#pragma once
#include "transpose.h"

namespace svae::SVAE_VARIANT {

// Asks for what lies ahead of entry i of a step, once for each line of 64 bytes. (Not inlined, it would be taken for
// a function without effect.)
template <class S, int W, class P>
inline __attribute__((always_inline)) void fetch(const P* p, int64_t at, int i, int64_t ahead) {
  if (i * sizeof(S) % 64 >= W * sizeof(S)) return;
#pragma GCC unroll 16
  for (int l = 0; l < W; l++) __builtin_prefetch(p[l] + at + ahead, 0, 2);
}

template <class S, int W>
struct Reader {
  using V = Lanes<S, W>;
  const S* p[W];
  bool shared, steady;

  Reader(const Operand<S>& x, int64_t first, int64_t batch) : shared(x.shared), steady(x.steady) {
    for (int i = 0; i < W; i++) p[i] = x.data + x.offset[first + i < batch ? first + i : batch - 1];
  }

  Reader(const Output<S>& x, int64_t first, int64_t batch) : shared(false), steady(false) {
    for (int i = 0; i < W; i++) p[i] = x.data + x.size * (first + i < batch ? first + i : batch - 1);
  }

  // n consecutive entries of each sequence, from `at`; the next ones needed are further on, or `back`. They are fetched
  // ahead, into the second cache (the first is full of matrices): W sequences are more streams than it follows.
  void operator()(V* out, int64_t at, int n, bool back = false) const {
    if constexpr (W == 1) {
      copy(out, p[0] + (steady ? 0 : at), n);
    } else {
      each(at, n, back, [&](int i, V x) { out[i] = x; });
    }
  }

  // f(i, entry i in lanes); some come twice.
  template <class F>
  inline __attribute__((always_inline)) void each(int64_t at, int n, bool back, F f) const {
    const int64_t ahead = back ? -2 * n : 2 * n;
    if (steady) at = 0;
    if (shared) {
      for (int i = 0; i < n; i++) f(i, splat<S, W>(p[0][at + i]));
    } else if (n < W) {
      V v[W] = {};
      for (int l = 0; l < W; l++) v[l] = load_some<S, W>(p[l] + at, n);
      transpose<S, W>(v);
      for (int i = 0; i < n; i++) f(i, v[i]);
    } else {
      for (int i = 0; i < n; i += W) block(at, i + W <= n ? i : n - W, ahead, f);
    }
  }

  template <class F>
  inline __attribute__((always_inline)) void block(int64_t at, int i, int64_t ahead, F f) const {
    V v[W];
    load_across<S, W>(v, p, at + i);
    fetch<S, W>(p, at + i, i, ahead);
#pragma GCC unroll 16
    for (int l = 0; l < W; l++) f(i + l, v[l]);
  }
};

template <class S, int W>
struct Writer {
  using V = Lanes<S, W>;
  S* p[W];

  // Lanes beyond the batch repeat its last sequence, and write its values once more.
  Writer(const Output<S>& x, int64_t first, int64_t batch) {
    for (int i = 0; i < W; i++) p[i] = x.data + x.size * (first + i < batch ? first + i : batch - 1);
  }

  void operator()(const V* in, int64_t at, int n, bool back = false) const {
    const int64_t ahead = back ? -2 * n : 2 * n;
    if constexpr (W == 1) {
      copy(p[0] + at, in, n);
    } else if (n == 1) {
      for (int l = 0; l < W; l++) p[l][at] = in[0][l];
    } else if (n < W) {
      V v[W] = {};
      for (int i = 0; i < n; i++) v[i] = in[i];
      transpose<S, W>(v);
      for (int l = 0; l < W; l++) store_some<S, W>(p[l] + at, v[l], n);
    } else {
      for (int i = 0; i < n; i += W) block(in, at, i + W <= n ? i : n - W, ahead);
    }
  }

  void block(const V* in, int64_t at, int i, int64_t ahead) const {
    V v[W];
#pragma GCC unroll 16
    for (int l = 0; l < W; l++) v[l] = in[i + l];
    store_across<S, W>(p, at + i, v);
    fetch<S, W>(p, at + i, i, ahead);
  }
};

}  // namespace svae::SVAE_VARIANT
