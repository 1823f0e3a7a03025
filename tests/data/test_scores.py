"""How sure a difference of held-out numbers is, against what is known of means."""

import numpy as np
import pytest

from svae.data.scores import block_means, difference


def test_the_standard_error_of_paired_parts_is_that_of_the_mean():
    """What both numbers share falls out; of independent frames the rest has the spread of their mean."""
    rng = np.random.default_rng(0)
    shared = 100 * rng.normal(size=(400, 200))
    pairs = [difference(block_means(s + rng.normal(size=200) + 0.5), block_means(s)) for s in shared]
    errors, means = np.array([p.standard_error for p in pairs]), np.array([p.mean for p in pairs])
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(1 / np.sqrt(200), rel=0.05)
    assert means.mean() == pytest.approx(0.5, abs=0.01) and means.std() == pytest.approx(1 / np.sqrt(200), rel=0.1)


def test_what_cannot_be_paired_has_no_standard_error():
    assert len(block_means(np.ones(9))) == 0 and len(block_means(np.ones(27))) == 5
    assert difference([1.0, 2.0], None) is None and difference([1.0], [2.0]) is None
    assert difference([1.0, 2.0, 3.0], [1.0, 2.0]) is None
