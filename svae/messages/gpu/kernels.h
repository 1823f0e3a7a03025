// The list of kernels, by number, with what each needs; in the order of `KERNELS` in __init__.py.
#pragma once
#include <vector>

#include "gaussian_chunks.cuh"
#include "gaussian_join.cuh"
#include "gaussian_link.cuh"
#include "gaussian_local.cuh"
#include "gaussian_meet.cuh"
#include "gaussian_messages.cuh"
#include "gaussian_smooth.cuh"
#include "gaussian_sweeps.cuh"
#include "gaussian_vjp_back.cuh"
#include "gaussian_vjp_link.cuh"
#include "hmm.cuh"
#include "recursion.cuh"

namespace svae {

constexpr int kLargest = 16, kMostStates = 64;

enum Kernel {
  kElement,
  kLink,
  kSmoothChain,
  kFilterChain,
  kVjpSum,
  kVjpLink,
  kVjpForward,
  kVjpSumBack,
  kVjpLinkBack,
  kVjpBack,
  kElementSame,
  kSmoothSame,
  kFilterSame,
  kVjpBackSame,
  kVjpSame,
  kPotentialSame,
  kMessagesSame,
  kJoinSame,
  kLocalSame,
  kSweepsSame,
  kMeetSame,
  kTotalSame,
  kDraw,
  kDrawVjp,
  kHmmFilter,
  kHmmSmooth,
  kHmmFilterVjp,
  kHmmSmoothVjp,
  kHmmSmoothLogs,
  kHmmSmoothVjpLogs
};

struct Shape {
  int threads, shared;  // shared memory in doubles
};

struct Operation {
  Kernel kernel;
  bool chunked;
  std::vector<int> in, out;  // axes of one sequence; those before them are a batch
};

template <int D>
inline Shape shape_for(Kernel kernel, bool wide) {
  switch (kernel) {
    case kElement:
      return {kSmoothThreads, Team<D>::G * kElementStride<D, false>};
    case kElementSame:
      return {kSmoothThreads, Team<D>::G * kElementStride<D, true>};
    case kPotentialSame:
      return {kWarp, Team<D>::G * kElementStride<D, true>};
    case kMessagesSame:
      return {kWarp, wide ? MessageDesk<D, double>::shared : MessageDesk<D, float>::shared};
    case kJoinSame:
      return {kWarp, wide ? JoinDesk<D, double>::size : JoinDesk<D, float>::size};
    case kLocalSame:
      return {kWarp, wide ? LocalDesk<D, double>::size : LocalDesk<D, float>::size};
    case kSweepsSame:
      return {kWarp, SweepDesk<D>::shared};
    case kMeetSame:
      return {kWarp, wide ? MeetDesk<D, double>::size : MeetDesk<D, float>::size};
    case kLink:
      return {kLinkThreads, LinkDesk<D>::shared};
    case kVjpSum:
    case kVjpForward:
      return {kWarp, ForwardMemory<D>::shared};
    case kVjpSumBack:
    case kVjpBack:
    case kVjpBackSame:
    case kVjpSame:
    case kTotalSame:
      return {kWarp, BackMemory<D>::shared};
    case kVjpLink:
    case kVjpLinkBack:
      return {kWarp, LinkMemory<D>::shared};
    case kDraw:
    case kDrawVjp:
      return {32, kRecursionShared<D>};
    case kSmoothSame:
    case kFilterSame:
      return {kSmoothThreads, Team<D>::G * kDeskStride<D, true>};
    default:
      return {kSmoothThreads, Team<D>::G * kDeskStride<D, false>};
  }
}

using EmulatedKernel = void (*)(const Args&, double*);

template <int D, class S>
inline EmulatedKernel emulated_for(Kernel kernel) {
  switch (kernel) {
    case kElement:
      return element<D, S>;
    case kLink:
      return link<D, S>;
    case kFilterChain:
      return filter<D, S>;
    case kVjpSum:
      return vjp_sum<D, S>;
    case kVjpLink:
      return vjp_link<D, S>;
    case kVjpForward:
      return vjp_forward<D, S>;
    case kVjpSumBack:
      return vjp_sum_back<D, S>;
    case kVjpLinkBack:
      return vjp_link_back<D, S>;
    case kVjpBack:
      return vjp_back<D, S>;
    case kElementSame:
      return element_same<D, S>;
    case kSmoothSame:
      return smooth_same<D, S>;
    case kFilterSame:
      return filter_same<D, S>;
    case kVjpBackSame:
      return vjp_back_same<D, S>;
    case kVjpSame:
      return vjp_same<D, S>;
    case kPotentialSame:
      return potential_same<D, S>;
    case kMessagesSame:
      return messages_same<D, S>;
    case kJoinSame:
      return join_same<D, S>;
    case kLocalSame:
      return local_same<D, S>;
    case kSweepsSame:
      return sweeps_same<D, S>;
    case kMeetSame:
      return meet_same<D, S>;
    case kTotalSame:
      return total_same<D, S>;
    case kDraw:
      return draw<D, S>;
    case kDrawVjp:
      return draw_vjp<D, S>;
    default:
      return smooth<D, S>;
  }
}

template <int D>
inline long long scratch_for(Kernel kernel, long long T, long long chunks) {
  if (kernel == kDraw || kernel == kDrawVjp) return 0;
  if (kernel == kJoinSame) return BothWays<D>::size(T);
  if (kernel == kLocalSame) return Ways<D>::size(T);
  return kernel == kVjpBack || kernel == kVjpBackSame ? Pulled<D>::size(T, chunks) : Scratch<D>::size(T, chunks);
}

#define SVAE_SIZES(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)

inline int team_of(int D) { return 32 / D < 8 ? 32 / D : 8; }  // chains in a warp, as `Team` has them
inline int circle_of(int D) { return team_of((D + 3) / 2); }    // likewise `Circle`
inline int sweep_of(int D) { return team_of((D + 1) / 2); }      // likewise `SweepDesk`

inline bool hidden(Kernel kernel) { return kernel >= kHmmFilter; }

inline Shape hidden_shape(Kernel kernel, int K) {
  if (kernel == kHmmSmooth || kernel == kHmmSmoothVjp)
    return {kHmmThreads, K <= 32 ? Desk<32, double>::shared : Desk<64, double>::shared};
  const int P = (K + 31) / 32 * 32;  // two or four tables, the total of pair counts, vectors, what is reduced
  return {P, (kernel == kHmmSmoothVjpLogs ? 4 : 2) * P * P + P * P + 12 * P + 4 * (P / 32) + 2};
}

inline long long hidden_scratch(Kernel kernel, int K, long long T, bool wide) {
  const long long pairs = (long long)kHmmWarps * K * ((K + 31) / 32 * 32);
  const long long numbers = kernel == kHmmSmooth ? T + 1 : kernel == kHmmSmoothVjp ? 5 * T * K + T : 0;
  return numbers ? pairs + 2 + (wide ? numbers : (numbers + 1) / 2) : 0;
}

inline Shape shape_of(Kernel kernel, int D, bool wide) {
  if (hidden(kernel)) return hidden_shape(kernel, D);
  switch (D) {
#define SVAE_CASE(N) \
  case N:            \
    return shape_for<N>(kernel, wide);
    SVAE_SIZES(SVAE_CASE)
#undef SVAE_CASE
  }
  return {0, 0};
}

inline long long scratch_of(Kernel kernel, int D, long long T, long long chunks, bool wide) {
  if (hidden(kernel)) return hidden_scratch(kernel, D, T, wide);
  switch (D) {
#define SVAE_CASE(N) \
  case N:            \
    return scratch_for<N>(kernel, T, chunks);
    SVAE_SIZES(SVAE_CASE)
#undef SVAE_CASE
  }
  return 0;
}

#ifdef SVAE_RUN_ON_CPU  // the sizes that the tests run
template <int K, class S>
inline EmulatedKernel emulated_hidden(Kernel kernel) {
  switch (kernel) {
    case kHmmFilter:
      return hmm_filter<K, S>;
    case kHmmSmooth:
      return hmm_smooth<K, S>;
    case kHmmFilterVjp:
      return hmm_filter_vjp<K, S>;
    case kHmmSmoothVjp:
      return hmm_smooth_vjp<K, S>;
    case kHmmSmoothLogs:
      return hmm_smooth_logs<K, S>;
    default:
      return hmm_smooth_vjp_logs<K, S>;
  }
}

inline EmulatedKernel emulated(Kernel kernel, int D, bool wide) {
  if (hidden(kernel)) {
    if (D == 3 && wide) return emulated_hidden<3, double>(kernel);
    if (D == 40 && wide) return emulated_hidden<40, double>(kernel);
    if (D == 30 && !wide) return emulated_hidden<30, float>(kernel);
    return nullptr;
  }
  if (D == 1 && wide) return emulated_for<1, double>(kernel);
  if (D == 2 && !wide) return emulated_for<2, float>(kernel);
  if (D == 3 && wide) return emulated_for<3, double>(kernel);
  if (D == 4 && !wide) return emulated_for<4, float>(kernel);
  if (D == 12 && wide) return emulated_for<12, double>(kernel);
  return nullptr;
}
#endif

}  // namespace svae
