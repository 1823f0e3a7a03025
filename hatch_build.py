"""Builds the CPU kernels with the package where a C++ compiler is present; without one, pure JAX serves.

On Linux also the small library that launches the GPU kernels, which are compiled on the machine that has the GPU.

python hatch_build.py        builds them in place, for a checkout that is not installed

With SVAE_WHEEL=linux-x86_64 (or another of `TARGETS`) in the environment the wheel is for that platform and any
Python 3, compiled by the compiler that the package `ziglang` brings: `wheels.py` makes all of them so.
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
from typing import NamedTuple

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand, without the build backend
    BuildHookInterface = object

ROOT = Path(__file__).parent
FOLDER = ROOT / "svae" / "messages" / "kernels"
LIBRARY = FOLDER / "libsvae_kernels.so"
GPU_FOLDER = FOLDER.parent / "gpu"
GPU_LIBRARY = GPU_FOLDER / "libsvae_gpu.so"
FLAGS = [
    "-std=c++17",
    "-O2",  # as fast as -O3 here, and compiled in half the time
    "-fPIC",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp-simd",
    "-Wall",
    "-Wextra",
    "-Wno-missing-field-initializers",  # the rest of a struct starts at zero: said once, where it is declared
    "-Wno-unknown-pragmas",  # CUDA's, where a host compiler reads its sources
    "-Wno-psabi",  # vectors pass between functions of one file only
]
GCC_FLAG = "-fno-tree-loop-distribute-patterns"  # clang says that it does not know it, zig stops there
# name, size of its vectors in bytes, what the compiler may use; the library chooses when it runs
VARIANTS = [("baseline", 16, [])]
X86_VARIANTS = [
    ("avx2", 32, ["-mavx2", "-mfma"]),
    ("avx512", 64, ["-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mfma", "-mprefer-vector-width=512"]),
]


class Target(NamedTuple):
    """A platform: the command that compiles for it, its instructions, whether GPUs are launched, the link, flags."""

    compiler: list[str]
    x86: bool
    gpu: bool
    link: list[str]
    more: list[str]


class Wheel(NamedTuple):
    """The platform of a wheel: its tag, and the same as zig says it."""

    tag: str
    triple: str


TARGETS = {
    "linux-x86_64": Wheel("manylinux_2_28_x86_64", "x86_64-linux-gnu.2.28"),
    "linux-aarch64": Wheel("manylinux_2_28_aarch64", "aarch64-linux-gnu.2.28"),
    "macos-arm64": Wheel("macosx_11_0_arm64", "aarch64-macos.11.0"),
    "windows-x86_64": Wheel("win_amd64", "x86_64-windows-gnu"),
}


def native() -> Target | None:
    """This machine, by the C++ compiler that CXX names or the first one found; None without one."""
    names = [os.environ["CXX"]] if "CXX" in os.environ else ["c++", "g++", "clang++"]
    found = next(filter(None, map(shutil.which, names)), None)
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    flags = os.environ.get("CXXFLAGS", "").split()  # after ours: sanitizers, -Werror
    return Target([found, GCC_FLAG], x86, sys.platform == "linux", [], flags) if found else None


def foreign(name: str) -> Target:
    """One of `TARGETS`, by zig."""
    compiler = [sys.executable, "-m", "ziglang", "c++", "-target", TARGETS[name].triple]
    link = ["-install_name", f"@rpath/{LIBRARY.name}"] if "macos" in name else []  # else where it was built
    return Target(compiler, "x86_64" in name, name.startswith("linux"), link, [])


def include_dir() -> str:
    """XLA's headers, which come with jaxlib."""
    spec = importlib.util.find_spec("jaxlib")
    if spec is None or spec.origin is None:
        raise ImportError("jaxlib is not installed, and XLA's headers come with it")
    return str(Path(spec.origin).parent / "include")


def compilations(target: Target, out: Path, headers: str) -> list[list[str]]:
    """One command for each object file: the door to XLA, and each chain for each instruction set."""
    compiler = [*target.compiler, *FLAGS, *target.more]
    door = ["-DSVAE_X86"] if target.x86 else []
    found = [[*compiler, *door, "-isystem", headers, "-c", FOLDER / "ffi.cc", "-o", out / "ffi.o"]]
    for name, size, flags in VARIANTS + (X86_VARIANTS if target.x86 else []):
        for chain in ("gaussian", "hmm", "mixture"):
            defines = [f"-DSVAE_VARIANT={name}", f"-DSVAE_BYTES={size}"]
            found.append([*compiler, *defines, *flags, "-c", FOLDER / f"{chain}.cc", "-o", out / f"{chain}_{name}.o"])
    return [[str(word) for word in command] for command in found]


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")


def compile_libraries(target: Target, folder: Path) -> list[Path]:
    """The libraries for a target, compiled in a folder, under the names by which they are loaded."""
    headers, cpu, gpu = include_dir(), folder / LIBRARY.name, folder / GPU_LIBRARY.name
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, compilations(target, folder, headers)))
    objects = sorted(map(str, folder.glob("*.o")))
    run([*target.compiler, *target.more, "-shared", "-s", *target.link, *objects, "-o", str(cpu), "-pthread"])
    if target.gpu:
        source = str(GPU_FOLDER / "ffi.cc")
        run([*target.compiler, *FLAGS, *target.more, "-shared", "-s", "-isystem", headers, source, "-o", str(gpu)])
    return [cpu, gpu] if target.gpu else [cpu]


def home(library: Path) -> Path:
    """Where a library is loaded from."""
    return LIBRARY if library.name == LIBRARY.name else GPU_LIBRARY


def build() -> str:
    """Compiles the libraries in place; the sentence says what happened."""
    target = native()
    if target is None:
        return "no C++ compiler: the CPU kernels are not built, pure JAX serves"
    with tempfile.TemporaryDirectory() as folder:
        for library in compile_libraries(target, Path(folder)):
            place(library, home(library))
    return f"built {LIBRARY.name} with {target.compiler[0]}"


def place(built: Path, library: Path) -> None:
    """Moves a library to where it is loaded from; a process that has the old one mapped keeps it."""
    partial = library.with_suffix(".partial")
    shutil.copyfile(built, partial)
    os.replace(partial, library)


class CustomBuildHook(BuildHookInterface):
    """Adds the libraries to the wheel, or goes on without them; a wheel for a named platform needs them."""

    def initialize(self, version, build_data):
        name = os.environ.get("SVAE_WHEEL")
        if name:
            self._add_foreign(name, build_data)
        else:
            self._add_native(build_data)

    def finalize(self, version, build_data, artifact_path):
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _add_foreign(self, name, build_data):
        self._folder = tempfile.TemporaryDirectory()
        for library in compile_libraries(foreign(name), Path(self._folder.name)):
            build_data["force_include"][str(library)] = str(home(library).relative_to(ROOT))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TARGETS[name].tag}"

    def _add_native(self, build_data):
        try:
            print(build())
        except (ImportError, OSError, RuntimeError) as error:
            print(f"the CPU kernels are not built, pure JAX serves: {error}", file=sys.stderr)
        if LIBRARY.exists():
            found = [path for path in (LIBRARY, GPU_LIBRARY) if path.exists()]
            build_data["artifacts"].extend(str(path.relative_to(ROOT)) for path in found)
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


if __name__ == "__main__":
    print(build())
