// The messages (gaussian_both_ways.cuh). Every lane of a chain decomposes the whole matrix by itself, in registers: no
// lane waits for another in the chain of pivots. Shared out are the columns that it is solved for.
#pragma once
#include "gaussian_both_ways.cuh"
#include "tile.cuh"

namespace svae {

// The memory of a chain. The lanes of a warp's chains follow each other in the banks.
template <int D, class S>
struct MessageDesk {
  using C = Circle<D>;
  __device__ static constexpr int even(int n) { return (n + 1) / 2 * 2; }
  static constexpr int L = C::L, DS = Team<D>::DS, row = C::N + 2 + C::N % 4, rows = C::lanes * row,
                       potentials = even((D * (D + 1) * int(sizeof(S)) + 7) / 8);
  static constexpr int used = 3 * rows + (7 * L + 1) * DS + potentials;
  static constexpr int size = used + ((C::lanes * DS - used) % 16 + 16) % 16, shared = C::G * size;
  // S and -r, a row of pairs for each lane; what the transition adds to both its ends, likewise; its columns; those of
  // the solution, once around; J and h
  double *node, *left, *reached, *cross, *Y;
  S* potential;
  __device__ explicit MessageDesk(double* p)
      : node(p), left(node + rows), reached(left + rows), cross(reached + rows), Y(cross + 2 * L * DS),
        potential(reinterpret_cast<S*>(Y + (5 * L + 1) * DS)) {}
};

// A lane's share of a chain's messages, one way.
template <int D, class S>
struct Sender {
  using C = Circle<D>;
  static constexpr int L = C::L, N = C::N, pairs = C::pairs, DS = Team<D>::DS, DD = D * D, row = MessageDesk<D, S>::row;
  const MessageDesk<D, S> s;
  const bool forward;
  const int l;
  const double sign, kept;  // r goes with -1 among the columns; whether a message is kept with the node's own potential
  int place[pairs];         // in J, and h behind it
  S own[pairs];             // the potential of the node that is next
  double M[pairs];          // the message
  __device__ Sender(const MessageDesk<D, S>& s, bool forward, int l)
      : s(s), forward(forward), l(l), sign(l < L ? 1 : -1), kept(forward ? 1 : 0) {
#pragma unroll
    for (int n = 0; n < pairs; n++) {
      const int i = C::own(n, l), j = C::other(n, l);
      place[n] = l == L ? DD + (j < D ? j : 0) : i < D && j < D ? (i > j ? i * D + j : j * D + i) : 0;
    }
  }

  // The transition, and the message that comes first: the first state, or nothing.
  __device__ void begin(const BothWays<D>& given) {
    auto entry = [&](const double* matrix, const double* vector, int n) {
      return l < L ? matrix[place[n]] : vector[place[n] - DD];
    };
#pragma unroll
    for (int n = 0; n < pairs; n++) {
      const double V = entry(given.VV, given.minus_Vw, n), W = entry(given.WW, given.Ww, n);
      s.left[l * row + n] = sign * (forward ? V : W);
      s.reached[l * row + n] = forward ? W : V;
      M[n] = forward ? entry(given.first_WW, given.first_Ww, n) : 0;
    }
    for (int c = l; c < N && l < L; c += L)
      for (int i = 0; i < D; i++) s.cross[c * DS + i] = c < D ? given.VW[forward ? i * D + c : c * D + i] : 0;
  }
  // The potential of a node, on its way; and when it is there.
  __device__ void fetch(const S* J, const S* h) const {
    bring_row<DD, C::lanes>(s.potential, J, l);
    bring_row<D, C::lanes>(s.potential + DD, h, l);
  }
  __device__ void receive() {
    arrived();
#pragma unroll
    for (int n = 0; n < pairs; n++) own[n] = s.potential[place[n]];
    __syncwarp();
  }
  // Leaves a node with its own potential and that of the transition out of it.
  __device__ void arrive() {
    double node[row];
    load_vector<row>(node, s.left + l * row);
#pragma unroll
    for (int n = 0; n < pairs; n++) {
      const double x = double(own[n]);
      node[n] = fma(M[n], sign, fma(x, sign, node[n]));
      M[n] = fma(x, kept, M[n]);
    }
    store_vector<row>(s.node + l * row, node);
    __syncwarp();
  }
  // The message to the node, with its own potential on the way forward.
  __device__ void keep(double* out) const {
#pragma unroll
    for (int n = 0; n < pairs; n++) out[n * C::lanes] = M[n];
  }
  // The node is removed: the message is what the transition adds there, less C'S^-1 [C -r]. Before, the one that
  // reached the node is kept, and the potential of the node after the next is fetched.
  __device__ void remove(double* out, const S* J, const S* h) {
    double S_[kTriangle<D>], z[2][D], y[2][D];
#pragma unroll
    for (int l = 0; l < L; l++)
#pragma unroll
      for (int n = 0; n < pairs; n += 2) {
        const double2 x = pair(s.node + l * row + n);
        if (C::inside(n, l)) S_[at(C::own(n, l), C::other(n, l))] = x.x;
        if (C::inside(n + 1, l)) S_[at(C::own(n + 1, l), C::other(n + 1, l))] = x.y;
      }
    receive();
    keep(out);
    fetch(J, h);
    load_vector<D>(z[0], l < L ? s.cross + l * DS : s.node + L * row);
    load_vector<D>(z[1], l < L ? s.cross + (l + L) * DS : s.node + L * row);
    decompose<D>(S_, [&](int k, double) {
#pragma unroll
      for (int n = 0; n < 2; n++) {
        y[n][k] = z[n][k] * S_[at(k, k)];
#pragma unroll
        for (int j = 0; j < k; j++) z[n][j] = fma(-S_[at(k, j)], z[n][k], z[n][j]);
      }
    });
    double* to = s.Y + (l < L ? l : 3 * L) * DS;  // those of the vector are not read
    store_vector<D>(to, y[0]);
    store_vector<D>(to + L * DS, y[1]);
    store_vector<D>(to + N * DS, y[0]);
    __syncwarp();
    double x[row];
    load_vector<row>(x, s.reached + l * row);
    const double* columns = s.Y + (l < L ? l : 0) * DS;
#pragma unroll
    for (int half = 0; half < 2; half++) {  // columns of a half at once, so that no sum waits for itself
      double Y[L][D];
#pragma unroll
      for (int n = 0; n < L; n++) load_vector<D>(Y[n], columns + (half * L + n) * DS);
#pragma unroll
      for (int k = 0; k < D; k++) {
#pragma unroll
        for (int n = 0; n < L; n++) x[half * L + n] = fma(-z[half][k], Y[n][k], x[half * L + n]);
        if (half) x[N] = fma(-z[0][k], Y[0][k], x[N]);
      }
    }
#pragma unroll
    for (int n = 0; n < pairs; n++) M[n] = x[n];
  }
};

template <int D, class S>
__device__ inline void messages_same(const Args& a, double* shared) {
  const Circle<D> circle;
  const bool forward = blockIdx.x % 2 == 0;
  const long long batch = batch_of(a), own = (long long)(blockIdx.x / 2) * Circle<D>::G + circle.group,
                  sequence = own < batch ? own : batch - 1;  // groups to spare do what the last does
  const BothWays<D> scratch(a, sequence);
  Sender<D, S> sender(MessageDesk<D, S>(shared + circle.group * MessageDesk<D, S>::size), forward, circle.l);
  const long long step = forward ? 1 : -1, start = forward ? 0 : a.T - 1;
  const S *J = input<S>(a, kJ, sequence) + start * D * D, *h = input<S>(a, kH, sequence) + start * D;
  double* out = (forward ? scratch.there : scratch.back) + start * Message<D>::size + circle.l;
  auto next = [&](int n) {  // as far as there are nodes
    J += n < a.T ? step * D * D : 0;
    h += n < a.T ? step * D : 0;
  };
  sender.begin(scratch);
  sender.fetch(J, h);
  sender.receive();
  next(1);
  sender.fetch(J, h);
  sender.arrive();
  for (int n = 1; n < a.T; n++) {
    next(n + 1);
    sender.remove(out, J, h);
    out += step * Message<D>::size;
    sender.arrive();
  }
  sender.keep(out);
}

}  // namespace svae
