// One kernel (SVAE_KERNEL, its name) for one size of the chain (SVAE_D) and one precision of what goes in and out
// (SVAE_S).
#include SVAE_HEADER

extern __shared__ double2 svae_shared[];

extern "C" __global__ void __launch_bounds__(SVAE_THREADS, SVAE_BLOCKS)
    SVAE_NAME(const __grid_constant__ svae::Args a) {
  svae::SVAE_KERNEL<SVAE_D, SVAE_S>(a, reinterpret_cast<double*>(svae_shared));
}
