// Mixtures of regressions for one instruction set: SVAE_VARIANT is its name, SVAE_BYTES the size of its vectors.
#include "mixture.h"

#include "mixture_call.h"

namespace svae::SVAE_VARIANT {

constexpr int kSingle = SVAE_BYTES / 4, kDouble = SVAE_BYTES / 8;

#define SVAE_LANES(f)                                                                        \
  Entry {                                                                                    \
    {kSingle, f<float, kSingle>, f<float, 1>}, { kDouble, f<double, kDouble>, f<double, 1> } \
  }

Entry mixture(Operation operation) {
  if (operation == kBlend) return SVAE_LANES(mixture_blend);
  if (operation == kBlendVjp) return SVAE_LANES(mixture_blend_vjp);
  if (operation == kMoments) return SVAE_LANES(mixture_moments);
  return SVAE_LANES(mixture_moments_vjp);
}

}  // namespace svae::SVAE_VARIANT
