"""Builds the CPU kernels with the package where a C++ compiler is present; without one, pure JAX serves.

On Linux also the small library that launches the GPU kernels, which are compiled on the machine that has the GPU.

python hatch_build.py        builds them in place, for a checkout that is not installed
"""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand, without the build backend
    BuildHookInterface = object

FOLDER = Path(__file__).parent / "svae" / "messages" / "kernels"
LIBRARY = FOLDER / "libsvae_kernels.so"
GPU_FOLDER = FOLDER.parent / "gpu"
GPU_LIBRARY = GPU_FOLDER / "libsvae_gpu.so"
FLAGS = [
    "-std=c++17",
    "-O2",  # as fast as -O3 here, and compiled in half the time
    "-fPIC",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-tree-loop-distribute-patterns",
    "-fopenmp-simd",
    "-w",
]
# name, size of its vectors in bytes, what the compiler may use; the library chooses when it runs
VARIANTS = [("baseline", 16, [])]
X86_VARIANTS = [
    ("avx2", 32, ["-mavx2", "-mfma"]),
    ("avx512", 64, ["-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mfma", "-mprefer-vector-width=512"]),
]


def compiler() -> str | None:
    """The C++ compiler that CXX names, or the first one found."""
    names = [os.environ["CXX"]] if "CXX" in os.environ else ["c++", "g++", "clang++"]
    return next(filter(None, map(shutil.which, names)), None)


def include_dir() -> str:
    """XLA's headers, which come with jaxlib."""
    spec = importlib.util.find_spec("jaxlib")
    if spec is None or spec.origin is None:
        raise ImportError("jaxlib is not installed, and XLA's headers come with it")
    return str(Path(spec.origin).parent / "include")


def compilations(cxx: str, out: Path, headers: str) -> list[list[str]]:
    """One command for each object file: the door to XLA, and each chain for each instruction set."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    found = [
        [cxx, *FLAGS, *(["-DSVAE_X86"] if x86 else []), f"-I{headers}", "-c", FOLDER / "ffi.cc", "-o", out / "ffi.o"]
    ]
    for name, size, flags in VARIANTS + (X86_VARIANTS if x86 else []):
        for chain in ("gaussian", "hmm", "mixture"):
            defines = [f"-DSVAE_VARIANT={name}", f"-DSVAE_BYTES={size}"]
            target = ["-c", FOLDER / f"{chain}.cc", "-o", out / f"{chain}_{name}.o"]
            found.append([cxx, *FLAGS, *defines, *flags, *target])
    return [[str(word) for word in command] for command in found]


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def build() -> str:
    """Compiles the library in place; the sentence says what happened."""
    cxx = compiler()
    if cxx is None:
        return "no C++ compiler: the CPU kernels are not built, pure JAX serves"
    with tempfile.TemporaryDirectory() as folder:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(run, compilations(cxx, Path(folder), include_dir())))
        objects = sorted(map(str, Path(folder).glob("*.o")))
        run([cxx, "-shared", *objects, "-o", str(Path(folder) / LIBRARY.name), "-pthread"])
        place(Path(folder) / LIBRARY.name, LIBRARY)
        if sys.platform == "linux":
            source, out = GPU_FOLDER / "ffi.cc", Path(folder) / GPU_LIBRARY.name
            run([cxx, *FLAGS, "-shared", f"-I{include_dir()}", str(source), "-o", str(out)])
            place(out, GPU_LIBRARY)
    return f"built {LIBRARY.name} with {cxx}"


def place(built: Path, library: Path) -> None:
    """Moves a library to where it is loaded from; a process that has the old one mapped keeps it."""
    partial = library.with_suffix(".partial")
    shutil.copyfile(built, partial)
    os.replace(partial, library)


class CustomBuildHook(BuildHookInterface):
    """Adds the library to the wheel, or goes on without it."""

    def initialize(self, version, build_data):
        try:
            print(build())
        except (ImportError, OSError, subprocess.CalledProcessError) as error:
            detail = getattr(error, "stderr", None) or str(error)
            print(f"the CPU kernels are not built, pure JAX serves: {detail}", file=sys.stderr)
        if LIBRARY.exists():
            found = [path for path in (LIBRARY, GPU_LIBRARY) if path.exists()]
            build_data["artifacts"].extend(str(path.relative_to(Path(__file__).parent)) for path in found)
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


if __name__ == "__main__":
    print(build())
