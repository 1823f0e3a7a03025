// Small dense algebra by one warp, in double precision: vectors of D entries lie DS apart in shared memory, and the
// entries between them are 0.
//
// Two operations carry everything. `eliminate` has one column of [S | right-hand sides] in the registers of each lane and
// leaves root^-1 times each of them; `gram` makes a_i . b_j for two sets of vectors on the tensor cores.
#pragma once

namespace svae {

constexpr int kWarp = 32;

__device__ inline double2 pair(const double* p) { return *reinterpret_cast<const double2*>(p); }

// 1 / x and 1 / sqrt(x) of a positive normal x, to rounding: an approximation of 20 bits and one cubic iteration.
__device__ inline double reciprocal(double x) {
#ifdef SVAE_EMULATE
  return 1 / x;
#else
  double r;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  const double e = fma(-x, r, 1.0);
  return fma(r, fma(e, e, e), r);
#endif
}

__device__ inline double reciprocal_root(double x) {
#ifdef SVAE_EMULATE
  return 1 / sqrt(x);
#else
  double r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  const double e = fma(-x * r, r, 1.0);
  return fma(r * e, fma(e, 0.375, 0.5), r);
#endif
}

// log of a positive number. For single precision its exponent goes apart, and the rest needs no more than logf.
template <class S>
__device__ inline double logarithm(double x) {
  if constexpr (sizeof(S) == 8) return log(x);
  int power;
  const double rest = frexp(x, &power);
  const float head = float(rest);
  return double(logf(head) + float(rest - double(head)) / head) + power * 0.693147180559945309417;
}

__device__ inline double sum(double x) {
#pragma unroll
  for (int i = 1; i < kWarp; i *= 2) x += __shfl_xor_sync(0xffffffff, x, i);
  return x;
}

template <int D>
struct Size {
  static constexpr int DS = D <= 4 ? 4 : D <= 12 ? 12 : 20;  // 4 times an odd number: no bank conflicts
  static constexpr int M = D * DS;                           // a matrix
  static constexpr int beyond = 8 * DS;                      // what `gram` may read behind the last vector
  static constexpr int NC = (3 * D + 1 + 31) / 32;           // columns of [S | C | r | I] in a lane
  static constexpr int G = 32 / D < 3 ? 32 / D : 3;          // groups of D lanes
};

// The memory of `eliminate`, for matrices of several groups of D lanes side by side: row k is that of pivot k.
template <int D, int Groups = 1>
struct Work {
  static constexpr int DS = Size<D>::DS, row = Groups * DS + 4, size = D * row + Groups * DS;
  double* p;
  __device__ explicit Work(double* p) : p(p) {}
  __device__ double pivot(int k, int group = 0) const { return p[k * row + group * DS + k]; }
};

template <int D>
__device__ inline void load_vector(double (&x)[D], const double* p) {
#pragma unroll
  for (int i = 0; i + 1 < D; i += 2) {
    const double2 v = pair(p + i);
    x[i] = v.x;
    x[i + 1] = v.y;
  }
  if (D & 1) x[D - 1] = p[D - 1];
}

template <int D>
__device__ inline void store_vector(double* p, const double (&x)[D]) {
#pragma unroll
  for (int i = 0; i + 1 < D; i += 2) *reinterpret_cast<double2*>(p + i) = double2{x[i], x[i + 1]};
  if (D & 1) p[D - 1] = x[D - 1];
}

template <int D>
__device__ inline double dot(const double (&x)[D], const double* p) {
  double even = 0, odd = 0;
#pragma unroll
  for (int i = 0; i + 1 < D; i += 2) {
    const double2 v = pair(p + i);
    even = fma(x[i], v.x, even);
    odd = fma(x[i + 1], v.y, odd);
  }
  if (D & 1) even = fma(x[D - 1], p[D - 1], even);
  return even + odd;
}

// Columns lane + 32 q of [S | right-hand sides], S in the first D. Leaves R^-T of each, where S = R'R with R lower (Last:
// pivots from the last row up), or L^-1 of each, where S = L L'. By symmetry the multipliers of pivot k are row k, of
// which each lane holds one entry. `index` is the lane's own column of S, D for none.
template <int D, bool Last, int Groups, int NC>
__device__ inline void eliminate(double (&x)[NC][D], Work<D, Groups> work, int index, int group = 0) {
  using W = Work<D, Groups>;
  double* row = work.p + group * W::DS;
  double* place = index < D ? row + index : work.p + Groups * W::DS;
#pragma unroll
  for (int s = 0; s < D; s++) {
    const int k = Last ? D - 1 - s : s;
    place[k * W::row] = x[0][k];
    __syncwarp();
    const double* r = row + k * W::row;
    const double inverse = reciprocal(r[k]);
    double m[D];
    load_vector<D>(m, r);
#pragma unroll
    for (int q = 0; q < NC; q++) {
      const double f = x[q][k] * inverse;
#pragma unroll
      for (int i = 0; i < D; i++)
        if (Last ? i < k : i > k) x[q][i] = fma(-m[i], f, x[q][i]);
    }
  }
  double* scale = work.p + D * W::row + group * W::DS;
  if (index < D) scale[index] = reciprocal_root(work.pivot(index, group));
  __syncwarp();
  double s[D];
  load_vector<D>(s, scale);
#pragma unroll
  for (int q = 0; q < NC; q++)
#pragma unroll
    for (int i = 0; i < D; i++) x[q][i] *= s[i];
}

// The fragments of D vectors and one behind them for the tensor cores: entry 4 t + lane % 4 of vector 8 m + lane / 4.
template <int D>
struct Fragments {
  static constexpr int M = (D + 8) / 8, K = (D + 3) / 4;  // tiles of vectors, with the one behind; of their entries
#ifdef SVAE_EMULATE
  const double* p;
  void load(const double* from, int) { p = from; }
#else
  double x[M][K];
  __device__ void load(const double* from, int lane) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
      for (int t = 0; t < K; t++) x[m][t] = from[(m * 8 + lane / 4) * Size<D>::DS + t * 4 + lane % 4];
  }
#endif
};

enum Part { kFull, kUpper };  // kUpper: entries below the diagonal may be left out

// pairs(i, j, a_i . b_j, a_i . b_j+1) for even j < D, and vector(i, a_i . b_D) with the vector behind b.
template <int D, Part Which = kFull, class Pairs, class Vector>
__device__ inline void product(const Fragments<D>& a, const Fragments<D>& b, int lane, Pairs pairs, Vector vector) {
  using F = Fragments<D>;
  const int r = lane / 4, k = lane % 4;
#pragma unroll
  for (int m = 0; m < (D + 7) / 8; m++)
#pragma unroll
    for (int n = 0; n < F::M; n++) {
      if (Which == kUpper && n < m) continue;
      double v[2] = {0, 0};
      const int i = m * 8 + r, j = n * 8 + 2 * k;
#ifdef SVAE_EMULATE
      for (int h = 0; h < 2; h++)
        for (int l = 0; l < 4 * F::K; l++) v[h] += a.p[i * Size<D>::DS + l] * b.p[(j + h) * Size<D>::DS + l];
#else
#pragma unroll
      for (int t = 0; t < F::K; t++)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(v[0]), "+d"(v[1])
                     : "d"(a.x[m][t]), "d"(b.x[n][t]));
#endif
      if (i < D && j < D) pairs(i, j, v[0], v[1]);
      if (i < D && (j == D || j + 1 == D)) vector(i, v[D & 1]);
    }
}

template <int D, Part Which = kFull, class Pairs>
__device__ inline void product(const Fragments<D>& a, const Fragments<D>& b, int lane, Pairs pairs) {
  product<D, Which>(a, b, lane, pairs, [](int, double) {});
}

// Entries j and j + 1 of a vector, which must leave alone what lies behind it.
template <int D>
__device__ inline void put_pair(double* vector, int j, double a, double b) {
  if (D % 2 == 0 || j + 1 < D)
    *reinterpret_cast<double2*>(vector + j) = double2{a, b};
  else
    vector[j] = a;
}
template <int D>
__device__ inline void put_pair(float* vector, int j, double a, double b) {
  if (D % 2 == 0) {
    *reinterpret_cast<float2*>(vector + j) = float2{float(a), float(b)};
  } else {
    vector[j] = float(a);
    if (j + 1 < D) vector[j + 1] = float(b);
  }
}

// store(i, j, a_i . b_j), one by one.
template <int D, class Store>
__device__ inline void gram(const double* a, const double* b, int lane, Store store) {
  Fragments<D> x, y;
  x.load(a, lane);
  y.load(b, lane);
  product<D>(x, y, lane, [&](int i, int j, double v, double w) {
    store(i, j, v);
    if (j + 1 < D) store(i, j + 1, w);
  });
}

// a_i . y in lane i.
template <int D>
__device__ inline double times(const double* a, const double* y, int lane) {
  if (lane >= D) return 0;
  double x[D];
  load_vector<D>(x, y);
  return dot<D>(x, a + lane * Size<D>::DS);
}

// A D x D matrix (row major) by one warp, some whole rows at a time: visit(q, i, j) of the lane's entries, q-th pass.
template <int D, class Visit>
__device__ inline void each_entry(int lane, Visit visit) {
  constexpr int rows = 32 / D;
  const int r = lane / D, j = lane % D;
#pragma unroll
  for (int q = 0; q < (D + rows - 1) / rows; q++)
    if (r < rows && r + q * rows < D) visit(q, r + q * rows, j);
}

// On its way from global to shared memory: fetched into registers now, put down later.
template <int D, class S>
struct Fetch {
  static constexpr int N = (D + 32 / D - 1) / (32 / D);
  S x[N];
  __device__ void get(const S* from, int lane) {
    each_entry<D>(lane, [&](int q, int i, int j) { x[q] = from[i * D + j]; });
  }
  __device__ void zero() {
#pragma unroll
    for (int q = 0; q < N; q++) x[q] = 0;
  }
  __device__ void put(double* to, int lane) const {
    each_entry<D>(lane, [&](int q, int i, int j) { to[i * Size<D>::DS + j] = double(x[q]); });
  }
  __device__ void put_columns(double* to, int lane) const {
    each_entry<D>(lane, [&](int q, int i, int j) { to[j * Size<D>::DS + i] = double(x[q]); });
  }
};

// Vectors in shared memory as a plain D x D matrix.
template <int D, class S>
__device__ inline void write(S* to, const double* from, int lane) {
  each_entry<D>(lane, [&](int, int i, int j) { to[i * D + j] = S(from[i * Size<D>::DS + j]); });
}

// The columns of the inverse of a lower triangular matrix given by rows.
template <int D>
__device__ inline void invert_lower(double* columns, const double* rows, int lane) {
  constexpr int DS = Size<D>::DS;
  if (lane >= D) return;
  double x[D];
#pragma unroll
  for (int i = 0; i < D; i++) {
    double s = lane == i ? 1 : 0;
#pragma unroll
    for (int k = 0; k < i; k++) s = fma(-rows[i * DS + k], x[k], s);
    x[i] = s * reciprocal(rows[i * DS + i]);
  }
  store_vector<D>(columns + lane * DS, x);
}

// The lower triangle, its diagonal halved.
__device__ inline double phi(int i, int j, double v) { return i > j ? v : i == j ? v / 2 : 0; }

}  // namespace svae
