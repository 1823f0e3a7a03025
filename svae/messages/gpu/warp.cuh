// Numbers in double precision, and vectors of D of them in a lane's registers or in shared memory.
#pragma once

namespace svae {

constexpr int kWarp = 32;

// Where several numbers are read or written at once: the address must be a multiple of their size.
template <class V, class S>
__device__ inline V* together(S* p) {
#ifdef SVAE_EMULATE
  Emulator::check(p, sizeof(V));
#endif
  return reinterpret_cast<V*>(p);
}

__device__ inline double2 pair(const double* p) { return *together<const double2>(p); }

// Numbers over a positive normal one, to rounding: its reciprocal to 20 bits, and what a cubic iteration adds to it,
// apart, so that a number waits for one of them less.
struct Over {
  double rough, more;
  __device__ explicit Over(double x) {
#ifdef SVAE_EMULATE
    rough = 1 / x;
#else
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(rough) : "d"(x));
#endif
    const double e = fma(-x, rough, 1.0);
    more = fma(e, e, e);
  }
  __device__ double operator()(double x) const {
    const double y = x * rough;
    return fma(y, more, y);
  }
};

// 1 / x and 1 / sqrt(x) of a positive normal x, to rounding: an approximation of 20 bits and one cubic iteration.
__device__ inline double reciprocal(double x) {
  const Over over(x);
  return fma(over.rough, over.more, over.rough);
}

__device__ inline double reciprocal_root(double x) {
#ifdef SVAE_EMULATE
  return 1 / sqrt(x);
#else
  double r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  const double e = fma(-x * r, r, 1.0);
  return fma(r * e, fma(e, 0.375, 0.5), r);
#endif
}

// log of a positive normal number. For single precision its exponent goes apart, and the rest needs no more than logf.
template <class S>
__device__ inline double logarithm(double x) {
  if constexpr (sizeof(S) == 8) return log(x);
  const int high = __double2hiint(x), power = ((high + 0x80000) >> 20) - 1023;  // the rest from 0.75 to 1.5
  const double rest = __hiloint2double(high - power * 0x100000, __double2loint(x));
  const double none = x > 0 ? 0 : __longlong_as_double(0x7ff8000000000000LL);  // not a number
  const float head = float(rest);
  return double(logf(head) + __fdividef(float(rest - double(head)), head)) + (power * 0.693147180559945309417 + none);
}

// The kernel behind this one may begin when all blocks have come here; it waits for what it needs.
__device__ inline void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Waits for the end of the kernel in front.
__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// A number in memory by which one lane tells others what its warp has written; and how they wait for it.
__device__ inline void tell(volatile int* p, int n, bool speaks) {
  __threadfence();
  __syncwarp();
  if (speaks) *p = n;
}
__device__ inline void wait_until(const volatile int* p, int n) {
  while (*p < n) {
#ifndef SVAE_EMULATE
    asm volatile("nanosleep.u32 1000;");
#endif
  }
  __threadfence();
  __syncwarp();
}

template <int D>
__device__ inline void load_vector(double (&x)[D], const double* p) {
#pragma unroll
  for (int i = 0; i + 1 < D; i += 2) {
    const double2 v = pair(p + i);
    x[i] = v.x;
    x[i + 1] = v.y;
  }
  if (D & 1) x[D - 1] = p[D - 1];
}

template <int D>
__device__ inline void store_vector(double* p, const double (&x)[D]) {
#pragma unroll
  for (int i = 0; i + 1 < D; i += 2) *together<double2>(p + i) = double2{x[i], x[i + 1]};
  if (D & 1) p[D - 1] = x[D - 1];
}

template <int D>
__device__ inline double dot(const double (&x)[D], const double* p) {
  double even = 0, odd = 0;
#pragma unroll
  for (int i = 0; i + 1 < D; i += 2) {
    const double2 v = pair(p + i);
    even = fma(x[i], v.x, even);
    odd = fma(x[i + 1], v.y, odd);
  }
  if (D & 1) even = fma(x[D - 1], p[D - 1], even);
  return even + odd;
}

// The lower triangle, its diagonal halved.
__device__ inline double phi(int i, int j, double v) { return i > j ? v : i == j ? v / 2 : 0; }

}  // namespace svae
