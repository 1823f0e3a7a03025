"""Effects, intervals and tests, against scipy, against enumeration, and on simulated animals."""

import itertools

import numpy as np
import pytest
from scipy import stats

from benchmarks import compare_study as simulated
from svae.compare import _statistics as statistics


def welch_squared(a, b, axis=-1):
    return stats.ttest_ind(a, b, equal_var=False, axis=axis).statistic ** 2


def two_groups(seed, n=5, m=4, columns=1):
    values = np.random.default_rng(seed).gamma(2.0, size=(n + m, columns))
    return values, np.repeat([0, 1], [n, m])


def test_the_statistic_of_two_groups_is_welchs_t_squared():
    values, group = two_groups(0, columns=6)
    found = statistics.statistic(values, group[None])
    assert np.allclose(found[0], welch_squared(values[:5], values[5:], axis=0))


def test_p_is_that_of_scipys_permutation_test():
    for seed in range(4):
        values, group = two_groups(seed)
        halves = (values[:5, 0], values[5:, 0])
        exact = stats.permutation_test(
            halves, welch_squared, vectorized=True, n_resamples=np.inf, alternative="greater"
        ).pvalue
        assert statistics.permutation_p(values, group)[0] == pytest.approx(exact, abs=1e-12)


def test_p_of_three_groups_is_that_of_all_labellings_gone_through_by_hand():
    rng, group = np.random.default_rng(3), np.repeat([0, 1, 2], [3, 2, 2])
    values = rng.normal(size=7) + 1.5 * group

    def welch(labels):
        parts = [values[np.array(labels) == g] for g in range(3)]
        weight = np.array([len(x) / x.var(ddof=1) for x in parts])
        mean = np.array([x.mean() for x in parts])
        return np.sum(weight * (mean - np.average(mean, weights=weight)) ** 2)

    ways = set(itertools.permutations(group.tolist()))
    assert len(ways) == statistics.relabellings((3, 2, 2)) == 210
    by_hand = np.mean([welch(way) >= welch(group) * (1 - 1e-9) for way in ways])
    assert statistics.permutation_p(values[:, None], group)[0] == pytest.approx(by_hand, abs=1e-12)


def test_the_labellings_are_all_of_them_each_once_and_the_observed_one_first():
    for sizes in [(3, 3), (2, 5), (2, 3, 2), (2, 2, 2, 2)]:
        labels = statistics._labels(sizes)
        assert len(set(map(bytes, labels))) == len(labels) == statistics.relabellings(sizes)
        assert np.array_equal(labels[0], np.repeat(np.arange(len(sizes)), sizes))
        assert all((np.sort(row) == labels[0]).all() for row in labels)


def test_many_animals_get_random_labellings_that_agree_with_welchs_t():
    rng, group = np.random.default_rng(5), np.repeat([0, 1], 15)
    values = rng.normal(size=(30, 5)) + np.linspace(0, 1.2, 5) * group[:, None]
    assert not statistics.is_exact((15, 15))
    found = statistics.permutation_p(values, group)
    t_test = stats.ttest_ind(values[:15], values[15:], equal_var=False).pvalue
    assert np.allclose(found, t_test, atol=0.01, rtol=0.15)
    assert np.array_equal(found, statistics.permutation_p(values, group)), "the seed is fixed"
    far = statistics.permutation_p(values[:, :1] + 100.0 * group[:, None], group)[0]
    assert far == statistics.smallest_p((15, 15)) == 1 / statistics.RELABELLINGS


def test_the_smallest_p_is_reached_and_not_passed():
    for sizes in [(3, 3), (3, 5), (2, 2, 2)]:
        group = np.repeat(np.arange(len(sizes)), sizes)
        values = 10.0 * group[:, None] ** 2 + np.random.default_rng(0).normal(size=(len(group), 20))
        assert statistics.permutation_p(values, group).min() == pytest.approx(statistics.smallest_p(sizes))


def test_an_animal_that_says_nothing_is_left_out_of_that_test_only():
    values, group = two_groups(1, 6, 6, columns=3)
    values[2, 1] = np.nan
    found = statistics.permutation_p(values, group)
    kept = np.arange(12) != 2
    assert found[1] == statistics.permutation_p(values[kept, 1:2], group[kept])[0]
    assert np.array_equal(found[[0, 2]], statistics.permutation_p(values[:, [0, 2]], group))


def test_equal_animals_do_not_differ_and_groups_of_equal_animals_do():
    group = np.repeat([0, 1], 4)
    values = np.stack([np.full(8, 0.1), 0.1 + 0.2 * group, np.r_[np.zeros(4), 1.0, 2.0, 3.0, 4.0]], -1)
    assert np.allclose(statistics.permutation_p(values, group), [1, 2 / 70, 2 / 70])
    assert np.isnan(statistics.hedges(values[:4, 1], values[4:, 1]).value)
    assert statistics.difference(values[:4, 1], values[4:, 1]) == pytest.approx((0.2, 0.2, 0.2))


def test_units_do_not_matter():
    values, group = two_groups(2, 6, 5, columns=4)
    found = statistics.permutation_p(values, group)
    assert np.array_equal(found, statistics.permutation_p(1e-9 * values, group))
    assert np.array_equal(found, statistics.permutation_p(1e9 * values + 3.0, group))


def test_the_interval_of_a_difference_is_welchs():
    values, _ = two_groups(4, 7, 4)
    a, b = values[:7, 0], values[7:, 0]
    found, known = statistics.difference(a, b), stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    assert found == pytest.approx((b.mean() - a.mean(), known.low, known.high))


def test_the_ends_of_hedges_interval_make_what_was_seen_just_plausible():
    for shift in (0.0, 1.0, -6.0):
        a, b = np.random.default_rng(1).normal(size=(2, 6))
        b = b + shift
        found, unit = statistics.hedges(a, b), np.sqrt(2 / 6)
        t = stats.ttest_ind(b, a).statistic
        assert stats.nct.cdf(t, 10, found.low / unit) == pytest.approx(0.975, abs=1e-6)
        assert stats.nct.cdf(t, 10, found.high / unit) == pytest.approx(0.025, abs=1e-6)


def test_hedges_g_is_unbiased_and_its_interval_covers():
    rng, found = np.random.default_rng(0), []
    for _ in range(800):
        found.append(statistics.hedges(rng.normal(size=4), 1.0 + rng.normal(size=5)))
    g, low, high = np.array(found).T
    assert abs(g.mean() - 1.0) < 3 * g.std() / np.sqrt(len(g))
    assert 0.93 < np.mean((low <= 1) & (high >= 1)) < 0.97


def test_q_is_that_of_benjamini_and_hochberg():
    p = np.random.default_rng(0).uniform(size=40) ** 3
    q = statistics.false_discovery(np.r_[p[:20], np.nan, p[20:]])
    assert np.isnan(q[20]) and np.allclose(np.delete(q, 20), stats.false_discovery_control(p))
    assert statistics.false_discovery(np.full(3, np.nan)).shape == (3,)


# --- on simulated animals -----------------------------------------------------------------------------------------


def test_without_a_difference_one_test_in_twenty_is_positive():
    """2,000 tests of 200 studies each; the standard error is 0.005."""
    assert 0.035 < simulated.false_positives((6, 6), (1, 1), 200, tests=10) < 0.065
    assert 0.035 < simulated.false_positives((3, 3, 3), (1, 1, 1), 200, tests=10) < 0.065
    assert simulated.false_positives((3, 3), (1, 1), 200, tests=10) == 0, "20 relabellings cannot reach 0.05"


def test_a_small_and_variable_group_does_not_make_differences():
    """4 animals of sd 3 against 12 of sd 1: a permutation test of the bare means is positive in a quarter."""
    ours, bare = (f((4, 12), (3, 1), 400) for f in (simulated.false_positives, simulated.mean_only))
    assert ours < 0.14 and bare > 0.18


def test_intervals_cover():
    for sizes, sds in [((3, 3), (1, 1)), ((8, 8), (1, 3)), ((4, 12), (3, 1))]:
        assert 0.92 < simulated.coverage(sizes, sds, 500)["welch"] < 0.98


def test_false_discoveries_are_held_on_usages_that_share_one_whole():
    found = simulated.discoveries(8, 50)
    assert found["false_discovery_rate"] < 0.05 and found["power"] > 0.25


def test_false_discoveries_among_pairs_are_held_where_there_are_three_groups():
    found = simulated.discoveries_of_three(4, 12)
    assert found["false_discovery_rate"] < 0.05


def test_animals_with_habits_do_not_differ_through_bouts_either():
    found = simulated.whole_studies(25, 5)
    assert set(found) == {"usage", "duration", "transitions"} and all(rate < 0.09 for rate in found.values())
