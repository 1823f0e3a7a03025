"""A few of the campaigns in benchmarks/: system calls that fail, and model files that were damaged."""

import importlib.util
import shutil
from pathlib import Path

import pytest


def benchmark(name):
    """A script of benchmarks/ as a module."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_system_calls_of_a_save_that_die_or_fail():
    found = benchmark("faults").campaign(every=97, workers=1)
    assert found["faults"] >= 4 and found["problems"] == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_every_system_call_of_a_save():
    assert benchmark("faults").campaign(every=1, workers=2)["problems"] == []


def test_damaged_models_of_every_kind_are_refused():
    found = benchmark("damage").campaign(40, seed=1)
    assert found["loaded_silently"] == [] and found["other_errors"] == [] and len(found["kinds"]) > 8
