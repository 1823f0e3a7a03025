import errno
import functools
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from svae import _sealed, store
from svae.config import Config
from svae.data import Layout, Preprocess
from svae.store import StoreError, load_extra, load_model, save


class Tiny(eqx.Module):
    """Stands in for an SVAE: arrays, nested modules, a function leaf, and the static fields that `save` reads."""

    layers: list
    q: dict
    activation: object
    config: Config = eqx.field(static=True)
    shape: tuple = eqx.field(static=True)
    preprocess: Preprocess = eqx.field(static=True, default=Preprocess())
    layout: Layout = eqx.field(static=True, default=Layout())


def tiny(shape, config):
    keys = jax.random.split(jax.random.key(config.seed), 3)
    layers = [eqx.nn.Linear(shape[-1], 4, key=keys[0]), eqx.nn.Linear(4, 4, key=keys[1])]
    q = {
        "counts": jax.random.uniform(keys[2], (3, 3)),
        "nu": jnp.float32(3.5),
        "steps": jnp.arange(3),
        "none": jnp.zeros((0, 2)),
    }
    return Tiny(layers, q, jnp.tanh, config, shape)


@functools.cache
def tiny_skeleton(shape, config, x64):
    return eqx.filter_eval_shape(lambda: tiny(shape, config))


@pytest.fixture(autouse=True)
def skeleton(monkeypatch, request):
    """`load_model` rebuilds a Tiny, except in the test of real models."""
    if "real" not in request.node.name:
        monkeypatch.setattr(
            store, "_build", lambda shape, config, *_: tiny_skeleton(shape, config, jax.config.jax_enable_x64)
        )


@functools.cache
def another(seed):
    """A model as if fitted: made with seed 0, other values in its leaves."""
    model, fitted = tiny((7, 5), Config()), tiny((7, 5), Config(seed=seed))
    return jax.tree.unflatten(jax.tree.structure(model), jax.tree.leaves(fitted))


def bits(model):
    return [(a.dtype, a.shape, np.asarray(a).tobytes()) for a in jax.tree.leaves(eqx.filter(model, eqx.is_array))]


def test_round_trip_is_bitwise(tmp_path):
    model = another(3)
    save(model, tmp_path / "deep" / "m", extra={"scale": [1.5, 2.0], "name": "γ"})
    loaded = load_model(tmp_path / "deep" / "m")
    assert bits(loaded) == bits(model) != bits(tiny((7, 5), Config()))
    assert jax.tree.structure(loaded) == jax.tree.structure(model)
    assert (loaded.config, loaded.shape, loaded.activation) == (model.config, model.shape, jnp.tanh)
    assert load_extra(tmp_path / "deep" / "m") == {"scale": [1.5, 2.0], "name": "γ"}


def test_special_values_survive(tmp_path):
    values = np.array([[np.nan, np.inf, -np.inf], [-0.0, 1e-45, 3.4e38], [1, 2, 3]], np.float32)
    model = eqx.tree_at(lambda m: m.q["counts"], tiny((7, 5), Config()), jnp.asarray(values))
    save(model, tmp_path)
    assert bits(load_model(tmp_path)) == bits(model)


def test_double_precision_round_trip_and_refusal_without_it(tmp_path):
    with jax.enable_x64(True):
        model = tiny((7, 5), Config())
        assert model.layers[0].weight.dtype == jnp.float64
        save(model, tmp_path)
        assert bits(load_model(tmp_path)) == bits(model)
    with pytest.raises(StoreError, match="jax_enable_x64"):
        load_model(tmp_path)


def test_saving_again_leaves_two_files(tmp_path):
    for seed in (1, 2, 2, 3):
        save(another(seed), tmp_path)
        assert bits(load_model(tmp_path)) == bits(another(seed))
        assert len(list(tmp_path.iterdir())) == 2


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    model = eqx.tree_at(lambda m: m.q["counts"], another(1), jnp.zeros((4, 4)))
    with pytest.raises(StoreError, match=r"q\.counts"):
        save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("extra", [{"a": float("nan")}, {"a": object()}, {"a": np.zeros(3)}])
def test_extra_must_be_json(tmp_path, extra):
    with pytest.raises(StoreError, match="extra"):
        save(another(1), tmp_path / "m", extra=extra)
    assert not (tmp_path / "m").exists()


# ---- damage


def flip_a_bit(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def truncate(data, rng):
    return data[: rng.randrange(len(data))]


def append(data, rng):
    return data + rng.randbytes(rng.randrange(1, 9))


def overwrite_a_region(data, rng):
    at, size = rng.randrange(len(data)), rng.randrange(1, 64)
    new = data[:at] + rng.randbytes(len(data[at : at + size])) + data[at + size :]
    return new if new != data else flip_a_bit(data, rng)


def swap_two_regions(data, rng):
    size = 16
    a, b = sorted(rng.sample(range(0, len(data) - size, size), 2))
    new = data[:a] + data[b : b + size] + data[a + size : b] + data[a : a + size] + data[b + size :]
    return new if new != data else flip_a_bit(data, rng)


DAMAGES = [flip_a_bit, truncate, append, overwrite_a_region, swap_two_regions]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
def test_every_damage_is_refused(tmp_path, damage):
    save(another(1), tmp_path, extra={"note": "keep", "scale": [1.0, 2.0]})
    rng = random.Random(damage.__name__)
    for file in tmp_path.iterdir():
        good = file.read_bytes()
        for _ in range(60):
            file.write_bytes(damage(good, rng))
            with pytest.raises(StoreError) as caught:
                load_model(tmp_path)
            assert "\n" not in str(caught.value)
        file.write_bytes(good)
    assert bits(load_model(tmp_path)) == bits(another(1))


def test_every_single_byte_of_the_arrays_counts(tmp_path):
    save(another(1), tmp_path)
    (file,) = tmp_path.glob("*.safetensors")
    good = file.read_bytes()
    for at in range(len(good)):
        file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(StoreError):
            load_model(tmp_path)


def forge(folder, change):
    """Change the arrays and make every checksum of the file, but not of the arrays, right again."""
    (file,) = folder.glob("*.safetensors")
    data = safetensors.numpy.save(change(safetensors.numpy.load(file.read_bytes())))
    file.write_bytes(data)
    body = json.loads((folder / _sealed.MANIFEST).read_text())
    del body["sha256"]
    body["file"] |= {"bytes": len(data), "sha256": _sealed.sha256(data)}
    (folder / _sealed.MANIFEST).write_bytes(_sealed.encode(body))


def swap_equal_shapes(arrays):
    arrays["layers.0.bias"], arrays["layers.1.bias"] = arrays["layers.1.bias"], arrays["layers.0.bias"]
    return arrays


@pytest.mark.parametrize(
    "change",
    [
        swap_equal_shapes,
        lambda arrays: {name: a for name, a in arrays.items() if name != "q.nu"},
        lambda arrays: arrays | {"q.counts": arrays["q.counts"].T.copy()},
        lambda arrays: arrays | {"q.counts": arrays["q.counts"].astype(np.float64)},
        lambda arrays: arrays | {"layers.0.weight": arrays["layers.0.weight"].reshape(5, 4)},
    ],
)
def test_arrays_that_are_not_the_saved_ones_are_refused(tmp_path, change):
    save(another(1), tmp_path)
    forge(tmp_path, change)
    with pytest.raises(StoreError):
        load_model(tmp_path)


def reseal(folder, change):
    """Change the manifest and seal it again, as another version or an ill-meaning person would."""
    body = json.loads((folder / _sealed.MANIFEST).read_text())
    del body["sha256"]
    change(body)
    (folder / _sealed.MANIFEST).write_bytes(_sealed.encode(body))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update(format=99),
        lambda body: body["config"].update(colour="red"),
        lambda body: body["config"].update(states="many"),
        lambda body: body.update(shape=[7, 6]),
        lambda body: body["arrays"].pop("q.nu"),
        lambda body: body["arrays"].update({"q.more": body["arrays"]["q.nu"]}),
        lambda body: body["file"].update(name="../../elsewhere.safetensors"),
        lambda body: body["file"].update(name="absent.safetensors"),
        lambda body: body["file"].update(bytes=10**18, name=None),
        lambda body: body["file"].update(bytes="many"),
        lambda body: body["arrays"]["q.nu"].pop("shape"),
        lambda body: body["arrays"].update({"q.nu": 3}),
        lambda body: body.update(arrays=[]),
        lambda body: body.update(shape=["a"]),
        lambda body: body.update(shape=[-3]),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path, change):
    save(another(1), tmp_path / "m")
    shutil.copy(next((tmp_path / "m").glob("*.safetensors")), tmp_path / "elsewhere.safetensors")
    reseal(tmp_path / "m", change)
    with pytest.raises(StoreError) as caught:
        load_model(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_what_another_version_saved_is_told_from_other_faults():
    skeleton = {"mu": jax.ShapeDtypeStruct((3,), np.float32)}
    for found, hint in (({"nu": "float32[3]"}, "another version"), ({"mu": "float64[3]"}, "jax_enable_x64")):
        with pytest.raises(StoreError, match=hint):
            store.compare(found, skeleton, "the checkpoint")


@pytest.mark.parametrize("name", ["format", "config", "shape", "file", "arrays", "extra"])
def test_a_manifest_without_one_of_its_entries_is_refused(tmp_path, name):
    save(another(1), tmp_path)
    reseal(tmp_path, lambda body: body.pop(name))
    for load in (load_model, load_extra):
        with pytest.raises(StoreError):
            load(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "3", "{}", '{"sha256": 1}', "[" * 100_000, "\ufeff{}", '{"a": NaN}']
)
def test_a_manifest_that_is_none_is_refused(tmp_path, text):
    (tmp_path / _sealed.MANIFEST).write_text(text)
    for load in (load_model, load_extra):
        with pytest.raises(StoreError):
            load(tmp_path)


def test_missing_folder_and_file_are_one_sentence(tmp_path):
    with pytest.raises(StoreError, match="could not be read"):
        load_model(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="could not be written"):
        save(another(1), tmp_path / "file")


# ---- a save that stops half way


class Killed(BaseException):
    """The process dies here: from now on no call has any effect."""


class Failing:
    """Counts the calls that touch the disk; from call number `at` on raises `error`, after writing half of the data."""

    CALLS = ("makedirs", "open", "fsync", "replace", "close", "unlink")

    def __init__(self, at, error, forever):
        self.left, self.error, self.forever = at, error, forever

    def tick(self):
        self.left -= 1
        if self.left < 0 and (self.forever or self.left == -1):
            raise self.error

    def wrap(self, call):
        def wrapped(*args, **kwargs):
            self.tick()
            return call(*args, **kwargs)

        return wrapped

    def write_bytes(self, file, data):
        """One call to open the file and one to fill it, which can stop in the middle."""
        self.tick()
        try:
            self.tick()
        except BaseException:
            with open(file, "wb") as stream:
                stream.write(data[: len(data) // 2])
            raise
        with open(file, "wb") as stream:
            stream.write(data)

    def install(self, patch):
        for name in self.CALLS:
            patch.setattr(os, name, self.wrap(getattr(os, name)))
        patch.setattr(Path, "unlink", self.wrap(Path.unlink))
        patch.setattr(Path, "write_bytes", lambda file, data: self.write_bytes(file, data))


def save_that_stops(model, folder, failing):
    """Save with the n-th call to the disk failing; True if the save was acknowledged."""
    with pytest.MonkeyPatch.context() as patch:
        failing.install(patch)
        try:
            save(model, folder)
        except (Killed, StoreError):
            return False
    return True


@pytest.mark.parametrize(
    ("error", "forever"), [(Killed(), True), (OSError(errno.ENOSPC, "No space left on device"), False)]
)
def test_a_save_that_stops_anywhere_leaves_the_old_or_the_new_model(tmp_path, error, forever):
    old, new = another(1), another(2)
    outcomes = []
    for at in range(100):
        folder = tmp_path / str(at)
        save(old, folder)
        acknowledged = save_that_stops(new, folder, Failing(at, error, forever))
        loaded = bits(load_model(folder))
        assert loaded == bits(new) if acknowledged else loaded in (bits(old), bits(new))
        outcomes.append(loaded == bits(new))
        save(new, folder)
        assert len(list(folder.iterdir())) == 2 and bits(load_model(folder)) == bits(new)
        if acknowledged:
            break
    assert at > 10 and acknowledged and sorted(outcomes) == outcomes


def test_a_first_save_that_stops_anywhere_loads_whole_or_says_why(tmp_path):
    for at in range(100):
        folder = tmp_path / str(at)
        if save_that_stops(another(1), folder, Failing(at, Killed(), True)):
            break
        try:
            assert bits(load_model(folder)) == bits(another(1))
        except StoreError as error:
            assert "could not be read" in str(error)
    assert at > 10


# ---- the real thing


def test_real_models_round_trip(tmp_path):
    model_module = pytest.importorskip("svae.model")
    for name in ("vae", "gaussian", "gmm", "hmm", "lds", "slds"):
        config = Config(model=name, states=None if name in ("vae", "gaussian", "lds") else 3, latent_dim=2, hidden=(4,))
        model = model_module.make((6,), config)
        save(model, tmp_path / name)
        loaded = load_model(tmp_path / name)
        assert bits(loaded) == bits(model) and loaded.config == config and loaded.shape == model.shape


AUDITED = """
import sys
from pathlib import Path
from svae.named import names
from svae.store import StoreError, load_model

seen, listening = [], False

def hear(event, arguments):
    kinds = ("exec", "compile", "import", "subprocess", "socket", "os.system", "os.exec", "os.spawn", "os.fork",
             "os.posix_spawn", "pickle", "marshal", "code.", "ctypes.dlopen", "open")
    if listening and event.startswith(kinds):
        seen.append(f"{event} {arguments}")

folders = [Path(name) for name in sys.argv[1:]]
load_model(folders[0])  # our own modules are imported and our own functions traced
names()  # which packages are installed is read once
sys.addaudithook(hear)
for folder in folders:
    listening = True
    try:
        load_model(folder)
    except StoreError:
        pass
    listening = False
    others = [e for e in seen if not (e.startswith("open ") and str(folder) in e)]
    print(folder.name, others)
    seen.clear()
"""


def test_loading_a_real_model_executes_nothing_from_it(tmp_path):
    """An audit hook sees the two files of the folder opened, and nothing run, imported, spawned or connected to."""
    from svae.model import make

    save(make((6,), model="gmm", states=2, latent_dim=2, hidden=(4,)), tmp_path / "good")
    names = [
        "__import__('os').system('true')",
        "antigravity",
        "os.system",
        "svae.cli:main",
        "!!python/object:os.system",
    ]
    for i, name in enumerate(names):
        shutil.copytree(tmp_path / "good", tmp_path / f"bad{i}")
        reseal(tmp_path / f"bad{i}", lambda body, name=name: body["config"].update(model=name))
        shutil.copytree(tmp_path / "good", tmp_path / f"odd{i}")
        reseal(tmp_path / f"odd{i}", lambda body, name=name: body.update(extra={"__reduce__": name}, versions=name))
    folders = sorted(map(str, tmp_path.iterdir()), key=lambda name: "good" not in name)
    run = [sys.executable, "-c", AUDITED, *folders]
    told = subprocess.check_output(run, cwd=Path(__file__).parents[1], text=True)
    assert told.splitlines() == [f"{Path(name).name} []" for name in folders]
