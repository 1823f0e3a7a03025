"""The pages on what is inside name what is there: every module of message passing, and every stop of the walk."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
MESSAGES = ROOT / "svae" / "messages"
PAGES = ROOT / "docs" / "internals" / "messages"
FOLDERS = [folder for folder in sorted(MESSAGES.iterdir()) if (folder / "__init__.py").exists()]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_module_of_message_passing_is_on_the_page_of_its_folder(folder):
    own = PAGES / f"{folder.name}.md"
    text = (own if own.exists() else PAGES / "kernels.md").read_text(encoding="utf-8")
    unsaid = {"__init__.py"} if folder.name == "algebra" else set()
    assert [file.name for file in folder.glob("*.py") if f"`{file.name}`" not in text and file.name not in unsaid] == []


def test_every_part_of_message_passing_is_on_its_first_page():
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    parts = [f"{folder.name}/" for folder in FOLDERS] + [file.name for file in MESSAGES.glob("[!_]*.py")]
    assert [part for part in parts if f"`{part}`" not in text] == []


class Stop(NamedTuple):
    """A line of the walk: a function of a module, the stop that calls it, and the name by which it does."""

    module: str
    function: str
    caller: int | None
    called: str


LINE = re.compile(r"^(\d+)\. `([^`]+)`, `([^`]+)`(?:, from (\d+)(?: as `(\w+)`)?)?: ", re.MULTILINE)


def walk():
    found = LINE.findall((ROOT / "docs" / "internals" / "walk.md").read_text(encoding="utf-8"))
    assert [int(number) for number, *_ in found] == list(range(1, len(found) + 1))
    return [Stop(m, f, int(caller) - 1 if caller else None, called or f) for _, m, f, caller, called in found]


def tree_of(stop):
    return ast.parse((ROOT / "svae" / stop.module).read_text(encoding="utf-8"))


def test_the_walk_is_short_and_no_module_comes_twice():
    assert 20 <= len(walk()) <= 25
    assert len({stop.module for stop in walk()}) == len(walk())


def test_the_walk_begins_at_the_command_and_every_stop_is_a_function_of_its_module():
    assert (walk()[0].module, walk()[0].function) == ("cli/__init__.py", "main")
    for stop in walk():
        body = tree_of(stop).body
        for word in stop.function.split("."):
            (found,) = [node for node in body if getattr(node, "name", None) == word]
            body = found.body


def test_every_stop_is_called_by_one_that_has_not_been_left():
    stops, entered = walk(), [0]
    for number, stop in enumerate(stops[1:], 1):
        assert stop.caller in entered, f"{stop.module} is called from a stop that the walk has left"
        entered = [*entered[: entered.index(stop.caller) + 1], number]
        nodes = list(ast.walk(tree_of(stops[stop.caller])))
        names = {getattr(node, "id", None) for node in nodes} | {getattr(node, "attr", None) for node in nodes}
        assert stop.called in names, f"{stops[stop.caller].module} does not name {stop.called}"


FOLLOWED = """
import importlib, sys, threading
from svae.cli import main

passed, codes = set(), {{}}
for module, function in {stops}:
    found = importlib.import_module("svae." + module)
    for word in function.split("."):
        found = getattr(found, word)
    codes[found.__code__] = module
def see(frame, event, _):
    if event == "call" and frame.f_code in codes:
        passed.add(codes[frame.f_code])
threading.setprofile(see)
sys.setprofile(see)
assert main(["fit", "x.csv", "--model", "hmm", "--states", "2", "--steps", "1", "--set", "warmup_steps=1"]) == 0
sys.setprofile(None)
print("MISSED", sorted(set(codes.values()) - passed))
"""


@pytest.mark.slow
def test_a_fit_passes_every_stop_of_the_walk(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    np.savetxt(tmp_path / "x.csv", rows, delimiter=",", header="a,b", comments="")
    stops = [(s.module.removesuffix(".py").removesuffix("/__init__").replace("/", "."), s.function) for s in walk()]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FOLLOWED.format(stops=stops)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "MISSED []" in done.stdout, done.stdout + done.stderr
