// Factorisations of D x D matrices, each built for every small D, where rows stay in registers, and for any.
#pragma once
#include "rotations.h"

namespace svae::SVAE_VARIANT {

#define SVAE_SIZES(X) X(2) X(3) X(4) X(5) X(6) X(8) X(10) X(12)

// W sequences: each for its size.
template <template <class, int> class F, class S, int W, class... More>
inline void sized(int D, More... more) {
  switch (D) {
#define SVAE_CASE(N) \
  case N:            \
    return F<S, W>::template run<N>(D, more...);
    SVAE_SIZES(SVAE_CASE)
#undef SVAE_CASE
    default:
      return F<S, W>::template run<0>(D, more...);
  }
}

#define SVAE_ONE(N)                          \
  case N:                                    \
    if constexpr (N <= kLanes<S>)            \
      return F::template run<N>(D, more...); \
    else                                     \
      break;

// One sequence: its rows in lanes where they fit.
template <class F, template <class, int> class Many, class S, class... More>
inline void alone(int D, More... more) {
  switch (D) { SVAE_ONE_SIZES(SVAE_ONE) }
  if (in_lanes<S>(D)) return F::template run<0>(D, more...);
  Many<S, 1>::template run<0>(D, more...);
}
#undef SVAE_ONE

#define SVAE_FACTOR(name, Many)                                      \
  template <class S>                                                 \
  struct One##Many {                                                 \
    template <int N, class... More>                                  \
    static __attribute__((noinline)) void run(int D, More... more) { \
      name##_one<S, N>(D, more...);                                  \
    }                                                                \
  };                                                                 \
  template <class S, int W, class... More>                           \
  inline void name(int D, More... more) {                            \
    if constexpr (W == 1)                                            \
      alone<One##Many<S>, Many, S>(D, more...);                      \
    else                                                             \
      sized<Many, S, W>(D, more...);                                 \
  }
SVAE_FACTOR(triangularize, Triangularize)
SVAE_FACTOR(condition, Condition)
SVAE_FACTOR(lower_root, LowerRoot)
SVAE_FACTOR(invert, Invert)
SVAE_FACTOR(reverse_cholesky, ReverseCholesky)
#undef SVAE_FACTOR

template <class S, int W>
inline void solve(int D, Lanes<S, W>* X, const Lanes<S, W>* B, const Lanes<S, W>* L, const Lanes<S, W>* scale) {
  sized<Solve, S, W>(D, X, B, L, scale);
}
template <class S, int W>
inline void solve_lower(int D, Lanes<S, W>* X, const Lanes<S, W>* B, const Lanes<S, W>* L, const Lanes<S, W>* scale) {
  sized<SolveLower, S, W>(D, X, B, L, scale);
}

// L X = B, both lower or L only; one sequence takes the inverse, in `scratch`, which its lanes are faster with.
template <class S, int W, Shape B_shape>
inline void solve_left(int D, Lanes<S, W>* X, const Lanes<S, W>* B, const Lanes<S, W>* L, Lanes<S, W>* scratch) {
  if constexpr (W == 1) {
    invert<S, W>(D, scratch, L);
    multiply<S, false, Lower, false, B_shape>(D, X, scratch, B, S(1));
  } else if constexpr (B_shape == Lower) {
    sized<SolveLeftLower, S, W>(D, X, B, L);
  } else {
    sized<SolveLeft, S, W>(D, X, B, L);
  }
}

}  // namespace svae::SVAE_VARIANT
