"""Spectra and syllables of songs: a tone lies in its band, a syllable on its frames."""

import numpy as np

from benchmarks.segmentation import songs


def test_a_tone_is_loudest_in_its_band():
    times = np.arange(songs.RATE) / songs.RATE
    loudest = [songs.log_mel(1000 * np.sin(2 * np.pi * hertz * times)).mean(0).argmax() for hertz in (1000, 4000, 8000)]
    mel = 2595 * np.log10(1 + np.array([500, 1000, 4000, 8000, 10000]) / 700)
    expected = (mel[1:-1] - mel[0]) / (mel[-1] - mel[0]) * (songs.BANDS + 1) - 1
    np.testing.assert_allclose(loudest, expected, atol=1)


def test_syllables_lie_where_their_marks_are():
    marks = {"labels": "ab", "onsets": np.array([100.0, 200.0]), "offsets": np.array([150.0, 300.0])}
    letters = songs.syllables(marks, 100)
    seconds = np.arange(100) * 0.004 + 0.008
    np.testing.assert_array_equal(letters == "a", (seconds >= 0.1) & (seconds < 0.15))
    np.testing.assert_array_equal(letters == "b", (seconds >= 0.2) & (seconds < 0.3))
