// Algebra of D x D matrices (row major, D * D lanes each), triangular ones with their zeros stored.
#pragma once
#include "lanes.h"

namespace svae::SVAE_VARIANT {

enum Shape { Full, Lower, Upper };

#if defined(__AVX512F__)
constexpr int kRows = 4, kColumns = 4;  // accumulators that fit the registers
#else
constexpr int kRows = 4, kColumns = 2;
#endif

// C (+)= scale op(A) op(B), one tile of NR x NC entries.
template <class V, bool TA, bool TB, bool Add, int NR, int NC, class S>
inline void tile(int D, V* C, const V* A, const V* B, int r0, int c0, int from, int to, S scale) {
  V sum[NR][NC];
#pragma GCC unroll 4
  for (int r = 0; r < NR; r++)
#pragma GCC unroll 4
    for (int c = 0; c < NC; c++) sum[r][c] = V{};
  for (int k = from; k < to; k++) {
    V a[NR], b[NC];
#pragma GCC unroll 4
    for (int r = 0; r < NR; r++) a[r] = TA ? A[k * D + r0 + r] : A[(r0 + r) * D + k];
#pragma GCC unroll 4
    for (int c = 0; c < NC; c++) b[c] = TB ? B[(c0 + c) * D + k] : B[k * D + c0 + c];
#pragma GCC unroll 4
    for (int r = 0; r < NR; r++)
#pragma GCC unroll 4
      for (int c = 0; c < NC; c++) sum[r][c] += a[r] * b[c];
  }
#pragma GCC unroll 4
  for (int r = 0; r < NR; r++)
#pragma GCC unroll 4
    for (int c = 0; c < NC; c++) {
      V* out = C + (r0 + r) * D + c0 + c;
      if (Add)
        *out += scale * sum[r][c];
      else
        *out = scale * sum[r][c];
    }
}

template <class V, bool TA, bool TB, bool Add, int NR, class S>
inline void tile_columns(int nc, int D, V* C, const V* A, const V* B, int r0, int c0, int from, int to, S scale) {
  if (nc == kColumns) return tile<V, TA, TB, Add, NR, kColumns>(D, C, A, B, r0, c0, from, to, scale);
  if (kColumns > 2 && nc == 3) return tile<V, TA, TB, Add, NR, 3>(D, C, A, B, r0, c0, from, to, scale);
  if (kColumns > 2 && nc == 2) return tile<V, TA, TB, Add, NR, 2>(D, C, A, B, r0, c0, from, to, scale);
  return tile<V, TA, TB, Add, NR, 1>(D, C, A, B, r0, c0, from, to, scale);
}

// --- one sequence: the rows or columns of its matrices in lanes, for D up to their number ----------------------------

template <class S>
constexpr int kLanes = SVAE_BYTES / int(sizeof(S));

// The columns of M, rows in lanes (those beyond D are 0); `columns` has room for kLanes vectors.
template <class S>
inline void load_columns(int D, Lanes<S, kLanes<S>>* columns, const S* M) {
  for (int i = 0; i < D; i++) columns[i] = load<S, kLanes<S>>(M + i * D);
  for (int i = D; i < kLanes<S>; i++) columns[i] = Lanes<S, kLanes<S>>{};
  transpose<S, kLanes<S>>(columns);
}

// Row after row: a vector reaches into the next row, which is written after it.
template <class S>
inline void store_row(int D, S* M, int i, Lanes<S, kLanes<S>> row) {
  if (i * D + kLanes<S> <= D * D)
    store<S, kLanes<S>>(M + i * D, row);
  else
    std::memcpy(M + i * D, &row, D * sizeof(S));
}

template <class S>
inline void store_columns(int D, S* M, Lanes<S, kLanes<S>>* columns) {
  for (int c = D; c < kLanes<S>; c++) columns[c] = Lanes<S, kLanes<S>>{};
  transpose<S, kLanes<S>>(columns);
  for (int i = 0; i < D; i++) store_row(D, M, i, columns[i]);
}

template <class S, bool TA, Shape SA, bool TB, bool Add>
inline void multiply_one(int D, S* __restrict C, const S* A, const S* B, S scale) {
  using V = Lanes<S, kLanes<S>>;
  V rows[kLanes<S>];
  if (TB)
    load_columns(D, rows, B);
  else
    for (int k = 0; k < D; k++) rows[k] = load<S, kLanes<S>>(B + k * D);
  for (int r = 0; r < D; r++) {
    const int from = SA == Upper ? r : 0, to = SA == Lower ? r + 1 : D;
    V even{}, odd{};
    int k = from;
    for (; k + 1 < to; k += 2) {
      even += (TA ? A[k * D + r] : A[r * D + k]) * rows[k];
      odd += (TA ? A[(k + 1) * D + r] : A[r * D + k + 1]) * rows[k + 1];
    }
    if (k < to) even += (TA ? A[k * D + r] : A[r * D + k]) * rows[k];
    V sum = scale * (even + odd);
    if (Add) {
      sum += load<S, kLanes<S>>(C + r * D);
      std::memcpy(C + r * D, &sum, D * sizeof(S));
    } else {
      store_row(D, C, r, sum);
    }
  }
}

// C = scale op(A) op(B), or C += it: SA and SB are the shapes of op(A) and op(B); only the lower triangle of C if SC is
// Lower.
template <class V, bool TA, Shape SA, bool TB, Shape SB, Shape SC = Full, bool Add = false, class S>
__attribute__((noinline)) void multiply(int D, V* __restrict C, const V* A, const V* B, S scale) {
  if constexpr (sizeof(V) == sizeof(S)) {
    if (D > 2 && D <= kLanes<S>) return multiply_one<S, TA, SA, TB, Add>(D, C, A, B, scale);
  }
  for (int r = 0; r < D; r += kRows) {
    const int nr = D - r < kRows ? D - r : kRows;
    for (int c = 0; c < D; c += kColumns) {
      const int nc = D - c < kColumns ? D - c : kColumns;
      if (SC == Lower && c > r + nr - 1) break;
      int from = 0, to = D;
      if (SA == Lower && r + nr < to) to = r + nr;
      if (SA == Upper && r > from) from = r;
      if (SB == Lower && c > from) from = c;
      if (SB == Upper && c + nc < to) to = c + nc;
      if (nr == 4)
        tile_columns<V, TA, TB, Add, 4>(nc, D, C, A, B, r, c, from, to, scale);
      else if (nr == 3)
        tile_columns<V, TA, TB, Add, 3>(nc, D, C, A, B, r, c, from, to, scale);
      else if (nr == 2)
        tile_columns<V, TA, TB, Add, 2>(nc, D, C, A, B, r, c, from, to, scale);
      else
        tile_columns<V, TA, TB, Add, 1>(nc, D, C, A, B, r, c, from, to, scale);
    }
  }
}

// y = A x, A' x; only the stored triangle where the shape says so.
template <class V>
inline void times(int D, V* y, const V* A, const V* x) {
  for (int i = 0; i < D; i++) {
    V s{};
    for (int j = 0; j < D; j++) s += A[i * D + j] * x[j];
    y[i] = s;
  }
}

template <class V>
inline void times_transposed(int D, V* y, const V* A, const V* x) {
  for (int j = 0; j < D; j++) y[j] = V{};
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) y[j] += A[i * D + j] * x[i];
}

template <class V>
inline V dot(int D, const V* x, const V* y) {
  V s{};
  for (int i = 0; i < D; i++) s += x[i] * y[i];
  return s;
}

template <class V>
inline void mirror(int D, V* A) {
  for (int i = 0; i < D; i++)
    for (int j = 0; j < i; j++) A[j * D + i] = A[i * D + j];
}

template <class V>
inline void clear_upper(int D, V* A) {
  for (int i = 0; i < D; i++)
    for (int j = i + 1; j < D; j++) A[i * D + j] = V{};
}

// A <- (A + A') / 2
template <class V, class S>
inline void symmetrize(int D, V* A, S half) {
  for (int i = 0; i < D; i++)
    for (int j = 0; j < i; j++) A[j * D + i] = A[i * D + j] = half * (A[i * D + j] + A[j * D + i]);
}

// The inverse of a lower triangular matrix, row by row.
template <class V>
__attribute__((noinline)) void invert(int D, V* __restrict X, const V* L) {
  for (int i = 0; i < D; i++) {
    const V scale = (V{} + 1) / L[i * D + i];
    for (int j = 0; j < i; j++) X[i * D + j] = V{};
    for (int k = 0; k < i; k++) {
      const V l = L[i * D + k];
      for (int j = 0; j <= k; j++) X[i * D + j] += l * X[k * D + j];
    }
    for (int j = 0; j < i; j++) X[i * D + j] *= -scale;
    X[i * D + i] = scale;
    for (int j = i + 1; j < D; j++) X[i * D + j] = V{};
  }
}

// The lower R with R'R = S, from the lower triangle of S, in place.
template <class S, int W>
__attribute__((noinline)) void reverse_cholesky(int D, Lanes<S, W>* R) {
  using V = Lanes<S, W>;
  for (int k = D - 1; k >= 0; k--) {
    for (int m = k + 1; m < D; m++) {
      const V r = R[m * D + k];
      for (int j = 0; j <= k; j++) R[k * D + j] -= r * R[m * D + j];
    }
    const V pivot = root<S, W>(R[k * D + k]), scale = S(1) / pivot;
    for (int j = 0; j < k; j++) R[k * D + j] *= scale;
    R[k * D + k] = pivot;
    for (int j = k + 1; j < D; j++) R[k * D + j] = V{};
  }
}

// --- reflections from the right --------------------------------------------------------------------------------------
//
// One reflection I - f v v' with v = (head, x) takes a row (t, x) to (|t, x|, 0).

template <class V>
struct Reflection {
  V head, factor;
};

template <class S, int W>
inline Reflection<Lanes<S, W>> reflect(Lanes<S, W>& t, Lanes<S, W> square) {
  using V = Lanes<S, W>;
  const V length = root<S, W>(t * t + square), size = t < V{} ? -t : t, sum = length + size;
  const V ratio = square / sum;
  // For t >= 0 the head t - length cancels: it is -square / (t + length).
  const V head = t < V{} ? -sum : -ratio, gap = t < V{} ? sum : ratio;
  const V product = length * gap, one = splat<S, W>(1), none = V{};
  const V factor = product > none ? one / (product > none ? product : one) : (product != product ? product : none);
  t = length;
  return {head, factor};
}

// T <- the lower root of T T' + X X', T lower; X keeps the vectors of the reflections.
template <class S, int W, int DS>
__attribute__((noinline)) void triangularize_sized(int d, Lanes<S, W>* __restrict T, Lanes<S, W>* __restrict X,
                                            Reflection<Lanes<S, W>>* __restrict h) {
  using V = Lanes<S, W>;
  const int D = DS ? DS : d;
  for (int k = 0; k < D; k++) {
    V* row = X + k * D;
    for (int j = 0; j < k; j++) {
      const V* x = X + j * D;
      V a = T[k * D + j] * h[j].head, b{};
#pragma GCC unroll 16
      for (int c = 0; c + 1 < D; c += 2) {
        a += row[c] * x[c];
        b += row[c + 1] * x[c + 1];
      }
      if (D & 1) a += row[D - 1] * x[D - 1];
      const V s = (a + b) * h[j].factor;
      T[k * D + j] -= s * h[j].head;
#pragma GCC unroll 16
      for (int c = 0; c < D; c++) row[c] -= s * x[c];
    }
    h[k] = reflect<S, W>(T[k * D + k], dot(D, row, row));
  }
}

// The reflections applied to the rows (0, B_i): (K_i, B_i).
template <class S, int W, int DS>
__attribute__((noinline)) void carry_rows_sized(int d, Lanes<S, W>* __restrict K, Lanes<S, W>* __restrict B,
                                         const Lanes<S, W>* __restrict X, const Reflection<Lanes<S, W>>* __restrict h) {
  using V = Lanes<S, W>;
  const int D = DS ? DS : d;
  constexpr int N = DS ? DS : 64;
  for (int i = 0; i < D; i += 2) {
    const int other = i + 1 < D ? i + 1 : i;
    V p[N], q[N];
#pragma GCC unroll 16
    for (int c = 0; c < D; c++) {
      p[c] = B[i * D + c];
      q[c] = B[other * D + c];
    }
    for (int j = 0; j < D; j++) {
      const V* x = X + j * D;
      V a{}, b{};
#pragma GCC unroll 16
      for (int c = 0; c < D; c++) {
        a += p[c] * x[c];
        b += q[c] * x[c];
      }
      a *= h[j].factor;
      b *= h[j].factor;
      K[i * D + j] = -a * h[j].head;
      K[other * D + j] = -b * h[j].head;
#pragma GCC unroll 16
      for (int c = 0; c < D; c++) {
        p[c] -= a * x[c];
        q[c] -= b * x[c];
      }
    }
#pragma GCC unroll 16
    for (int c = 0; c < D; c++) {
      B[i * D + c] = p[c];
      B[other * D + c] = q[c];
    }
  }
}

// One sequence, the rows in lanes. x[j] is the vector of reflection j, and `below` marks the rows it still changes.
template <class S>
inline Lanes<S, kLanes<S>> reflect_rows(int D, int from, Lanes<S, kLanes<S>>& head_column, Lanes<S, kLanes<S>>* columns,
                                        const S* x, Reflection<S> h, int below) {
  using V = Lanes<S, kLanes<S>>;
  V even = head_column * h.head, odd{};
  int c = from;
  for (; c + 1 < D; c += 2) {
    even += columns[c] * x[c];
    odd += columns[c + 1] * x[c + 1];
  }
  if (c < D) even += columns[c] * x[c];
  V s = (even + odd) * h.factor;
  for (int i = 0; i < below; i++) s[i] = 0;
  head_column -= s * h.head;
  for (c = from; c < D; c++) columns[c] -= s * x[c];
  return s;
}

template <class S>
inline void triangularize_one(int D, S* T, S* X, Reflection<S>* h) {
  Lanes<S, kLanes<S>> columns[kLanes<S>], heads[kLanes<S>];
  load_columns(D, columns, X);
  load_columns(D, heads, T);
  for (int j = 0; j < D; j++) {
    S *x = X + j * D, square = 0, t = heads[j][j];
    for (int c = 0; c < D; c++) x[c] = columns[c][j];
    for (int c = 0; c < D; c++) square += x[c] * x[c];
    h[j] = reflect<S, 1>(t, square);
    reflect_rows(D, 0, heads[j], columns, x, h[j], j + 1);
    heads[j][j] = t;
  }
  store_columns(D, T, heads);
}

template <class S>
inline void carry_rows_one(int D, S* K, S* B, const S* X, const Reflection<S>* h) {
  Lanes<S, kLanes<S>> columns[kLanes<S>], heads[kLanes<S>];
  load_columns(D, columns, B);
  for (int j = 0; j < D; j++) {
    heads[j] = Lanes<S, kLanes<S>>{};
    reflect_rows(D, 0, heads[j], columns, X + j * D, h[j], 0);
  }
  store_columns(D, K, heads);
  store_columns(D, B, columns);
}

template <class S>
inline void lower_root_one(int D, S* M, Reflection<S>*) {
  Lanes<S, kLanes<S>> columns[kLanes<S>];
  load_columns(D, columns, M);
  for (int j = 0; j < D; j++) {
    S x[kLanes<S>], square = 0, t = columns[j][j];
    for (int c = j + 1; c < D; c++) x[c] = columns[c][j];
    for (int c = j + 1; c < D; c++) square += x[c] * x[c];
    const Reflection<S> h = reflect<S, 1>(t, square);
    reflect_rows(D, j + 1, columns[j], columns, x, h, j + 1);
    columns[j][j] = t;
    for (int i = 0; i < j; i++) columns[j][i] = 0;
  }
  store_columns(D, M, columns);
}

// A row of a known length stays in registers.
#define SVAE_SIZES(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)

template <class S, int W>
inline void triangularize(int D, Lanes<S, W>* T, Lanes<S, W>* X, Reflection<Lanes<S, W>>* h) {
  if constexpr (W == 1) {
    if (D > 2 && D <= kLanes<S>) return triangularize_one<S>(D, T, X, h);
  }
  switch (D) {
#define SVAE_CASE(N) \
  case N:            \
    return triangularize_sized<S, W, N>(D, T, X, h);
    SVAE_SIZES(SVAE_CASE)
#undef SVAE_CASE
    default:
      return triangularize_sized<S, W, 0>(D, T, X, h);
  }
}

template <class S, int W>
inline void carry_rows(int D, Lanes<S, W>* K, Lanes<S, W>* B, const Lanes<S, W>* X, const Reflection<Lanes<S, W>>* h) {
  if constexpr (W == 1) {
    if (D > 2 && D <= kLanes<S>) return carry_rows_one<S>(D, K, B, X, h);
  }
  switch (D) {
#define SVAE_CASE(N) \
  case N:            \
    return carry_rows_sized<S, W, N>(D, K, B, X, h);
    SVAE_SIZES(SVAE_CASE)
#undef SVAE_CASE
    default:
      return carry_rows_sized<S, W, 0>(D, K, B, X, h);
  }
}

// M <- the lower root of M M', in place.
template <class S, int W>
__attribute__((noinline)) void lower_root(int D, Lanes<S, W>* __restrict M, Reflection<Lanes<S, W>>* __restrict h) {
  using V = Lanes<S, W>;
  if constexpr (W == 1) {
    if (D > 2 && D <= kLanes<S>) return lower_root_one<S>(D, M, h);
  }
  for (int k = 0; k < D; k++) {
    V* row = M + k * D;
    for (int j = 0; j < k; j++) {
      const V* x = M + j * D;
      V a = row[j] * h[j].head, b{};
      int c = j + 1;
      for (; c + 1 < D; c += 2) {
        a += row[c] * x[c];
        b += row[c + 1] * x[c + 1];
      }
      if (c < D) a += row[c] * x[c];
      const V s = (a + b) * h[j].factor;
      row[j] -= s * h[j].head;
      for (c = j + 1; c < D; c++) row[c] -= s * x[c];
    }
    h[k] = reflect<S, W>(row[k], dot(D - k - 1, row + k + 1, row + k + 1));
  }
  clear_upper(D, M);
}

template <class S, int W>
inline bool is_lower(int D, const Lanes<S, W>* M) {
  using V = Lanes<S, W>;
  V sum{};
  for (int i = 0; i < D; i++)
    for (int j = i + 1; j < D; j++) sum += M[i * D + j] < V{} ? -M[i * D + j] : M[i * D + j];
  for (int l = 0; l < W; l++)
    if (!(get<S, W>(sum, l) == 0)) return false;
  return true;
}

// B <- sym(phi(L' dL)): the cotangent of L L' in the coordinates of L, from that of its lower root L.
template <class V, class S>
inline void whitened_cotangent(int D, V* B, const V* L, const V* dL, S half) {
  multiply<V, true, Upper, false, Full, Lower>(D, B, L, dL, S(1));
  for (int i = 0; i < D; i++)
    for (int j = 0; j <= i; j++) B[j * D + i] = B[i * D + j] = half * B[i * D + j];
}

}  // namespace svae::SVAE_VARIANT
