"""The public names, so that a change of one is seen; `help` that suffices; and what a model prints.

If a change of the public names is meant:  python tests/test_public_api.py
"""

import doctest
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
LISTED = Path(__file__).parent / "public_api.txt"
ROOMS = (
    "svae.adapters",
    "svae.data",
    "svae.expfam",
    "svae.messages",
    "svae.nets",
    "svae.pgm",
    "svae.runs",
    "svae.sklearn",
)


def names_of(module):
    return sorted(getattr(importlib.import_module(module), "__all__", ()))


def described(name, value):
    """One line: a name, and what a caller can rely on."""
    if isinstance(value, type) and issubclass(value, Exception):
        return f"svae.{name}: {value.__mro__[1].__name__}"
    if hasattr(value, "_fields"):
        return f"svae.{name}: {', '.join(value._fields)}"
    if isinstance(value, type):
        return f"svae.{name}: {', '.join(value.__annotations__)}"
    if inspect.isfunction(value):
        return f"svae.{name}({', '.join(arguments(value))})"
    return f"svae.{name}"


def arguments(function):
    """Names as a caller writes them, a star before those that need one, "=" after those with a default."""
    named = False
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY and not named:
            named = True
            yield "*"
        yield ("**" if p.kind is p.VAR_KEYWORD else "") + p.name + ("" if p.default is p.empty else "=")


def listing():
    import svae

    top = [described(name, getattr(svae, name)) for name in names_of("svae")]
    rooms = [f"{room}.{name}" for room in ROOMS for name in names_of(room)]
    return "\n".join([*top, *rooms]) + "\n"


def test_public_names_are_those_that_are_listed():
    assert listing() == LISTED.read_text(encoding="utf-8"), "if this is meant:  python tests/test_public_api.py"


def public():
    import svae

    return {name: getattr(svae, name) for name in svae.__all__}


def functions():
    return [name for name, value in public().items() if inspect.isfunction(value)]


def test_dir_shows_the_names_and_every_one_is_where_it_is_said_to_be():
    import svae

    assert set(dir(svae)) == {*svae.__all__, "__version__"}
    assert set(svae._HOMES) | set(svae._ROOMS) == set(svae.__all__)
    assert svae.__version__[0].isdigit() or "not installed" in svae.__version__


@pytest.mark.parametrize("name", functions())
def test_help_has_every_argument_the_result_and_an_example(name):
    text = inspect.getdoc(public()[name])
    for argument in inspect.signature(public()[name]).parameters:
        assert f"\n    {argument}: " in text, f"{name} does not say what {argument} is"
    assert "\nReturns:\n" in text and "\nExamples:\n" in text


def functions_of_rooms():
    for room in ROOMS[1:]:  # adapters need packages that may not be here
        module = importlib.import_module(room)
        yield from (
            (f"{room}.{n}", getattr(module, n)) for n in names_of(room) if inspect.isfunction(getattr(module, n))
        )


def test_help_of_the_functions_of_rooms_has_every_argument():
    found = {name: inspect.getdoc(value) or "" for name, value in functions_of_rooms()}
    assert [name for name, words in found.items() if not words] == []
    missing = [
        f"{name}: {argument}"
        for name, value in functions_of_rooms()
        for argument in inspect.signature(value).parameters
        if f"\n    {argument}: " not in found[name]
    ]
    assert missing == []


def test_examples_of_the_rooms_run(capsys):
    for name, value in functions_of_rooms():
        for test in doctest.DocTestFinder(recurse=False).find(value, name, globs={}):
            doctest.DocTestRunner().run(test)
    assert capsys.readouterr().out == ""


def test_help_of_config_has_every_option():
    import svae

    words = inspect.getdoc(svae.Config)
    assert [name for name in inspect.signature(svae.Config).parameters if f"\n    {name}: " not in words] == []


@pytest.mark.parametrize("name", [*functions(), "Config"])
def test_the_example_runs(name, capsys):
    value = public()[name]
    (test,) = [t for t in doctest.DocTestFinder(recurse=False).find(value, name, globs={}) if t.examples]
    doctest.DocTestRunner().run(test)
    assert capsys.readouterr().out == ""


def test_a_model_a_step_and_an_answer_are_short():
    import svae

    model = svae.make((2,), model="slds", states=3, latent_dim=2, hidden=(), steps=1, warmup_steps=0)
    assert "MNIW 3 x 2 x 3" in repr(model) and "no units of data yet" in repr(model)
    model = svae.make((2,), model="gmm", states=3, latent_dim=2, hidden=(), steps=1, warmup_steps=0)
    data = svae.data.switching_rotations(bouts=3, bout_length=20, seed=0)
    (*_, step) = svae.fit(model, data.y)
    assert repr(step).startswith("Step 1 of 1 (fit), bound ") and len(repr(step)) < 300
    assert "in the units of its data" in repr(step.model) and len(repr(step.state)) < 60
    assert "<table>" in step._repr_html_() and "<table>" in model._repr_html_()
    assert repr(svae.segment(model, [data.y, data.y])).startswith(
        f"Segmentation of 2 recordings: labels ({len(data.y)},) and 1 more"
    )
    assert repr(svae.generate(model, 4, key=jax.random.key(0))) == (
        "Generated: samples (1, 4, 2), means (1, 4, 2), latents (1, 4, 2), states (1, 4)"
    )
    two = svae.data.recordings([np.zeros((3, 2)), np.zeros((4, 2))], fps=30.0)
    assert repr(two) == "Recordings: 2 recordings, 7 frames of shape (2,) at 30 frames per second"


def test_a_model_can_be_printed_while_it_is_traced():
    import svae

    model = svae.make((2,), model="gmm", states=3, latent_dim=2, hidden=())
    texts = []
    jax.eval_shape(lambda scaling: texts.append(repr(eqx_with(model, scaling))), model.scaling)
    assert "units not known here" in texts[0]


def eqx_with(model, scaling):
    import equinox as eqx

    return eqx.tree_at(lambda m: m.scaling, model, scaling)


def test_a_type_checker_is_told_that_the_package_has_types():
    assert (ROOT / "svae" / "py.typed").exists()
    code = "import svae, sys; dir(svae); print('jax' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).strip() == "False"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    LISTED.write_text(listing(), encoding="utf-8")
