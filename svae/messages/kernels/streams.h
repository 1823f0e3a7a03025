// Bringing W sequences into lanes and out of them, by transposing tiles.
#pragma once
#include "lanes.h"

namespace svae::SVAE_VARIANT {

// The first n < W entries only.
template <class S, int W>
inline Lanes<S, W> load_some(const S* p, int n) {
#if SVAE_BYTES == 64 && defined(__AVX512F__)
  if constexpr (W == 16) return _mm512_maskz_loadu_ps(__mmask16((1u << n) - 1), p);
#endif
  Lanes<S, W> v{};
  std::memcpy(&v, p, n * sizeof(S));
  return v;
}

template <class S, int W>
inline void store_some(S* p, Lanes<S, W> v, int n) {
#if SVAE_BYTES == 64 && defined(__AVX512F__)
  if constexpr (W == 16) return _mm512_mask_storeu_ps(p, __mmask16((1u << n) - 1), v);
#endif
  std::memcpy(p, &v, n * sizeof(S));
}

// --- transposes: W vectors of W entries, by log2 W rounds of exchanging blocks ---------------------------------------

template <int W, int B>
inline constexpr int low_index(int i) {
  return (i & B) ? W + i - B : i;
}
template <int W, int B>
inline constexpr int high_index(int i) {
  return (i & B) ? W + i : i + B;
}

template <class V, int W, int B, int... I>
inline void exchange(V& a, V& b, std::integer_sequence<int, I...>) {
  V low = __builtin_shufflevector(a, b, low_index<W, B>(I)...);
  b = __builtin_shufflevector(a, b, high_index<W, B>(I)...);
  a = low;
}

template <class V, int W, int B>
inline void exchange_all(V* v) {
#pragma GCC unroll 16
  for (int i = 0; i < W; i++)
    if (!(i & B)) exchange<V, W, B>(v[i], v[i + B], std::make_integer_sequence<int, W>());
}

template <class S, int W>
inline void transpose(Lanes<S, W>* v) {
  using V = Lanes<S, W>;
  if constexpr (W >= 16) exchange_all<V, W, 8>(v);
  if constexpr (W >= 8) exchange_all<V, W, 4>(v);
  if constexpr (W >= 4) exchange_all<V, W, 2>(v);
  if constexpr (W >= 2) exchange_all<V, W, 1>(v);
}

// --- reading and writing W sequences ---------------------------------------------------------------------------------

template <class S, int W>
struct Reader {
  using V = Lanes<S, W>;
  const S* p[W];
  bool shared;

  Reader(const Operand<S>& x, int64_t first, int64_t batch) : shared(x.shared) {
    for (int i = 0; i < W; i++) p[i] = x.data + x.offset[first + i < batch ? first + i : batch - 1];
  }

  Reader(const Output<S>& x, int64_t first, int64_t batch) : shared(false) {
    for (int i = 0; i < W; i++) p[i] = x.data + x.size * (first + i < batch ? first + i : batch - 1);
  }

  // n consecutive entries of each sequence, from `at`; the next ones needed are further on, or `back`. They are fetched
  // ahead, into the second cache (the first is full of matrices): W sequences are more streams than it follows.
  void operator()(V* out, int64_t at, int n, bool back = false) const {
    const int64_t ahead = back ? -2 * n : 2 * n;
    if constexpr (W == 1) {
      copy(out, p[0] + at, n);
    } else if (shared) {
      for (int i = 0; i < n; i++) out[i] = splat<S, W>(p[0][at + i]);
    } else if (n < W) {
      V v[W] = {};
      for (int l = 0; l < W; l++) v[l] = load_some<S, W>(p[l] + at, n);
      transpose<S, W>(v);
      for (int i = 0; i < n; i++) out[i] = v[i];
    } else {
      for (int i = 0; i < n; i += W) block(out, at, i + W <= n ? i : n - W, ahead);
    }
  }

  void block(V* out, int64_t at, int i, int64_t ahead) const {
    V v[W];
#pragma GCC unroll 16
    for (int l = 0; l < W; l++) {
      v[l] = load<S, W>(p[l] + at + i);
      __builtin_prefetch(p[l] + at + i + ahead, 0, 2);
    }
    transpose<S, W>(v);
#pragma GCC unroll 16
    for (int l = 0; l < W; l++) out[i + l] = v[l];
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
    transpose<S, W>(v);
#pragma GCC unroll 16
    for (int l = 0; l < W; l++) {
      store<S, W>(p[l] + at + i, v[l]);
      __builtin_prefetch(p[l] + at + i + ahead, 0, 2);
    }
  }
};

}  // namespace svae::SVAE_VARIANT
