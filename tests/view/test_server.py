"""The verb as people meet it: it tells its address, ends with Ctrl-C, and says in one sentence what it lacks."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from svae.runs import Run
from svae.view import _answers
from svae.view._session import Session
from svae.view._wire import KINDS
from tests.cli.processes import command, environment, svae
from tests.view.conftest import K, Served, T, made

WITHOUT = "import sys; sys.modules['uvicorn'] = None; from svae.cli import main; sys.exit(main())"


def test_without_the_extra_it_names_the_extra(images):
    line = [sys.executable, "-c", WITHOUT, "view", str(images.path)]
    done = subprocess.run(line, capture_output=True, text=True, env=environment())
    assert done.returncode == 2 and 'pip install "svae[view]"' in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(("port", "words"), [("99999", "65535"), (None, "cannot be used")])
def test_a_port_that_cannot_be_had_is_one_sentence(served, images, port, words):
    done = svae("view", images.path, "--no-browser", "--port", port or served.port)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1


def test_a_run_without_answers_is_refused(images, tmp_path):
    for name in ("provenance.json", "config.toml"):
        (tmp_path / name).write_bytes((images.path / name).read_bytes())
    done = svae("view", tmp_path, "--no-browser")
    assert done.returncode == 4 and "no answers yet" in done.stderr and done.stderr.count("\n") == 1


def test_answers_are_those_of_the_run(served, images):
    told = json.loads(served.ask("api/run"))
    assert [r["frames"] for r in told["recordings"]] == [T, T] and len(told["states"]) == K
    assert sum(s["usage"] for s in told["states"]) == pytest.approx(1) and told["states"][0]["median"] == 0.8
    assert json.loads(served.ask("api/bout?recording=0&frame=20&go=here")) == {"first": 16, "last": 24, "state": 2}
    assert json.loads(served.ask("api/bout?recording=0&frame=159&go=next")) is None


def test_what_another_viewer_wrote_meanwhile_is_kept(served, images):
    (images.path / "names.json").write_text('{"1": "from elsewhere"}')
    served.tell("api/name", {"state": 3, "name": "from here"})
    assert Run(images.path).names == {1: "from elsewhere", 3: "from here"}
    for k in (1, 3):
        told = served.tell("api/name", {"state": k, "name": ""})
    assert not any(s["name"] for s in told["states"]) and Run(images.path).names == {}


@pytest.mark.skipif(os.name != "posix", reason="the browser here is a shell script")
def test_the_browser_gets_the_address_by_a_page_that_only_its_user_can_read(images, tmp_path):
    """The words of a command can be seen by every user of the machine; the address must not be among them."""
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}.new && mv {seen}.new {seen}\n')
    browser.chmod(0o700)
    line = command("view", images.path, "--json")
    words = {"stdout": subprocess.PIPE, "text": True, "env": environment(BROWSER=str(browser))}
    with subprocess.Popen(line, **words) as process:
        told = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        for _ in range(300):
            if seen.exists():
                break
            time.sleep(0.1)
        asked = seen.read_text().strip()
        page = Path(asked.removeprefix("file://"))
        assert asked.startswith("file://") and told["url"] in page.read_text()
        assert page.parent.stat().st_mode & 0o777 == 0o700
        process.send_signal(signal.SIGINT)
    assert process.returncode == 0 and not page.exists()


@pytest.mark.parametrize("wait", [0.0, 3.0])
def test_it_ends_in_silence_while_programs_are_being_compiled(images, tmp_path, wait):
    with Served(images, JAX_COMPILATION_CACHE_DIR=str(tmp_path)) as server:
        server.ask("api/run")
        time.sleep(wait)
    assert server.process.returncode == 0 and server.errors == ""


def unpacked(answer):
    """The arrays of an answer, as the page reads them."""
    size = int.from_bytes(answer[:4], "little")
    entries, rest = json.loads(answer[4 : 4 + size])["arrays"], answer[4 + size :]
    kinds = {words: kind for kind, words in KINDS.items()}
    read = lambda e: np.frombuffer(rest, kinds[e["kind"]], int(np.prod(e["shape"])), e["at"])  # noqa: E731
    return {name: read(e).reshape(e["shape"]) for name, e in entries.items()}


def test_columns_are_traces_and_what_is_shown_is_what_was_recorded(tmp_path):
    run = made(tmp_path / "columns", "columns")
    session = Session(run)
    look, asked = _answers.source(session, {})["look"], {"recording": "1", "first": "5", "last": "9"}
    assert look["kind"] == "traces" and look["columns"] == (0, 1, 2)
    shown = unpacked(_answers.frames(session, asked))["frames"]
    assert np.array_equal(shown, run.load_data().sequences[1][5:9])
    found = unpacked(_answers.window(session, asked | {"bins": "100"}))
    assert np.array_equal(found["low"], run.posterior("walks-second").mean[5:9]) and found["start"].tolist() == [5, 8]
    assert found["time"].tolist() == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.9])
