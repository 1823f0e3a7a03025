// Numbers of either precision, as they are and in logarithms.
#pragma once

namespace svae {

__device__ inline float exponential(float x) { return expf(x); }
__device__ inline double exponential(double x) { return exp(x); }
__device__ inline float log_of(float x) { return logf(x); }
__device__ inline double log_of(double x) { return log(x); }

#ifdef SVAE_EMULATE
inline float minus_infinity(float) { return -INFINITY; }
inline double minus_infinity(double) { return -INFINITY; }
#else
__device__ inline float minus_infinity(float) { return __int_as_float(0xff800000); }
__device__ inline double minus_infinity(double) { return __longlong_as_double(0xfff0000000000000ULL); }
#endif

template <class S>
struct Limits;
template <>
struct Limits<float> {
  static constexpr float tiny = 1e-25f;
};
template <>
struct Limits<double> {
  static constexpr double tiny = 1e-200;
};

// Whether messages were kept by `hmm_smooth`: plain numbers, the largest of a step far above 1, in place of logarithms.
template <int K, class S>
__device__ inline bool kept_plain(const S* messages, int first) {
  return __syncthreads_or(threadIdx.x < K && messages[(long long)first * K + threadIdx.x] > 1000);
}

}  // namespace svae
