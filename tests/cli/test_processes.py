"""`svae fit` as two processes over loopback: one run, and one clear sentence when one of them is killed."""

import json
import signal
import socket
import subprocess
import time

import numpy as np
import pytest

from svae.cli import main
from svae.runs import Run
from tests.cli.processes import QUICK_TO_COMPILE, command, environment

SMALL = {"warmup_steps": 2, "window": 30, "overlap": 5, "batch_size": 4, "network": '"affine"', "patience": 100}
FIT = ["walk.npy", "--model", "lds", "--latent-dim", "2", "--steps", "60"]
FIT += [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]


def test_flags_of_several_processes_belong_together(capsys):
    assert main(["fit", "walk.npy", "--processes", "2"]) == 2
    assert "--coordinator, --processes and --process-id" in capsys.readouterr().err
    assert main(["fit", "walk.npy", "--coordinator", "a:1", "--processes", "2", "--process-id", "2"]) == 2
    assert "below --processes 2, not 2" in capsys.readouterr().err


def walk(folder):
    rng, t = np.random.default_rng(0), np.arange(480.0)
    wave = np.stack([np.sin(0.2 * t), np.cos(0.2 * t), 0.3 * np.sin(0.1 * t)], -1)
    np.save(folder / "walk.npy", wave + 0.1 * rng.normal(size=wave.shape))


def started(folder, arguments):
    """Two processes of two devices each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = f"{QUICK_TO_COMPILE} --xla_force_host_platform_device_count=2"
    common = [*arguments, "--out", "run", "--coordinator", f"127.0.0.1:{port}", "--processes", "2", "--json"]
    return [
        subprocess.Popen(
            command("fit", *common, "--process-id", i),
            cwd=folder,
            env=environment(XLA_FLAGS=flags),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]


def ended(processes):
    outputs = [process.communicate(timeout=600) for process in processes]
    return [process.returncode for process in processes], outputs


def wait_for_step(folder, step, processes):
    file = folder / "run" / "metrics.jsonl"
    while not file.exists() or len(file.read_text().splitlines()) < step:
        assert all(process.poll() is None for process in processes)
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_leaves_one_sentence_and_a_run_that_resumes(tmp_path, victim):
    walk(tmp_path)
    processes = started(tmp_path, FIT)
    wait_for_step(tmp_path, 20, processes)
    processes[victim].send_signal(signal.SIGKILL)
    codes, outputs = ended(processes)
    assert codes[victim] == -signal.SIGKILL and codes[1 - victim] == 6
    sentence = f"process {victim} of the 2 of this run is gone; start all of them again with --resume"
    assert outputs[1 - victim][1] == f"svae: {sentence}\n"
    assert json.loads(outputs[1 - victim][0]) == {"error": sentence, "exit_code": 6}
    codes, outputs = ended(started(tmp_path, ["--resume"]))
    assert codes == [0, 0] and json.loads(outputs[0][0])["status"] == "finished" and outputs[1][0] == ""
    assert len([line for line in Run(tmp_path / "run").metrics() if line["phase"] != "start"]) == 62


@pytest.mark.slow
def test_a_signal_to_one_process_stops_all_of_them_after_the_same_step(tmp_path):
    walk(tmp_path)
    processes = started(tmp_path, FIT)
    wait_for_step(tmp_path, 20, processes)
    processes[1].send_signal(signal.SIGTERM)
    codes, _ = ended(processes)
    assert codes == [143, 143]
    done = Run(tmp_path / "run").metrics()[-1]["step"]
    assert (tmp_path / "run" / "checkpoints" / f"step-{done:08d}").exists()
