"""The compiled CPU kernels: a C++ library behind `jax.ffi`, built with the package where a compiler is present."""

import ctypes
import functools
from pathlib import Path
from typing import NamedTuple

import jax

LIBRARY = Path(__file__).parent / "libsvae_kernels.so"
_TARGETS = (
    "svae_gaussian_filter",
    "svae_gaussian_smooth",
    "svae_gaussian_filter_vjp",
    "svae_gaussian_smooth_vjp",
    "svae_gaussian_sample",
    "svae_gaussian_sample_vjp",
    "svae_hmm_filter",
    "svae_hmm_smooth",
    "svae_hmm_filter_vjp",
    "svae_hmm_smooth_vjp",
    "svae_hmm_backtrack",
    "svae_hmm_viterbi",
    "svae_hmm_varying_filter",
    "svae_hmm_varying_smooth",
    "svae_hmm_varying_filter_vjp",
    "svae_hmm_varying_smooth_vjp",
    "svae_hmm_varying_backtrack",
    "svae_hmm_varying_viterbi",
    "svae_mixture_blend",
    "svae_mixture_blend_vjp",
    "svae_mixture_moments",
    "svae_mixture_moments_vjp",
)


class Status(NamedTuple):
    """Whether the kernels serve, and one sentence on which instruction set or why not."""

    serve: bool
    reason: str


def _register() -> str:
    library = ctypes.CDLL(str(LIBRARY))
    for name in _TARGETS:
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")
    library.svae_instruction_set.restype = ctypes.c_char_p
    return library.svae_instruction_set().decode()


@functools.cache
def status() -> Status:
    """Loads and registers the library, once."""
    if not LIBRARY.exists():
        return Status(False, "the kernels were not built: no C++ compiler was found when svae was installed")
    try:
        return Status(True, f"compiled kernels, {_register()}")
    except Exception as error:  # jaxlib says in many ways that a library was built for another version
        detail = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return Status(False, f"the kernels do not load here, reinstall svae to build them anew ({detail})")


def call(name: str, shapes, *operands, T: int, D: int):
    """One call for a whole batch: under vmap, operands that are not batched stay single and are shared by all lanes."""
    types = tuple(jax.ShapeDtypeStruct(shape, operands[0].dtype) for shape in shapes)
    return jax.ffi.ffi_call(name, types, vmap_method="expand_dims")(*operands, T=T, D=D)
