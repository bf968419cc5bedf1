"""Assignments against SciPy's, ties in the users' order, and draws whose marginals are exact."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rankloop.environments import PositionBased
from rankloop.kernels import lists as list_sampling
from rankloop.kernels.lists import assign, assignment_scratch, best_list, in_order
from rankloop.rankers import FTRLPBM, GRAB, MW
from rankloop.rankers.ftrl_pbm import birkhoff
from tests.kernels.leader import Floats, find, instances
from tests.kernels.lists import bins, law, marginals, matchings_of

# The compiled assignment against SciPy's and against all lists there are.


SHAPES = st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n)))


def _best(gains: NDArray[np.float64]) -> tuple[float, NDArray[np.int64]]:
    items = np.full(len(gains), -1)
    return best_list(gains, items), items


def _check(gains: NDArray[np.float64]) -> None:
    worth, items = _best(gains)
    positions, columns = linear_sum_assignment(gains, maximize=True)
    scale = max(1.0, float(np.abs(gains).max()))
    assert len(set(items.tolist())) == len(items)
    assert items.min() >= 0
    assert items.max() < gains.shape[1]
    assert worth == pytest.approx(gains[np.arange(len(items)), items].sum(), abs=1e-12 * scale)
    assert worth == pytest.approx(gains[positions, columns].sum(), abs=1e-9 * scale)


@given(SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=st.floats(-1e6, 1e6))))
def test_any_gains(gains: NDArray[np.float64]) -> None:
    _check(gains)


@given(
    SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=st.sampled_from([-1.0, 0.0, 1.0])))
)
def test_gains_with_many_ties(gains: NDArray[np.float64]) -> None:
    _check(gains)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 500), (30, 30), (40, 200), (10, 3000)])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_larger_lists(m: int, n: int, scale: float) -> None:
    rng = np.random.default_rng(m * n)
    _check(scale * rng.normal(size=(m, n)))
    _check(scale * np.outer(rng.random(m), rng.random(n)))  # of product form, as position-based clicks


def test_no_list_is_better() -> None:
    rng = np.random.default_rng(3)
    for n in range(1, 6):
        for m in range(1, n + 1):
            gains = rng.normal(size=(m, n))
            totals = [gains[np.arange(m), list(items)].sum() for items in permutations(range(n), m)]
            assert _best(gains)[0] == pytest.approx(max(totals), abs=1e-12)


def test_room_can_be_used_again() -> None:
    rng = np.random.default_rng(4)
    space, items = assignment_scratch(3, 6), np.empty(3, np.int64)
    for part in space:
        part[...] = 7  # what an earlier call may have left there
    for _ in range(20):
        gains = rng.normal(size=(3, 6))
        assign(gains, items, space)
        assert items.tolist() == _best(gains)[1].tolist()


@given(st.data())
def test_it_is_as_good_and_never_later_in_order(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    m = data.draw(st.integers(1, n))
    # Few values, so that there are many ties; small whole numbers, so that sums are exact.
    gains = np.array(data.draw(st.lists(st.integers(0, 2), min_size=m * n, max_size=m * n)), np.float64)
    gains = gains.reshape(m, n)
    items = np.empty(m, np.int64)
    total = best_list(gains, items)
    kept = in_order(gains, items)
    assert len(set(kept.tolist())) == m
    assert gains[np.arange(m), kept].sum() == total
    assert kept.tolist() <= items.tolist()


def test_where_nothing_differs_it_is_the_order_of_the_numbers() -> None:
    rng = np.random.default_rng(1)
    for m, n in ((1, 1), (3, 5), (6, 6), (2, 40)):
        assert in_order(np.full((m, n), 0.1), rng.permutation(n)[:m]).tolist() == list(range(m))
        falling = np.outer(1 / np.arange(1, m + 1), np.full(n, 0.3))
        assert in_order(falling, rng.permutation(n)[:m]).tolist() == list(range(m))


def test_what_was_given_stays_as_it_was() -> None:
    items = np.array([2, 1, 0])
    in_order(np.ones((3, 3)), items)
    assert items.tolist() == [2, 1, 0]


def test_fresh_rankers_and_even_worlds_keep_the_users_order() -> None:
    assert FTRLPBM(n_items=10, n_positions=5).current().tolist() == [0, 1, 2, 3, 4]
    assert GRAB(n_items=10, n_positions=5).current().tolist() == [0, 1, 2, 3, 4]
    assert MW(n_items=10, n_positions=5, horizon=100).current().tolist() == [0, 1, 2, 3, 4]
    world = PositionBased(attraction=[0.2, 0.5, 0.5, 0.5], examination=[1.0, 0.5, 0.5])
    assert world.best().items.tolist() == [1, 2, 3]


def test_equal_items_keep_their_order_after_something_was_learnt() -> None:
    ranker = GRAB(n_items=5, n_positions=3)
    ranker.state.N[...] = 10.0
    ranker.state.S[...] = [[1, 1, 9, 1, 1]] * 3
    assert ranker.current().tolist() == [0, 1, 2]  # item 2 is worth as much on every position
    ranker.state.S[...] = [[1, 1, 9, 1, 1], [1, 1, 5, 1, 1], [1, 1, 2, 1, 1]]
    assert ranker.current().tolist() == [2, 0, 1]


# Lists with given marginals: the exact law by walking through it, draws by counting, agreement with Algorithm 3.


def leader(m: int, n: int, size: float, seed: int = 0) -> Floats:
    """What FTRL-PBM might draw from: even for `size` 0, nearly one list for a large one."""
    return find(100.0, np.random.default_rng(seed).random((m, n)) * size).x


CASES = [
    (m, n, size)
    for m, n in ((1, 1), (1, 4), (2, 2), (2, 3), (3, 3), (4, 4), (2, 7), (3, 6), (4, 6), (5, 10))
    for size in (0.0, 20.0, 200.0, 1e4)
]


@pytest.mark.judges("2022-157", "2022-165")
@pytest.mark.parametrize(("m", "n", "size"), CASES)
def test_the_law_has_the_marginals(m: int, n: int, size: float) -> None:
    x = leader(m, n, size)
    chances = law(x)
    assert all(len(set(shown)) == m for shown in chances), "an item stands at two positions"
    assert sum(chances.values()) == pytest.approx(1.0, abs=5e-9)
    np.testing.assert_allclose(marginals(chances, n), x, rtol=0, atol=5e-9)


def test_the_law_of_bins_at_larger_sizes() -> None:
    # The items of a bin are drawn in proportion, so the bins' marginals are all there is to prove.
    for m, n, size in ((10, 50, 100.0), (10, 50, 0.0), (8, 8, 100.0), (12, 30, 300.0), (20, 20, 0.0)):
        x = leader(m, n, size)
        items, _ = bins(x)
        assert sorted(i for inside in items for i in inside) == list(range(n))
        assert len(items) <= 2 * m + 1
        totals = np.array([x[:, inside].sum() for inside in items])
        assert totals.max() <= 1 + 1e-9
        met = np.zeros((m, len(items)))
        number = 0
        for weight, chosen in matchings_of(x):
            met[np.arange(m), chosen] += weight
            number += 1
        expected = np.stack([x[:, inside].sum(axis=1) for inside in items], axis=1)
        np.testing.assert_allclose(met, expected, rtol=0, atol=5e-9)
        assert number <= 2 * m * len(items)


def test_the_law_of_all_kinds_of_leaders() -> None:
    for case in instances(150, seed=3, largest=1e8):
        x = find(case.t, case.L).x
        items, _ = bins(x)
        met = np.zeros((len(x), len(items)))
        for weight, chosen in matchings_of(x):
            met[np.arange(len(x)), chosen] += weight
        expected = np.stack([x[:, inside].sum(axis=1) for inside in items], axis=1)
        np.testing.assert_allclose(met, expected, rtol=0, atol=1e-8, err_msg=str(case))


def test_a_list_that_is_certain() -> None:
    for x in (np.eye(4), np.eye(4)[:2], np.eye(4)[[2, 0, 3]], np.eye(1)):
        assert law(x) == {tuple(x.argmax(axis=1).tolist()): 1.0}
    even = np.full((2, 2), 0.5)
    assert law(even) == {(0, 1): 0.5, (1, 0): 0.5}


def test_an_item_of_a_bin_is_drawn_in_proportion() -> None:
    x = leader(2, 30, 30.0)
    rows = x.sum(axis=0)
    scratch = list_sampling.sampling_scratch(2)
    n_stretches, n_bins = list_sampling._merge(x, rows, scratch)
    grid = (np.arange(20_000) + 0.5) / 20_000
    for b in range(n_bins):
        for j in range(2):
            drawn = [list_sampling._item(x, j, b, u, n_stretches, scratch) for u in grid]
            share = np.bincount(drawn, minlength=30) / len(grid)
            inside = bins(x)[0][b]
            expected = np.zeros(30)
            expected[inside] = x[j, inside] / x[j, inside].sum()
            np.testing.assert_allclose(share, expected, rtol=0, atol=1e-4)
            for u in (0.0, 1.0 - 2**-53):
                assert list_sampling._item(x, j, b, u, n_stretches, scratch) in inside


@numba.njit(error_model="numpy")
def _draw(x: Any, rows: Any, keys: Any, scratch: Any, counts: Any) -> int:
    items = np.empty(len(x), np.int64)
    repeated = 0
    for key in keys:
        list_sampling.sample(x, rows, key, scratch, items)
        for j in range(len(items)):
            counts[j, items[j]] += 1
            for k in range(j):
                repeated += items[j] == items[k]
    return repeated


@pytest.mark.judges("2022-165")
@pytest.mark.parametrize(
    ("m", "n", "size"),
    [
        (1, 1, 0.0),
        (1, 5, 20.0),
        (5, 10, 0.0),
        (5, 10, 30.0),
        (5, 10, 1e3),
        (6, 6, 30.0),
        (10, 50, 50.0),
        (10, 200, 100.0),
    ],
)
def test_draws_have_the_marginals(m: int, n: int, size: float) -> None:
    x = leader(m, n, size)
    n_draws = 100_000
    keys = np.random.default_rng(m * n).integers(0, 2**64, n_draws, dtype=np.uint64)
    counts = np.zeros((m, n), np.int64)
    assert _draw(x, x.sum(axis=0), keys, list_sampling.sampling_scratch(m), counts) == 0
    usual = (n_draws * x > 20) & (x < 1 - 1e-9)  # elsewhere a count is not nearly normal
    z = (counts - n_draws * x)[usual] / np.sqrt(n_draws * x * (1 - x))[usual]
    assert (counts[~usual] <= 60 + n_draws * (x > 0.5)[~usual]).all()
    if z.size:
        assert np.abs(z).max() <= 5
        # cells hang together, so this is no chi-square; but a bias of a third of a standard error would show
        assert np.mean(z**2) == pytest.approx(1.0, abs=5 * np.sqrt(2 / z.size) + 0.1)


def test_sums_that_are_a_little_off_do_no_harm() -> None:
    rng = np.random.default_rng(8)
    for m, n in ((3, 3), (5, 10), (5, 6)):
        for size in (0.0, 30.0, 1e5):
            x = leader(m, n, size) * (1 + 1e-9 * rng.uniform(-1, 1, (m, n)))
            counts = np.zeros((m, n), np.int64)
            keys = rng.integers(0, 2**64, 5000, dtype=np.uint64)
            assert _draw(x, x.sum(axis=0), keys, list_sampling.sampling_scratch(m), counts) == 0
            assert (counts.sum(axis=1) == 5000).all()


def test_the_largest_of_random_numbers_still_finds_a_list() -> None:
    # What is left there may be rounding error alone.
    for m, n, size in CASES:
        x = leader(m, n, size) * (1 - 1e-9)
        scratch = list_sampling.sampling_scratch(m)
        _, n_bins = list_sampling._merge(x, x.sum(axis=0), scratch)
        list_sampling.go_on(1.0 - 2**-53, 0.0, n_bins, scratch)
        assert sorted(scratch.chosen[:n_bins]) == list(range(n_bins))


@pytest.mark.judges("2022-170")
@pytest.mark.parametrize(("m", "n", "size"), CASES)
def test_algorithm_3_has_the_same_marginals(m: int, n: int, size: float) -> None:
    x = leader(m, n, size)
    lists, weights = birkhoff(x)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights > 0).all()
    found = np.zeros((m, n))
    for shown, weight in zip(lists, weights, strict=True):
        assert len(set(shown.tolist())) == m
        found[np.arange(m), shown] += weight
    np.testing.assert_allclose(found, x, rtol=0, atol=1e-9)


def test_algorithm_3_refuses_what_is_no_leader() -> None:
    with pytest.raises(ValueError, match="column sums of one"):
        birkhoff(np.zeros((2, 3)))
