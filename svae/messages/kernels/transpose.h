// Transposes between W sequences in memory and W entries in lanes.
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

// W vectors of W entries, by log2 W rounds of exchanging blocks.
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

// From exchanging blocks of `From` on.
template <class S, int W, int From = W / 2>
inline void transpose(Lanes<S, W>* v) {
  using V = Lanes<S, W>;
  if constexpr (From >= 8) exchange_all<V, W, 8>(v);
  if constexpr (W >= 8) exchange_all<V, W, 4>(v);
  if constexpr (W >= 4) exchange_all<V, W, 2>(v);
  if constexpr (W >= 2) exchange_all<V, W, 1>(v);
}

#if defined(__AVX2__) && SVAE_BYTES >= 32
// Four by four within each half.
inline void transpose_fours(__m256* v) {
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    const __m256 a = _mm256_unpacklo_ps(v[i], v[i + 1]), b = _mm256_unpacklo_ps(v[i + 2], v[i + 3]);
    const __m256 c = _mm256_unpackhi_ps(v[i], v[i + 1]), d = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);
    v[i] = _mm256_shuffle_ps(a, b, 0x44);
    v[i + 1] = _mm256_shuffle_ps(a, b, 0xee);
    v[i + 2] = _mm256_shuffle_ps(c, d, 0x44);
    v[i + 3] = _mm256_shuffle_ps(c, d, 0xee);
  }
}
#endif

// W entries of each of W sequences into lanes. Halves that are loaded where they belong need no exchange.
template <class S, int W>
inline void load_across(Lanes<S, W>* v, const S* const* p, int64_t at) {
#if defined(__AVX2__) && SVAE_BYTES >= 32
  if constexpr (sizeof(S) == 4 && W == 8) {
    __m256 x[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      const float *low = p[i & 3] + at + (i & 4), *high = p[(i & 3) + 4] + at + (i & 4);
      x[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
    }
    transpose_fours(x);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) v[i] = x[i];
    return;
  }
#endif
#if SVAE_BYTES == 64 && defined(__AVX512DQ__)
  if constexpr (W == 16) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
      const int64_t from = at + (i & 8);
      const __m256 low = _mm256_loadu_ps(p[i & 7] + from), high = _mm256_loadu_ps(p[(i & 7) + 8] + from);
      v[i] = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
    }
    return transpose<S, W, 4>(v);
  }
#endif
#pragma GCC unroll 16
  for (int l = 0; l < W; l++) v[l] = load<S, W>(p[l] + at);
  transpose<S, W>(v);
}

// The same of four entries at a time, in few registers, for what is done beside other work.
template <class S, int W>
constexpr bool kFours = SVAE_BYTES == 64 && sizeof(S) == 4 && W == 16;

#if SVAE_BYTES == 64 && defined(__AVX512DQ__)
inline void load_four(__m512* v, const float* const* p, int64_t at) {
  __m512 x[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {  // a quarter of each vector from a sequence of its own
    x[i] = _mm512_broadcast_f32x4(_mm_loadu_ps(p[i] + at));
    x[i] = _mm512_mask_broadcast_f32x4(x[i], 0x00f0, _mm_loadu_ps(p[i + 4] + at));
    x[i] = _mm512_mask_broadcast_f32x4(x[i], 0x0f00, _mm_loadu_ps(p[i + 8] + at));
    x[i] = _mm512_mask_broadcast_f32x4(x[i], 0xf000, _mm_loadu_ps(p[i + 12] + at));
  }
  const __m512 a = _mm512_unpacklo_ps(x[0], x[1]), b = _mm512_unpacklo_ps(x[2], x[3]);
  const __m512 c = _mm512_unpackhi_ps(x[0], x[1]), d = _mm512_unpackhi_ps(x[2], x[3]);
  v[0] = _mm512_shuffle_ps(a, b, 0x44);
  v[1] = _mm512_shuffle_ps(a, b, 0xee);
  v[2] = _mm512_shuffle_ps(c, d, 0x44);
  v[3] = _mm512_shuffle_ps(c, d, 0xee);
}
#endif

// W entries in lanes to each of W sequences.
template <class S, int W>
inline void store_across(S* const* p, int64_t at, Lanes<S, W>* v) {
#if defined(__AVX2__) && SVAE_BYTES >= 32
  if constexpr (sizeof(S) == 4 && W == 8) {
    __m256 x[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) x[i] = v[i];
    transpose_fours(x);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      _mm256_storeu_ps(p[i] + at, _mm256_permute2f128_ps(x[i], x[i + 4], 0x20));
      _mm256_storeu_ps(p[i + 4] + at, _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
    }
    return;
  }
#endif
  transpose<S, W>(v);
#pragma GCC unroll 16
  for (int l = 0; l < W; l++) store<S, W>(p[l] + at, v[l]);
}

}  // namespace svae::SVAE_VARIANT
