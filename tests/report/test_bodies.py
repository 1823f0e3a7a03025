"""Runs of keypoints: what their report says of bodies, tracker faults and skeletons, on walks whose truth is known."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from svae import runs
from svae.cli import main
from svae.cli.checking import _entries, _points, _short
from svae.config import Config
from svae.data import DataError, find_preprocess, load, recordings
from svae.experiments._figures import style
from svae.fitting.prepare import said_of_wild
from svae.model import make
from svae.report import report
from svae.report._bodies import _upwards, bodies, course, in_words, numbers
from svae.report._drawings import _of_states
from svae.report._dynamics import conditionals
from svae.report._encode import write_movie
from svae.report._look import find_look, paint
from svae.report._material import gather
from svae.report._motion import centre, middle, turned, usual
from svae.report._pose import _free_side
from svae.report._skeleton import keep, sides
from svae.report._video import crop, filmed
from svae.report._wild import in_words as of_wild
from svae.report._wild import wild, wild_figure
from svae.report._words import warnings
from svae.runs import Run, RunError
from svae.runs._apply import write_answers
from svae.runs._posterior import bouts, write_bouts, write_posterior
from svae.runs._quality import quality, read_quality, suspects, write_quality
from svae.store import save

FPS, T, BOUT = 25.0, 600, 25
NAMES = ("nose", "earl", "earr", "spine", "hipl", "hipr", "tailbase")
# x along the body, y to its right where y points down, as in a picture
BODY = np.array([[30, 0], [20, -8], [20, 8], [0, 0], [-18, -9], [-18, 9], [-30, 0]], float)
SPEED, TURN = 120.0, 90.0  # pixels and degrees per second, of the states that move and turn


def walk():
    """Points (T, P, 2) and states: 0 stands, 1 walks straight, 2 walks and turns right, 3 stands and loses its nose."""
    rng, state = np.random.default_rng(0), np.arange(T) // BOUT % 4
    heading = np.radians(np.cumsum(np.where(state == 2, TURN / FPS, 0)))
    ahead = np.stack([np.cos(heading), np.sin(heading)], -1)
    place = 300 + np.cumsum(np.where(np.isin(state, (1, 2)), SPEED / FPS, 0)[:, None] * ahead, 0)
    aside = np.stack([-ahead[:, 1], ahead[:, 0]], -1)
    xy = place[:, None] + BODY[:, :1] * ahead[:, None] + BODY[:, 1:] * aside[:, None]
    return xy + 0.2 * rng.normal(size=xy.shape), state.astype(np.int32)


def as_deeplabcut(file, xy, trust):
    P = xy.shape[1]
    rows = [["scorer"] + ["net"] * 3 * P, ["bodyparts"] + [n for n in NAMES for _ in range(3)]]
    rows += [["coords"] + ["x", "y", "likelihood"] * P]
    table = np.concatenate([xy, trust[..., None]], -1).reshape(len(xy), -1)
    rows += [[str(t), *map(repr, map(float, row))] for t, row in enumerate(table)]
    file.write_text("\n".join(",".join(row) for row in rows) + "\n")


@pytest.fixture(scope="session")
def walked(tmp_path_factory):
    """A run whose states are the true ones, with the model that a fit begins with."""
    folder = tmp_path_factory.mktemp("bodies")
    xy, state = walk()
    trust = np.full(xy.shape[:2], 0.98)
    trust[(state == 3) & (np.arange(T) % 3 > 0), 0] = 0.05
    as_deeplabcut(folder / "mouse1DLC_net.csv", xy, trust)
    data = load(folder / "mouse1DLC_net.csv", fps=FPS)
    config = Config(model="slds", states=4, latent_dim=2, network="affine", missing=True)
    source = {"path": str(folder / "mouse1DLC_net.csv"), "fps": FPS}
    run = runs.start(folder / "run", data, config, source=source)
    before = find_preprocess(data, config)
    model = make(before.shape(tuple(data.sequences[0].shape[1:])), config, preprocess=before)
    save(model, run.path / "model")
    list(write_answers(model, data, run.path))
    name = run.recordings()[0]
    sure = run.posterior(name)._replace(state=state, probability=np.eye(4, dtype=np.float32)[state])
    write_posterior(run.path / "posterior" / f"{name}.nc", name, sure, clock=True)
    write_bouts(run.path, list(bouts(name, sure)))
    write_quality(run.path, {"": quality(data.sequences[0], state, 4, before.keep)})
    return run


# --- faults of the tracker ----------------------------------------------------------------------------------------


def test_missing_share_and_confidence_of_every_state(walked):
    found, (_, state) = walked.quality(), walk()
    lost = (state == 3) & (np.arange(T) % 3 > 0)
    assert found.share_incomplete == pytest.approx([0, 0, 0, lost.sum() / (state == 3).sum()], abs=1e-5)
    assert found.share_missing[3] == pytest.approx(lost.sum() / (state == 3).sum() / len(NAMES), abs=1e-5)
    assert found.mean_confidence[:3] == pytest.approx(0.98, abs=1e-5)
    expected = 0.98 - 0.93 * lost.sum() / (state == 3).sum() / len(NAMES)
    assert found.mean_confidence[3] == pytest.approx(expected, abs=1e-5)
    assert suspects(found) == [3]


def test_a_state_of_tracking_errors_has_a_warning_in_words(walked):
    said = " ".join(warnings(gather(walked)))
    assert re.search(r"State 3 may be a fault of the tracker, not an action: 6\d % of its frames have a missing", said)
    assert "State 1 may" not in said and "0 % of all other frames" in said


def test_the_answers_say_how_each_state_was_observed(walked, tmp_path):
    """`apply` and `fit` write them; merged states are added; a damaged table is refused."""
    runs.apply(walked.model(), walked.load_data(), tmp_path / "answers")
    found, path = read_quality(tmp_path / "answers"), walked.load_data().sequences[0]
    assert found.frames.sum() == T
    assert found.incomplete.sum() == pytest.approx(np.isnan(path[:]).any((1, 2)).sum(), abs=1e-3)
    (tmp_path / "answers" / "states.csv").write_text("state,frames\n0,x\n")
    with pytest.raises(RunError, match=r"states\.csv is damaged"):
        read_quality(tmp_path / "answers")


# --- skeleton -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("earl", "earr", "tail", "nose"), ("left", "right", "", "")),
        (("Front Paw R", "Front Paw L", "Snout"), ("right", "left", "")),
        (("left_ear", "right_ear", "tail_base"), ("left", "right", "")),
        (("wingL", "wingR", "forelegL4", "forelegR4", "thorax"), ("left", "right", "left", "right", "")),
        (("Forehand-Left", "Forehand-Right", "Tailroot"), ("left", "right", "")),
        (("0", "1", "2"), ("", "", "")),
    ],
)
def test_left_and_right_are_known_by_name(names, expected):
    assert sides(names) == expected


def test_a_skeleton_is_guessed_found_beside_the_data_or_said(walked, tmp_path):
    found = bodies(gather(walked)).skeleton
    assert "guessed" in found.source and len(found.edges) == len(NAMES) - 1
    assert (found.names[found.nose], found.names[found.tail]) == ("nose", "tailbase")
    project = Path(walked.provenance()["source"]["path"]).parent / "config.yaml"
    project.write_text("Task: walk\nskeleton:\n- - nose\n  - spine\n- - spine\n  - tailbase\nalphavalue: 0.7\n")
    try:
        found = bodies(gather(walked)).skeleton
        assert found.edges == ((0, 3), (3, 6)) and "config.yaml" in found.source
    finally:
        project.unlink()
    keep(walked, "nose-earl, nose-earr", NAMES)
    try:
        found = bodies(gather(walked)).skeleton
        assert found.edges == ((0, 1), (0, 2)) and "--skeleton" in found.source
    finally:
        (walked.path / "skeleton.json").unlink()
    with pytest.raises(DataError, match="'beak', which is no point of this run; it has nose, earl"):
        keep(walked, "beak-spine", NAMES)


def test_a_skeleton_of_a_file_is_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    xy, _ = walk()
    with h5py.File(tmp_path / "analysis.h5", "w") as file:
        file["tracks"] = np.moveaxis(xy, 0, -1).swapaxes(0, 1)[None]
        file["node_names"] = [n.encode() for n in NAMES]
        file["track_names"], file["track_occupancy"] = [b"one"], np.ones((T, 1))
        file["edge_inds"] = np.array([[0, 3], [3, 6], [6, 99]])
    assert load(tmp_path / "analysis.h5").sequences[0].edges == ((0, 3), (3, 6))


def test_left_is_light_right_is_dark_and_the_nose_is_a_ring(walked):
    material = gather(walked)
    look = find_look(material)
    ink = (0, 120, 178)
    picture = paint(look, np.asarray(material.seen.sequences[0][:2]), 0, 240, ink).reshape(-1, 3).astype(int)
    has = lambda colour: (np.abs(picture - colour).sum(1) < 12).sum()  # noqa: E731
    light = [round(c + (255 - c) * 0.55) for c in ink]
    dark = [round(c * 0.58) for c in ink]
    assert has(light) > 50 and has(dark) > 50 and has(ink) > 50


# --- movement -----------------------------------------------------------------------------------------------------


def test_speed_turning_and_length_are_those_of_the_walk(walked):
    material = gather(walked)
    found = bodies(material)
    assert found.unit == pytest.approx(60, rel=0.01) and not found.upwards
    stands, straight, turns = (numbers(material, found, k) for k in range(3))
    assert straight.speed == pytest.approx(SPEED / 60, rel=0.03) and turns.speed == pytest.approx(SPEED / 60, rel=0.05)
    assert turns.turning == pytest.approx(TURN, rel=0.05) and abs(straight.turning) < 5 and stands.speed < 0.1
    assert turns.length == pytest.approx(1, rel=0.02)
    assert "turns right by" in in_words(material, found, 2) and "stays in place" in in_words(material, found, 0)


def test_the_median_course_is_the_movement_seen_from_the_onset(walked):
    material = gather(walked)
    found = bodies(material)
    done = course(material, found, 1)
    median, low, high = middle(done.poses)
    last = len(done.lags) - 1
    # the first frame of a walk is one step ahead of the frame before it
    expected = BODY + np.array([SPEED / FPS * done.lags[last], 0])
    assert np.abs(median[last] - expected).max() < 3 and (high - low)[last].max() < 3
    assert turned(np.array([[0.0, 2.0]]), np.pi / 2) == pytest.approx(np.array([[2.0, 0.0]]), abs=1e-12)


def test_examples_go_like_the_median_and_a_wild_point_moves_no_path():
    rng = np.random.default_rng(0)
    poses = BODY + np.arange(8)[:, None, None] * [3.0, 0.0] + rng.normal(size=(6, 8, 7, 2))
    poses[2] -= np.arange(8)[:, None, None] * [3.0, 0.0]  # stands where the others walk
    poses[4] = np.nan
    assert set(usual(poses)[:4]) == {0, 1, 3, 5} and list(usual(poses)[4:]) == [2, 4]
    poses[0, 3, 1] += 500
    path = centre(poses)[0, :, 0]
    assert np.linalg.norm(np.diff(path, axis=0), axis=1).max() < 10 and np.isnan(centre(poses)[4]).all()


def test_left_points_are_on_the_left_whichever_way_y_points(walked):
    material = gather(walked)
    posture = np.array(material.model.preprocess.body)
    flipped = [[x, -y] for x, y in posture.tolist()]
    names = sides(NAMES)
    assert not _upwards(names, posture, 2) and _upwards(names, np.array(flipped), 2) and _upwards(("",) * 7, posture, 3)


def test_the_name_of_a_point_stands_where_no_line_leaves_it():
    xy = np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (1, 1)], float)
    edges = ((0, 1), (0, 2), (0, 3))
    np.testing.assert_allclose(_free_side(edges, xy, 0), [0, -1], atol=1e-12)  # lines go right, up and left
    np.testing.assert_allclose(_free_side(edges, xy, 1), [1, 0], atol=1e-12)  # away from its only line
    np.testing.assert_allclose(_free_side(edges, xy, 4), [0, 1])  # above, without a line


def test_figures_of_states_name_their_points_and_fold_the_dynamics(walked):
    material = gather(walked)
    found, look = bodies(material), find_look(material)
    with style():
        drawn = {d.name: d for d in _of_states(material, look, conditionals(material), found, None)}
    assert {mark.name for mark in drawn["body"].marks} == set(NAMES)
    assert {mark.name for mark in drawn["state-01"].marks} == set(NAMES)
    assert all(0 <= m.left <= 1 and 0 <= m.top <= 1 for m in drawn["state-01"].marks)
    assert "body lengths/s" in drawn["state-01"].words and "lack a point" in drawn["state-03"].words
    folded = drawn["dynamics-01"]
    assert folded.folded.startswith("Dynamics of the latent")
    labels = [axes.get_xlabel() for axes in folded.figure.axes]
    assert labels[0] == "real part" and labels[1].startswith("latent direction 1")


def test_the_page_has_names_on_hover_movies_and_what_could_not_be_computed(walked):
    text = report(walked).page.read_text(encoding="utf-8")
    assert text.count('data-name="earl"') >= 5 and text.count("<video") == 4 and "media-src data:" in text
    assert text.count("<details><summary>Dynamics") == 4
    assert "Agreement between restarts is not known: the fit had one start." in text
    assert "A comparison with plain models is not there: the run has no held-out bound" in text
    assert text.count("may be a fault of the tracker") == 2  # in the summary, and at the state itself


def test_clips_of_the_real_video_show_the_animal_with_its_heading_up(walked, tmp_path):
    pytest.importorskip("av")
    xy, _ = walk()
    lengths = np.arange(640)

    def picture(t):
        image = np.full((640, 640, 3), 30, np.uint8)
        for (x, y), level in ((xy[t, 0], 250), (xy[t, 6], 140)):
            near = (np.abs(lengths - y)[:, None] < 5) & (np.abs(lengths - x)[None] < 5)
            image[near] = level
        return image

    inside = np.flatnonzero((xy > 10).all((1, 2)) & (xy < 630).all((1, 2)))
    last = int(inside[-1]) + 1 if len(inside) == inside[-1] + 1 else 200
    write_movie(tmp_path / "mouse1.mp4", map(picture, range(T)), FPS)
    material = gather(walked)
    found, video = bodies(material), filmed(material, str(tmp_path))
    bout = next(s for s in material.stretches if s.state == 1)
    assert bout.last < last
    shown = crop(video, found, bout, bout.first + 10).astype(int)
    nose, tail = np.argwhere(shown > 200).mean(0), np.argwhere((shown > 110) & (shown < 170)).mean(0)
    assert nose[0] < tail[0] - 50 and abs(nose[1] - tail[1]) < 12  # the nose above the tail
    (tmp_path / "other").mkdir()
    (tmp_path / "mouse1.mp4").rename(tmp_path / "other" / "rat.mp4")
    (tmp_path / "other" / "dog.mp4").write_bytes(b"")
    with pytest.raises(DataError, match=r"no video of .* has a name with which one of the recordings begins"):
        filmed(material, str(tmp_path / "other"))


def test_merged_states_are_observed_as_one(walked, tmp_path):
    before = walked.quality()
    (walked.path / "names.json").write_text(json.dumps({"merged": {"3": 0}}))
    try:
        merged = Run(walked.path).quality()
        assert merged.frames.tolist() == [before.frames[0] + before.frames[3], before.frames[1], before.frames[2], 0]
        assert merged.incomplete[0] == pytest.approx(before.incomplete[3])
    finally:
        (walked.path / "names.json").unlink()


def test_points_far_from_the_body_are_shown_before_and_after(walked):
    """A nose at another place in two frames, and an ear in one: each is counted, and shown once."""
    material = gather(walked)
    body = bodies(material)
    points = body.points[0].copy()
    points[[100, 104], 0], points[300, 2] = points[[100, 104], 0] + 400, points[300, 2] + [60, 0]
    before, there = material.model.preprocess, body._replace(points=[points])
    found = wild(before, there)
    T, P = points.shape[:2]
    np.testing.assert_allclose(found.shares * T, np.eye(P)[0] * 2 + np.eye(P)[2])
    assert [f.t for f in found.frames] in ([100, 300], [104, 300])  # 104 is too near to 100
    assert found.missing[0] > 0 and (found.missing[1:] == 0).all()
    with style():
        made = wild_figure(there, found, ["walk"], FPS)
    assert len([axes for part in made.subfigs for axes in part.axes]) == 2 * 2 + 1
    assert f"{100 * 3 / (T * P):.2g} % of all" in of_wild(found)
    assert not wild(before, body).frames


def test_check_names_recordings_and_entries_whatever_their_letters(tmp_path, capsys):
    y = np.random.default_rng(0).normal(size=(40, 2)).cumsum(0)
    file = tmp_path / "走る $x_1.csv"
    np.savetxt(file, y, delimiter=",", header="speed $,angle of the left leg", comments="")
    assert main(["check", str(file), "--figure", str(tmp_path / "a.png")]) == 0 and (tmp_path / "a.png").exists()
    assert "principal components, one for each latent dimension" in capsys.readouterr().out
    assert _entries(load(file), (2,)) == ["speed $", "angle of the left leg"]
    assert _entries(recordings(y), (2, 3)) == [f"entry {i}" for i in range(6)]
    assert _short("angle of the left leg") == "angle of the …" and _short("a$") == r"a\$"


def test_check_draws_them_without_a_run(walked):
    before, xy = gather(walked).model.preprocess, walk()[0]
    strayed = xy.copy()
    strayed[100, 0] += 400
    one, none = recordings({"walk": strayed}, fps=FPS), recordings({"walk": xy}, fps=FPS)
    with style():
        assert _points(one, before) is not None and _points(none, before) is None
    (said,) = said_of_wild(one, dataclasses.replace(before, limits=(1.0,) * len(before.limits)))
    assert "lie too far from the rest of the body" in said and said_of_wild(none, before) == []
