"""Machine code of the GPU kernels, compiled by NVRTC or nvcc and kept between processes."""

import ctypes
import functools
import hashlib
import os
import subprocess
import sysconfig
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent


def _nvrtc_files():
    """NVRTC by name, as the CUDA toolkit installs it, then as a wheel, with the library that it opens by itself."""
    yield from ([name] for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"))
    for root in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for path in sorted(Path(root).glob("nvidia/*/lib/libnvrtc.so.1?")):
            yield [*map(str, path.parent.glob("libnvrtc-builtins.so*")), str(path)]


@functools.cache
def nvrtc():
    """NVRTC, which comes with jax[cuda] as a wheel and with the CUDA toolkit, or None."""
    for files in _nvrtc_files():
        try:
            return [ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL) for name in files][-1]
        except OSError:
            continue
    return None


def check(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"{what} failed with code {code}")


def _by_nvrtc(source: Path, options: list[str]) -> bytes:
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    create = ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None
    check(library.nvrtcCreateProgram(*create), "nvrtcCreateProgram")
    words = [word.encode() for word in options]
    if library.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words)):
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise RuntimeError(f"NVRTC does not compile {source.name}: {log.value.decode()[:2000]}")
    check(library.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
    code = ctypes.create_string_buffer(size.value)
    check(library.nvrtcGetCUBIN(program, code), "nvrtcGetCUBIN")
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def _by_nvcc(source: Path, options: list[str]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernel.cubin"
        words = ["nvcc", "-cubin", *(o.replace("--gpu-architecture", "-arch") for o in options), str(source)]
        done = subprocess.run([*words, "-o", str(out)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"nvcc does not compile {source.name}: {done.stderr[:2000]}")
        return out.read_bytes()


def _sources() -> bytes:
    return b"".join(p.read_bytes() for p in sorted([*FOLDER.glob("*.cu*"), FOLDER / "args.h"]))


def _cached(source: Path, options: list[str]) -> bytes:
    """The compiled kernel, kept between processes under its sources' and options' hash."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "svae" / "gpu"
    path = home / f"{hashlib.sha256(_sources() + ' '.join(options).encode()).hexdigest()[:32]}.cubin"
    if path.exists():
        return path.read_bytes()
    code = (_by_nvrtc if nvrtc() else _by_nvcc)(source, options)
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=home, delete=False) as file:
            file.write(code)
        os.replace(file.name, path)
    except OSError:
        pass  # a cache that cannot be written costs the next process a few seconds
    return code


def _layout(name: str, D: int) -> tuple[str, int, int]:
    """Header, threads of a block, and blocks that a multiprocessor should hold, which bounds the registers."""
    if name in ("hmm_smooth", "hmm_smooth_vjp"):
        return "hmm.cuh", 192, 2 if D <= 32 else 1
    if name.startswith("hmm"):
        return "hmm.cuh", (D + 31) // 32 * 32, 1
    if name.startswith("draw"):
        return "recursion.cuh", 32, 1
    if name == "link":
        return "gaussian_link.cuh", 64, 1
    if name.startswith("vjp"):
        return "gaussian_vjp_link.cuh" if "link" in name else "gaussian_vjp_back.cuh", 32, 1
    if name in ("potential_same", "messages_same"):
        return "gaussian_messages.cuh", 32, 1
    if name in ("local_same", "sweeps_same", "meet_same", "total_same"):
        header = {"local_same": "local", "sweeps_same": "sweeps"}.get(name, "meet")
        return f"gaussian_{header}.cuh", 32, 1
    if name == "join_same":
        return "gaussian_join.cuh", 32, 8 if D <= 10 else 1
    return "gaussian_chunks.cuh" if "element" in name else "gaussian_smooth.cuh", 128, 3 if D <= 10 else 1


def compile_kernel(name: str, D: int, wide: bool, architecture: str) -> bytes:
    """Machine code of one kernel for one D (or K), double precision in and out if `wide`."""
    header, threads, blocks = _layout(name, D)
    number = "double" if wide else "float"
    defines = {"KERNEL": name, "NAME": f"svae_{name}", "D": D, "S": number, "THREADS": threads, "BLOCKS": blocks}
    options = [f"--gpu-architecture={architecture}", "-std=c++17", f"-I{FOLDER}", f'-DSVAE_HEADER="{header}"']
    return _cached(FOLDER / "kernel.cu", options + [f"-DSVAE_{k}={v}" for k, v in defines.items()])
