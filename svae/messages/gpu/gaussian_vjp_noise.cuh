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

// Of transition t, from S-, r- (column and entry j) and Pi, pi of the node after; `product` are the columns of G Pi.
template <int D, class S>
__device__ inline void pull_transition(const Args& a, const Item& item, int t, const Pulled<D>& in,
                                       const double (&S_)[D], double r, const double (&Pi)[D], double pi, double w, const double* product,
                                       const BackMemory<D>& s, int j, bool alive) {
  constexpr int DD = D * D;
  const long long T = a.T;
  auto from = [&](int which, int size) { return input<S>(a, which, item.sequence) + (long long)t * size; };
  auto to = [&](int which, int size) {
    return output<S>(a, which, item.sequence, (T - 1) * size) + (long long)t * size;
  };
  const double b = from(kB, D)[j], c = s.offset[j];
  double x[D], y[D], A[D];
  get<D>(A, from(kA, DD), j);
  put<D>(s.A, A, j);
  s.given[j] = b;
  s.r[j] = r;
  Noise<D> noise(from(kQ, DD), s, j);  // with barriers
  // C-' - b r-', C- = its local part - 2 G Pi + c pi'
  row<D>(x, product, j);
  load_vector<D>(y, s.pi);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] = c * y[i] - 2 * x[i];
  get<D>(y, in.C(t), j);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] += y[i] - s.given[i] * r;
  sums<D>(y, s.A, S_);
#pragma unroll
  for (int i = 0; i < D; i++) x[i] += y[i];
  put<D>(s.b, x, j);  // for K
#pragma unroll
  for (int i = 0; i < D; i++) x[i] += y[i];
  sums<D, kLower>(x, s.W, x);
  dots<D, kLower>(x, s.W, x);
  if (alive) give<D>(to(kA, DD), x, j);
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
  noise.pull(to(kB, D), to(kQ, DD), x, v, w, s, j, alive);
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
