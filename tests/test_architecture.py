"""The rules of the house, read off the source: who may import whom, and what nobody does."""

import ast
import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "svae").rglob("*.py"))

# Direct arrows, each room to the rooms just below it; a room may import everything it reaches.
ARROWS = {
    "_linalg": (),
    "_batched_cond": (),
    "_reprs": (),
    "_program_memory": (),
    "_compiling": (),
    "_one_thread": (),
    "_latent_tables": (),
    "_entry_points": ("_latent_tables",),
    "named": ("_entry_points",),
    "config": ("named", "_latent_tables"),
    "data": ("_entry_points",),
    "progress": (),
    "expfam": ("_linalg",),
    "messages": ("_linalg", "_batched_cond"),
    "pgm": ("expfam", "messages", "named"),
    "testing": ("pgm", "nets"),
    "nets": ("expfam", "_batched_cond", "_linalg"),
    "_networks": ("nets", "config"),
    "model": ("pgm", "_networks", "data", "_reprs", "_compiling"),
    "bound": ("model", "devices"),
    "devices": (),
    "fitting.updates": ("bound",),
    "starting": ("data",),
    "fitting.scree": (),
    "fitting.initialize": ("bound", "fitting.updates", "fitting.scree", "starting"),
    "fitting.__init__": (),
    "fitting.prepare": ("model", "data", "_program_memory"),
    "fitting.defaults": ("model", "fitting.scree"),
    "fitting.program": ("fitting.updates", "devices"),
    "fitting.steps": ("fitting.program", "fitting.prepare", "devices"),
    "fitting.held_out": ("bound",),
    "fitting.duration": ("fitting.prepare", "devices"),
    "fitting.warm_up": ("fitting.initialize", "fitting.steps", "fitting.duration", "_one_thread"),
    "fitting.loop": ("fitting.warm_up", "fitting.held_out", "devices"),
    "queries": ("bound", "_program_memory"),
    "baselines": ("fitting.initialize", "fitting.prepare", "_one_thread"),
    "_sealed": (),
    "store": ("config", "model", "_sealed"),
    "runs": ("fitting.defaults", "fitting.loop", "queries", "baselines", "starting", "store", "data"),
    "experiments": ("fitting.loop", "queries", "store", "data", "runs"),
    "adapters": ("runs", "sklearn"),
    "__init__": ("fitting.defaults", "fitting.loop", "queries", "store", "data", "runs", "testing", "adapters"),
    "bench": ("fitting.loop",),
    "sklearn": ("fitting.defaults", "fitting.loop", "queries"),
    "report": ("experiments", "runs"),
    "view": ("queries", "report", "runs"),
    "compare": ("report", "runs"),
    "sweep": ("experiments", "runs"),
    "cli": ("bench", "compare", "experiments", "progress", "report", "runs", "sweep", "view", "__init__"),
    "__main__": ("cli",),
}
MESSAGES = {  # the same inside svae/messages; forms are imported by name where the table asks for one
    "algebra": (),
    "kernels": (),
    "gpu": (),
    "served": ("kernels", "gpu"),
    "mixture": ("served",),
    "gaussian": ("algebra", "served"),
    "hmm": ("algebra", "served"),
    "hsmm": ("hmm",),
    "time_sharded": ("gaussian", "hmm"),
    "__init__": ("gaussian", "hmm", "hsmm"),
}
DOORS_OF_MESSAGES = {"gaussian", "hmm", "hsmm", "mixture", "served"}  # for other rooms, beside the names of __init__
ARRAYS = {"jax", "jaxtyping", "numpy"}
OUTSIDE = {  # what each room may import from outside besides the standard library
    "_linalg": ARRAYS,
    "_batched_cond": ARRAYS,
    "_reprs": {"jax", "numpy"},
    "_program_memory": {"jax"},
    "_compiling": {"jax", "equinox"},
    "_one_thread": {"threadpoolctl"},
    "config": set(),
    "named": set(),
    "_entry_points": set(),
    "_latent_tables": set(),
    "data": {"numpy", "jaxtyping", "scipy", "h5py", "av", "pyarrow"},  # jaxtyping imports no jax by itself
    "progress": {"rich"},
    "messages": ARRAYS,
    "expfam": ARRAYS | {"equinox"},
    "pgm": ARRAYS | {"equinox"},
    "testing": ARRAYS | {"equinox"},
    "nets": ARRAYS | {"equinox"},
    "_networks": ARRAYS | {"equinox"},
    "model": ARRAYS | {"equinox"},
    "bound": ARRAYS | {"equinox"},
    "devices": ARRAYS | {"equinox"},
    "fitting.updates": ARRAYS | {"equinox", "optax"},
    "starting": {"numpy"},
    "fitting.scree": {"numpy"},
    "fitting.initialize": ARRAYS | {"equinox", "optax"},
    "fitting.__init__": set(),
    "fitting.prepare": ARRAYS | {"equinox"},
    "fitting.defaults": {"numpy"},
    "fitting.program": ARRAYS | {"equinox"},
    "fitting.steps": ARRAYS,
    "fitting.held_out": ARRAYS | {"equinox"},
    "fitting.duration": ARRAYS | {"equinox"},
    "fitting.warm_up": ARRAYS | {"equinox"},
    "fitting.loop": ARRAYS | {"equinox", "optax"},
    "queries": ARRAYS | {"equinox"},
    "baselines": ARRAYS | {"equinox"},
    "_sealed": {"numpy", "safetensors"},
    "store": ARRAYS | {"equinox"},
    "runs": ARRAYS | {"equinox", "scipy"},
    "experiments": ARRAYS | {"equinox", "optax", "matplotlib", "sklearn"},
    "adapters": {"jax", "numpy", "pandas", "aeon", "sktime"},  # each only where it is asked for
    "__init__": set(),
    "bench": ARRAYS | {"equinox", "optax"},
    "sklearn": ARRAYS | {"equinox", "sklearn"},  # scikit-learn itself only when it asks for its own classes
    "report": {"jax", "jaxtyping", "numpy", "scipy", "matplotlib", "av"},
    "view": ARRAYS | {"equinox", "starlette", "uvicorn"},
    "compare": {"jaxtyping", "numpy", "scipy", "matplotlib"},
    "sweep": {"numpy"},
    "cli": {"cyclopts", "rich", "jax", "numpy", "scipy"},
    "__main__": set(),
}
KWARGS_ALLOWED = {"graph", "make", "model_for", "set_params"}  # of the user, of scikit-learn
MODELS = {"vae", "gmm", "hmm", "lds", "slds"}  # "gaussian" is a likelihood too
NAMERS = {  # where models may be named: the registry, options, what a person types, and problems of benchmarks
    *("pgm", "config", "named", "experiments", "bench"),
    "messages",  # a hidden chain of any model is called hmm there
    *("sklearn/__init__.py", "cli/benching.py", "runs/_baselines.py"),
}
PICKLERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def below(room, arrows=ARROWS):
    return set(arrows[room]).union(*(below(next_room, arrows) for next_room in arrows[room]))


def room_of(file):
    return room(file.relative_to(ROOT / "svae").with_suffix("").parts)


def room(parts):
    """The room of a module; each stage of the fit is one."""
    return ".".join(parts[: 2 if parts[0] == "fitting" else 1])


def imported(file):
    """Absolute dotted names of everything that a file imports, lazily or not."""
    package = file.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) + 1 - node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def rooms_imported(file):
    inside = [name.split(".") for name in imported(file) if name.split(".")[0] == "svae"]
    rooms = (room(parts[1:]) if len(parts) > 1 else "" for parts in inside)
    return {name if name in ARROWS else "__init__" for name in rooms}


def outside_imported(file):
    return {name.split(".")[0] for name in imported(file)} - {"svae", "__future__"} - sys.stdlib_module_names


def fresh(code):
    """What a new interpreter prints; it sees the package without the session's hooks and settings."""
    return subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).strip()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_down(file):
    room = room_of(file)
    assert room in ARROWS, f"{room} is a new room: give it its arrows above and in the design"
    assert rooms_imported(file) - {room} <= below(room)
    assert outside_imported(file) <= OUTSIDE[room]


def modules_of_messages(file):
    """The modules of svae/messages that a file imports, by their places under it."""
    names = {name.removeprefix("svae.messages.") for name in imported(file) if name.startswith("svae.messages.")}
    return {name for name in names if name.split(".")[0] in MESSAGES}


def test_imports_of_messages_point_down():
    for file in (f for f in FILES if room_of(f) == "messages"):
        part = file.relative_to(ROOT / "svae" / "messages").with_suffix("").parts[0]
        assert part in MESSAGES, f"{part} is a new part of messages: give it its arrows above"
        assert {name.split(".")[0] for name in modules_of_messages(file)} - {part} <= below(part, MESSAGES), file


def test_other_rooms_take_messages_by_their_doors():
    others = [f for f in FILES if room_of(f) != "messages"]
    assert {name for file in others for name in modules_of_messages(file)} <= DOORS_OF_MESSAGES


def test_arrows_have_no_circle_and_siblings_do_not_meet():
    assert all(room not in below(room) for room in ARROWS)
    assert all(part not in below(part, MESSAGES) for part in MESSAGES)
    assert "messages" not in below("expfam") and "expfam" not in below("messages")


def test_every_outside_import_is_a_declared_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    names = {re.match(r"[A-Za-z0-9_-]+", line)[0].replace("scikit-learn", "sklearn") for line in declared}
    assert set().union(*OUTSIDE.values()) <= names


def functions(tree):
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


def test_models_are_not_known_by_name():
    """What depends on a model asks its graph."""
    outside = [f for f in FILES if not {room_of(f), f.relative_to(ROOT / "svae").as_posix()} & NAMERS]
    quoted = {
        f"{file.relative_to(ROOT)}: {node.value}"
        for file in outside
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in MODELS
    }
    assert quoted == set()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_kwargs_no_pickle_no_eval(file):
    tree = ast.parse(file.read_text())
    assert {getattr(f, "name", "lambda") for f in functions(tree) if f.args.kwarg} <= KWARGS_ALLOWED
    assert not {name.split(".")[0] for name in imported(file)} & PICKLERS
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert not {call.func.id for call in calls if isinstance(call.func, ast.Name)} & {"eval", "exec", "__import__"}
    pickles = [k.value for call in calls for k in call.keywords if k.arg == "allow_pickle"]
    assert all(isinstance(value, ast.Constant) and value.value is False for value in pickles)


ALL_OF_IT = "import svae; [getattr(svae, name) for name in getattr(svae, '__all__', dir(svae))]"


def test_import_changes_no_setting_of_jax():
    code = f"import jax; before = dict(jax.config.values); {ALL_OF_IT}; print(before == dict(jax.config.values))"
    assert fresh(code) == "True"


def test_import_brings_nothing_heavy():
    heavy = {"scipy", "sklearn", "matplotlib", "rich", "pandas", "cyclopts"}
    jax_alone = "import sys, jax, equinox, optax, safetensors.numpy; before = set(sys.modules)"
    assert fresh(f"{jax_alone}; {ALL_OF_IT}; print(*(set(sys.modules) - before) & {heavy})") == ""


@pytest.mark.parametrize("module", ["svae.cli", "svae.config", "svae.data", "svae.progress"])
def test_rooms_without_jax_stay_without_it(module):
    assert fresh(f"import sys, {module}; print('jax' in sys.modules)") == "False"
