import json
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest

from svae import cli, config
from svae.cli._errors import CODES, MEANINGS
from svae.cli._examples import EXAMPLES
from tests.cli.processes import command, environment, svae


def experiment(monkeypatch, run):
    """Put a module with this `run` in place of svae.experiments.demo."""
    monkeypatch.setitem(sys.modules, "svae.experiments.demo", types.SimpleNamespace(run=run))


def test_help_needs_neither_jax_nor_numpy():
    code = "import sys, svae.cli; svae.cli.main(['--help']); sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=environment())


def test_help_of_every_verb_ends_with_its_example(capsys):
    for name, example in EXAMPLES.items():
        assert cli.main([name, "--help"]) == 0
        assert example in " ".join(capsys.readouterr().out.split())  # at whatever width


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["dmo"], 'Did you mean "demo"?'),
        (["demo", "mose"], 'Did you mean "mouse"?'),
        (["demo", "--sed", "3"], "Did you mean --seed?"),
        (["paper"], "paper needs NAME"),
        (["forecast", "run", "y.npy"], "forecast needs --horizon; see svae forecast --help"),
        (["forecast", "run", "y.npy", "--horizon"], "--horizon requires an argument"),
        (["demo", "--seed", "x"], "unable to convert"),
        (["fit"], "fit needs the data"),
        (["fit", "a.csv", "b.csv"], "Quote a pattern"),
        (["fit", "y.npy", "--model", "sdls"], "did you mean 'slds'?"),
        (["fit", "y.npy", "--set", "latentdim=3"], "did you mean 'latent_dim'?"),
        (["fit", "y.npy", "--set", "network=cov"], "did you mean 'conv'?"),
        (["fit", "y.npy", "--set", "states"], "name=value"),
        (["fit", "y.npy", "--max-time", "3frames"], "30min"),
        (["fit", "y.npy", "--config", "no.toml"], "no.toml could not be read"),
        (["fit", "--resume"], "--out RUN"),
        (["export", "run", "--to", "cvs"], 'Did you mean "csv"?'),
    ],
)
def test_wrong_use_is_code_2_and_one_line_with_a_hint(arguments, hint, capsys):
    assert cli.main(arguments) == 2
    told = capsys.readouterr().err
    assert told.startswith("svae: ") and told.count("\n") == 1 and hint in told


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["show", "absent.npy"], 3),
        (["check", "broken.npy"], 3),
        (["fit", "broken.npy"], 3),
        (["fit", "y.npy", "--target-duration", "400ms"], 2),
        (["fit", "y.npy", "--target-duration", "400"], 2),
        (["fit", "y.npy", "--out", "occupied", "--steps", "1"], 4),
        (["fit", "--resume", "--out", "absent"], 4),
        (["watch", "absent"], 4),
        (["apply", "absent", "y.npy"], 4),
        (["export", "absent", "--to", "csv"], 4),
        (["rerun", "absent"], 4),
        (["sample", "absent"], 4),
    ],
)
def test_each_kind_of_mistake_has_its_code_and_json_tells_it(arguments, code, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", np.random.default_rng(0).normal(size=(50, 3)))
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY and no more")
    (tmp_path / "occupied").mkdir()
    (tmp_path / "occupied" / "thesis.txt").write_text("all of it")
    before = sorted(tmp_path.rglob("*"))
    assert cli.main([*arguments, "--json"]) == code
    shown = capsys.readouterr()
    assert shown.err.startswith("svae: ") and shown.err.count("\n") == 1
    assert json.loads(shown.out) == {"error": shown.err.removeprefix("svae: ").strip(), "exit_code": code}
    after = [path for path in sorted(tmp_path.rglob("*")) if path.name != "lock"]
    assert after == before, "nothing half written"


def test_every_code_has_its_meaning():
    assert set(CODES.values()) | {0, 1, 130, 143} == set(MEANINGS)


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
    assert cli.main(["demo", "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["curve"] == [1, 2]


def test_our_own_errors_are_one_sentence(monkeypatch, capsys):
    def run(out, *, seed, progress):
        raise config.ConfigError("states must be an integer")

    experiment(monkeypatch, run)
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err == "svae: states must be an integer\n"


def test_warnings_are_one_line_without_a_place_in_our_source(monkeypatch, capsys):
    def run(out, *, seed, progress):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("the clock\nruns backwards", stacklevel=2)
        return {}

    experiment(monkeypatch, run)
    assert cli.main(["demo"]) == 0
    assert capsys.readouterr().err == "svae: UserWarning: the clock runs backwards\n"


def test_other_errors_keep_their_traceback(monkeypatch):
    def run(out, *, seed, progress):
        raise ValueError("nobody foresaw this")

    experiment(monkeypatch, run)
    with pytest.raises(ValueError, match="nobody"):
        cli.main(["demo"])


def test_a_reader_that_leaves_is_no_error():
    """As in  svae --help | true."""
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment()}
    with subprocess.Popen(command("--help"), **quiet) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert (said, process.returncode) == ("", 0)


def test_interrupt_is_130(monkeypatch, capsys):
    def run(out, *, seed, progress):
        raise KeyboardInterrupt

    experiment(monkeypatch, run)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err.startswith("svae: stopped by Ctrl-C")


def test_doctor_tells_about_the_machine_and_uses_the_cache_of_the_user(tmp_path):
    done = svae("doctor", "--json", JAX_COMPILATION_CACHE_DIR=None, XDG_CACHE_HOME=str(tmp_path))
    findings = json.loads(done.stdout)
    assert done.returncode == 0 and findings["device_works"]
    if sys.platform == "linux":
        assert findings["cache"] == str(tmp_path / "svae" / "jax") and any((tmp_path / "svae" / "jax").iterdir())


def test_a_cache_that_the_user_chose_wins(tmp_path):
    done = svae("doctor", "--json", JAX_COMPILATION_CACHE_DIR=str(tmp_path))
    assert json.loads(done.stdout)["cache"] == str(tmp_path)
