// The hidden Markov chain for one instruction set, as gaussian.cc is of the Gaussian one.
#include "hmm_path.h"
#include "hmm_smooth.h"
#include "hmm_vjp.h"

namespace svae::SVAE_VARIANT {

#define SVAE_STATES(f) \
  Entry { {1, nullptr, f<float, SVAE_BYTES / 4>}, { 1, nullptr, f<double, SVAE_BYTES / 8> } }

Entry hmm(Operation operation) {
  switch (operation) {
    case kHmmFilter:
      return SVAE_STATES(hmm_filter);
    case kHmmSmooth:
      return SVAE_STATES(hmm_smooth);
    case kHmmFilterVjp:
      return SVAE_STATES(hmm_filter_vjp);
    case kHmmSmoothVjp:
      return SVAE_STATES(hmm_smooth_vjp);
    case kHmmBacktrack:
      return SVAE_STATES(hmm_backtrack);
    default:
      return SVAE_STATES(hmm_viterbi);
  }
}

}  // namespace svae::SVAE_VARIANT
