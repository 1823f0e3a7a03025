"""Damage saved models in many ways and load them: every one must be refused, none may load silently.

    python benchmarks/damage.py --files 2000

The kinds: a flipped bit, truncation, appended bytes, an overwritten or swapped region, of either file of the folder;
two arrays swapped inside a valid safetensors file, with the file's own checksum made right again or not; a manifest
whose entries were swapped, dropped or changed and whose seal was made right again.
"""

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

import safetensors
import safetensors.numpy

from svae import _sealed
from svae.model import make
from svae.store import StoreError, load_model, save


def flip(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def truncate(data, rng):
    return data[: rng.randrange(len(data))]


def append(data, rng):
    return data + rng.randbytes(rng.randrange(1, 64))


def overwrite(data, rng):
    at, size = rng.randrange(len(data)), rng.randrange(1, 256)
    return data[:at] + rng.randbytes(len(data[at : at + size])) + data[at + size :]


def swap_regions(data, rng):
    size = rng.choice([4, 16, 64])
    a, b = sorted(rng.sample(range(0, len(data) - size, size), 2))
    return data[:a] + data[b : b + size] + data[a + size : b] + data[a : a + size] + data[b + size :]


def swap_arrays(data, rng):
    """Two arrays of one shape change places in a valid file."""
    arrays = safetensors.numpy.load(data)
    pairs = [(a, b) for a in arrays for b in arrays if a < b and arrays[a].shape == arrays[b].shape]
    a, b = rng.choice([p for p in pairs if arrays[p[0]].tobytes() != arrays[p[1]].tobytes()])
    return safetensors.numpy.save(arrays | {a: arrays[b], b: arrays[a]})


ARRAYS = {f.__name__: f for f in (flip, truncate, append, overwrite, swap_regions, swap_arrays)}
MANIFEST = {f.__name__: f for f in (flip, truncate, append, overwrite, swap_regions)}


def files(folder: Path) -> tuple[Path, Path]:
    return next(folder.glob("*.safetensors")), folder / _sealed.MANIFEST


def resealed(manifest: bytes, change) -> bytes:
    body = json.loads(manifest)
    del body["sha256"]
    change(body)
    return _sealed.encode(body)


def forge_file(folder: Path, rng) -> str:
    """Other arrays, with the checksum of the file made right again."""
    file, manifest = files(folder)
    data = swap_arrays(file.read_bytes(), rng)
    file.write_bytes(data)
    right = {"bytes": len(data), "sha256": _sealed.sha256(data)}
    manifest.write_bytes(resealed(manifest.read_bytes(), lambda body: body["file"].update(right)))
    return "arrays swapped, file resealed"


def forge_manifest(folder: Path, rng) -> str:
    """Entries of the manifest changed, under a seal that is right again."""
    _, manifest = files(folder)
    body = json.loads(manifest.read_bytes())
    names = sorted(body["arrays"])
    a, b = rng.sample(names, 2)
    while body["arrays"][a] == body["arrays"][b]:
        a, b = rng.sample(names, 2)
    top = rng.choice(["format", "file", "config", "shape", "preprocess", "layout", "arrays", "extra"])
    changes = {
        "swapped": lambda body: body["arrays"].update({a: body["arrays"][b], b: body["arrays"][a]}),
        "dropped": lambda body: body["arrays"].pop(a),
        "missing": lambda body: body.pop(top),
        "another type": lambda body: body.update({top: rng.choice([None, 3, "x", []]) if top != "shape" else {}}),
        "another dtype": lambda body: body["arrays"][a].update(dtype="float16"),
        "another shape": lambda body: body["arrays"][a].update(shape=[*body["arrays"][a]["shape"], 1]),
        "an unknown option": lambda body: body["config"].update({f"option{rng.randrange(99)}": 1}),
        "another size": lambda body: body["config"].update(latent_dim=body["config"]["latent_dim"] + 1),
    }
    kind = rng.choice(sorted(changes))
    manifest.write_bytes(resealed(manifest.read_bytes(), changes[kind]))
    return f"manifest resealed, {kind}"


def damage(folder: Path, rng) -> str:
    """Damage the folder in one way; what it was."""
    chosen = rng.random()
    if chosen < 0.15:
        return forge_file(folder, rng)
    if chosen < 0.35:
        return forge_manifest(folder, rng)
    file, kinds, what = (
        (*files(folder)[:1], ARRAYS, "arrays") if chosen < 0.75 else (files(folder)[1], MANIFEST, "manifest")
    )
    good, kind = file.read_bytes(), rng.choice(sorted(kinds))
    bad = good
    while bad == good:
        bad = kinds[kind](good, rng)
    file.write_bytes(bad)
    return f"{what} {kind}"


def unsealed_loads(folder: Path) -> bool:
    """Whether the array format alone would have taken it."""
    try:
        safetensors.numpy.load(files(folder)[0].read_bytes())
    except (safetensors.SafetensorError, KeyError, ValueError):
        return False
    return True


def campaign(number: int, seed: int) -> dict:
    rng, began = random.Random(seed), time.monotonic()
    kinds, silent, other, alone = Counter(), [], [], [0, 0]
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "model"
        save(make((6,), model="hmm", states=3, latent_dim=2, hidden=(8,)), folder, extra={"note": "γ"})
        good = {file.name: file.read_bytes() for file in folder.iterdir()}
        for i in range(number):
            for name, data in good.items():
                (folder / name).write_bytes(data)
            kind = damage(folder, rng)
            kinds[kind] += 1
            if kind.startswith("arrays"):
                alone = [alone[0] + unsealed_loads(folder), alone[1] + 1]
            try:
                load_model(folder)
                silent.append(f"case {i}: {kind}")
            except StoreError as error:
                other += [f"case {i}: {kind}: more than a line"] if "\n" in str(error) else []
            except Exception as error:
                other.append(f"case {i}: {kind}: {error!r}")
    share = f"{alone[0]} of {alone[1]}"
    found = {"files": number, "loaded_silently": silent, "other_errors": other, "safetensors_alone_loads": share}
    return found | {"kinds": dict(sorted(kinds.items())), "seconds": round(time.monotonic() - began, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = campaign(given.files, given.seed)
    print(json.dumps(found, indent=1))
    raise SystemExit(bool(found["loaded_silently"] or found["other_errors"]))


if __name__ == "__main__":
    main()
