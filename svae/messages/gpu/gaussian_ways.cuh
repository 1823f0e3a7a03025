// The derivative of smoothing both ways at once (gaussian_both_ways.cuh). What smoothing gives of a node depends on the
// two messages that reach it. So their cotangents are found of each node by itself (gaussian_local.cuh); those of the
// messages forward then go back in time, those of the messages back go forward (gaussian_sweeps.cuh),
//   S- = G Pi G' - sym(G pi c'),  C- = -2 G Pi + c pi',  r- = G pi,   G = S^-1 C, c = S^-1 r,
// neither waiting for the other; and both are put together (gaussian_meet.cuh).
#pragma once
#include "gaussian_both_ways.cuh"
#include "gaussian_pulled.cuh"
#include "tile.cuh"

namespace svae {

// The nodes of a warp, a lane for each.
struct Stretch {
  int number, begin, lane, t, count;
  bool ours;
  __device__ Stretch(int T, int number) : number(number) {
    begin = number * kWarp;
    lane = threadIdx.x % kWarp;
    count = T - begin < kWarp ? T - begin : kWarp;
    ours = lane < count;
    t = ours ? begin + lane : T - 1;
  }
  __device__ static int all(int T) { return (T + kWarp - 1) / kWarp; }
};

// What the kernels leave for each other, for one sequence. Of each node and way: the gain by which cotangents leave it,
// two of its columns side by side, with the offset as the last column; and a cotangent as a message. Of each node its
// mean. Of each stretch what its nodes pull from C, likewise by columns, and by their own log Z. Of each way what all
// steps pull from C, by rows, and the sum of the cotangents of all nodes but the first and the last.
template <int D>
struct Ways {
  static constexpr int columns = (D + 2) / 2 * 2, gains = D * columns, step = gains + Message<D>::size,
                       C = (D + 1) / 2 * 2 * D, local = C + Message<D>::size, total = 2 * Circle<D>::L * D + Message<D>::size;
  double *steps, *locals, *totals, *means;
  const int T;
  __device__ Ways(const Args& a, long long sequence) : T(a.T) {
    steps = a.scratch + sequence * a.scratch_size;
    locals = steps + 2LL * T * step;
    totals = locals + (long long)Stretch::all(T) * local;
    means = totals + 2 * total;
  }
  __device__ static long long size(long long T) {
    const long long n = 2 * T * step + Stretch::all(int(T)) * local + 2 * total + T * D;
    return (n + 1) / 2 * 2;
  }
  __device__ double* gain(bool back, int t) const { return steps + ((back ? T : 0) + (long long)t) * step; }
  __device__ double* cotangent(bool back, int t) const { return gain(back, t) + gains; }
  __device__ double* pulled_C(int stretch) const { return locals + (long long)stretch * local; }
  __device__ double* pulled_log_z(int stretch) const { return pulled_C(stretch) + C; }
  __device__ double* total_C(bool back) const { return totals + (back ? total : 0); }
  __device__ double* total_nodes(bool back) const { return total_C(back) + 2 * Circle<D>::L * D; }
};

// What smoothing kept of a sequence (ffi.cc). Of three steps or more, there is room for it.
template <int D, class S>
__device__ inline BothWays<D> kept_ways(const Args& a, long long sequence) {
  static_assert(2 * Message<D>::size + (BothWays<D>::potential + 2) / 3 <= Kept<D>::size);
  const S* kept = input<S>(a, kVKept, sequence);
  return BothWays<D>(const_cast<double*>(reinterpret_cast<const double*>(kept)), a.T);
}

// Rows of W numbers that are not side by side there.
template <int W>
__device__ inline void send_apart(double* to, long long stride, const double* from, int rows) {
  constexpr int pieces = W / 2;
  static_assert(W % 2 == 0);
  __syncwarp();
  for (int n = threadIdx.x % kWarp; n < rows * pieces; n += kWarp)
    *together<double2>(to + n / pieces * stride + n % pieces * 2) = pair(from + 2 * n);
  __syncwarp();
}

template <int W>
__device__ inline void bring_apart(double* to, const double* from, long long stride, int rows) {
  constexpr int pieces = W / 2;
  for (int n = threadIdx.x % kWarp; n < rows * pieces; n += kWarp)
    copy_later(together<Block16>(to + 2 * n), together<const Block16>(from + n / pieces * stride + n % pieces * 2));
}

// Entry m of a message with the matrix s and the vector v.
template <int D>
__device__ inline double entry_of(int m, const double (&s)[kTriangle<D>], const double (&v)[D]) {
  using C = Circle<D>;
  const int n = m / C::L, l = m % C::L;
  if (!C::inside(n, l)) return 0;
  return n < C::products ? s[at(C::own(n, l), C::other(n, l))] : v[C::own(n, l)];
}

}  // namespace svae
