"""Off-policy values of rankers with features: unbiased by full enumeration, and what drawing lists adds is told."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rankloop import logs, rankers
from rankloop.feedback import LoggedLists, PositionBasedModel
from rankloop.logs import off_policy
from rankloop.logs.off_policy import ESTIMATORS, DrawnLists, applied, guesses_for, lists_for
from rankloop.logs.regression import climb, impressions, rates

N, M = 3, 2
REQUESTS = np.array([[[1.0, 0.0], [0.2, 0.9], [0.5, 0.4]], [[0.1, 0.3], [0.8, 0.6], [0.0, 1.0]]])
OFTEN = np.array([0.4, 0.6])  # how often each of the two requests comes
USERS = [
    PositionBasedModel(attraction=attraction, examination=[0.9, 0.4])
    for attraction in ([0.2, 0.7, 0.5], [0.6, 0.1, 0.4])
]
V = np.array([1.0, 0.6])
WEIGHTS = np.array([1.5, 0.4])


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    """Nothing is warned of unless the test says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


class World:
    """Every request with every list of two of its first `n` candidates and every way to click: a log with chances."""

    def __init__(self, n: int) -> None:
        self.lists = np.array(list(itertools.permutations(range(n), M)))
        clicks = np.array(list(itertools.product((0, 1), repeat=M)))
        # The log shows each list with another chance, and differently for the two requests.
        self.logged = np.stack([np.arange(1.0, len(self.lists) + 1), np.arange(len(self.lists), 0.0, -1)])
        self.logged /= self.logged.sum(axis=1, keepdims=True)
        rows = list(itertools.product(range(2), range(len(self.lists)), range(len(clicks))))
        self.request, which, how = np.array(rows).T
        items, clicked = self.lists[which], clicks[how]
        self.chance = np.array(
            [OFTEN[x] * self.logged[x, a] * USERS[x].likelihood(self.lists[a], clicks[b]) for x, a, b in rows]
        )
        cells = np.zeros((2, n, M))
        for x, (a, shown) in itertools.product(range(2), enumerate(self.lists)):
            cells[x, shown, np.arange(M)] += self.logged[x, a]
        self.log = LoggedLists(
            items=items,
            clicks=clicked,
            propensities=cells[self.request[:, None], items, np.arange(M)],
            list_propensities=self.logged[self.request, which],
            features=REQUESTS[self.request, :n],
        )
        self.v = np.broadcast_to(V, items.shape)

    def rows(self, which: list[int]) -> LoggedLists:
        log = self.log
        assert log.propensities is not None
        return LoggedLists(
            items=log.items[which],
            clicks=log.clicks[which],
            propensities=log.propensities[which],
            features=[log.features[row] for row in which],  # type: ignore[index]
        )

    def guess(self, seed: int) -> np.ndarray:
        """Click rates that depend on the request, its candidate and the position, and on nothing that happened."""
        return np.random.default_rng(seed).random((2, N, M))[self.request].reshape(-1, M)

    def truth(self, shown: np.ndarray) -> float:
        """The value of a list for each request."""
        return float(sum(OFTEN[x] * USERS[x].click_probabilities(shown[x]) @ V for x in range(2)))

    def estimates(self, policy: DrawnLists, q: np.ndarray) -> dict[str, np.ndarray]:
        log, c, v = self.log, self.log.clicks, self.v
        assert log.propensities is not None
        w = policy.of_cells(log) / log.propensities
        by_list = policy.of_lists(log) / log.list_propensities
        guessed = applied([(np.ones(log.n_rows, np.bool_), q)], log, policy)
        return {
            "ips": off_policy.ips(by_list, c, v),
            "item-position": off_policy.item_position(w, c, v),
            "doubly-robust": off_policy.doubly_robust(w, c, v, *guessed),
        }


def best(n: int = N) -> np.ndarray:
    return np.argsort(-(REQUESTS[:, :n] @ WEIGHTS), axis=1)[:, :M]


def test_every_estimator_is_unbiased_for_an_order_by_features() -> None:
    world = World(N)
    policy = lists_for(
        rankers.PDGD(n_features=2, warm_start=WEIGHTS), world.log, draws=1, explore=False, seed=1
    )
    np.testing.assert_array_equal(policy.lists[:, 0], best()[world.request])
    for seed in (1, 2):  # whatever the guess
        for name, rows in world.estimates(policy, world.guess(seed)).items():
            assert world.chance @ rows == pytest.approx(world.truth(best()), abs=1e-12), name


def test_the_list_of_another_request_is_not_the_same() -> None:
    """The wrong version: the list for the first request, weighed everywhere."""
    world = World(N)
    wrong = DrawnLists(np.broadcast_to(best()[0], (world.log.n_rows, 1, M)))
    for name, rows in world.estimates(wrong, world.guess(1)).items():
        assert abs(world.chance @ rows - world.truth(best())) > 0.01, name


def test_one_drawn_list_a_row_is_enough_to_be_unbiased() -> None:
    """Over all lists that PDGD could have drawn, with the chances of its paper."""
    world = World(N)
    q = world.guess(3)
    scores = np.exp(REQUESTS @ WEIGHTS)
    mean = dict.fromkeys(("ips", "item-position", "doubly-robust"), 0.0)
    truth = 0.0
    for one, other in itertools.product(world.lists, repeat=2):
        drawn = np.stack([one, other])
        chance = 1.0
        for x in range(2):
            left = scores[x].sum()
            chance *= (scores[x, drawn[x, 0]] / left) * (
                scores[x, drawn[x, 1]] / (left - scores[x, drawn[x, 0]])
            )
        truth += chance * world.truth(drawn)
        for name, rows in world.estimates(DrawnLists(drawn[world.request][:, None]), q).items():
            mean[name] += chance * float(world.chance @ rows)
    for name, value in mean.items():
        assert value == pytest.approx(truth, abs=1e-12), name


def test_a_guess_by_features_from_the_other_half_leaves_doubly_robust_unbiased() -> None:
    """Every log of two rows: 16 x 16 of them. With its own clicks in a row's guess, the mean is another one."""
    world = World(2)
    own_clicks = expected = 0.0
    for a, b in itertools.product(range(world.log.n_rows), repeat=2):
        log = world.rows([a, b])
        policy = DrawnLists(best(2)[world.request[[a, b]]][:, None])
        assert log.propensities is not None
        w = policy.of_cells(log) / log.propensities

        def mean(guesses: Any, log: LoggedLists = log, policy: Any = policy, w: Any = w) -> float:
            q_shown, q_policy = applied(guesses, log, policy)
            return float(off_policy.doubly_robust(w, log.clicks, world.v[:2], q_shown, q_policy).mean())

        expected += world.chance[a] * world.chance[b] * mean(guesses_for(None, log))
        everywhere = np.ones(2, np.bool_)
        q = np.zeros((4, M))
        if log.clicks.any():
            fitted = climb(impressions(log, None), ridge=1.0, tolerance=1e-4, max_steps=50)
            q = rates(fitted, log.features.rows)  # type: ignore[union-attr]
        own_clicks += world.chance[a] * world.chance[b] * mean([(everywhere, q)])
    truth = world.truth(best(2))
    assert expected == pytest.approx(truth, abs=1e-10)
    assert abs(own_clicks - truth) > 0.01


def simulated(n: int, seed: int, *, n_candidates: int = 5, positions: int = 3) -> tuple[LoggedLists, Any]:
    """Lists in any order of new items, and a function for the true value of one list a row."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, n_candidates, 2))
    attraction = 1.0 / (1.0 + np.exp(1.0 - x @ [1.0, -0.5]))
    examination = np.array([1.0, 0.6, 0.3])[:positions]
    items = rng.permuted(np.tile(np.arange(n_candidates), (n, 1)), axis=1)[:, :positions]
    rate = np.take_along_axis(attraction, items, axis=1) * examination
    chances = 1.0 / np.cumprod(np.arange(n_candidates, n_candidates - positions, -1.0))[-1]
    log = LoggedLists(
        items=items,
        clicks=rng.random(items.shape) < rate,
        propensities=np.full(items.shape, 1.0 / n_candidates),
        list_propensities=np.full(n, chances),
        features=x,
        name="new items",
    )

    def value(lists: np.ndarray) -> float:
        return float((np.take_along_axis(attraction, lists, axis=1) * examination).sum(axis=1).mean())

    return log, value


def test_intervals_hold_the_truth_as_often_as_said() -> None:
    # Values are those of the rows at hand, whose candidates vary: intervals are a little wider than they need be.
    runs = 120
    hits = dict.fromkeys(ESTIMATORS, 0)
    widths = dict.fromkeys(ESTIMATORS, 0.0)
    for seed in range(runs):
        log, value = simulated(300, seed, n_candidates=4, positions=2)
        lists = np.argsort(-(log.features.rows @ [1.0, -0.5]).reshape(300, -1), axis=1)[:, :2]  # type: ignore[union-attr]
        for estimator in ESTIMATORS:
            found = logs.evaluate(log, lists, estimator=estimator, confidence=0.9, least_effective=1)
            hits[estimator] += found.low < value(lists) < found.high
            widths[estimator] += found.high - found.low
            assert found.draw_error == 0.0
    for estimator, count in hits.items():
        assert count / runs >= 0.83, hits
        if estimator != "switch":  # whose interval has the largest bias in it
            assert count / runs <= 0.97, hits
    assert widths["doubly-robust"] < widths["item-position"] < widths["ips"]


def test_the_error_of_drawing_is_told_and_shrinks() -> None:
    log, _ = simulated(80, seed=4)
    ranker = rankers.PDGD(n_features=2, warm_start=[1.0, -0.5])

    def ask(draws: int, seed: int, estimator: str = "doubly-robust") -> logs.Evaluation:
        return logs.evaluate(log, ranker, draws=draws, seed=seed, estimator=estimator, least_effective=0)

    for estimator in ("doubly-robust", "item-position"):
        found = [ask(4, seed, estimator) for seed in range(40)]
        spread = float(np.std([one.value for one in found], ddof=1))
        told = float(np.sqrt(np.mean([one.draw_error**2 for one in found])))
        assert 0.6 < told / spread < 1.6
        assert all(0.0 < one.draw_error < one.standard_error for one in found)
    assert ask(64, 1).draw_error < 0.5 * told
    assert ask(4, 1).value == ask(4, 1).value != ask(4, 2).value


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_rankers_of_every_kind_are_valued(estimator: str) -> None:
    log, value = simulated(3_000, seed=6, n_candidates=3, positions=2)
    assert log.features is not None
    order = np.argsort(-(log.features.rows @ [1.0, -0.5]).reshape(3_000, 3), axis=1)[:, :2]
    truth = value(order)
    fitted = logs.fit_regression_em(log)
    linear = rankers.PDGD(n_features=2, warm_start=[1.0, -0.5])
    exact = logs.evaluate(log, linear, estimator=estimator, explore=False)
    assert exact.low < truth < exact.high
    assert exact.draw_error == 0.0
    assert logs.evaluate(log, order, estimator=estimator) == exact
    learnt = logs.evaluate(log, fitted, estimator=estimator)
    assert abs(learnt.value - truth) < 0.1
    if estimator in ("doubly-robust", "switch"):
        known = logs.evaluate(log, order, estimator=estimator, click_rates=fitted)
        assert known.low < truth < known.high


def test_short_lists_count_with_what_they_show() -> None:
    log, _ = simulated(1_000, seed=7, n_candidates=3, positions=3)
    assert log.features is not None
    whole = logs.evaluate(log, rankers.PDGD(n_features=2), estimator="item-position", explore=False)
    assert whole.mean_weight == pytest.approx(1.0, abs=0.05)
    items, clicks, features = [], [], []
    for row in range(log.n_rows):
        keep = 2 if row % 2 else 3
        kept = [place for place, item in enumerate(log.items[row]) if item < keep]
        pad = [-1] * (3 - keep)
        items.append([*log.items[row][kept], *pad])
        clicks.append([*log.clicks[row][kept], *[0] * len(pad)])
        features.append(log.features[row][:keep])
    chances = np.where(np.arange(1_000)[:, None] % 2, 1 / 2, 1 / 3) * np.ones(3)
    short = LoggedLists(items=items, clicks=clicks, propensities=chances, features=features)
    for estimator in ("item-position", "doubly-robust", "self-normalised", "switch"):
        found = logs.evaluate(short, rankers.PDGD(n_features=2), estimator=estimator, draws=3)
        assert found.low < logs.on_policy(short).value < found.high
        assert found.mean_weight == pytest.approx(1.0, abs=0.1)


def test_a_log_that_cannot_tell_is_refused_or_warned_of() -> None:
    n = 500
    features = np.broadcast_to([[1.0], [0.0]], (n, 2, 1))
    always = LoggedLists(
        items=np.tile([0, 1], (n, 1)),
        clicks=np.tile([1, 0], (n, 1)),
        propensities=np.full((n, 2), 0.999),
        features=features,
        name="sorted",
    )
    with pytest.raises(logs.TooFewSamples, match=r"effective sample size 0\.0 of 500 rows.*'sorted' rarely"):
        logs.evaluate(always, rankers.PDGD(n_features=1, warm_start=[-1.0]), explore=False)
    with pytest.warns(logs.PropensityWarning, match=r"weights average 0\.(49|50)"):
        logs.evaluate(always, rankers.PDGD(n_features=1), draws=50)  # half of what it shows never was


@pytest.mark.parametrize(
    ("policy", "arguments", "told"),
    [
        (rankers.Uniform(n_items=3), {}, "policy must be a ranker of lists with features, .* got one of fixed items"),
        (rankers.PDGD(n_features=3), {}, "policy must be a ranker of the log's 2 features, got one of 3"),
        (rankers.PDGD(n_features=2), {"draws": 0}, "draws must be a whole number"),
        ([0, 1, 2], {}, "policy must be a ranker, something with a method order, or a matrix"),
        (np.zeros((20, 3)), {}, "policy must rank at least 3 different candidates of the 5 of list 0"),
        (np.tile([0, 1, 9], (20, 1)), {}, "policy must rank at least 3 different candidates"),
        (np.tile([0, 1, 2], (20, 1)), {"click_rates": np.ones((5, 3))}, r"candidates of all lists .*\(100, 3\)"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(policy: Any, arguments: dict[str, Any], told: str) -> None:
    log, _ = simulated(20, seed=1)
    with pytest.raises(ValueError, match=told):
        logs.evaluate(log, policy, **arguments)


def test_explore_is_for_lists_with_features() -> None:
    log = LoggedLists(items=[[0, 1]], clicks=[[0, 1]], propensities=[[0.5, 0.5]])
    with pytest.raises(ValueError, match="explore=False is for logs with features"):
        logs.evaluate(log, rankers.Uniform(n_items=2), explore=False)
