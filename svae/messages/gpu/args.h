// What a kernel is given. Shared by the host, the kernels, and the tests that run them on a CPU: types only.
#pragma once

namespace svae {

constexpr int kMostInputs = 17, kMostOutputs = 8, kAxes = 3;

// A batch of up to three axes; an operand that lacks an axis has stride 0 there. Outputs are dense.
struct Args {
  int T, chunk, chunks;      // steps; transitions in a chunk of time; chunks of a sequence
  int axes[kAxes];           // the batch is their product
  const void* in[kMostInputs];
  long long stride[kMostInputs][kAxes];
  void* out[kMostOutputs];
  double* scratch;           // `scratch_size` doubles for each sequence
  long long scratch_size;
};

}  // namespace svae
