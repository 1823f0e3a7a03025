"""The sources in C++ and CUDA compile with all warnings, and there are none."""

import subprocess
from pathlib import Path

import pytest

import hatch_build

TARGET = hatch_build.native()
GPU = hatch_build.GPU_FOLDER / "ffi.cc"


def compilations():
    """The commands of the build that use the instructions of every processor, and those for the kernels of the GPU."""
    headers = hatch_build.include_dir()
    found = [c for c in hatch_build.compilations(TARGET, Path(), headers) if not any("-mavx" in word for word in c)]
    gpu = [*TARGET.compiler, *hatch_build.FLAGS, "-isystem", headers, "-c", str(GPU), "-o", "ffi.o"]
    return [*found, gpu, [*gpu, "-DSVAE_RUN_ON_CPU"]]


@pytest.mark.skipif(TARGET is None, reason="needs a C++ compiler")
def test_sources_compile_without_a_warning():
    assert {"-Wall", "-Wextra"} <= set(hatch_build.FLAGS)
    for command in compilations():
        done = subprocess.run([*command, "-fsyntax-only", "-Werror"], capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr[-2000:]
