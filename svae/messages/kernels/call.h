// What the kernels are given and what one build of them, for one instruction set, offers. Types only: no code here.
#pragma once
#include <cstdint>

namespace svae {

// One operand of a batch: sequence i begins at data + offset[i]; shared when all begin at the same place; steady when
// it has one entry for all steps.
template <class S>
struct Operand {
  const S* data;
  const int64_t* offset;
  bool shared, steady;
};

// An output is dense: sequence i begins at data + i * size. The cotangent of a steady operand is steady: one sum.
template <class S>
struct Output {
  S* data;
  int64_t size;
  bool steady;
};

template <class S>
struct Call {
  int64_t T, D, batch;
  const Operand<S>* in;
  const Output<S>* out;
};

enum Operation {
  kFilter,
  kSmooth,
  kFilterVjp,
  kSmoothVjp,
  kSample,
  kSampleVjp,
  kHmmFilter,
  kHmmSmooth,
  kHmmFilterVjp,
  kHmmSmoothVjp,
  kHmmBacktrack,
  kHmmViterbi,
  kHmmVaryingFilter,
  kHmmVaryingSmooth,
  kHmmVaryingFilterVjp,
  kHmmVaryingSmoothVjp,
  kHmmVaryingBacktrack,
  kHmmVaryingViterbi,
  kOperations
};

template <class S>
using Kernel = void (*)(const Call<S>&, int64_t first);

// `lanes` runs sequences first .. first + width - 1 of a call (null where there is no such form) and costs as much as
// about `alone` of them one by one; it serves every call, or those that `serves` says. `one` runs one sequence.
template <class S>
struct Kernels {
  int width;
  Kernel<S> lanes, one;
  int alone = 4;
  bool (*serves)(const Call<S>&) = nullptr;
};

// One kernel in both precisions, for every operation, as built for one instruction set.
struct Entry {
  Kernels<float> f32;
  Kernels<double> f64;
};
using Chooser = Entry (*)(Operation);

}  // namespace svae
