import json
import os
import subprocess
import sys
import types

import pytest

from svae import cli, config


def svae(*arguments, **environment):
    command = [sys.executable, "-c", "import sys; from svae.cli import main; sys.exit(main())", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def processor_seconds(command):
    """Time of the processor, not of the clock: a busy machine must not fail the test."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def experiment(monkeypatch, run):
    """Put a module with this `run` in place of svae.experiments.demo."""
    monkeypatch.setitem(sys.modules, "svae.experiments", types.ModuleType("svae.experiments"))
    monkeypatch.setitem(sys.modules, "svae.experiments.demo", types.SimpleNamespace(run=run))


def test_help_is_quick_and_needs_no_jax():
    code = "import sys, svae.cli; svae.cli.main(['--help']); sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    assert min(processor_seconds([sys.executable, "-c", code]) for _ in range(5)) < 0.35


@pytest.mark.parametrize(
    "arguments", [["dmo"], ["demo", "mose"], ["demo", "--sed", "3"], ["paper"], ["demo", "--seed", "x"]]
)
def test_wrong_use_is_code_2_and_a_message(arguments, capsys):
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err


def test_typo_gets_a_suggestion(capsys):
    assert cli.main(["dmo"]) == 2
    assert 'mean "demo"' in capsys.readouterr().err


def test_experiment_gets_its_arguments_and_its_numbers_are_shown(monkeypatch, tmp_path, capsys):
    seen = {}

    def run(out, *, seed, progress):
        seen.update(out=out, seed=seed, steps=list(progress(iter([]), "fit")))
        return {"ari": 0.71234, "baselines": {"pca": 0.25}, "curve": [1, 2]}

    experiment(monkeypatch, run)
    assert cli.main(["demo", "mouse", "--out", str(tmp_path), "--seed", "7"]) == 0
    assert seen == {"out": tmp_path, "seed": 7, "steps": []}
    shown = capsys.readouterr().out
    assert "0.7123" in shown and "baselines.pca" in shown and "curve" not in shown


@pytest.mark.parametrize("arguments", [["demo"], ["demo", "mouse", "--out", "elsewhere"]])
def test_our_own_errors_are_one_sentence_and_code_2(monkeypatch, capsys, arguments):
    def run(out, *, seed, progress):
        raise config.ConfigError("states must be an integer")

    experiment(monkeypatch, run)
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == "svae: states must be an integer\n"


def test_other_errors_keep_their_traceback(monkeypatch):
    def run(out, *, seed, progress):
        raise ValueError("nobody foresaw this")

    experiment(monkeypatch, run)
    with pytest.raises(ValueError, match="nobody"):
        cli.main(["demo"])


def test_interrupt_is_130(monkeypatch, capsys):
    def run(out, *, seed, progress):
        raise KeyboardInterrupt

    experiment(monkeypatch, run)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "svae: stopped\n"


def test_doctor_tells_about_the_machine_and_uses_the_cache_of_the_user(tmp_path):
    done = svae("doctor", "--json", XDG_CACHE_HOME=str(tmp_path), JAX_PLATFORMS="cpu")
    findings = json.loads(done.stdout)
    assert done.returncode == 0 and findings["device_works"]
    if sys.platform == "linux":
        assert findings["cache"] == str(tmp_path / "svae" / "jax") and any((tmp_path / "svae" / "jax").iterdir())


def test_a_cache_that_the_user_chose_wins(tmp_path):
    done = svae("doctor", "--json", JAX_COMPILATION_CACHE_DIR=str(tmp_path), JAX_PLATFORMS="cpu")
    assert json.loads(done.stdout)["cache"] == str(tmp_path)
