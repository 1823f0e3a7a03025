// Operations of a mixture of regressions, numbered after those of the chains.
#pragma once
#include "call.h"

namespace svae {

constexpr Operation kBlend = Operation(kOperations), kBlendVjp = Operation(kOperations + 1);
constexpr Operation kMoments = Operation(kOperations + 2), kMomentsVjp = Operation(kOperations + 3);

}  // namespace svae
