// Both ways at once, for a large batch of chains with one transition for all steps: one warp sends the messages of
// several chains forward in time, another those back (gaussian_messages.cuh). A message is a precision and a vector;
// with both of a node, all that smoothing gives of it is found without its neighbours (gaussian_join.cuh), while the
// messages go on.
#pragma once
#include "gaussian_forward.cuh"
#include "triangle.cuh"

namespace svae {

// How the lanes of a chain share out the columns of [C r]: two to a lane, l and l + L, and one lane more for the
// vector. With the lanes on a circle, each makes the products of its own columns with each other, with those of the
// lanes up to half the circle on, and with the vector, so that all pairs of columns are met, and what a lane reads
// serves both of its columns. Where L is even, two lanes that face each other find the same four products.
template <int D>
struct Circle {
  static constexpr int L = (D + 1) / 2, N = 2 * L, lanes = L + 1;         // an odd D leaves a column to spare
  static constexpr int G = 32 / lanes < 8 ? 32 / lanes : 8;               // chains of a warp
  static constexpr int products = 3 + 4 * (L / 2), pairs = products + 2;  // of a lane; the last two are the vector's
  // Pair n of lane l < L: a column of its own, and the other, of the lane m that is `ahead`: (l + L, m), (l, m),
  // (l + L, m + L), (l, m + L) in turn, of which the first is left out among a lane's own.
  __device__ static constexpr int ahead(int n) { return (n + 1) / 4; }
  __device__ static constexpr int own(int n, int l) { return (n < products ? (n + 1) % 2 : n == products) ? l : l + L; }
  __device__ static constexpr int other(int n, int l) { return (l + ahead(n)) % L + ((n + 1) % 4 < 2 ? 0 : L); }
  __device__ static constexpr bool inside(int n, int l) {  // whether the chain has such an entry, and none before it
    if (n >= pairs || own(n, l) >= D) return false;
    return n >= products || (other(n, l) < D && (L % 2 || ahead(n) < L / 2 || l < L / 2));
  }
  int group, l;
  __device__ Circle() {
    const int lane = threadIdx.x % kWarp;
    group = lane / lanes < G ? lane / lanes : G - 1;
    l = lane - group * lanes < lanes ? lane - group * lanes : L;  // lanes to spare do what the last does
  }
};

// A message in memory: for each pair its lanes side by side. Twice an odd number in all, so that threads with a message
// each find it in banks of their own. What the transition adds to the node is left out, but for the first of a way.
template <int D>
struct Message {
  using C = Circle<D>;
  static constexpr int all = C::pairs * C::L, even = (all + 1) / 2 * 2, size = even % 4 == 2 ? even : even + 2;
  double s[kTriangle<D>], v[D];
  __device__ void add(const double* p) {
#pragma unroll
    for (int m = 0; m < all; m += 2) {
      const double2 x = pair(p + m);
      add(m / C::L, m % C::L, x.x);
      add((m + 1) / C::L, (m + 1) % C::L, x.y);
    }
  }

 private:
  __device__ void add(int n, int l, double x) {
    if (!C::inside(n, l)) return;
    if (n < C::products)
      s[at(C::own(n, l), C::other(n, l))] += x;
    else
      v[C::own(n, l)] += x;
  }
};

constexpr int kJoined = kWarp - 1;  // nodes of a stretch of time, which a warp joins

// What kernels leave for each other, for one sequence: the transition and the first state as potentials, compact; how
// many messages there are forward and back; of each node the message forward with the node's own potential, and the one
// back without it.
template <int D>
struct BothWays {
  static constexpr int DD = D * D, used = 4 * DD + 3 * D + 3, potential = (used + 1) / 2 * 2;
  double *VV, *VW, *WW, *minus_Vw, *Ww, *logdet, *first_WW, *first_Ww, *first_logdet, *there, *back;
  int* sent;
  __device__ BothWays(const Args& a, long long sequence) : BothWays(a.scratch + sequence * a.scratch_size, a.T) {}
  __device__ BothWays(double* p, int T) {
    VV = p;
    VW = VV + DD;
    WW = VW + DD;
    minus_Vw = WW + DD;
    Ww = minus_Vw + D;
    logdet = Ww + D;
    first_WW = logdet + 1;
    first_Ww = first_WW + DD;
    first_logdet = first_Ww + D;
    sent = reinterpret_cast<int*>(first_logdet + 1);
    there = VV + potential;
    back = there + (long long)T * Message<D>::size;
  }
  __device__ static long long size(long long T) { return potential + 2 * T * Message<D>::size; }
};

__device__ inline long long batch_of(const Args& a) { return (long long)a.axes[0] * a.axes[1] * a.axes[2]; }

// The transition and the first state as potentials, a group of lanes for each sequence (lanes.cuh).
template <int D, class S>
__device__ inline void potential_same(const Args& a, double* shared) {
  const Team<D> team;
  const int j = team.j;
  const long long sequence = sequence_of<D>(a, team.group);
  const ForwardDesk<D, true> s(shared + team.group * Team<D>::stride(ForwardDesk<D, true>::size), team.group);
  Arriving<D, S> coming;
  coming.first(input<S>(a, kMean0, sequence), input<S>(a, kSqrt0, sequence), j);
  coming.whitened(1, s, j, [] {});
  coming.transition(input<S>(a, kA, sequence), input<S>(a, kB, sequence), input<S>(a, kQ, sequence), j);
  coming.whitened(0, s, j, [] {});
  prepare<D>(s.white(1), s.first(), j);
  prepare<D>(s.white(0), s.pair(0), j);
  __syncwarp();
  const BothWays<D> to(a, sequence);
  double x[D];
  take<D>(x, s.pair(0).VV, j);
  give<D>(to.VV, x, j);
  take<D>(x, s.pair(0).VW, j);
  give<D>(to.VW, x, j);
  take<D>(x, s.pair(0).WW, j);
  give<D>(to.WW, x, j);
  take<D>(x, s.first().WW, j);
  give<D>(to.first_WW, x, j);
  to.minus_Vw[j] = s.pair(0).minus_Vw[j];
  to.Ww[j] = s.pair(0).Ww[j];
  to.first_Ww[j] = s.first().Ww[j];
  to.logdet[0] = s.pair(0).logdet[0];
  to.first_logdet[0] = s.first().logdet[0];
  to.sent[0] = to.sent[1] = 0;
}

}  // namespace svae
