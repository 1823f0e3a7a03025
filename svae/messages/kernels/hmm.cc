// The hidden Markov chain for one instruction set, as gaussian.cc is of the Gaussian one.
#include "hmm_path.h"
#include "hmm_smooth_lanes.h"
#include "hmm_varying_path.h"
#include "hmm_varying_vjp.h"
#include "hmm_vjp_lanes.h"

namespace svae::SVAE_VARIANT {

constexpr int kSingle = SVAE_BYTES / 4, kDouble = SVAE_BYTES / 8;

// One sequence after another, its states in lanes.
#define SVAE_STATES(f)                                                  \
  Entry {                                                               \
    {1, nullptr, f<float, kSingle>}, { 1, nullptr, f<double, kDouble> } \
  }
// Sequences in lanes too.
#define SVAE_BOTH(f, Form)                                                                      \
  Entry {                                                                                       \
    {kSingle, f##_lanes<float, kSingle>, f<float, kSingle>, 8, Form<float, kSingle>::serves}, { \
      kDouble, f##_lanes<double, kDouble>, f<double, kDouble>, 8, Form<double, kDouble>::serves \
    }                                                                                           \
  }

Entry hmm(Operation operation) {
  switch (operation) {
    case kHmmFilter:
      return SVAE_STATES(hmm_filter);
    case kHmmSmooth:
      return SVAE_BOTH(hmm_smooth, HmmLanes);
    case kHmmFilterVjp:
      return SVAE_STATES(hmm_filter_vjp);
    case kHmmSmoothVjp:
      return SVAE_BOTH(hmm_smooth_vjp, HmmLanesVjp);
    case kHmmBacktrack:
      return SVAE_STATES(hmm_backtrack);
    case kHmmViterbi:
      return SVAE_STATES(hmm_viterbi);
    case kHmmVaryingFilter:
      return SVAE_STATES(hmm_varying_filter);
    case kHmmVaryingSmooth:
      return SVAE_STATES(hmm_varying_smooth);
    case kHmmVaryingFilterVjp:
      return SVAE_STATES(hmm_varying_filter_vjp);
    case kHmmVaryingSmoothVjp:
      return SVAE_STATES(hmm_varying_smooth_vjp);
    case kHmmVaryingBacktrack:
      return SVAE_STATES(hmm_varying_backtrack);
    default:
      return SVAE_STATES(hmm_varying_viterbi);
  }
}

}  // namespace svae::SVAE_VARIANT
