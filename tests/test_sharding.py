"""Several devices, and several processes, give what one device gives; when one process is killed the others say so."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from svae import devices
from tests import sharded
from tests.cli.processes import QUICK_TO_COMPILE, environment

ROOT = Path(__file__).parents[1]


def in_four(what):
    """What a process with four virtual devices finds."""
    flags = f"{QUICK_TO_COMPILE} --xla_force_host_platform_device_count=4"
    patient = "--xla_cpu_collective_call_terminate_timeout_seconds=600"
    command = [sys.executable, "tests/sharded.py", what]
    variables = environment(XLA_FLAGS=f"{flags} {patient}")
    return json.loads(subprocess.check_output(command, cwd=ROOT, env=variables, timeout=900))


@pytest.fixture(scope="module")
def four():
    return in_four("quick")


def test_a_fit_over_four_devices_is_the_fit_on_one(four):
    alone = sharded.trained("gaussian", 3)
    np.testing.assert_allclose(four["fit"]["bounds"], alone["bounds"], rtol=1e-5)
    assert sharded.apart(four["fit"]["parameters"], alone["parameters"]) < 1e-5


@pytest.mark.slow
def test_gradients_do_not_depend_on_the_number_of_devices():
    assert max(in_four("gradients").values()) < 1e-5


@pytest.mark.slow
def test_fifty_steps_on_four_devices_and_in_two_processes_are_those_on_one():
    """Bound and every array of parameters to 1e-5: the benchmark ends with 1 where they are not."""
    subprocess.run([sys.executable, "benchmarks/devices.py", "--length", "0"], cwd=ROOT, check=True, timeout=1800)


def test_a_chain_shared_out_along_time_is_the_chain(four):
    assert max(four["time"]) < 1e-12


def test_one_device_is_left_alone():
    tree = {"x": np.ones(3), "name": "x"}
    assert devices.mesh(4) is None
    assert devices.replicated(tree, None) is tree and devices.spread(tree, None) is tree
    assert devices.agreed(tree) is tree and not devices.is_shared()
    assert devices.own(np.arange(4)).tolist() == [0, 1, 2, 3]
    assert devices.text_of_first("as it is") == "as it is"


def test_errors_of_one_process_are_its_own():
    with pytest.raises(ZeroDivisionError), devices.others_alive():
        raise ZeroDivisionError
    assert "process 1 of the 2" in devices.gone(0, 2) and "--resume" in devices.gone(3, 8)
