"""What `make release-check` asks beyond `.ci/run`:  python release.py PART [what pytest shall run ...]

sanitizers  the kernels for the CPU, and those for the GPU in their emulator, under sanitizers of addresses and of
            undefined behaviour
oldest      tests with the oldest versions of the dependencies that pyproject.toml allows, in an environment of its own
newest      the same with the newest
adapters    tests of what other packages read, with aeon, sktime, ArviZ and movement
wheel       the x86-64 wheel of dist/ installed where there is no compiler, to the end of a first fit
sdist       the archive of dist/ unpacked, its kernels built, and its own tests
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent
ENVIRONMENTS = ROOT / ".venv-release"
KERNELS = ["tests/messages/test_kernels.py", "tests/messages/test_gpu.py", "tests/messages/test_mixture.py"]
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"
# JAX keeps what it allocates to its end, and the emulator's threads have stacks of their own
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
SHORT = [
    "tests/expfam",
    "tests/messages/test_kernels.py",
    "tests/test_fit.py",
    "tests/test_store.py",
    "tests/test_sklearn.py",
]
ADAPTERS = ["arviz-base", "arviz-stats[xarray]", "movement>=0.15"]
FIRST = "from svae.messages import cpu_kernels; print(cpu_kernels())"


def run(*command: object, folder: Path = ROOT, **variables: str) -> None:
    """Run a command in a folder with more variables in its environment; an error ends everything."""
    words = [str(word) for word in command]
    print("$", *words, flush=True)
    subprocess.run(words, cwd=folder, env=os.environ | variables, check=True)


def pytest(python: Path | str, tests: list[str], *options: str, folder: Path = ROOT, **variables: str) -> None:
    """Run tests of the checkout in a folder, with the package of that folder."""
    run(python, "-m", "pytest", "-q", *options, *tests, folder=folder, PYTHONPATH=str(folder), **variables)


def copied(folder: Path) -> Path:
    """The checkout without what was built in it."""
    left_out = shutil.ignore_patterns("*.so", "__pycache__", ".git", ".venv*", "site", "dist", "runs")
    return Path(shutil.copytree(ROOT, folder / "svae", ignore=left_out))


def runtime(name: str) -> str:
    """Where the compiler keeps a library of its own."""
    compiler = os.environ.get("CXX", "g++")
    return subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()


def sanitizers(tests: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        checkout = copied(Path(folder))
        run(sys.executable, "hatch_build.py", folder=checkout, CXXFLAGS=SANITIZE)
        preload = " ".join(map(runtime, ("libasan.so", "libubsan.so", "libstdc++.so")))  # else it finds no exceptions
        variables = OPTIONS | {"CXXFLAGS": SANITIZE, "LD_PRELOAD": preload}
        pytest(sys.executable, tests or KERNELS, "-p", "no:cacheprovider", folder=checkout, **variables)


def environment(name: str, *packages: str, resolution: str = "highest") -> Path:
    """The Python of an environment with the packages that the tests need, and more; made anew."""
    folder = ENVIRONMENTS / name
    run("uv", "venv", "--quiet", "--clear", "--python", sys.executable, folder)
    python = folder / "bin" / "python"
    wanted = ["--resolution", resolution, "-r", "pyproject.toml", "--extra", "test", *packages]
    run("uv", "pip", "install", "--quiet", "--python", python, *wanted)
    run("uv", "pip", "list", "--python", python)
    return python


def oldest(tests: list[str]) -> None:
    quiet = ["-W", "default"]  # old packages warn of the newer ones below them
    pytest(environment("oldest", resolution="lowest-direct"), tests, *quiet, "-n", "auto", "--dist", "loadfile")


def newest(tests: list[str]) -> None:
    pytest(environment("newest"), tests, "-n", "auto", "--dist", "loadfile")


def adapters(tests: list[str]) -> None:
    python = environment("adapters", "--extra", "adapters", *ADAPTERS)
    pytest(python, tests or ["tests/adapters"], "-rs")


def wheel(arguments: list[str]) -> None:
    (found,) = (ROOT / "dist").glob("svae-*manylinux*x86_64.whl")
    begun = time.monotonic()
    folder = ENVIRONMENTS / "wheel"
    run("uv", "venv", "--quiet", "--clear", "--python", sys.executable, folder)
    run("uv", "pip", "install", "--quiet", "--python", folder / "bin" / "python", f"{found}[figures]")
    installed = time.monotonic()
    with tempfile.TemporaryDirectory() as elsewhere:
        alone = {"PATH": str(folder / "bin"), "PYTHONPATH": ""}  # no compiler, and not this checkout
        run(folder / "bin" / "python", "-c", FIRST, folder=Path(elsewhere), **alone)
        run(folder / "bin" / "svae", "demo", *arguments, "--out", "demo", folder=Path(elsewhere), **alone)
    print(f"installed in {installed - begun:.0f} s, the first demo took {time.monotonic() - installed:.0f} s")


def sdist(tests: list[str]) -> None:
    (archive,) = (ROOT / "dist").glob("svae-*.tar.gz")
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as found:
        found.extractall(folder, filter="data")
        (unpacked,) = Path(folder).iterdir()
        run(sys.executable, "hatch_build.py", folder=unpacked)
        pytest(sys.executable, tests or SHORT, "-p", "no:cacheprovider", folder=unpacked)


PARTS = {part.__name__: part for part in (sanitizers, oldest, newest, adapters, wheel, sdist)}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in PARTS:
        sys.exit(f"say which part: {', '.join(PARTS)}")
    PARTS[sys.argv[1]](sys.argv[2:])
