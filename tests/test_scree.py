"""What principal components hold: as a dense eigen-decomposition has it, in every fit, in its folder and in words."""

import numpy as np
import pytest

import svae
from svae.experiments._figures import style
from svae.fitting.defaults import components, usual_dimensions
from svae.fitting.initialize import pca
from svae.fitting.scree import cumulated, enough_of, in_words, percent, scree_of, unknown
from svae.report._scree import _marks, scree_figure
from svae.runs import RunError
from svae.runs._scree import keep_scree, read_scree

FAST = {"hidden": (4,), "steps": 1, "warmup_steps": 0, "held_out": 0.0, "latent_dim": 2}


def frames(*event, N=300, seed=0):
    rng, P = np.random.default_rng(seed), int(np.prod(event))
    y = rng.normal(size=(N, P)) @ (rng.normal(size=(P, P)) * 0.7 ** np.arange(P)[:, None])
    return y.reshape(N, *event)


def dense(y, *, columns):
    """Shares by the eigenvalues of the covariance, or of the correlation where columns have units of their own."""
    rows = y.reshape(len(y), -1)
    values = np.linalg.eigvalsh((np.corrcoef if columns else np.cov)(rows.T))[::-1]
    return np.cumsum(values) / values.sum()


def begun(y, **options):
    """What the first step of a fit tells."""
    known = FAST | options
    if known["model"] == "arhmm":
        del known["hidden"]
    step = next(iter(svae.fit(svae.make(y.shape[1:], **known), y)))
    assert step.share == 0.0
    return step.scree


def test_shares_are_those_of_a_dense_decomposition():
    y = frames(7)
    np.testing.assert_allclose(pca(y, 3).shares, dense(y, columns=False), atol=1e-9)
    y = frames(7) * 10.0 ** np.arange(7)
    np.testing.assert_allclose(components(svae.data.recordings(y), 3).shares, dense(y, columns=True), atol=1e-6)
    y = frames(4, 5)
    np.testing.assert_allclose(components(svae.data.recordings(y), 3).shares, dense(y, columns=False), atol=1e-6)


@pytest.mark.parametrize("model", ["vae", "gmm", "lds", "hmm", "slds", "factorial", "arhmm"])
def test_every_graph_tells_them_before_its_states_are_looked_for(model):
    y = frames(6) * 10.0 ** np.arange(6)
    found = begun(y, model=model)
    np.testing.assert_allclose(found.shares, dense(y, columns=True), atol=1e-5)
    assert found.enough == 1 + np.flatnonzero(dense(y, columns=True) >= 0.9)[0] and found.why == ""


def test_images_share_a_unit():
    y = frames(4, 5)
    np.testing.assert_allclose(begun(y, model="lds").shares, dense(y, columns=False), atol=1e-5)


def test_networks_that_begin_elsewhere_say_why():
    counts = np.random.default_rng(0).poisson(3.0, size=(40, 5)).astype(float)
    assert (
        begun(counts, model="lds", likelihood="poisson").why
        == "with the likelihood Poisson the networks do not begin at PCA"
    )
    assert "mlp has no linear map" in begun(frames(5), model="vae", network="mlp").why
    assert scree_of(cumulated(np.zeros(3)), 2).why == "nothing varies in these recordings"


def test_the_first_restart_alone_tells_them():
    y = frames(4)
    steps = svae.fit(svae.make((4,), **(FAST | {"model": "vae", "restarts": 2, "steps": 0})), y)
    assert [step.scree is None for step in steps if step.share == 0.0] == [False, True]


def test_the_smallest_number_that_holds_enough():
    rng = np.random.default_rng(0)
    for P in (1, 2, 9, 200):
        shares = cumulated(np.sort(rng.exponential(size=P) ** 3)[::-1])
        for share in (0.5, 0.9, 0.999):
            number = enough_of(shares, share)
            assert shares[number - 1] >= share - 1e-8 and (number == 1 or shares[number - 2] < share)
    assert enough_of(cumulated(np.zeros(3))) == 0
    assert enough_of(cumulated(np.full(10, 0.1))) == 9  # whatever 0.1 is in binary


def test_a_long_list_is_cut_and_its_number_stays():
    found = scree_of(cumulated(np.ones(3000)), 8)
    assert len(found.shares) == 100 and found.enough == 2700
    assert len(scree_of(cumulated(np.ones(3000)), 150).shares) == 150


def test_they_come_back_from_the_folder(tmp_path):
    assert "older version" in read_scree(tmp_path).why
    for found in (scree_of(cumulated(np.array([5.0, 2.0, 1.0])), 2), unknown("the time was short")):
        keep_scree(tmp_path, found)
        assert read_scree(tmp_path) == found


@pytest.mark.parametrize(
    "body",
    ['{"shares": [0.9]}', '{"shares": [0.9, 0.5], "enough": 1, "why": ""}', '{"shares": [], "enough": 0, "why": ""}'],
)
def test_damage_is_told(tmp_path, body):
    (tmp_path / "scree.json").write_text(body)
    with pytest.raises(RunError, match="damaged"):
        read_scree(tmp_path)


FOUND = scree_of(np.array([0.6, 0.85, 0.93, 0.9997, 1.0]), 2)


def test_what_is_said():
    assert in_words(FOUND, 2, usual=2) == (
        "The first 2 principal components, one for each latent dimension of the fit, hold 85 % of the variance; the "
        "first 3 hold 90 %."
    )
    assert in_words(FOUND, 3, usual=4).endswith(
        "hold 93 % of the variance; fewer hold less than 90 %. Where --latent-dim is left open, a fit takes 4."
    )
    assert in_words(FOUND, 1).startswith(
        "The first principal component, for the one latent dimension of the fit, holds 60 %"
    )
    assert in_words(FOUND, 8) == (
        "There are 5 principal components, fewer than the 8 latent dimensions of the fit; the first 3 hold 90 %."
    )
    assert in_words(scree_of(np.array([0.95, 1.0]), 2), 2).endswith(
        "hold 100 % of the variance; the first alone holds 90 %."
    )
    assert in_words(unknown("x"), 2) == "How much of the variance the latent dimensions hold is not known: x."
    assert [percent(p) for p in (0.0027, 0.62, 0.982, 0.9991, 0.99992, 1.0)] == [
        "0.27 %",
        "62 %",
        "98.2 %",
        "99.91 %",
        "99.992 %",
        "100 %",
    ]


def test_the_picture_marks_each_number_once():
    assert [mark.words for mark in _marks(FOUND, 2, 4)] == [
        "2: this fit (85 %)",
        "3: fewest that hold 90 % (93 %)",
        "4: svae's own choice (99.97 %)",
    ]
    assert [mark.words for mark in _marks(FOUND, 3, 3)] == ["3: this fit and fewest that hold 90 % (93 %)"]
    assert [mark.number for mark in _marks(FOUND, 8, None)] == [3]
    with style():
        for D, usual in ((2, 4), (3, 3), (8, None), (1, 5)):
            axes = scree_figure(FOUND, D, usual).axes[0]
            (curve,) = [line for line in axes.lines if len(line.get_xdata()) == 5]
            np.testing.assert_allclose(curve.get_ydata(), 100 * np.array(FOUND.shares))


def test_words_of_the_picture_are_apart_and_inside():
    with style():
        for found, D, usual in (
            (FOUND, 1, 2),
            (FOUND, 2, 3),
            (scree_of(cumulated(np.ones(900)), 8), 8, 7),
            (FOUND, 5, 4),
        ):
            figure = scree_figure(found, D, usual)
            figure.draw_without_rendering()
            boxes = [text.get_window_extent() for text in figure.axes[0].texts]
            assert all(not a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
            assert all(box.x1 <= figure.bbox.x1 and box.y0 >= figure.axes[0].bbox.y0 for box in boxes)


def test_the_default_rule_needs_numbers_and_a_graph_without_sizes():
    y = svae.data.recordings(frames(5))
    assert usual_dimensions(y, svae.Config(model="lds", latent_dim=2)) == 5
    assert usual_dimensions(y, svae.Config(model="lds", likelihood="poisson")) is None
