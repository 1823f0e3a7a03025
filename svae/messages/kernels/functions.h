// exp and log of vectors. Single precision by polynomials (Cephes' coefficients), double precision by the C library.
#pragma once
#include "lanes.h"

namespace svae::SVAE_VARIANT {

#if SVAE_BYTES == 64 && defined(__AVX512F__)
// exp(x) = 2^(n / 16) exp(r) with n whole and |r| <= log(2) / 32: the roots of 2 lie in one register, three powers of r
// suffice, and log(2) as a float is right to 3e-9, so that one product takes n off x. Six multiplications: the rest
// costs nothing beside other work.
inline __m512 exponential_by_sixteenths(__m512 x) {
  alignas(64) static const int32_t roots[16] = {  // of 2^(i / 16), less what the shifted n adds below its power
                                                0x3f800000, 0x3f7daac3, 0x3f7b95c2, 0x3f79c3d3, 0x3f7837f0, 0x3f76f532,
                                                0x3f75fed7, 0x3f75583f, 0x3f7504f3, 0x3f7508a4, 0x3f75672a, 0x3f76248c,
                                                0x3f7744fd, 0x3f78ccdf, 0x3f7ac0c7, 0x3f7d257d};
  const __m512 magic = _mm512_set1_ps(12582912.0f);                          // 1.5 * 2^23
  const __m512 safe = _mm512_max_ps(_mm512_set1_ps(-88.0296919f), x);  // 2^-127, whose bits are all 0; nan stays
  const __m512 n = _mm512_fmadd_ps(safe, _mm512_set1_ps(23.0831207f), magic);
  const __m512 r = _mm512_fnmadd_ps(n - magic, _mm512_set1_ps(0.0433216989f), safe);
  const __m512i bits = _mm512_castps_si512(n), root = _mm512_permutexvar_epi32(bits, _mm512_load_si512(roots));
  const __m512 power = _mm512_castsi512_ps(_mm512_add_epi32(root, _mm512_slli_epi32(bits, 19)));
  const __m512 half = _mm512_fmadd_ps(r, _mm512_set1_ps(1.0f / 6), _mm512_set1_ps(0.5f));
  const __m512 more = r * _mm512_fmadd_ps(half, r, _mm512_set1_ps(1.0f));
  return _mm512_fmadd_ps(power, more, power);
}
#endif

// exp(x) for x <= 88; 0 below -88, and no more than it should be where the result would be denormal.
template <class S, int W>
inline Lanes<S, W> exponential(Lanes<S, W> x) {
  using V = Lanes<S, W>;
#if SVAE_BYTES == 64 && defined(__AVX512F__)
  if constexpr (sizeof(S) == 4 && W == 16) return exponential_by_sixteenths(x);
#endif
  if constexpr (sizeof(S) == 8) {
    each_lane<S, W>(x, [](S v) { return std::exp(v); });
    return x;
  } else {
    using I = Lanes<int32_t, W>;
    const V floor = splat<S, W>(-87), safe = x < floor ? floor : x, magic = splat<S, W>(12582912.0f);  // 1.5 * 2^23
    const V n = (safe * 1.44269504f + magic) - magic;
    const V r = (safe - n * 0.693359375f) + n * 2.12194440e-4f;
    V p = splat<S, W>(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    I power;
    if constexpr (W == 1) {
      power = int32_t(n);
    } else {
      power = __builtin_convertvector(n, I);
    }
    power = (power + 127) << 23;
    V scale;
    std::memcpy(&scale, &power, sizeof(V));
    return x < floor ? V{} : (x == x ? p * scale : x);
  }
}

// log(x) of a normal x > 0.
template <class S, int W>
inline Lanes<S, W> logarithm(Lanes<S, W> x) {
  using V = Lanes<S, W>;
  if constexpr (sizeof(S) == 8) {
    each_lane<S, W>(x, [](S v) { return std::log(v); });
    return x;
  } else {
    using I = Lanes<int32_t, W>;
    I bits;
    std::memcpy(&bits, &x, sizeof(V));
    I power = (bits >> 23) - 126;
    bits = (bits & 0x007fffff) | 0x3f000000;  // the mantissa in [1/2, 1)
    V m;
    std::memcpy(&m, &bits, sizeof(V));
    const auto low = m < splat<S, W>(0.707106781186547524f);
    V e;
    if constexpr (W == 1) {
      e = S(power);
    } else {
      e = __builtin_convertvector(power, V);
    }
    e = low ? e - 1.0f : e;
    m = low ? m + m - 1.0f : m - 1.0f;
    const V z = m * m;
    V p = splat<S, W>(7.0376836292e-2f);
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    const V y = p * m * z - 2.12194440e-4f * e - 0.5f * z;
    const V result = m + y + 0.693359375f * e;
    return x == x ? result : x;
  }
}

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
  V log() const { return logarithm<S, W>(mantissa) + exponent * S(0.693147180559945309417); }
};

}  // namespace svae::SVAE_VARIANT
