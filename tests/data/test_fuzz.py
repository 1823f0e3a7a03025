"""Broken files: 100 of the cases of benchmarks/fuzz.py here, the whole campaign with  pytest -m slow."""

import pytest

pytest.importorskip("h5py"), pytest.importorskip("av"), pytest.importorskip("pyarrow")

from benchmarks import fuzz  # noqa: E402


def failures(cases, seed):
    found = fuzz.campaign(cases, seed)
    assert len(found) == cases
    return [
        f for f in found if f["said"].startswith("FAILED") or f["grew"] > fuzz.MOST_MEMORY or f["took"] > fuzz.SLOWEST
    ]


def test_a_hundred_broken_files_end_in_one_sentence_or_load():
    assert failures(100, seed=1) == []


@pytest.mark.slow
def test_the_whole_campaign():
    assert failures(2400, seed=0) == []
