"""Small runs as a fit leaves them, and the server of each as a process of its own."""

import json
import signal
import socket
import subprocess
import time
import urllib.request

import numpy as np
import pytest

from svae import runs
from svae.config import Config
from svae.data import find_preprocess, load
from svae.model import make
from svae.runs._apply import write_answers
from svae.store import save
from tests.cli.processes import command, environment

FPS, T, K = 10.0, 160, 4
SHAPES = {"images": (10, 12), "bodies": (5, 2), "columns": (3,)}


def made(folder, kind):
    """A run on one recording of levels of eight frames each, with the model that a fit begins with."""
    rng, shape = np.random.default_rng(0), SHAPES[kind]
    levels = 2 * rng.normal(size=(K, int(np.prod(shape))))[np.arange(T) // 8 % K]
    y = (levels + 0.2 * rng.normal(size=levels.shape)).reshape(T, *shape).astype(np.float32)
    folder.mkdir(parents=True)
    np.savez(folder / "walks.npz", first=y, second=y[::-1])
    data = load(folder / "walks.npz", fps=FPS)
    config = Config(model="hmm", states=K, latent_dim=2, network="affine", preprocess="auto")
    run = runs.start(folder / "run", data, config, source={"path": str(folder / "walks.npz"), "fps": FPS})
    before = find_preprocess(data, config)
    model = make(before.shape(shape), config, preprocess=before)
    save(model, run.path / "model")
    list(write_answers(model, data, run.path))
    _steady(run)
    return run


def _steady(run):
    """Bouts of eight frames, state after state: what a fit would have found, and what a person can aim at."""
    from svae.runs._posterior import bouts, write_bouts, write_posterior

    found = []
    for name in run.recordings():
        state = (np.arange(T) // 8 % K).astype(np.int32)
        sure = run.posterior(name)._replace(state=state, probability=np.eye(K, dtype=np.float32)[state])
        write_posterior(run.path / "posterior" / f"{name}.nc", name, sure, clock=True)
        found += list(bouts(name, sure))
    write_bouts(run.path, found)


class Served:
    """`svae view RUN` while the block lasts."""

    def __init__(self, run, *arguments, **variables):
        self.run, line = run, command("view", run.path, "--no-browser", "--json", *arguments)
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(line, env=environment(**variables), text=True, **streams)
        self.told = json.loads("".join(iter(self.process.stdout.readline, "}\n")) + "}")
        self.url, self.port = self.told["url"], self.told["port"]
        self.token = self.url.rstrip("/").rsplit("/", 1)[1]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.errors = self.process.communicate(timeout=30)[1]

    def ask(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return answer.read()

    def tell(self, path, told):
        origin = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/json"}
        asked = urllib.request.Request(self.url + path, json.dumps(told).encode(), origin)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.loads(answer.read())

    def raw(self, request):
        """What a server says to bytes: all of it until it closes, falls silent, or has said enough."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as line:
            try:
                line.sendall(request)
                return _heard(line)
            except (ConnectionError, TimeoutError):
                return b""


def _heard(line):
    found, end = b"", time.monotonic() + 2
    line.settimeout(0.4)
    while time.monotonic() < end and len(found) < 2**16:
        try:
            part = line.recv(2**16)
        except TimeoutError:
            break
        if not part:
            break
        found += part
    return found


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    return made(tmp_path_factory.mktemp("view") / "images", "images")


@pytest.fixture(scope="session")
def served(images):
    with Served(images) as server:
        yield server
