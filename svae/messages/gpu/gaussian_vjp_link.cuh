// The nodes between chunks of the derivative: one sweep forward over what the chunks add, one back. A group per
// sequence.
#pragma once
#include "gaussian_pulled.cuh"

namespace svae {

template <int D>
struct LinkMemory {
  using Z = Team<D>;
  static constexpr int size = Z::stride(2 * Z::M + 3 * Z::DS), shared = Z::G * size;
  double *gains, *a, *vector, *offset, *pushed;
  __device__ LinkMemory(double* shared, int group)
      : gains(shared + group * size), a(gains + Z::M), vector(a + Z::M), offset(vector + Z::DS),
        pushed(offset + Z::DS) {}
};

// Omega <- F' Omega F + what the chunk adds, sigma <- F' sigma + .., F the product of the chunk's gains.
template <int D, class S>
__device__ inline void vjp_link(const Args& a, double* shared) {
  constexpr int DD = D * D;
  const Team<D> team;
  const int j = team.j;
  const LinkMemory<D> s(shared, team.group);
  const Pulled<D> p(a, sequence_of<D>(a, team.group));
  double Omega[D], F[D], add[D], F_next[D], add_next[D], sigma = 0, more_next;
#pragma unroll
  for (int i = 0; i < D; i++) Omega[i] = 0;
  auto fetch = [&](int n) {
    get<D>(F_next, p.gains(n), j);
    get<D>(add_next, p.sum(n), j);
    more_next = p.sum(n)[DD + j];
  };
  fetch(0);
  for (int n = 0; n + 1 < a.chunks; n++) {
    const double more = more_next;
#pragma unroll
    for (int i = 0; i < D; i++) {
      F[i] = F_next[i];
      add[i] = add_next[i];
    }
    fetch(n + 1);
    put<D>(s.gains, F, j);
    s.vector[j] = sigma;
    __syncwarp();
    dots<D>(Omega, s.gains, Omega);
    put<D>(s.a, Omega, j);
    sigma = dot<D>(F, s.vector) + more;
    __syncwarp();
    sums<D>(Omega, s.a, F);
#pragma unroll
    for (int i = 0; i < D; i++) Omega[i] += add[i];
    give<D>(p.start(n + 1), Omega, j);
    p.start(n + 1)[DD + j] = sigma;
  }
}

// Pi <- F Pi F' - sym(F pi k') + what the chunk adds, pi <- F pi + .., k the chunk's offset.
template <int D, class S>
__device__ inline void vjp_link_back(const Args& a, double* shared) {
  constexpr int DD = D * D;
  const Team<D> team;
  const int j = team.j;
  const LinkMemory<D> s(shared, team.group);
  const Pulled<D> p(a, sequence_of<D>(a, team.group));
  double Pi[D], F[D], add[D], F_next[D], add_next[D], pi = p.r(a.T - 1)[j], more_next, offset_next;
  get<D>(Pi, p.S(a.T - 1), j);
  auto fetch = [&](int n) {
    get<D>(F_next, p.gains(n), j);
    get<D>(add_next, p.sum_back(n), j);
    more_next = p.sum_back(n)[DD + j];
    offset_next = p.offset(n)[j];
  };
  fetch(a.chunks - 1);
  for (int n = a.chunks - 1; n > 0; n--) {
    const double more = more_next, k = offset_next;
#pragma unroll
    for (int i = 0; i < D; i++) {
      F[i] = F_next[i];
      add[i] = add_next[i];
    }
    fetch(n - 1);
    put<D>(s.gains, F, j);
    s.vector[j] = pi;
    s.offset[j] = k;
    __syncwarp();
    sums<D>(Pi, s.gains, Pi);
    put<D>(s.a, Pi, j);
    row<D>(F, s.gains, j);
    const double pushed = dot<D>(F, s.vector);
    s.pushed[j] = pushed;
    __syncwarp();
    sums<D>(Pi, s.a, F);
#pragma unroll
    for (int i = 0; i < D; i++) Pi[i] += add[i] - (s.pushed[i] * k + s.offset[i] * pushed) / 2;
    pi = pushed + more;
    give<D>(p.end(n - 1), Pi, j);
    p.end(n - 1)[DD + j] = pi;
    __syncwarp();
  }
}

}  // namespace svae
