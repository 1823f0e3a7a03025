// Products of vectors in lanes with a table that all lanes share, by tiles of columns that stay in registers.
//
// A tile is bound by its multiplications: what is added, compared or moved beside them costs nothing, but each store
// does. So what is made of a product is made of it in registers, and what the next step needs is made in between.
#pragma once
#include <vector>

#include "lanes.h"

namespace svae::SVAE_VARIANT {

#if SVAE_BYTES == 64
constexpr int kWidest = 16;
#else
constexpr int kWidest = 8;
#endif

// sum_m += x_i table_im
template <int M, class V, class S>
inline __attribute__((always_inline)) void add_row(V (&sum)[M], const V& x, const S* table) {
#pragma GCC unroll 16
  for (int m = 0; m < M; m++) sum[m] += x * table[m];
}

template <class Body, int M>
__attribute__((noinline)) void run_tile(Body& body, int j) {
  body.template tile<M>(j);
}

// K columns in tiles of nearly the same width.
class Tiles {
  std::vector<int> edges_;

  template <class Body, int... M>
  void run(Body& body, std::integer_sequence<int, M...>) const {
    using Tile = void (*)(Body&, int);
    static constexpr Tile all[] = {run_tile<Body, M + 1>...};
    for (size_t i = 0; i + 1 < edges_.size(); i++) all[edges_[i + 1] - edges_[i] - 1](body, edges_[i]);
  }

 public:
  explicit Tiles(int K) {
    const int n = (K + kWidest - 1) / kWidest;
    for (int i = 0; i <= n; i++) edges_.push_back(i * K / n);
  }
  // body.tile<M>(j) for the M columns from j of every tile
  template <class Body>
  void operator()(Body& body) const {
    run(body, std::make_integer_sequence<int, kWidest>());
  }
};

}  // namespace svae::SVAE_VARIANT
