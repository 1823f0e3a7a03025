// SIMD lanes: W sequences side by side in one vector type, and the transposes that bring them in and out of it.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#ifdef __AVX2__
#include <immintrin.h>
#endif

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

// 1 / sqrt(x) and 1 / x to a unit or so in the last place: an estimate and steps of Newton's where there is one.
template <class S, class V>
inline V towards_root(V y, V x) {
  return y + y * (S(0.5) - x * y * (S(0.5) * y));
}

template <class S, int W>
inline Lanes<S, W> reciprocal_root(Lanes<S, W> x) {
  using V [[maybe_unused]] = Lanes<S, W>;
#if SVAE_BYTES == 64 && defined(__AVX512VL__)
  if constexpr (sizeof(S) == 4 && W == 16) return towards_root<S, V>(_mm512_rsqrt14_ps(x), x);
  if constexpr (sizeof(S) == 4 && W == 8) return towards_root<S, V>(_mm256_rsqrt14_ps(x), x);
  if constexpr (sizeof(S) == 8 && W == 8) return towards_root<S, V>(towards_root<S, V>(_mm512_rsqrt14_pd(x), x), x);
#elif SVAE_BYTES == 32 && defined(__AVX2__)
  if constexpr (sizeof(S) == 4 && W == 8) return towards_root<S, V>(towards_root<S, V>(_mm256_rsqrt_ps(x), x), x);
#endif
  return S(1) / root<S, W>(x);
}

template <class S, int W>
inline Lanes<S, W> reciprocal(Lanes<S, W> x) {
#if SVAE_BYTES == 64 && defined(__AVX512VL__)
  if constexpr (sizeof(S) == 4 && W >= 8) {
    Lanes<S, W> y;
    if constexpr (W == 16)
      y = _mm512_rcp14_ps(x);
    else
      y = _mm256_rcp14_ps(x);
    return y + y * (S(1) - x * y);
  }
#endif
  return S(1) / x;
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

// Past the caches, which saves fetching a line before it is written; p is aligned.
template <class V>
inline void stream(V* p, const V& v) {
#ifdef __AVX2__
  if constexpr (sizeof(V) == 32) return _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
#endif
#ifdef __AVX512F__
  if constexpr (sizeof(V) == 64) return _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
#endif
  *p = v;
}

// A plain loop: what compilers make of memcpy for a few kilobytes starts slowly.
template <class V>
inline void copy(V* __restrict to, const V* __restrict from, int n) {
#pragma omp simd
  for (int i = 0; i < n; i++) to[i] = from[i];
}

// One number from all lanes, by halves.
template <class S, int W, int... I>
inline Lanes<S, W / 2> half(Lanes<S, W> x, int from, std::integer_sequence<int, I...>) {
  if constexpr (W == 2)
    return x[from];
  else if (from)
    return __builtin_shufflevector(x, x, (W / 2 + I)...);
  else
    return __builtin_shufflevector(x, x, I...);
}

template <class S, int W, class F>
inline S fold(Lanes<S, W> x, F f) {
  if constexpr (W == 1) {
    return x;
  } else {
    constexpr std::make_integer_sequence<int, W / 2> all{};
    return fold<S, W / 2>(f(half<S, W>(x, 0, all), half<S, W>(x, W / 2, all)), f);
  }
}

}  // namespace svae::SVAE_VARIANT
