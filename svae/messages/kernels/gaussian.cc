// The Gaussian chain for one instruction set: SVAE_VARIANT is its name, SVAE_BYTES the size of its vectors.
//
// Everything lies in a namespace of that name, so that the linker never mixes two builds of one function.
#include "gaussian_sample.h"
#include "gaussian_vjp.h"

namespace svae::SVAE_VARIANT {

// Eight lanes at most: the matrices of sixteen do not fit the nearest cache, and wider vectors are no faster for them.
constexpr int kSingle = SVAE_BYTES < 32 ? SVAE_BYTES / 4 : 8, kDouble = SVAE_BYTES / 8;

#define SVAE_LANES(f) \
  Entry { {kSingle, f<float, kSingle>, f<float, 1>, 2}, {kDouble, f<double, kDouble>, f<double, 1>, 2} }
#define SVAE_ONE(f)                                   \
  Entry {                                             \
    {1, nullptr, f<float>}, { 1, nullptr, f<double> } \
  }

Entry gaussian(Operation operation) {
  switch (operation) {
    case kFilter:
      return SVAE_LANES(gaussian_filter);
    case kSmooth:
      return SVAE_LANES(gaussian_smooth);
    case kFilterVjp:
      return SVAE_LANES(gaussian_filter_vjp);
    case kSmoothVjp:
      return SVAE_LANES(gaussian_smooth_vjp);
    case kSample:
      return SVAE_ONE(gaussian_sample);
    default:
      return SVAE_ONE(gaussian_sample_vjp);
  }
}

}  // namespace svae::SVAE_VARIANT
