// The cotangents of transitions and of the first state, from those of their potentials.
#pragma once
#include "gaussian_vjp.cuh"

namespace svae {

template <int D>
struct BackMemory {
  using Z = Team<D>;
  static constexpr int size = Z::stride(6 * Z::M + 10 * Z::DS), shared = Z::G * size;
  double *G, *A, *W, *a, *b, *c, *spare, *offset, *pi, *Gpi, *r, *given, *v, *Wv, *mean, *kappa;
  __device__ BackMemory(double* shared, int group) {
    double* p = shared + group * size;
    double** matrices[] = {&G, &A, &W, &a, &b, &c};
    for (double** x : matrices) *x = p, p += Z::M;
    double** vectors[] = {&spare, &offset, &pi, &Gpi, &r, &given, &v, &Wv, &mean, &kappa};  // `spare` behind c
    for (double** x : vectors) *x = p, p += Z::DS;
  }
};

// A root of noise, lower triangular or not: W with W'W = (Q Q')^-1, and W Q, which is the identity where Q is
// triangular.
template <int D>
struct Noise {
  double W[D], turn[D];
  bool turned;
  template <class S>
  __device__ Noise(const S* root, const BackMemory<D>& s, int j) {
    double Q[D];
    get<D>(Q, root, j);
    bool upper = false;
#pragma unroll
    for (int i = 0; i < D; i++) upper = upper || (i < j && Q[i] != 0);
    turned = __any_sync(0xffffffff, upper);
    put<D>(s.c, Q, j);
    if (!turned) s.spare[j] = reciprocal(double(root[j * D + j]));
    __syncwarp();
    if (turned) {
      double own[D], square[D];
      row<D>(own, s.c, j);
      sums<D>(square, s.c, own);
      __syncwarp();
      whiten<D>(W, square, s.c, j);
    } else {
      invert_columns<D>(W, s.c, s.spare, j);
    }
    put<D>(s.W, W, j);
    __syncwarp();
    if (turned) sums<D, kLower>(turn, s.W, Q);
  }
  // From the cotangents of K = W'W, less w Q Q' / 2, and of K b through v: those of b and of the root.
  template <class S>
  __device__ void pull(S* d_b, S* d_root, const double (&K)[D], double v, double w, const BackMemory<D>& s, int j,
                       bool alive) {
    double x[D], own[D];
    s.v[j] = v;
    sums<D, kLower>(x, s.W, K);
    put<D>(s.b, x, j);
    row<D>(own, s.W, j);
    __syncwarp();
    s.Wv[j] = dot<D>(own, s.v);
    sums<D>(x, s.b, own);
#pragma unroll
    for (int i = 0; i < D; i++) x[i] += i == j ? w / 2 : 0;
    if (turned) {
      put<D>(s.c, x, j);
      __syncwarp();
      sums<D>(x, s.c, turn);
    }
    dots<D, kLower>(x, s.W, x);
#pragma unroll
    for (int i = 0; i < D; i++) x[i] *= -2;
    __syncwarp();
    const double b = dot<D>(W, s.Wv);
    if (!alive) return;
    give<D>(d_root, x, j);
    d_b[j] = S(b);
  }
};

// A transition as it was given, and where its cotangents go.
template <int D, class S>
struct Transition {
  const S *A, *b, *Q;
  S *d_A, *d_b, *d_Q;
  __device__ Transition(const Args& a, long long sequence, int t, int count) {
    auto from = [&](int which, int size) { return input<S>(a, which, sequence) + (long long)t * size; };
    auto to = [&](int which, int size) {
      return output<S>(a, which, sequence, (long long)count * size) + (long long)t * size;
    };
    A = from(kA, D * D), b = from(kB, D), Q = from(kQ, D * D);
    d_A = to(kA, D * D), d_b = to(kB, D), d_Q = to(kQ, D * D);
  }
};

// Column j of C-', of which `local` is the part that pull_gain found: C- = that - 2 G Pi + c pi'. `product` are the
// columns of G Pi.
template <int D>
__device__ inline void pull_product(double (&C)[D], const double* local, const double* product, const BackMemory<D>& s,
                                    int j) {
  double x[D], y[D];
  row<D>(x, product, j);
  load_vector<D>(y, s.pi);
  get<D>(C, local, j);
#pragma unroll
  for (int i = 0; i < D; i++) C[i] += s.offset[j] * y[i] - 2 * x[i];
}

// From S-, C-', r- (column and entry j), Pi and pi of the node after, and the weight w. All of it is linear in these,
// so that where steps share a transition their sums may stand here.
template <int D, class S>
__device__ inline void pull_transition(const Transition<D, S>& given, const double (&S_)[D], const double (&C)[D],
                                       double r, const double (&Pi)[D], double pi, double w, const BackMemory<D>& s,
                                       int j, bool alive) {
  const double b = given.b[j];
  double x[D], y[D], A[D];
  get<D>(A, given.A, j);
  put<D>(s.A, A, j);
  s.given[j] = b;
  s.r[j] = r;
  Noise<D> noise(given.Q, s, j);  // with barriers
  sums<D>(y, s.A, S_);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = C[i] - s.given[i] * r + y[i];
  put<D>(s.b, x, j);  // for K
#pragma unroll
  for (int i = 0; i < D; i++) x[i] += y[i];
  sums<D, kLower>(x, s.W, x);
  dots<D, kLower>(x, s.W, x);
  if (alive) give<D>(given.d_A, x, j);
  row<D>(A, s.A, j);
  const double v = pi - dot<D>(A, s.r) - w * b;
  __syncwarp();
  sums<D>(x, s.b, A);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] += s.given[i] * (pi - w / 2 * b);
  put<D>(s.c, x, j);
  __syncwarp();
  row<D>(y, s.c, j);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = Pi[i] + (x[i] + y[i]) / 2;
  noise.pull(given.d_b, given.d_Q, x, v, w, s, j, alive);
}

// Of the first state, as of a transition from nowhere.
template <int D, class S>
__device__ inline void pull_first(const Args& a, const Item& item, const double (&Pi)[D], double pi, double w,
                                  const BackMemory<D>& s, int j) {
  const double b = input<S>(a, kMean0, item.sequence)[j];
  double x[D];
  s.given[j] = b;
  s.pi[j] = pi;
  Noise<D> noise(input<S>(a, kSqrt0, item.sequence), s, j);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = Pi[i] + (s.given[i] * pi + s.pi[i] * b - w * s.given[i] * b) / 2;
  noise.pull(output<S>(a, kMean0, item.sequence, D), output<S>(a, kSqrt0, item.sequence, D * D), x, pi - w * b, w, s, j,
             item.n == 0);
}

}  // namespace svae
