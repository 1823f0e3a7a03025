"""A comparison from a run folder on the disk to tables, figures and words."""

import csv
import json
import shlex

import numpy as np
import pytest

from benchmarks import compare_study as simulated
from svae.cli import main
from svae.cli._examples import EXAMPLES
from svae.compare import examine
from svae.compare._measures import measures
from svae.compare._tables import per_animal
from svae.runs import Bout, Posterior
from svae.runs._names import joined
from svae.runs._posterior import bouts, write_bouts


def table(file):
    with open(file, newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """runs/walk: five animals in each group, two recordings of each."""
    path = tmp_path_factory.mktemp("study")
    simulated.study(path / "runs" / "walk", animals=5, length=90.0)
    return path


def answers(path, recordings):
    """A folder as `svae apply` leaves it: labels (T,) of each recording at 10 frames a second."""
    path.mkdir(parents=True)
    found = []
    for name, state in recordings.items():
        flat = np.zeros((len(state), 1))
        probability = np.ones((len(state), state.max() + 1))
        found += bouts(name, Posterior(np.arange(len(state)) / 10, state, probability, flat, flat, flat[:, 0]))
    write_bouts(path, found)
    return path


def labels(seed, length=400, K=4):
    rng = np.random.default_rng(seed)
    return np.repeat(rng.integers(0, K, length), rng.integers(1, 12, length))[:length]


def groups(path, rows):
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


# --- the whole ----------------------------------------------------------------------------------------------------


def test_the_example_writes_tables_figures_and_words(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main([*shlex.split(EXAMPLES["compare"])[1:], "--json"]) == 0
    told, out = json.loads(capsys.readouterr().out), folder / "runs/walk/compare/group"
    kinds = ("usage", "duration", "transitions")
    wanted = [f"{name}.{end}" for name in kinds for end in ("csv", "png", "pdf")]
    assert sorted(f.name for f in out.iterdir()) == sorted([*wanted, "animals.csv", "methods.txt", "summary.json"])
    assert told["groups"] == {"vehicle": 5, "drug": 5} and told["animals"] == 10 and told["recordings"] == 20
    assert told["exact"] and told["relabellings"] == 252 and told["smallest_p"] == pytest.approx(2 / 252)
    usage = {row["name"]: row for row in table(out / "usage.csv")}
    assert set(usage) == set(simulated.ACTIONS)
    assert float(usage["freeze"]["effect"]) < 0 < float(usage["rear"]["effect"])
    assert float(usage["freeze"]["high"]) < 0 and float(usage["freeze"]["mean_b"]) < float(usage["freeze"]["mean_a"])
    assert (out / "usage.png").stat().st_size > 20_000 and (out / "usage.pdf").read_bytes().startswith(b"%PDF")
    followed = next(r for r in told["tables"]["transitions"] if (r["name"], r["next_name"]) == ("scan", "rear"))
    assert followed["low"] > 0 and followed["g"] > 1


def test_the_methods_have_the_numbers_of_this_study(folder):
    text = examine(folder / "runs/walk", "group").methods
    for words in ("10 animals (vehicle n = 5, drug n = 5)", "20 recordings (0.5 h)", "all 252 relabellings", "0.0079"):
        assert words in text
    assert "8 for usage, 8 for duration" in text and "Hedges" in text and "None" not in text and "nan" not in text


def test_the_reference_is_the_group_that_others_are_compared_with(folder, capsys):
    first, other = (examine(folder / "runs/walk", "group", None, r) for r in (None, "drug"))
    assert first.study.groups == ("vehicle", "drug") and other.study.groups == ("drug", "vehicle")
    a, b = ({r["name"]: r for r in done.tables["usage"]} for done in (first, other))
    assert a["rear"]["effect"] == pytest.approx(-b["rear"]["effect"]) and a["rear"]["p"] == b["rear"]["p"]
    assert main(["compare", str(folder / "runs/walk"), "--reference", "drugg"]) == 2
    assert "--reference 'drugg' is no group of the column 'group'" in (said := capsys.readouterr().err)
    assert "did you mean 'drug'?" in said


def test_each_animal_is_one_row_behind_each_test(folder):
    done = examine(folder / "runs/walk", "group")
    rows = [row for row in per_animal(done.measures, done.study, done.names) if row["measure"] == "usage"]
    rows = [row for row in rows if row["name"] == "rear"]
    assert [row["animal"] for row in rows] == [f"{g}{i}" for g in "vd" for i in range(1, 6)]
    mean = np.mean([row["value"] for row in rows if row["group"] == "drug"])
    known = next(row for row in done.tables["usage"] if row["name"] == "rear")
    assert known["mean_b"] == pytest.approx(mean)


# --- the unit is the animal ---------------------------------------------------------------------------------------


def p_values(path, rows):
    done = examine(path, "group", groups(path / "groups.csv", rows))
    return {name: [(row["state"], row["p"], row["q"]) for row in rows] for name, rows in done.tables.items()}


def test_frames_and_recordings_are_not_the_unit(tmp_path):
    """Each frame twice, or each recording twice, is the same evidence."""
    animals = {f"m{i}": labels(i) for i in range(8)}
    rows = [["recording", "group"], *([name, "ab"[i // 4]] for i, name in enumerate(animals))]
    once = p_values(answers(tmp_path / "once", animals), rows)
    assert once["usage"] and once["duration"] and once["transitions"]
    twice = {name: np.repeat(state, 2) for name, state in animals.items()}
    assert p_values(answers(tmp_path / "frames", twice), rows) == once
    again = animals | {f"{name} again": state for name, state in animals.items()}
    pooled = [["recording", "animal", "group"]]
    pooled += [[name, name.split()[0], "ab"[i % 8 // 4]] for i, name in enumerate(again)]
    repeated = p_values(answers(tmp_path / "recordings", again), pooled)
    assert repeated["usage"] == once["usage"] and repeated["duration"] == once["duration"]


def test_usage_duration_and_transitions_of_an_animal_are_what_one_counts_by_hand():
    lengths = [(0, 4), (1, 2), (0, 3), (1, 8), (2, 3), (0, 2), (1, 4), (0, 3), (1, 4), (0, 3), (1, 4), (0, 10)]
    edges = np.cumsum([0, *(n for _, n in lengths)]).astype(float)
    found = [Bout("r", k, a, b, 1.0, "frames") for (k, _), a, b in zip(lengths, edges[:-1], edges[1:], strict=True)]
    usage, duration, transitions = measures(found, {"r": 0}, 1)
    assert usage.values[0] == pytest.approx(100 * np.array([25, 22, 3]) / 50)
    logs = [np.nan, np.log([2, 8, 4, 4, 4]).mean(), np.nan]  # only four whole bouts of 0, and one of 2
    assert duration.values[0] == pytest.approx(logs, nan_ok=True) and duration.unit == "frames"
    assert dict(zip(transitions.keys, transitions.values[0], strict=True)) == pytest.approx(
        {(0, 1): 100.0, (1, 0): 80.0, (1, 2): 20.0}
    )


def test_merged_states_are_one_and_their_bouts_meet(folder, tmp_path):
    found = [Bout("r", k, float(t), t + 1.0, 1.0) for t, k in enumerate([0, 2, 1, 2, 2])]
    assert [(b.state, b.start, b.stop) for b in joined(found, {2: 0})] == [(0, 0, 2), (1, 2, 3), (0, 3, 5)]
    run = simulated.study(tmp_path / "run", animals=3, sessions=1, length=60.0)
    names = json.loads((run.path / "names.json").read_text())
    (run.path / "names.json").write_text(json.dumps(names | {"merged": {"1": 0}}))
    done = examine(run.path, "group")
    assert {row["name"] for row in done.tables["usage"]} == set(simulated.ACTIONS) - {"run"}


def test_more_than_two_groups_have_a_test_of_all_and_of_each_pair(tmp_path):
    path = answers(tmp_path / "run", {f"m{i}": labels(i, K=3 + (i >= 8)) for i in range(12)})
    rows = [["recording", "group"], *([f"m{i}", "abc"[i // 4]] for i in range(12))]
    done = examine(path, "group", groups(tmp_path / "g.csv", rows))
    usage = [row for row in done.tables["usage"] if row["state"] == 3]
    assert [(r["group_a"], r["group_b"]) for r in usage] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [r["differs"] for r in usage] == [False, False, False] and len({r["p_all"] for r in usage}) == 1
    assert usage[0]["p"] == 1 and usage[1]["p"] == pytest.approx(2 / 70) and usage[1]["low"] > 0
    assert usage[0]["p_all"] == pytest.approx(3 * 70 / 34_650), "any group may have them, the rest in any way"
    assert usage[1]["q"] == pytest.approx(min(1, 3 * usage[1]["p"] / 2 * 4 / sum(chosen(done)))), "in state 3, of 4"
    assert any("can pass" in text for text in done.warnings), "70 relabellings of a pair against 12 tests"
    assert "34,650 relabellings" in done.methods and "Welch, 1951" in done.methods


def chosen(done):
    """Whether each state passes the test of all groups."""
    return [row["q_all"] <= 0.05 for row in done.tables["usage"][::3]]


# --- what people write --------------------------------------------------------------------------------------------


def test_a_missing_table_is_told_with_what_to_do_and_the_template_is_filled_in(tmp_path, capsys):
    path = answers(tmp_path / "run", {f"m, {i}": labels(i) for i in range(6)})
    assert main(["compare", str(path), "--by", "diet"]) == 3
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "groups.csv is missing" in told and "--template" in told
    assert main(["compare", str(path), "--by", "diet", "--template", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recordings"] == 6
    rows = table(path / "groups.csv")
    assert [row["recording"] for row in rows] == [f"m, {i}" for i in range(6)] and list(rows[0])[2] == "diet"
    assert main(["compare", str(path), "--by", "diet", "--template"]) == 3, "what people filled in is not overwritten"
    assert "exists already" in capsys.readouterr().err
    text = (path / "groups.csv").read_text().splitlines()
    filled = [text[0], *(line + ("high" if i % 2 else "low") for i, line in enumerate(text[1:]))]
    (path / "groups.csv").write_text("\ufeff" + "\r\n".join(filled), encoding="utf-8")  # as a spreadsheet saves it
    assert main(["compare", str(path), "--by", "diet"]) == 0
    shown = capsys.readouterr().out
    assert "high" in shown and "Hedges' g" in shown and "however large its effect" in shown
    assert json.loads((path / "compare/diet/summary.json").read_text())["groups"] == {"low": 3, "high": 3}


SIX = [[f"m{i}", f"a{i}", "xy"[i // 3]] for i in range(6)]
HEAD = ["recording", "animal", "group"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([HEAD, *SIX[:5], ["m5", "a5", ""]], "'y' has 2 animals"),
        ([HEAD, *SIX[:5], ["m5", "a4", "y"]], "'y' has 2 animals"),  # two recordings of one animal are one
        ([HEAD, *SIX[:5]], "no row for the recording 'm5'"),
        ([HEAD, *SIX[:5], ["m5", "a0", "y"]], "two groups"),
        ([HEAD, *SIX, SIX[0]], "has a row already"),
        ([HEAD, *([*row[:2], "x"] for row in SIX)], "only the group 'x'"),
        ([["recording", "grup"], *([row[0], row[2]] for row in SIX)], "did you mean 'grup'?"),
        ([HEAD, *SIX[:5], ["m5", "a5"]], "line 7, has 2 cells"),
        ([["file", "group"]], "no column 'recording'"),
        ([], "has nothing"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_sentence_and_code_3(rows, words, tmp_path, capsys):
    path = answers(tmp_path / "run", {f"m{i}": labels(i, 60) for i in range(6)})
    groups(path / "groups.csv", rows)
    assert main(["compare", str(path)]) == 3
    told = capsys.readouterr().err
    assert told.startswith("svae: ") and told.count("\n") == 1 and words in told
    assert not (path / "compare").exists()


def test_a_state_that_is_nearly_all_there_is_leaves_little_to_test(tmp_path, capsys):
    rare = {f"m{i}": np.r_[np.zeros(990, int), 1, np.zeros(9, int)] for i in range(6)}
    path = answers(tmp_path / "run", rare)
    groups(path / "groups.csv", [HEAD, *SIX])
    assert main(["compare", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tests"] == {"usage": 1, "duration": 0, "transitions": 0} and told["tables"]["usage"][0]["p"] == 1
    assert (path / "compare/group/usage.png").exists() and not (path / "compare/group/transitions.png").exists()


def test_a_folder_without_answers_is_code_4_and_one_state_is_code_3(tmp_path, capsys):
    assert main(["compare", str(tmp_path)]) == 4 and "has no bouts.csv" in capsys.readouterr().err
    path = answers(tmp_path / "run", {f"m{i}": np.zeros(50, int) for i in range(6)})
    groups(path / "groups.csv", [HEAD, *SIX])
    assert main(["compare", str(path)]) == 3 and "one state" in capsys.readouterr().err
