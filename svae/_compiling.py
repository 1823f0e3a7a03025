"""How much XLA optimises a program on the CPU: most of it takes longer than a small fit ever gets back.

The time of a step is in the kernels, which are compiled already. Level 1 without the passes that take longest, and with
the older emitters of fused loops, halves the time of compiling and costs a step a twentieth at most; level 0 takes a
sixth, and a program that is run a few times on a few frames never misses the rest.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

LEVEL = "xla_backend_optimization_level"
LESS = {"xla_llvm_disable_expensive_passes": True, "xla_cpu_use_fusion_emitters": False}


def options(level: int) -> dict[str, Any]:
    """The options of XLA for a program, on the CPU alone; what XLA_FLAGS says of them already stays."""
    if jax.default_backend() != "cpu":
        return {}
    said = os.environ.get("XLA_FLAGS", "")
    every = {LEVEL: level} | LESS
    return {name: value for name, value in every.items() if name not in said and _is_known(name, value)}


@functools.cache
def _is_known(name: str, value: int | bool) -> bool:
    """Whether the XLA that is installed has this option: they come and go with its versions."""
    try:
        jax.jit(lambda x: x).lower(0.0).compile({name: value})
    except jax.errors.JaxRuntimeError:
        return False
    return True


def compiled(function: Callable) -> Callable:
    """The function as a program that is run often, or on many frames."""
    return _compiled(function, 1)


def briefly(function: Callable) -> Callable:
    """The function as a program that is run a few times on a few frames."""
    return _compiled(function, 0)


def _compiled(function: Callable, level: int) -> Callable:
    @functools.cache
    def program() -> Callable:  # when it is first called: its options ask for the backend, which importing must not
        return eqx.filter_jit(function, compiler_options=options(level))

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        values = (jnp.zeros(()), *jax.tree.leaves(arguments))
        within = any(isinstance(value, jax.core.Tracer) for value in values)  # another program, or a derivative
        return function(*arguments) if within else program()(*arguments)

    return call
