// What the passes of the derivative are given, what they leave for each other, and their shared memory.
#pragma once
#include "eliminate.cuh"
#include "gaussian.cuh"

namespace svae {

enum VjpInput { kVSqrt = 7, kVKept, kDMean, kDSqrt, kDGain, kDBack, kDLogZ, kDKl };

// What the passes leave for each other, for one sequence: compact matrices.
template <int D>
struct Pulled {
  static constexpr int DD = D * D, step = 2 * DD + D, shared = 3 * DD + 3 * D, chunk = 5 * DD + 5 * D;
  double *steps, *totals, *chunks;
  __device__ Pulled(const Args& a, long long sequence)
      : steps(a.scratch + sequence * a.scratch_size), totals(steps + (long long)a.T * step),
        chunks(totals + (long long)a.chunks * shared) {}
  __device__ static long long size(long long T, long long n) { return T * step + n * shared + (n > 1 ? n * chunk : 0); }

  // Local cotangents of S and r (at the last node, of its precision and vector); of C, transposed.
  __device__ double* S(int t) const { return steps + (long long)t * step; }
  __device__ double* C(int t) const { return S(t) + DD; }
  __device__ double* r(int t) const { return C(t) + DD; }
  // Of chunk n: what its steps pull from a transition that they share (gaussian_vjp_back.cuh).
  __device__ double* total(int n) const { return totals + (long long)n * shared; }
  // Of chunk n: what it adds to Omega and sigma, the product of its gains, Omega and sigma where it begins; what it
  // adds to Pi and pi, its offset, Pi and pi where it ends. Vectors lie behind their matrices.
  __device__ double* sum(int n) const { return chunks + (long long)n * chunk; }
  __device__ double* gains(int n) const { return sum(n) + DD + D; }
  __device__ double* start(int n) const { return gains(n) + DD; }
  __device__ double* sum_back(int n) const { return start(n) + DD + D; }
  __device__ double* offset(int n) const { return sum_back(n) + DD + D; }
  __device__ double* end(int n) const { return offset(n) + D; }
};

template <int D, class S>
struct VjpOperands {
  static constexpr int DD = D * D;
  const S *J, *h, *L, *dm, *dL, *dG, *dB, *dz, *dk;
  const double* kept;
  __device__ VjpOperands(const Args& a, long long i)
      : J(input<S>(a, kJ, i)), h(input<S>(a, kH, i)), L(input<S>(a, kVSqrt, i)), dm(input<S>(a, kDMean, i)),
        dL(input<S>(a, kDSqrt, i)), dG(input<S>(a, kDGain, i)), dB(input<S>(a, kDBack, i)), dz(input<S>(a, kDLogZ, i)),
        dk(input<S>(a, kDKl, i)), kept(reinterpret_cast<const double*>(input<S>(a, kVKept, i))) {}
  __device__ Kept<D> keep(int t) const { return Kept<D>(const_cast<double*>(kept) + (long long)t * Kept<D>::size); }
  __device__ double weight(int t) const { return double(dz[t]) - double(dk[t]); }  // of the increment of log Z
};

template <int D>
struct ForwardMemory {
  using Z = Team<D>;
  static constexpr int size = Z::stride(7 * Z::M + 6 * Z::DS), shared = Z::G * size;
  double *G, *B, *L, *a, *b, *c, *d, *mean, *inverse, *sigma, *offset, *Bs, *Us;
  __device__ ForwardMemory(double* shared, int group) {
    double* p = shared + group * size;
    double** matrices[] = {&G, &B, &L, &a, &b, &c, &d};
    for (double** x : matrices) *x = p, p += Z::M;
    double** vectors[] = {&mean, &inverse, &sigma, &offset, &Bs, &Us};
    for (double** x : vectors) *x = p, p += Z::DS;
  }
};

}  // namespace svae
