"""Wheels with the kernels inside, for every platform of `hatch_build.TARGETS`:  python wheels.py [FOLDER [TARGET ...]]

All are compiled on one machine, by the compiler that the package `ziglang` brings. Each library is then looked at: its
format and processor, whether every kernel is among its names, which libraries it asks for, and what age of glibc.
"""

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import lief

from hatch_build import FOLDER, GPU_LIBRARY, LIBRARY, ROOT, TARGETS

HANDLER = re.compile(r"^SVAE_HANDLER\((\w+)", re.MULTILINE)
GLIBC = re.compile(r"GLIBC_2\.(\d+)")
NEWEST_GLIBC = 28
FORMATS = {  # target -> format of its libraries, processor
    "linux-x86_64": ("ELF", "X86_64"),
    "linux-aarch64": ("ELF", "AARCH64"),
    "macos-arm64": ("MACHO", "ARM64"),
    "windows-x86_64": ("PE", "AMD64"),
}
SYSTEM = re.compile(  # what the system itself brings
    r"(lib(c|m|dl|rt|pthread)\.so\.\d|ld-linux-.*|/usr/lib/libSystem\.B\.dylib|KERNEL32\.dll|ntdll\.dll|ADVAPI32\.dll"
    r"|(msvcrt|ucrtbase)\.dll|api-ms-win-crt-.*\.dll)",
    re.IGNORECASE,
)


def build(name: str, folder: Path) -> Path:
    """The wheel for one target."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder.absolute())]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"SVAE_WHEEL": name}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the wheel for {name} is not built: {done.stderr[-2000:]}")
    (wheel,) = folder.glob(f"svae-*-py3-none-{TARGETS[name].tag}.whl")
    return wheel


def kernels(source: Path) -> set[str]:
    """Names of the functions that XLA calls."""
    return set(HANDLER.findall(source.read_text(encoding="utf-8")))


def look(library: Path, name: str, wanted: set[str]) -> None:
    """Raise a sentence where a library is not what its wheel says."""
    found = lief.parse(str(library))
    form, processor = FORMATS[name]
    machine = getattr(found.header, {"ELF": "machine_type", "MACHO": "cpu_type", "PE": "machine"}[form])
    if found.format.name != form or machine.name != processor:
        raise RuntimeError(f"{library.name} for {name} is {found.format.name} for {machine.name}")
    exported = {str(f.name).removeprefix("_" if form == "MACHO" else "") for f in found.exported_functions}
    if absent := wanted - exported:
        raise RuntimeError(f"{library.name} for {name} does not export {', '.join(sorted(absent))}")
    asked = {str(getattr(x, "name", x)) for x in found.libraries} - {library.name, f"@rpath/{library.name}"}
    if foreign := {x for x in asked if not SYSTEM.fullmatch(x)}:
        raise RuntimeError(f"{library.name} for {name} asks for {', '.join(sorted(foreign))}")
    newest = max(map(int, GLIBC.findall(" ".join(_versions(found)))), default=0) if form == "ELF" else 0
    if newest > NEWEST_GLIBC:
        raise RuntimeError(f"{library.name} for {name} asks for glibc 2.{newest}")
    if form == "MACHO" and not found.has_code_signature:
        raise RuntimeError(f"{library.name} for {name} is not signed, and macOS would not load it")


def _versions(found):
    return (entry.name for needed in found.symbols_version_requirement for entry in needed.get_auxiliary_symbols())


def check(wheel: Path, name: str) -> str:
    """One sentence on a wheel whose libraries are what they should be."""
    sources = {LIBRARY: FOLDER / "ffi.cc"}
    if name.startswith("linux"):
        sources[GPU_LIBRARY] = GPU_LIBRARY.with_name("ffi.cc")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        for library, source in sources.items():
            inside = library.relative_to(ROOT).as_posix()
            look(Path(archive.extract(inside, folder)), name, kernels(source))
    return (
        f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {sum(len(kernels(s)) for s in sources.values())} kernels"
    )


def main(folder: str = "dist", *names: str) -> None:
    for name in names or TARGETS:
        print(check(build(name, Path(folder)), name), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
