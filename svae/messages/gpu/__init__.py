"""The GPU kernels: CUDA sources compiled when first needed (by NVRTC, or nvcc), launched behind `jax.ffi`."""

import concurrent.futures
import ctypes
import functools
import shutil
from typing import NamedTuple

import jax
import jax.numpy as jnp

from svae.messages.gpu.compiler import FOLDER, check, compile_kernel, nvrtc

LIBRARY = FOLDER / "libsvae_gpu.so"
MOST_BOTH_WAYS = 12  # D, of chains that are smoothed both ways at once (ffi.cc)
OLDEST = 80  # the first architecture with double precision on its tensor cores

KERNELS = (  # in the order of kernels.h
    "element",
    "link",
    "smooth",
    "filter",
    "vjp_sum",
    "vjp_link",
    "vjp_forward",
    "vjp_sum_back",
    "vjp_link_back",
    "vjp_back",
    "element_same",
    "smooth_same",
    "filter_same",
    "vjp_back_same",
    "vjp_same",
    "potential_same",
    "messages_same",
    "join_same",
    "local_same",
    "sweeps_same",
    "meet_same",
    "total_same",
    "draw",
    "draw_vjp",
    "hmm_filter",
    "hmm_smooth",
    "hmm_filter_vjp",
    "hmm_smooth_vjp",
    "hmm_smooth_logs",
    "hmm_smooth_vjp_logs",
)
BOTH_WAYS = "potential_same", "messages_same", "join_same"
BOTH_WAYS_VJP = "local_same", "sweeps_same", "meet_same", "total_same"
OPERATIONS = {  # FFI target -> the kernels that it launches
    "svae_gpu_gaussian_filter": ("element", "link", "filter"),
    "svae_gpu_gaussian_smooth": ("element", "link", "smooth"),
    "svae_gpu_gaussian_smooth_kept": ("element", "link", "smooth"),
    "svae_gpu_gaussian_smooth_vjp": KERNELS[4:10],
    "svae_gpu_gaussian_filter_same": ("element_same", "link", "filter_same"),  # one transition for all steps
    "svae_gpu_gaussian_smooth_same": ("element_same", "link", "smooth_same", *BOTH_WAYS),
    "svae_gpu_gaussian_smooth_kept_same": ("element_same", "link", "smooth_same", *BOTH_WAYS),
    "svae_gpu_gaussian_smooth_vjp_same": (*KERNELS[4:9], "vjp_back_same", "vjp_same", *BOTH_WAYS_VJP),
    "svae_gpu_gaussian_draw": ("draw",),
    "svae_gpu_gaussian_draw_vjp": ("draw_vjp",),
    "svae_gpu_hmm_filter": ("hmm_filter",),
    "svae_gpu_hmm_smooth": ("hmm_smooth", "hmm_smooth_logs"),
    "svae_gpu_hmm_filter_vjp": ("hmm_filter_vjp",),
    "svae_gpu_hmm_smooth_vjp": ("hmm_smooth_vjp", "hmm_smooth_vjp_logs"),
}


class Status(NamedTuple):
    """Whether the kernels serve, and one sentence on how, or why not."""

    serve: bool
    reason: str


_MAX_SHARED, _CARVEOUT = 8, 9  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, .._PREFERRED_SHARED_MEMORY_CARVEOUT


@functools.cache
def _driver():
    return ctypes.CDLL("libcuda.so.1")


@functools.cache
def _architecture() -> str:
    """sm_90 on an H200; the first device stands for all."""
    return f"sm_{str(jax.devices('gpu')[0].compute_capability).replace('.', '')}"


@functools.cache
def _library():
    library = ctypes.CDLL(str(LIBRARY))
    for name in OPERATIONS:
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="CUDA")
    library.svae_gpu_register.argtypes = [ctypes.c_int] * 3 + [ctypes.c_void_p]
    beside = getattr(_driver(), "cuLaunchKernelEx", None) if int(_architecture()[3:]) >= 90 else None
    library.svae_gpu_launcher(*(ctypes.cast(f, ctypes.c_void_p) for f in (_driver().cuLaunchKernel, beside)))
    return library


def _load(name: str, D: int, wide: bool) -> None:
    """Compiles a kernel, loads it for every device, and registers it with the library."""
    code, cuda, library = compile_kernel(name, D, wide, _architecture()), _driver(), _library()
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuLibraryLoadData(ctypes.byref(module), code, None, None, 0, None, None, 0), "cuLibraryLoadData")
    check(cuda.cuLibraryGetKernel(ctypes.byref(kernel), module, f"svae_{name}".encode()), "cuLibraryGetKernel")
    number = KERNELS.index(name)
    shared = library.svae_gpu_shared_bytes(number, D, int(wide))
    for device in range(len(jax.local_devices(backend="gpu"))):
        check(cuda.cuKernelSetAttribute(_MAX_SHARED, shared, kernel, device), "cuKernelSetAttribute")
        cuda.cuKernelSetAttribute(_CARVEOUT, 100, kernel, device)  # a wish: all of the cache as shared memory
    library.svae_gpu_register(number, D, int(wide), kernel)


@functools.cache
def _ready(name: str, D: int, wide: bool) -> None:
    with concurrent.futures.ThreadPoolExecutor() as pool:
        unused = () if D <= MOST_BOTH_WAYS else BOTH_WAYS + BOTH_WAYS_VJP
        kernels = (kernel for kernel in OPERATIONS[name] if kernel not in unused)
        list(pool.map(lambda kernel: _load_once(kernel, D, wide), kernels))


_load_once = functools.cache(_load)


@functools.cache
def status() -> Status:
    """Whether the kernels can be compiled and launched here."""
    if jax.default_backend() != "gpu":
        return Status(False, "jax has no GPU here")
    if not LIBRARY.exists():
        return Status(
            False, "the GPU kernels' library was not built: no C++ compiler was found when svae was installed"
        )
    if nvrtc() is None and shutil.which("nvcc") is None:
        return Status(False, "neither NVRTC nor nvcc was found to compile the GPU kernels")
    try:
        if int(_architecture()[3:]) < OLDEST:
            return Status(False, f"the GPU kernels need compute capability 8.0, and this GPU is {_architecture()}")
        _library()
        return Status(True, f"fused CUDA kernels, {_architecture()}")
    except Exception as error:  # a driver or a jaxlib that the library does not fit
        detail = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return Status(False, f"the GPU kernels do not load here, reinstall svae to build them anew ({detail})")


def call(name: str, shapes, *operands, T: int, D: int):
    """One call for a whole batch: under vmap, operands that are not batched stay single and are shared by all."""
    if jax.default_backend() == "gpu":
        _ready(name, D, operands[0].dtype == jnp.float64)
    types = tuple(jax.ShapeDtypeStruct(shape, operands[0].dtype) for shape in shapes)
    return jax.ffi.ffi_call(name, types, vmap_method="expand_dims")(*operands, T=T, D=D)
