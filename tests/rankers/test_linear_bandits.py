"""Bandits over lists with features, against a slow version that inverts the matrix, and in worlds that they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop import data, environments, rankers, simulation
from rankloop.base import Ranking, draw_key
from rankloop.checks import check_same_story
from rankloop.rankers.linear_bandits import LinearClickRanker, normal

CASCADE = [rankers.CascadeLinUCB, rankers.CascadeLinTS]
PBM = [rankers.LinUCBPBM, rankers.LinTSPBM]
KINDS: list[Any] = CASCADE + PBM
KAPPA = np.array([0.4, 1.0, 0.7])


class Slow:
    """The formulas as they stand, with an explicit inverse: M = I + sum w^2 x x' / sigma^2."""

    def __init__(self, d: int, sigma: float) -> None:
        self.M, self.b, self.sigma = np.eye(d), np.zeros(d), sigma

    def see(self, x: np.ndarray, kappa: float, click: float) -> None:
        self.M += np.outer(kappa * x, kappa * x) / self.sigma**2
        self.b += kappa * x * click / self.sigma**2

    @property
    def inverse(self) -> np.ndarray:
        return np.linalg.inv(self.M)

    @property
    def theta(self) -> np.ndarray:
        return self.inverse @ self.b

    def observe(self, ranker: LinearClickRanker, features: np.ndarray, clicks: np.ndarray) -> None:
        """The rows of `features` are those of the shown items, by position."""
        for j, (x, click) in enumerate(zip(features, clicks, strict=True)):
            self.see(x, 1.0 if ranker.cascade else ranker.examination[j], click)
            if ranker.cascade and click:
                return


def build(kind: Any, **arguments: Any) -> LinearClickRanker:
    known = {} if kind.cascade else {"examination": KAPPA}
    ranker: LinearClickRanker = kind(**known, n_positions=3, sigma=0.7, **arguments)
    return ranker


def drawn_theta(ranker: LinearClickRanker, slow: Slow, key: Any) -> np.ndarray:
    z = np.array([normal(key, 2 * k) for k in range(ranker.n_features)])
    np.testing.assert_allclose(ranker.state.S.T @ ranker.state.S, slow.inverse, rtol=1e-9, atol=1e-12)
    return slow.theta + ranker.state.S.T @ z


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("catalogue", [True, False], ids=["catalogue", "requests"])
def test_it_is_the_slow_version(kind: Any, catalogue: bool) -> None:
    rng, d, n = np.random.default_rng(3), 4, 8
    X = rng.normal(size=(n, d))
    ranker = build(kind, **({"features": X} if catalogue else {"n_features": d}))
    slow = Slow(d, 0.7)
    for t in range(120):
        if not catalogue:
            X = rng.normal(size=(n, d)).astype(np.float32 if t % 2 else np.float64)
        seed = int(rng.integers(1000))
        shown = ranker.rank(None if catalogue else X, rng=np.random.default_rng(seed))
        key = draw_key(np.random.default_rng(seed))
        mean = X @ slow.theta
        if ranker.draws:
            index = X @ drawn_theta(ranker, slow, key)
        else:
            index = mean + np.sqrt(np.einsum("ij,jk,ik->i", X, slow.inverse, X))
        order = np.argsort(-index)
        expected = order[:3].copy()
        if not ranker.cascade:
            expected[np.argsort(-KAPPA)] = order[:3]
        if len(np.unique(np.round(index, 9))) == n:  # with ties, at the start, the order is random
            assert shown.items[:3].tolist() == expected.tolist()
            assert shown.explored == (np.abs(np.sort(-mean)[:3] + mean[order[:3]]) > 1e-9).any()
        if not catalogue:
            assert sorted(shown.items) == list(range(n))
        clicks = (rng.random(3) < 0.4).astype(float)
        ranker.learn(shown, clicks)
        slow.observe(ranker, X[shown.items[:3]].astype(float), clicks)
        np.testing.assert_allclose(ranker.theta, slow.theta, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ranker.state.S.T @ ranker.state.S, slow.inverse, rtol=1e-9, atol=1e-12)
    assert ranker.state.updates[0] > 120 or ranker.cascade
    best = np.argsort(-(X @ slow.theta))[:3]
    current = ranker.current(None if catalogue else X)
    assert (current[:3] if ranker.cascade else current[np.argsort(-KAPPA)]).tolist() == best.tolist()


def test_draws_have_the_law_of_the_posterior() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5, 3))
    ranker = rankers.CascadeLinTS(features=X, n_positions=1)
    for t in range(30):
        ranker.learn(Ranking(np.array([t % 5])), [float(t % 3 == 0)])
    inverse = ranker.state.S.T @ ranker.state.S
    drawn = rng.multivariate_normal(ranker.theta, inverse, size=200_000) @ X.T
    chance = np.bincount(drawn.argmax(axis=1), minlength=5) / 200_000
    top = np.bincount([ranker.rank(rng=rng).items[0] for _ in range(4_000)], minlength=5) / 4_000
    assert (np.abs(top - chance) < 4.5 * np.sqrt(chance * (1 - chance) / 4_000) + 0.005).all()


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_rounding_does_not_add_up(scale: float) -> None:
    rng, d = np.random.default_rng(5), 6
    X = rng.normal(size=(40, d)) * np.array([1.0, scale, 1.0, scale, 1.0, 1.0])
    ranker = rankers.CascadeLinUCB(features=X, n_positions=5)
    simulation.play(
        ranker,
        environments.PositionBased(attraction=np.full(40, 0.01), examination=np.ones(5)),
        rounds=30_000,
        seed=1,
    )
    V = ranker.state.V[0]
    M = np.eye(d) + np.tril(V) + np.tril(V, -1).T
    inverse = np.linalg.inv(M)
    error = np.abs(ranker.state.S.T @ ranker.state.S - inverse) / np.sqrt(
        np.outer(np.diag(inverse), np.diag(inverse))
    )
    assert ranker.state.updates[0] > 140_000
    assert error.max() < 1e-9
    np.testing.assert_allclose(ranker.theta, inverse @ ranker.state.b[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("size", [1e-300, 1e60])
def test_extreme_features_break_nothing(kind: Any, size: float) -> None:
    ranker = build(kind, n_features=2)
    rng = np.random.default_rng(1)
    for _ in range(40):
        X = rng.uniform(-1, 1, size=(4, 2)) * np.array([size, 1.0])
        shown = ranker.rank(X, rng=rng)
        ranker.learn(shown, rng.integers(0, 2, 3))
        for part in ranker.state:
            assert np.isfinite(part).all()


@pytest.mark.parametrize("kind", PBM, ids=lambda kind: kind.__name__)
def test_unknown_examinations_are_estimated(kind: Any) -> None:
    rng, kappa = np.random.default_rng(2), np.array([0.5, 1.0, 0.25])
    X = rng.random((30, 3))
    theta = np.array([0.5, 0.2, 0.1])
    ranker = kind(features=X, n_positions=3)
    world = environments.PositionBased(attraction=X @ theta, examination=kappa)
    simulation.play(ranker, world, rounds=20_000, seed=1)
    np.testing.assert_allclose(ranker.examination, kappa, atol=0.03)
    best = np.argsort(-(X @ theta))[:3]
    np.testing.assert_allclose(X[best] @ ranker.theta, X[best] @ theta, atol=0.05)
    assert ranker.current().tolist()[1] == best[0]
    # What it holds is the least-squares estimate given these examinations, once S was computed anew.
    V = np.tril(ranker.state.V) + np.tril(ranker.state.V, -1).transpose(0, 2, 1)
    M = np.eye(3) + np.einsum("j,jkl->kl", ranker.examination**2, V)
    np.testing.assert_allclose(
        ranker.theta, np.linalg.solve(M, ranker.examination @ ranker.state.b), atol=1e-3
    )


def test_nothing_below_the_first_click_is_learnt_from_in_a_cascade() -> None:
    ranker = rankers.CascadeLinUCB(n_features=2, n_positions=4)
    shown = ranker.rank(np.eye(2)[[0, 1, 0, 1, 0]], rng=np.random.default_rng(1))
    ranker.learn(shown, [0, 1, 1, 0])
    assert ranker.state.updates[0] == 2
    ranker.learn(shown, [0, 0, 0, 0])
    assert ranker.state.updates[0] == 6  # the fifth was not shown


def catalogue(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.dirichlet(np.ones(d), size=n)
    return X, X @ np.linspace(0.05, 0.5, d)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_compiled_loop_tells_the_same_story(kind: Any) -> None:
    X, attraction = catalogue(12, 3)
    world = environments.PositionBased(attraction=attraction, examination=[1.0, 0.6, 0.3])
    check_same_story(lambda: kind(features=X, n_positions=3), world.clone)
    queries = data.synthetic_letor(n_queries=12, n_features=3, seed=1)
    people = environments.ClickedQueries(queries, clicks="informational", n_positions=5)
    check_same_story(lambda: kind(n_features=3, n_positions=5), people.clone)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_features_help_in_a_large_catalogue(kind: Any) -> None:
    X, attraction = catalogue(300, 4)
    if kind.cascade:
        from rankloop.feedback import CascadeModel

        world: Any = environments.ClickUsers(CascadeModel(attraction), n_positions=4)
        rival: Any = rankers.CascadeKLUCB(n_items=300, n_positions=4)
    else:
        world = environments.PositionBased(attraction=attraction, examination=[1.0, 0.6, 0.4, 0.3])
        rival = rankers.PBMTS(n_items=300, n_positions=4)
    with_features = simulation.play(kind(features=X, n_positions=4), world.clone(), rounds=3_000, seed=1)
    without = simulation.play(rival, world, rounds=3_000, seed=1)
    assert with_features.total_regret < 0.7 * without.total_regret


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (rankers.CascadeLinUCB, {}, "give either n_features or features"),
        (
            rankers.CascadeLinTS,
            {"n_features": 2, "features": np.eye(2)},
            "give either n_features or features",
        ),
        (rankers.CascadeLinUCB, {"n_features": 0}, "n_features must be"),
        (rankers.CascadeLinUCB, {"features": [1.0, 2.0]}, r"features must be items x features.*\(2,\)"),
        (rankers.LinTSPBM, {"features": [[1.0, np.nan]]}, "features must be finite.*item 0, feature 1"),
        (rankers.LinTSPBM, {"features": [[1.0, 1e61]]}, "features must be finite and at most 1e"),
        (
            rankers.CascadeLinUCB,
            {"features": np.eye(2), "n_positions": 3},
            "n_positions must be at most n_items=2",
        ),
        (rankers.CascadeLinUCB, {"n_features": 2, "n_positions": 0}, "n_positions must be"),
        (rankers.CascadeLinUCB, {"n_features": 2, "c": -1.0}, "c must be"),
        (rankers.CascadeLinTS, {"n_features": 2, "sigma": 0.0}, "sigma must be"),
        (rankers.LinUCBPBM, {"n_features": 2, "examination": [0.0, 1.0]}, "examination must be"),
        (
            rankers.LinTSPBM,
            {"n_features": 2, "examination": [0.5, 1.0], "n_positions": 3},
            "examination must have 3 numbers, one for each position, got 2",
        ),
    ],
)
def test_a_wrong_argument_is_named(kind: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**given)


def test_a_state_that_cannot_be_is_refused() -> None:
    ranker = rankers.LinTSPBM(n_features=2, n_positions=2)
    saved = ranker.save()
    for name, value in (("kappa", np.array([0.0, 1.0])), ("updates", np.array([-1]))):
        with pytest.raises(ValueError, match=f"saved state '{name}'"):
            ranker.load(saved | {name: value})


@pytest.mark.parametrize("kind", [rankers.LinTSPBM, rankers.LinUCBPBM])
def test_lists_of_requests_are_shown_from_the_top_where_examinations_are_estimated(kind: Any) -> None:
    # Estimates that differ by chance alone must not move the best document away from the top.
    ranker, rng = kind(n_features=2, n_positions=3), np.random.default_rng(1)
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    for _ in range(200):
        shown = ranker.rank(X, rng=rng)
        ranker.learn(shown, rng.random(3) < [0.8, 0.1, 0.4][shown.items[0]] * np.ones(3))
    ranker.state.kappa[:] = [0.8, 0.9, 1.0]
    best_last = kind(n_features=2, examination=[0.8, 0.9, 1.0])
    best_last.state.theta[:] = ranker.state.theta
    best_last.state.S[:] = ranker.state.S
    assert ranker.current(X).tolist() == best_last.current(X).tolist()[::-1]
    key = np.random.default_rng(2)
    assert ranker.rank(X, rng=key).items[0] == best_last.rank(X, rng=np.random.default_rng(2)).items[2]
