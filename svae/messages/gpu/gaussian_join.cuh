// All that smoothing gives of a node, from the messages that reach it from both sides (gaussian_both_ways.cuh): a
// thread for each node, a warp for nodes that follow each other in time. The first lane has the node before them, of
// which the predicted mean and log Z are made.
#pragma once
#include "gaussian_both_ways.cuh"
#include "gaussian_node.cuh"
#include "tile.cuh"

namespace svae {

// The memory of a warp: rows of its nodes; what transitions add to a node: none, that into it, that out of it, both;
// rows of V'W and A, b.
template <int D, class S>
struct JoinDesk {
  static constexpr int DS = Team<D>::DS, DD = D * D, matrix = (DD * int(sizeof(S)) + 7) / 8,
                       row = Message<D>::size > matrix ? Message<D>::size : matrix, tile = (kWarp * row + 1) / 2 * 2,
                       triangle = (kTriangle<D> + 1) / 2 * 2, base = triangle + DS,
                       size = tile + 4 * base + 2 * D * DS + DS;
  double *rows, *added, *VW, *A, *b;
  __device__ explicit JoinDesk(double* p)
      : rows(p), added(p + tile), VW(added + 4 * base), A(VW + D * DS), b(A + D * DS) {}
  __device__ S* numbers() const { return reinterpret_cast<S*>(rows); }
  __device__ void bring_transition(const Args& a, const BothWays<D>& given, long long sequence, int lane) const {
    const S *A_ = input<S>(a, kA, sequence), *b_ = input<S>(a, kB, sequence);
    auto add = [&](int n, double W, double V) {
      added[n] = 0;
      added[base + n] = W;
      added[2 * base + n] = V;
      added[3 * base + n] = W + V;
    };
    for (int n = lane; n < DD; n += kWarp) {
      const int i = n / D, j = n % D;
      VW[i * DS + j] = given.VW[n];
      A[i * DS + j] = double(A_[n]);
      if (i >= j) add(at(i, j), given.WW[n], given.VV[n]);
    }
    for (int i = lane; i < D; i += kWarp) {
      add(triangle + i, given.Ww[i], given.minus_Vw[i]);
      b[i] = double(b_[i]);
    }
  }
  // What a node has before the messages to it.
  __device__ void begin(Message<D>& m, bool into, bool out) const {
    const double* from = added + ((into ? 1 : 0) + (out ? 2 : 0)) * base;
    load_vector<kTriangle<D>>(m.s, from);
    load_vector<D>(m.v, from + triangle);
  }
};

// The nodes of a warp: lanes first .. last - 1 have one in the sequence, and all but the first lane's are its own.
struct Nodes {
  int begin, lane, t, first, last;
  bool ours;
  __device__ Nodes(int T, int stretch) {
    begin = stretch * kJoined - 1;
    lane = threadIdx.x % kWarp;
    t = begin + lane;
    first = begin < 0 ? 1 : 0;
    last = T - begin < kWarp ? T - begin : kWarp;
    ours = lane > 0 && t < T;
  }
  __device__ int inside(int T) const { return t < 0 ? 0 : t < T ? t : T - 1; }
};

// A node in the hands of its thread.
template <int D, class S>
struct Joiner {
  static constexpr int DD = D * D, DS = Team<D>::DS;
  const Args& a;
  const long long sequence;
  const JoinDesk<D, S>& s;
  const BothWays<D> given;
  const Nodes nodes;
  enum Matrix { kFiltered, kLeft, kSmoothed };
  double mf[D], d[D], difference;  // filtered mean; that less the predicted one; log |precision| less that predicted

  // The messages to the warp's nodes, one way: they are there after `arrived`.
  __device__ void bring_messages(const double* from) {
    constexpr int size = Message<D>::size;
    __syncwarp();
    bring<size>(s.rows + nodes.first * size, from + (long long)(nodes.begin + nodes.first) * size,
                nodes.last - nodes.first);
  }
  // Rows of W numbers of a thread's own nodes to an output, of which there are `steps` in a sequence.
  template <int W, class Entry>
  __device__ void write(int which, int steps, Entry entry) {
    __syncwarp();
    write_row<W>(s.numbers() + nodes.lane * W, entry);
    send_rows<W>(which, steps);
  }
  template <int W>
  __device__ void send_rows(int which, int steps) {
    const int last = steps - nodes.begin < nodes.last ? steps - nodes.begin : nodes.last;
    S* out = output<S>(a, which, sequence, (long long)steps * W);
    send<W>(out + (long long)(nodes.begin + 1) * W, s.numbers() + W, last - 1);
  }
  __device__ void write_root(int which, int steps, const double (&B)[kTriangle<D>]) {
    write<DD>(which, steps, [&](int n) { return n / D >= n % D ? B[at(n / D, n % D)] : 0; });
  }

  // The gain S^-1 C, from the root of S^-1.
  __device__ void write_gain(const double (&B)[kTriangle<D>]) {
    S* row = s.numbers() + nodes.lane * DD;
#pragma unroll 1
    for (int j = 0; j < D; j += 2) {
      double x[2][D];
#pragma unroll
      for (int i = 0; i < D; i++) {
        const double2 v = pair(s.VW + i * DS + j);
        x[0][i] = v.x;
        x[1][i] = v.y;
      }
      apply<D, 2>(B, x);
#pragma unroll
      for (int i = 0; i < D; i++) {
        row[i * D + j] = S(x[0][i]);
        if (j + 1 < D) row[i * D + j + 1] = S(x[1][i]);
      }
    }
    send_rows<DD>(kOutGain, a.T - 1);
  }

  // What the node before predicts, `less` = log |S| - log |its filtered precision|.
  __device__ void predict(double logdet, double less) {
    const int before = (nodes.lane + kWarp - 1) % kWarp;
    const S* mean0 = input<S>(a, kMean0, sequence);
    const bool start = nodes.t == 0;
    double m[D];
#pragma unroll
    for (int i = 0; i < D; i++) m[i] = __shfl_sync(0xffffffff, mf[i], before);
    less = __shfl_sync(0xffffffff, less, before);
    difference = logdet + (start ? given.first_logdet[0] : given.logdet[0] + less);
#pragma unroll
    for (int i = 0; i < D; i++) {
      const double predicted = s.b[i] + dot<D>(m, s.A + i * DS);
      d[i] = mf[i] - (start ? double(mean0[i]) : predicted);
    }
  }

  // The potentials of the nodes: h, and visit(i, j, J_ij) for the lower triangle.
  template <class Visit>
  __device__ void each_potential(double (&h)[D], Visit visit) {
    const S *J = input<S>(a, kJ, sequence), *h_ = input<S>(a, kH, sequence);
    __syncwarp();
    bring<DD>(s.numbers() + nodes.first * DD, J + (long long)(nodes.begin + nodes.first) * DD,
              nodes.last - nodes.first);
#pragma unroll
    for (int i = 0; i < D; i++) h[i] = double(h_[(long long)nodes.inside(a.T) * D + i]);
    arrived();
    read_row<DD>(s.numbers() + nodes.lane * DD, [&](int n, S x) {
      if (n / D >= n % D) visit(n / D, n % D, double(x));
    });
  }

  // log Z and kl, from the smoothed root and mean.
  __device__ void weigh(const double (&B)[kTriangle<D>], const double (&mean)[D]) {
    double h[D], residual[D] = {}, pushed[D] = {}, kl = difference;  // - J mf, J d
    each_potential(h, [&](int i, int j, double y) {
      double P = (mean[i] - mf[i]) * (mean[j] - mf[j]);
#pragma unroll
      for (int k = 0; k < D; k++) P = k <= j ? fma(B[at(i, k)], B[at(j, k)], P) : P;
      kl = fma(i == j ? -y : -2 * y, P, kl);
      residual[i] = fma(-y, mf[j], residual[i]);
      pushed[i] = fma(y, d[j], pushed[i]);
      if (i == j) return;
      residual[j] = fma(-y, mf[i], residual[j]);
      pushed[j] = fma(y, d[i], pushed[j]);
    });
    double log_z = -difference;
#pragma unroll
    for (int i = 0; i < D; i++) {
      const double r = h[i] + residual[i], g = r + pushed[i], e = mean[i] - mf[i];
      log_z += (mf[i] - d[i]) * (h[i] + g) + g * d[i];
      kl += (d[i] + 2 * e) * r;
    }
    if (!nodes.ours) return;
    output<S>(a, kOutLogZ, sequence, a.T)[nodes.t] = S(log_z / 2);
    output<S>(a, kOutKl, sequence, a.T)[nodes.t] = S(kl / 2);
  }

  // Three matrices, one after another by the same instructions: the filtered precision, that with the transition out of
  // the node, and the smoothed one.
  __device__ void run() {
    Message<D> m;
    double filtered = 0;
    bring_messages(given.there);
#pragma unroll 1
    for (int matrix = kFiltered; matrix <= kSmoothed; matrix++) {
      s.begin(m, nodes.t > 0, matrix == kLeft || (matrix == kSmoothed && nodes.t + 1 < a.T));
      arrived();
#pragma unroll 1
      for (int n = 0;; n++) {
        m.add(s.rows + nodes.lane * Message<D>::size);
        if (n == 1 || matrix != kSmoothed) break;
        bring_messages(given.back);
        arrived();
      }
      const double logdet = root_of_inverse<D, S>(m.s);
      apply<D>(m.s, m.v);
      if (matrix == kFiltered) {
#pragma unroll
        for (int i = 0; i < D; i++) mf[i] = m.v[i];
        filtered = logdet;
        continue;
      }
      write_root(matrix == kLeft ? kOutBack : kOutSqrt, matrix == kLeft ? a.T - 1 : a.T, m.s);
      if (matrix == kSmoothed) continue;
      write_gain(m.s);
      bring_messages(given.there);
      predict(filtered, logdet - filtered);
    }
    write<D>(kOutMean, a.T, [&](int n) { return m.v[n]; });
    weigh(m.s, m.v);
  }
};

// Two stretches of a sequence, as far from the middle: their messages come at about the same time, the middle's first.
template <int D, class S>
__device__ inline void join_same(const Args& a, double* shared) {
  const int stretches = (a.T + kJoined - 1) / kJoined, rank = int(blockIdx.x / batch_of(a));
  const long long sequence = blockIdx.x % batch_of(a);
  const BothWays<D> given(a, sequence);
  const JoinDesk<D, S> desk(shared);
  desk.bring_transition(a, given, sequence, threadIdx.x);
#pragma unroll 1
  for (int side = 0; side < 2; side++) {
    const int stretch = side ? stretches / 2 + rank : stretches / 2 - 1 - rank;
    if (stretch < 0 || stretch >= stretches) continue;
    const Nodes nodes(a.T, stretch);
    wait_until(given.sent, nodes.begin + nodes.last);  // those who send wait for nobody
    wait_until(given.sent + 1, a.T - nodes.begin - nodes.first);
    Joiner<D, S>{a, sequence, desk, given, nodes}.run();
  }
  if (stretches / 2 + rank + 1 >= stretches) wait_for_previous();  // this kernel ends last
}

}  // namespace svae
