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
  __device__ static constexpr int twice_odd(int n) { return even(n) % 4 == 2 ? even(n) : even(n) + 2; }
  static constexpr int N = C::N, DS = Team<D>::DS, row = twice_odd(C::pairs), rows = C::lanes * row,
                       potentials = even((D * (D + 1) * int(sizeof(S)) + 7) / 8);
  static constexpr int used = 2 * rows + (3 * N + 4) * DS + potentials;
  static constexpr int size = used + ((C::lanes * DS - used) % 16 + 16) % 16, shared = C::G * size;
  // S, a row of pairs for each lane; what the transitions at both sides add to it, likewise, and to -r; -r; columns of
  // the transition; those of the solution, the vector's behind them; J and h
  double *node, *added, *vector, *cross, *Y;
  S* potential;
  __device__ explicit MessageDesk(double* p)
      : node(p), added(node + rows), vector(added + rows), cross(vector + 2 * DS), Y(cross + N * DS),
        potential(reinterpret_cast<S*>(Y + 2 * (C::L + 1) * DS)) {}
};

// A lane's share of a chain's messages, one way.
template <int D, class S>
struct Sender {
  using C = Circle<D>;
  static constexpr int L = C::L, N = C::N, pairs = C::pairs, products = C::products, DS = Team<D>::DS, DD = D * D,
                       row = MessageDesk<D, S>::row;
  const MessageDesk<D, S> s;
  const bool forward;
  const int l;
  const double kept;  // whether a message is kept with the node's own potential
  int place[pairs];   // in J, and h behind it
  S own[pairs];       // the potential of the node that is next
  double M[pairs];    // the message
  __device__ Sender(const MessageDesk<D, S>& s, bool forward, int l)
      : s(s), forward(forward), l(l), kept(forward ? 1 : 0) {
#pragma unroll
    for (int n = 0; n < pairs; n++) {
      const int i = C::own(n, l), j = n < products ? C::other(n, l) : 0;
      place[n] = n >= products ? DD + (i < D ? i : 0) : i < D && j < D ? (i > j ? i * D + j : j * D + i) : 0;
    }
  }

  __device__ static double entry(const double* matrix, const double* vector, int place) {
    return place < DD ? matrix[place] : vector[place - DD];
  }
  __device__ static constexpr double sign(int n) { return n < products ? 1 : -1; }
  // The transition, and the message that comes first: the first state, or nothing.
  __device__ void begin(const BothWays<D>& given) {
#pragma unroll
    for (int n = 0; n < pairs; n++) {
      const double V = entry(given.VV, given.minus_Vw, place[n]), W = entry(given.WW, given.Ww, place[n]);
      s.added[l * row + n] = sign(n) * (forward ? V : W);
      M[n] = forward ? entry(given.first_WW, given.first_Ww, place[n]) : 0;
    }
    for (int c = l; c < N && l < L; c += L)
      for (int i = 0; i < D; i++) s.cross[c * DS + i] = c < D ? given.VW[forward ? i * D + c : c * D + i] : 0;
  }
  // After the first node: messages that follow come by a transition.
  __device__ void go_on(const BothWays<D>& given) {
#pragma unroll
    for (int n = 0; n < pairs; n++) {
      const double V = entry(given.VV, given.minus_Vw, place[n]), W = entry(given.WW, given.Ww, place[n]);
      s.added[l * row + n] += sign(n) * (forward ? W : V);
    }
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
    load_vector<row>(node, s.added + l * row);
#pragma unroll
    for (int n = 0; n < pairs; n++) {
      const double x = double(own[n]);
      node[n] = fma(M[n] + x, sign(n), node[n]);
      M[n] = fma(x, kept, M[n]);
    }
#pragma unroll
    for (int n = 0; n < products; n += 2) *together<double2>(s.node + l * row + n) = double2{node[n], node[n + 1]};
    s.vector[l < L ? l : N] = node[products];  // the vector's lane has none of it
    s.vector[l < L ? l + L : N + 1] = node[products + 1];
    __syncwarp();
  }
  // The message to the node, with its own potential on the way forward.
  __device__ void keep(double* out) const {
#pragma unroll
    for (int n = 0; n < pairs; n++)
      if (l < L) out[n * L] = M[n];
  }
  // Entry n of the message: a product of columns, taken off.
  __device__ void take_off(int n, const double (&z)[D], const double (&y)[D]) {
    M[n] = 0;
#pragma unroll
    for (int k = 0; k < D; k++) M[n] = fma(-z[k], y[k], M[n]);
  }
  // The node is removed: the message is - C'S^-1 [C -r], and what the transition adds is left out. Before, the one that
  // reached the node is kept, and the potential of the node after the next is fetched.
  __device__ void remove(double* out, const S* J, const S* h) {
    double S_[kTriangle<D>], z[2][D], y[2][D];
#pragma unroll
    for (int l = 0; l < L; l++)
#pragma unroll
      for (int n = 0; n < products; n += 2) {
        const double2 x = pair(s.node + l * row + n);
        if (C::inside(n, l)) S_[at(C::own(n, l), C::other(n, l))] = x.x;
        if (n + 1 < products && C::inside(n + 1, l)) S_[at(C::own(n + 1, l), C::other(n + 1, l))] = x.y;
      }
    receive();
    keep(out);
    fetch(J, h);
    load_vector<D>(z[0], l < L ? s.cross + l * DS : s.vector);
    load_vector<D>(z[1], l < L ? s.cross + (l + L) * DS : s.vector);
    decompose<D>(S_, [&](int k, double) {
#pragma unroll
      for (int n = 0; n < 2; n++) {
        y[n][k] = z[n][k] * S_[at(k, k)];
#pragma unroll
        for (int j = 0; j < k; j++) z[n][j] = fma(-S_[at(k, j)], z[n][k], z[n][j]);
      }
    });
    store_vector<D>(s.Y + (l < L ? l : N) * DS, y[0]);
    store_vector<D>(s.Y + (l + L + (l < L ? 0 : 1)) * DS, y[1]);
    take_off(0, z[0], y[0]);
    take_off(1, z[1], y[1]);
    take_off(2, z[0], y[1]);
    __syncwarp();
#pragma unroll
    for (int ahead = 1; ahead <= L / 2; ahead++) {
      const int m = l + ahead < L ? l + ahead : (l + ahead - L) % L;
      load_vector<D>(y[0], s.Y + m * DS);
      load_vector<D>(y[1], s.Y + (m + L) * DS);
      take_off(4 * ahead - 1, z[1], y[0]);
      take_off(4 * ahead, z[0], y[0]);
      take_off(4 * ahead + 1, z[1], y[1]);
      take_off(4 * ahead + 2, z[0], y[1]);
    }
    load_vector<D>(y[0], s.Y + N * DS);
    take_off(products, z[0], y[0]);
    take_off(products + 1, z[1], y[0]);
  }
};

template <int D, class S>
__device__ inline void messages_same(const Args& a, double* shared) {
  let_next_begin();
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
  int* sent = scratch.sent + (forward ? 0 : 1);
  const int due = forward ? 0 : (a.T + 1) % kJoined;  // when all messages of a stretch are there
  sender.begin(scratch);
  sender.fetch(J, h);
  sender.receive();
  next(1);
  sender.fetch(J, h);
  sender.arrive();
  sender.go_on(scratch);
  for (int n = 1; n < a.T; n++) {
    next(n + 1);
    sender.remove(out, J, h);
    out += step * Message<D>::size;
    sender.arrive();
    if (n % kJoined == due) tell(sent, n, circle.l == 0);
  }
  sender.keep(out);
  tell(sent, a.T, circle.l == 0);
}

}  // namespace svae
