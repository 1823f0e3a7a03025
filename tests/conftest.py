"""A strict session: annotations are executed, rank promotion raises, warnings are errors (pyproject.toml)."""

import os
import sys
from pathlib import Path

import jax
import pytest
from jaxtyping import install_import_hook

from tests.cli.processes import QUICK_TO_COMPILE

os.environ.setdefault("MPLBACKEND", "Agg")
if "SVAE_TESTS_OPTIMISED" not in os.environ:  # `make check-slow` compiles as users do
    os.environ["XLA_FLAGS"] = f"{QUICK_TO_COMPILE} {os.environ.get('XLA_FLAGS', '')}"  # read when a program runs first
install_import_hook("svae", "beartype.beartype")  # before the first import of svae

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(Path(sys.prefix) / ".cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture
def x64():
    """Double precision for one test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Drop compiled programs after each file: each holds memory maps, and a process may have only 65,530 of them."""
    yield
    jax.clear_caches()
