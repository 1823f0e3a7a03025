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

// What the kernels leave for each other, for one sequence. Of each way and node: the gain by which cotangents leave it,
// with the offset as its last column, two columns of all nodes after another; and a cotangent as a message. Of each
// stretch what its nodes pull from C, likewise by columns, and by their own log Z. Of each way what all steps pull from
// C, by rows, and the sum of the cotangents of all nodes but the first and the last. Of each node its mean.
template <int D>
struct Ways {
  static constexpr int message = Message<D>::size, columns = 2 * D, pairs = (D + 2) / 2, gain = pairs * columns,
                       step = gain + message, C = (D + 1) / 2 * columns,
                       log_z = (message + columns - 1) / columns * columns,  // summed as many numbers at a time
      local = C + log_z, total = 2 * Circle<D>::L * D + message;
  double *gains, *cotangents, *locals, *totals, *means;
  int* done;  // how many nodes the cotangents have reached on the way back in time, and forward
  const int T;
  __device__ Ways(const Args& a, long long sequence) : T(a.T) {
    gains = a.scratch + sequence * a.scratch_size;
    cotangents = gains + 2LL * T * gain;
    locals = cotangents + 2LL * T * message;
    totals = locals + (long long)Stretch::all(T) * local;
    means = totals + 2 * total + 2;
    done = reinterpret_cast<int*>(means - 2);
  }
  __device__ static long long size(long long T) {
    const long long n = 2 * T * step + Stretch::all(int(T)) * local + 2 * total + 2 + T * D;
    return (n + 1) / 2 * 2;
  }
  __device__ void begin_count() const { done[0] = done[1] = 0; }
  __device__ double* columns_of(bool back, int pair, int t) const {
    return gains + (((back ? pairs : 0) + pair) * (long long)T + t) * columns;
  }
  __device__ double* cotangent(bool back, int t) const {
    return cotangents + ((back ? T : 0) + (long long)t) * message;
  }
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

// Rows of W numbers to global memory, with those of `more` there added: many of them are read before the first is
// waited for.
template <int W>
__device__ inline void send_added(double* to, const double* from, const double* more, int rows) {
  constexpr int K = 11;
  static_assert(W % 2 == 0);
  __syncwarp();
#pragma unroll 1
  for (int begin = 2 * int(threadIdx.x % kWarp); begin < rows * W; begin += 2 * K * kWarp) {
    double2 x[K];
#pragma unroll
    for (int k = 0; k < K; k++) {
      const int n = begin + 2 * k * kWarp;
      x[k] = pair(more + (n < rows * W ? n : begin));
    }
#pragma unroll
    for (int k = 0; k < K; k++) {
      const int n = begin + 2 * k * kWarp;
      if (n >= rows * W) continue;
      const double2 y = pair(from + n);
      *together<double2>(to + n) = double2{x[k].x + y.x, x[k].y + y.y};
    }
  }
  __syncwarp();
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
