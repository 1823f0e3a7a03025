// What the sweeps over a hidden Markov chain are made of: a warp has one message in its registers, a state in each lane
// (two where K > 32), and the K weights of each of them.
//
// Messages are plain numbers, scaled by powers of 2 so that the largest of one that is sent on is 2^top .. 2^(top + 1).
// Every number that arrives must be 1 at least, and the largest after the node's factor too: then what underflows is
// below rounding. A chain for which this fails is left to the kernels in logarithms.
#pragma once
#include "gaussian.cuh"
#include "hmm_numbers.cuh"

namespace svae {

constexpr int kHmmWarps = 6, kHmmThreads = kHmmWarps * kWarp;

// keep: messages in memory are smaller by this much, so that a product of two has room; half: and smaller still.
template <class S>
struct Range;
template <>
struct Range<float> {
  static constexpr int top = 120;
  static constexpr float largest = 0x1p120f, keep = 0x1p-60f, half = 0x1p-20f, least = 1e-30f;
};
template <>
struct Range<double> {
  static constexpr int top = 900;
  static constexpr double largest = 0x1p900, keep = 0x1p-450, half = 0x1p-100, least = 1e-200;
};

// The power of 2 that brings x up (or down) to 2^top .. 2^(top + 1), for 1 <= x.
#ifdef SVAE_EMULATE
template <class S>
inline S raise(S x) {
  return std::ldexp(S(1), Range<S>::top - std::ilogb(x));
}
#else
__device__ inline float raise(float x) {
  return __uint_as_float((unsigned(254 + Range<float>::top) << 23) - (__float_as_uint(x) & 0x7f800000u));
}
__device__ inline double raise(double x) {
  return __longlong_as_double(((2046LL + Range<double>::top) << 52) - (__double_as_longlong(x) & 0x7ff0000000000000LL));
}
#endif

// A number of each of a lane's states.
template <int K, class S>
struct Row {
  static constexpr int N = (K + kWarp - 1) / kWarp;
  S x[N];
  __device__ S& operator[](int n) { return x[n]; }
  __device__ const S& operator[](int n) const { return x[n]; }
};

template <int K, class F>
__device__ inline void each_state(int lane, F f) {
#pragma unroll
  for (int n = 0; n < (K + kWarp - 1) / kWarp; n++)
    if (lane + n * kWarp < K) f(n, lane + n * kWarp);
}

template <int K, class S>
__device__ inline Row<K, S> get(const S* from, int lane) {
  Row<K, S> row{};
  each_state<K>(lane, [&](int n, int k) { row[n] = from[k]; });
  return row;
}

template <int K, class S>
__device__ inline void put(S* to, const Row<K, S>& row, int lane) {
  each_state<K>(lane, [&](int n, int k) { to[k] = row[n]; });
}

template <int K, class S, class F>
__device__ inline Row<K, S> make_row(F f) {
  Row<K, S> row;
#pragma unroll
  for (int n = 0; n < Row<K, S>::N; n++) row[n] = f(n);
  return row;
}

template <class S>
__device__ inline S warp_sum(S x) {
#pragma unroll
  for (int i = 1; i < kWarp; i *= 2) x += __shfl_xor_sync(0xffffffff, x, i);
  return x;
}

template <class S>
__device__ inline S warp_maximum(S x) {
#pragma unroll
  for (int i = 1; i < kWarp; i *= 2) {
    const S y = __shfl_xor_sync(0xffffffff, x, i);
    x = y > x ? y : x;
  }
  return x;
}

// The maximum of numbers >= 0, whose bits are in their order.
template <class S>
__device__ inline S warp_peak(S x) {
#ifndef SVAE_EMULATE
  if constexpr (sizeof(S) == 4) {
    unsigned best;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(best) : "r"(__float_as_uint(x)));
    return __uint_as_float(best);
  }
#endif
  return warp_maximum(x);
}

template <int K, class S, class F>
__device__ inline S sum_of(F f) {
  S x = f(0);
#pragma unroll
  for (int n = 1; n < Row<K, S>::N; n++) x += f(n);
  return warp_sum(x);
}

template <int K, class S>
__device__ inline S peak_of(const Row<K, S>& row) {
  S x = row[0];
#pragma unroll
  for (int n = 1; n < Row<K, S>::N; n++) x = row[n] > x ? row[n] : x;
  return warp_peak(x);
}

// x[n][l] weighs entry l of a message for the lane's n-th state.
template <int K, class S>
struct Table {
  S x[Row<K, S>::N][K];
  template <class F>
  __device__ void fill(int lane, F entry) {
#pragma unroll
    for (int n = 0; n < Row<K, S>::N; n++)
#pragma unroll
      for (int l = 0; l < K; l++) x[n][l] = lane + n * kWarp < K ? entry(lane + n * kWarp, l) : S(0);
  }
};

template <class S>
struct alignas(16) Several {
  S x[16 / sizeof(S)];
};

// One row of a warp in shared memory, for all of its lanes to read; two places in turn, so that one barrier is enough.
template <int K, class S>
struct Mail {
  static constexpr int P = Row<K, S>::N * kWarp, size = 2 * P;
  S* place;
  int lane, side = 0;
  __device__ Mail(S* place, int lane) : place(place), lane(lane) {}
  __device__ const S* send(const Row<K, S>& row) {
    side ^= P;
#pragma unroll
    for (int n = 0; n < Row<K, S>::N; n++) place[side + n * kWarp + lane] = row[n];
    __syncwarp();
    return place + side;
  }
};

// A row from the mail, whole in the registers of each lane.
template <int K, class S>
struct Letter {
  static constexpr int V = 16 / sizeof(S), Q = (K + V - 1) / V;
  Several<S> v[Q];
  Letter() = default;
  __device__ explicit Letter(const S* row) {
#ifdef SVAE_EMULATE
    Emulator::check(row, 16);
#endif
#pragma unroll
    for (int q = 0; q < Q; q++) v[q] = *reinterpret_cast<const Several<S>*>(row + q * V);
  }
  // use(l, entry l)
  template <class Use>
  __device__ void each(Use use) const {
#pragma unroll
    for (int l = 0; l < K; l++) use(l, v[l / V].x[l % V]);
  }
};

template <int K, class S>
__device__ inline Row<K, S> weigh(const Letter<K, S>& letter, const Table<K, S>& table) {
  constexpr int N = Row<K, S>::N;
  S sum[N][4] = {};
  letter.each([&](int l, S x) {
#pragma unroll
    for (int n = 0; n < N; n++) sum[n][l % 4] = fma(x, table.x[n][l], sum[n][l % 4]);
  });
  return make_row<K, S>([&](int n) { return (sum[n][0] + sum[n][1]) + (sum[n][2] + sum[n][3]); });
}

}  // namespace svae
