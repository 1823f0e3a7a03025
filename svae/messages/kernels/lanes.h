// SIMD lanes: W sequences side by side in one vector type, and the transposes that bring them in and out of it.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "call.h"

namespace svae::SVAE_VARIANT {

template <class S, int W>
struct Vector {
  typedef S type __attribute__((vector_size(W * sizeof(S))));
};
template <class S>
struct Vector<S, 1> {
  using type = S;
};
template <class S, int W>
using Lanes = typename Vector<S, W>::type;

template <class S>
struct Bits {
  using type = int32_t;
  static constexpr int mantissa = 23, bias = 127;
};
template <>
struct Bits<double> {
  using type = int64_t;
  static constexpr int mantissa = 52, bias = 1023;
};

template <class S, int W>
inline Lanes<S, W> splat(S x) {
  return Lanes<S, W>{} + x;
}

template <class S, int W>
inline void each_lane(Lanes<S, W>& v, S (*f)(S)) {
  if constexpr (W == 1) {
    v = f(v);
  } else {
    for (int i = 0; i < W; i++) v[i] = f(v[i]);
  }
}

template <class S, int W>
inline Lanes<S, W> root(Lanes<S, W> v) {
  if constexpr (W == 1) {
    return std::sqrt(v);
  } else {
    Lanes<S, W> r;
    for (int i = 0; i < W; i++) r[i] = std::sqrt(v[i]);  // one instruction: no errno
    return r;
  }
}

template <class S, int W>
inline S get(const Lanes<S, W>& v, int i) {
  if constexpr (W == 1) {
    return v;
  } else {
    return v[i];
  }
}

template <class S, int W>
inline Lanes<S, W> load(const S* p) {
  Lanes<S, W> v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

template <class S, int W>
inline void store(S* p, Lanes<S, W> v) {
  std::memcpy(p, &v, sizeof(v));
}

// A plain loop: what compilers make of memcpy for a few kilobytes starts slowly.
template <class V>
inline void copy(V* __restrict to, const V* __restrict from, int n) {
  for (int i = 0; i < n; i++) to[i] = from[i];
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
  // ahead: W sequences are more streams than a processor follows by itself.
  void operator()(V* out, int64_t at, int n, bool back = false) const {
    const int64_t ahead = back ? -2 * n : 2 * n;
    if constexpr (W == 1) {
      std::memcpy(out, p[0] + at, n * sizeof(S));
    } else if (shared) {
      for (int i = 0; i < n; i++) out[i] = splat<S, W>(p[0][at + i]);
    } else if (n < W) {
      V v[W] = {};
      for (int l = 0; l < W; l++) std::memcpy(&v[l], p[l] + at, n * sizeof(S));
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
      __builtin_prefetch(p[l] + at + i + ahead);
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
      std::memcpy(p[0] + at, in, n * sizeof(S));
    } else if (n == 1) {
      for (int l = 0; l < W; l++) p[l][at] = in[0][l];
    } else if (n < W) {
      V v[W] = {};
      for (int i = 0; i < n; i++) v[i] = in[i];
      transpose<S, W>(v);
      for (int l = 0; l < W; l++) std::memcpy(p[l] + at, &v[l], n * sizeof(S));
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
      __builtin_prefetch(p[l] + at + i + ahead, 1);
    }
  }
};

// log of a product of positive numbers that may overflow: exponents are added apart.
template <class S, int W>
struct LogProduct {
  using V = Lanes<S, W>;
  using B = Bits<S>;
  using I = Lanes<typename B::type, W>;
  V mantissa = splat<S, W>(1);
  V exponent = splat<S, W>(0);

  void times(V x) {
    I bits;
    std::memcpy(&bits, &x, sizeof(x));
    I power = (bits >> B::mantissa) - B::bias;
    bits -= power << B::mantissa;
    V rest;
    std::memcpy(&rest, &bits, sizeof(x));
    mantissa *= rest;
    if constexpr (W == 1) {
      exponent += S(power);
    } else {
      exponent += __builtin_convertvector(power, V);
    }
  }
  V log() const {
    V r = mantissa;
    each_lane<S, W>(r, [](S x) { return std::log(x); });
    return r + exponent * S(0.693147180559945309417);
  }
};

}  // namespace svae::SVAE_VARIANT
