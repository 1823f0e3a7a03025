// The hidden Markov chain: smoothing by warps; the filter, and what underflows, in logarithms.
#pragma once
#include "hmm_logs_smooth.cuh"
#include "hmm_logs_vjp.cuh"
#include "hmm_smooth_vjp.cuh"
