"""The page, its figures and the movies of one small run, read back as a browser or a player would."""

import base64
import contextlib
import io
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from svae.cli import main
from svae.experiments._figures import style
from svae.fitting.scree import scree_of, unknown
from svae.report import movies, report
from svae.report._drawings import _about, _of_components, _of_trust, drawings
from svae.report._dynamics import conditionals
from svae.report._material import gather
from svae.report._page import paragraphs
from svae.report._palette import palette
from svae.report._report import page_text
from svae.report._training import training
from svae.report._words import summary, warnings
from svae.runs import Run, RunError, ranking, verdict, words
from svae.runs._scree import keep_scree
from tests.report.conftest import FPS, answered, line

OPEN = {"meta", "img", "br", "hr", "link"}  # tags without an end


class Page(HTMLParser):
    """All tags, and whether each that opens is closed in turn."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.found = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in OPEN:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def images(page):
    return [attributes for tag, attributes in page.found if tag == "img"]


def told(*arguments):
    """What a verb prints with --json."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(out.getvalue())


@pytest.fixture(scope="module")
def made(run):
    (run.path / "names.json").write_text(json.dumps({"0": "rest <b> $x$", "1": "走る", "2": "turn"}))
    return told("report", run.path)


def test_the_page_parses_and_asks_nobody(made):
    text = Path(made["page"]).read_text(encoding="utf-8")
    page = Page(text)
    assert not page.stack and made["bytes"] < 5_000_000
    words = re.sub(r"base64,[A-Za-z0-9+/=]*", "", text)
    assert not re.search(r"//|url\(|@import|<script|<link|<b> ", words)
    assert all(link.startswith("#") for _, a in page.found for name, link in a.items() if name == "href")
    anchors = {a.get("id") for tag, a in page.found if tag == "section"}
    links, places = {a["href"] for tag, a in page.found if tag == "a"}, {a["id"] for _, a in page.found if "id" in a}
    assert {"#" + anchor for anchor in anchors} <= links <= {"#" + place for place in places}
    assert {"summary", "training", "trust", "ethogram", "states", "latents", "forecast", "model", "glossary"} <= anchors


def test_every_figure_is_in_the_page_and_in_two_files(made):
    shown = images(Page(Path(made["page"]).read_text(encoding="utf-8")))
    figures = Path(made["page"]).parent / "figures"
    names = {file.stem for file in figures.iterdir()}
    assert len(shown) == len(names) == made["figures"] and all(image["alt"] for image in shown)
    assert {"usage", "state-00", "transitions", "similarity", "forecast"} <= names
    for image in shown:
        assert base64.b64decode(image["src"].removeprefix("data:image/webp;base64,"))[8:12] == b"WEBP"
    for name in names:
        assert (figures / f"{name}.png").read_bytes()[1:4] == b"PNG"
        assert (figures / f"{name}.pdf").read_bytes()[:4] == b"%PDF"


def test_where_the_recordings_are_gone_the_page_says_so(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    known = json.loads((copy / "provenance.json").read_text())
    known["source"]["path"] = str(tmp_path / "gone.npz")
    (copy / "provenance.json").write_text(json.dumps(known))
    material = gather(Run(copy))
    with style():
        drawn = list(drawings(material))
    text = page_text(material, drawn, [b""] * len(drawn))
    names = {d.name for d in drawn}
    assert "forecast" not in names and "latents" in names and "gone.npz" in text
    with pytest.raises(RunError, match=r"movies need the recordings again: .*gone\.npz"):
        next(movies(Run(copy)))


def test_what_components_hold_is_drawn_or_why_not_is_said(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "copy")
    copy = Run(tmp_path / "copy")
    page = lambda drawn: page_text(gather(copy), drawn, [b""] * len(drawn))  # noqa: E731
    drawn = lambda: list(_of_components(gather(copy)))  # noqa: E731
    assert drawn() == [] and "hold is not known: the run is of an older version" in page([])
    keep_scree(copy.path, scree_of(np.array([0.7, 0.95, 1.0]), 2))
    with style():
        (found,) = drawn()
    assert (found.name, found.section) == ("scree", "latents") and "first 2 principal components" in page([found])
    assert "a fit takes 3" in found.words and "hold is not known" not in page([found])  # of 3 columns all
    keep_scree(copy.path, unknown("the recognition network is your own"))
    assert drawn() == [] and "is not known: the recognition network is your own." in page([])


def test_states_that_people_merged_are_one(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "copy")
    before = gather(Run(tmp_path / "copy"))
    (tmp_path / "copy" / "names.json").write_text(json.dumps({"1": "walk", "merged": {"2": 1}}))
    material = gather(Run(tmp_path / "copy"))
    np.testing.assert_allclose(material.usage, [before.usage[0], before.usage[1] + before.usage[2], 0])
    assert 2 not in material.states and 2 not in {s.state for s in material.stretches} and material.most == 2
    assert "1 more count as another one" in " ".join(summary(material))
    assert _about(material, conditionals(material), 1).endswith("counts state 2 too")


def test_a_run_without_answers_is_refused(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "copy")
    (tmp_path / "copy" / "bouts.csv").unlink()
    with pytest.raises(RunError, match="no answers yet"):
        report(Run(tmp_path / "copy"))


def test_movies_open_with_the_right_number_of_frames(run):
    import av

    found = told("movies", run.path, "--recording", run.recordings()[1], "--length", "2.5s")["movies"]
    assert len(found) == len(gather(run).states) + 2
    for made in found:
        with av.open(made["file"]) as movie:
            frames = [frame.to_ndarray(format="rgb24") for frame in movie.decode(video=0)]
            assert len(frames) == made["frames"] and movie.streams.video[0].average_rate == FPS
            assert np.ptp(frames[0]) > 100 and movie.streams.video[0].codec_context.name in ("h264", "mpeg4")
    assert [made["frames"] for made in found if "recording-" in made["file"]] == [25]


def test_warnings_tell_what_looks_wrong(run):
    material = gather(run)
    said = lambda m: " ".join(warnings(m))  # noqa: E731
    config = type(material.config)
    long = config.make(material.config.to_dict() | {"target_duration": 200.0})
    assert "shorter than the target" in said(material._replace(config=long))
    one = dict(list(material.posteriors.items())[:1])
    assert "only 1 recording" in said(material._replace(posteriors=one))
    assert "one state" in said(material._replace(usage=np.array([1.0, 0.0, 0.0])))
    assert "All 3 states are in use" not in said(material._replace(usage=np.array([0.5, 0.5, 0.0])))
    assert said(material._replace(usage=np.array([0.4, 0.3, 0.3]))).count("try `--states 6`.") == 1
    (run.path / "metrics.jsonl").rename(run.path / "kept.jsonl")
    try:
        (run.path / "metrics.jsonl").write_text("".join(line(*step) for step in FALLING))
        assert "held-out bound fell" in said(material) and "not finite in 1 of 4 steps" in said(material)
    finally:
        (run.path / "kept.jsonl").rename(run.path / "metrics.jsonl")


def test_a_target_that_the_data_overruled_is_named(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "copy")
    starts = {"starts": 4, "found_again": [1.0] * len(gather(run).usage), "duration": None}
    (tmp_path / "copy" / "starts.json").write_text(json.dumps({"restarts": [starts]}))
    material = gather(Run(tmp_path / "copy"))
    material = material._replace(
        config=type(material.config).make(material.config.to_dict() | {"target_duration": 9.0})
    )
    assert "without that target duration" in " ".join(warnings(material))
    assert "which the data overruled" in " ".join(summary(material))


FALLING = [(1, -9.0, -10.0), (2, -5.0, -5.0), (3, None, -7.0), (4, -4.0, -8.0)]


def test_no_legend_of_training_lies_over_a_curve(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "copy")
    parts = {"log_likelihood": -4.0, "local_kl": 1.0, "global_kl": 0.5, "weights_kl": 0.0}
    lines = [json.loads(line(s, -9.0 + 4 * np.tanh(s / 9), -9.5 + 3 * np.tanh(s / 9))) | parts for s in range(40)]
    (tmp_path / "copy" / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    with style():
        figure = training(gather(Run(tmp_path / "copy")))
        figure.draw_without_rendering()
    for axes in figure.axes[:2]:
        box, late = axes.get_legend().get_window_extent(), slice(20, None)
        for curve in axes.lines:
            x, y = axes.transData.transform(np.column_stack(curve.get_data())[late]).T
            assert not np.any((x > box.x0) & (x < box.x1) & (y < box.y1) & (y > box.y0))


def test_no_line_of_the_page_ends_within_an_option():
    shown = paragraphs(["Try `--states 6`, or --latent-dim 3; a--b and <b> stay."])
    assert shown.count('<span class="option">') == 2 and '<span class="option">--latent-dim</span> 3' in shown
    assert "a--b and &lt;b&gt;" in shown and '<code><span class="option">--states</span> 6</code>' in shown


def test_a_fall_that_patience_has_mended_asks_for_nothing_but_recordings(run):
    material = gather(run)
    patient = type(material.config).make(material.config.to_dict() | {"patience": 4})
    kept = run.path / "metrics.jsonl"
    before = kept.read_text()
    try:
        kept.write_text("".join(line(*step) for step in FALLING))
        asks, waits = (" ".join(warnings(material._replace(config=c))) for c in (material.config, patient))
    finally:
        kept.write_text(before)
    assert "set patience" in asks and "is kept" in waits and "set patience" not in waits


def test_what_tells_whether_to_trust_a_fit(run, tmp_path):
    """A run of today has figures and warnings that the run of an older version goes without."""
    with style():
        assert list(_of_trust(gather(run), None)) == [] and len(training(gather(run)).axes) == 2
    shutil.copytree(run.path, tmp_path / "copy")
    parts = {"log_likelihood": -4.0, "local_kl": 1.0, "global_kl": 0.5, "weights_kl": 0.0}
    labels = [[[0, 3], [1, 2]], [[2, 4], [0, 1]]]
    more = [json.loads(line(s, -5.5, -6.0)) | parts | {"labels": row} for s, row in enumerate(labels)]
    table = {"ari": [[1, 0.3, None], [0.3, 1, 0.5], [None, 0.5, 1]], "mean_ari": 0.4, "held_out": [-6.0, None, -7.0]}
    (tmp_path / "copy" / "restarts.json").write_text(json.dumps(table))
    more[-1]["blocks"] = [-7.0, -5.0, -6.0]
    others = {"baselines": {"PCA + VAR(1)": -5.0, "PCA + Gaussian": -9.0}}
    others["blocks"] = {"PCA + VAR(1)": [-6.1, -4.0, -4.9], "PCA + Gaussian": [-10.0, -9.0, -8.0]}
    (tmp_path / "copy" / "baselines.json").write_text(json.dumps(others))
    (tmp_path / "copy" / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in more))
    material = gather(Run(tmp_path / "copy"))
    with style():
        drawn = {d.name: d.figure for d in _of_trust(material, None)}
        assert list(drawn) == ["sequence", "restarts", "baselines"] and len(training(material).axes) == 3
    told = {p.name: words(p.against) for p in ranking(material.run)}
    assert told == {"PCA + VAR(1)": "+1.00 ± 0.06", "this run (hmm SVAE)": "", "PCA + Gaussian": "−3.00 ± 0.58"}
    rank = "1.00 nats per frame below the best plain model (PCA + VAR(1)), 17.3 standard errors."
    assert rank in verdict(ranking(material.run))
    image = drawn["sequence"].axes[0].images[0].get_array()
    assert np.allclose(image, palette(3)[[[0, 0, 0, 1, 1], [2, 2, 2, 2, 0]]])
    said = " ".join(warnings(material))
    assert "adjusted Rand index of 0.40" in said and "PCA + VAR(1) reaches a higher" in said and "−6.00" not in said
    assert "The held-out bound is −6.00 nats per frame; PCA + VAR(1) −5.00, PCA + Gaussian −9.00." in summary(material)


EVERY = [("vae", (1,)), ("gaussian", (10, 12)), ("gmm", (9, 9, 3)), ("lds", (5, 3)), ("slds", (4, 2)), ("slds", (9, 9))]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "shape"), EVERY, ids=str)
def test_every_model_and_every_kind_of_frame(model, shape, tmp_path):
    run = answered(tmp_path / "any", model, shape)
    made = report(run)
    assert {"training", "latents", "model"} <= set(made.figures)
    assert ("ethogram" in made.figures) == (model in ("gmm", "slds"))
    assert ("forecast" in made.figures) == (model in ("lds", "slds"))
    assert len(list(movies(run, frames=5))) >= 2
