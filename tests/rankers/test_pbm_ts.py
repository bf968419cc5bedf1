"""PBM-TS: its draws have the law of the model given the clicks, and it plays well on them."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import rankers
from rankloop.base import Ranking
from tests.rankers.odd_positions import regret_where_the_middle_is_seen_first


def drawn(ranker: rankers.PBMTS, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Attractions and examinations behind many lists, without learning anything new in between."""
    scratch = ranker.scratch(ranker.n_positions)
    items, thetas, kappas = np.empty(ranker.n_positions, np.int64), [], []
    for key in np.random.default_rng(1).bit_generator.random_raw(n):
        ranker.kernels.rank(ranker.params, ranker.state, None, key, scratch, items, np.empty(0), ())
        thetas.append(scratch[1].theta.copy())
        kappas.append(scratch[1].kappa.copy())
    return np.array(thetas), np.array(kappas)


def test_with_one_position_draws_are_beta() -> None:
    ranker = rankers.PBMTS(n_items=2, n_positions=1, examination=[1.0])
    ranker.state.S[...] = [[3, 20]]
    ranker.state.N[...] = [[10, 25]]
    ranker.state.theta[...] = [4 / 12, 21 / 27]
    draws = drawn(ranker, 20_000)[0]
    np.testing.assert_allclose(draws.mean(axis=0), [4 / 12, 21 / 27], atol=0.01)
    np.testing.assert_allclose(
        draws.std(axis=0), [np.sqrt(4 * 8 / (12**2 * 13)), np.sqrt(21 * 6 / (27**2 * 28))], atol=0.01
    )


def test_ratios_of_attractions_have_the_spread_of_their_joint_law() -> None:
    """Two items, two positions, by quadrature over the ratios; the scale, which no list depends on, is fixed."""
    theta, kappa = np.array([0.5, 0.3]), np.array([1.0, 0.6])
    N = np.array([[400.0, 60.0], [60.0, 400.0]])
    S = N * np.outer(kappa, theta)
    ranker = rankers.PBMTS(n_items=2)
    ranker.state.S[...], ranker.state.N[...] = S, N
    ranker.state.theta[...], ranker.state.kappa[...] = theta, kappa
    thetas, kappas = drawn(ranker, 20_000)
    grid = np.linspace(-1.5, 1.5, 121)
    scale, second, item = np.meshgrid(np.linspace(-0.5, 0.5, 41), grid, grid, indexing="ij")
    logs = np.zeros_like(scale)
    for j in range(2):
        for i in range(2):
            p = theta[i] * kappa[j] * np.exp(scale + (second if j else 0) + (item if i else 0))
            fits = p < 1
            logs += np.where(
                fits, S[j, i] * np.log(p) + (N[j, i] - S[j, i]) * np.log1p(-np.minimum(p, 0.999999)), -1e9
            )
    density = np.exp(logs - logs.max())
    density /= density.sum()
    for got, axis in ((kappas[:, 1] / kappas[:, 0] / 0.6, second), (thetas[:, 1] / thetas[:, 0] / 0.6, item)):
        mean = (density * axis).sum()
        spread = np.sqrt((density * axis**2).sum() - mean**2)
        assert np.log(got).mean() == pytest.approx(mean, abs=0.5 * spread)
        assert np.log(got).std() == pytest.approx(spread, rel=0.2)


def test_the_best_items_go_where_people_look_most() -> None:
    ranker = rankers.PBMTS(n_items=3, n_positions=3, examination=[0.2, 1.0, 0.5])
    ranker.state.N[...] = 10**6
    ranker.state.S[...] = np.outer([0.2, 1.0, 0.5], [0.3, 0.6, 0.9]) * 10**6
    ranker.state.theta[...] = [0.3, 0.6, 0.9]
    shown = ranker.rank(rng=np.random.default_rng(1))
    assert shown.items.tolist() == ranker.current().tolist() == [0, 2, 1]
    assert not shown.explored


def test_lists_that_wait_for_feedback_are_independent() -> None:
    ranker = rankers.PBMTS(n_items=10, n_positions=5)
    rng = np.random.default_rng(3)
    assert (
        len({tuple(ranker.rank(rng=rng).items.tolist()) for _ in range(50)}) >= 45
    )  # the chain of version 1 would show about one


def test_a_ticket_of_version_1_is_learnt_from() -> None:
    ranker, twin = rankers.PBMTS(n_items=4, n_positions=2), rankers.PBMTS(n_items=4, n_positions=2)
    items = np.array([2, 0])
    ranker.learn(Ranking(items), [1, 0])
    twin.learn(Ranking(items, None, (np.full(4, 0.5), np.full(2, 0.5))), [1, 0])
    np.testing.assert_array_equal(ranker.state.theta, twin.state.theta)


def test_it_learns_positions_in_any_order_and_little_is_lost() -> None:
    assert regret_where_the_middle_is_seen_first(rankers.PBMTS(n_items=5, n_positions=3)) < 150


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="examination must be 2 numbers"):
        rankers.PBMTS(n_items=3, n_positions=2, examination=[0.5])
    with pytest.raises(ValueError, match="sweeps must be"):
        rankers.PBMTS(n_items=3, sweeps=0)
    ranker = rankers.PBMTS(n_items=2)
    with pytest.raises(ValueError, match="'theta' must be probabilities"):
        ranker.load(ranker.save() | {"theta": np.zeros(2)})


def test_what_is_forgotten_counts_for_less_and_less() -> None:
    ranker = rankers.PBMTS(n_items=3, n_positions=2, forget=20)
    rng, N = np.random.default_rng(1), np.zeros((2, 3))
    for _ in range(50):
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, [1, 0])
        N *= 1 - 1 / 20
        N[[0, 1], shown.items] += 1
    np.testing.assert_allclose(ranker.state.N, N)
    np.testing.assert_allclose(ranker.state.S, N * [[1], [0]])
    with pytest.raises(ValueError, match=r"forget must be .*at least 2, got 1"):
        rankers.PBMTS(n_items=3, forget=1)
