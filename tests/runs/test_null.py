"""null.json: what a search says of recordings without states comes back, and is told in words."""

import pytest

from svae.runs import RunError
from svae.runs._null import doubts, in_words, keep_null, read_null
from svae.starting import Null, Pair, unknown

CLEAR = Null(800, 8, Pair(2.1, (0.3, 0.2, 0.4)), Pair(0.9, (0.2, 0.3, 0.1)), Pair(1.5, (0.01,)))


def test_what_is_written_is_read(tmp_path):
    assert "older version" in read_null(tmp_path).why
    for null in (CLEAR, unknown("the time was short"), CLEAR._replace(gain=None, agreement=None)):
        keep_null(tmp_path, null)
        assert read_null(tmp_path) == null


def test_a_number_that_is_not_finite_is_not_known(tmp_path):
    keep_null(tmp_path, CLEAR._replace(gain=Pair(float("nan"), (0.1,)), dynamics=None))
    found = read_null(tmp_path)
    assert found.gain is None and "not finite" in in_words(found)[0]


def test_damage_is_told(tmp_path):
    (tmp_path / "null.json").write_text('{"frames": 3}')
    with pytest.raises(RunError, match="damaged"):
        read_null(tmp_path)


def test_what_is_said():
    states, dynamics = in_words(CLEAR)
    assert states == (
        "A recording with the same spectrum but without states would gain 0.30 nats a frame from 8 states; this one "
        "gains 2.10."
    )
    assert "1.50" in dynamics and doubts(CLEAR) == []
    one, two = doubts(CLEAR._replace(gain=Pair(0.41, (0.3, 0.2, 0.4)), dynamics=Pair(0.01, (0.01,))))
    assert "0.41" in one and "up to 0.40" in one and "random" in two
    assert in_words(unknown("the time was short"))[0].endswith("is not known: the time was short.")
    assert doubts(unknown("the time was short")) == []
