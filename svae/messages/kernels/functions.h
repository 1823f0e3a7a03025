// exp and log of vectors. Single precision by polynomials (Cephes' coefficients), double precision by the C library.
#pragma once
#include "lanes.h"

namespace svae::SVAE_VARIANT {

// exp(x) for x <= 88; 0 below -87, where the result would be denormal.
template <class S, int W>
inline Lanes<S, W> exponential(Lanes<S, W> x) {
  using V = Lanes<S, W>;
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
