"""RTop-kF without constants: its lists and estimates by enumeration, whole runs in plain Python, and scales."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankloop import data, environments, rankers, simulation, surrogates
from rankloop.base import Floats
from rankloop.rankers import ListNet, RTopKF
from tests.rankers.one_step import a_list, keyed, keys


def kept_and_drawn(ranker: RTopKF, n: int) -> tuple[int, int]:
    observed = min(ranker.feedback.k, n)
    return (0, observed) if ranker.surrogate.name == "ranksvm" else (observed - 1, 1)


def exploring(greedy: list[int], kept: int, drawn: int) -> Counter[tuple[int, ...]]:
    """Every list that explores, with its chance."""
    found: Counter[tuple[int, ...]] = Counter()
    chosen = list(itertools.permutations(greedy[kept:], drawn))
    for picked in chosen:
        rest = [item for item in greedy[kept:] if item not in picked]
        found[*greedy[:kept], *picked, *rest] += 1 / len(chosen)  # type: ignore[assignment]
    return found


def chances(greedy: list[int], kept: int, drawn: int, gamma: float) -> dict[tuple[int, ...], float]:
    """Every list that can be shown, with its chance."""
    law = Counter({order: gamma * share for order, share in exploring(greedy, kept, drawn).items()})
    law[tuple(greedy)] += 1 - gamma  # type: ignore[assignment]
    return dict(law)


def shown_lists(ranker: RTopKF, X: Floats, wanted: int) -> dict[tuple[int, ...], Any]:
    """A ticket for each list that can be shown, by trying keys."""
    found: dict[tuple[int, ...], Any] = {}
    for key in range(5_000):
        shown = ranker.rank(X, rng=keyed(key))
        found.setdefault(tuple(shown.items.tolist()), shown)
        if len(found) == wanted:
            return found
    raise AssertionError(f"only {sorted(found)} were shown")


GUESSES: list[dict[str, Any]] = [{}, {"control_variate": "mean"}, {"control_variate": "score"}]
MORE: dict[str, list[dict[str, Any]]] = {
    "centred_squared": [{}],
    "squared": GUESSES,
    "kl": GUESSES,
    "smooth_dcg": [*GUESSES, {"epsilon": None}, {"epsilon": None, "control_variate": "score"}],
    "ranksvm": [{}],
}
CASES = [
    (surrogate, k, more)
    for surrogate, told in MORE.items()
    for more in told
    for k in (1, 2, 3)
    if (surrogate, k) != ("ranksvm", 1)
]


def smooth_gain(w: Floats, X: Floats, R: Floats) -> Any:
    """SmoothDCG of scores whose softmax is 0.3 standard deviations wide."""
    s = X @ w
    return surrogates.SmoothDCG(epsilon=0.3 * float(s.std())).value(s, R)


@pytest.mark.parametrize(("surrogate", "k", "more"), CASES)
def test_lists_and_estimates_by_enumeration(surrogate: str, k: int, more: dict[str, Any]) -> None:
    n, t = 5, 40
    X, R = a_list(n, 3, seed=k)
    ranker = RTopKF(n_features=3, surrogate=surrogate, k=k, radius=1e6, **more)
    ranker.state.w[:] = 0.3, -0.1, 0.2
    ranker.state.scale[:] = 100.0  # above every feature, so that nothing is rescaled
    ranker.state.t[0] = t
    ranker.state.labels[:] = 7.0, 4.0
    saved = ranker.save()
    s = X @ ranker.state.w
    greedy = np.argsort(-s).tolist()
    gamma = min(0.5, 1.5 * (n / (k * (t + 1))) ** (1 / 3))
    kept, drawn = kept_and_drawn(ranker, n)
    law = chances(greedy, kept, drawn, gamma)
    at = np.zeros((n, n))  # the chance of item i at position p
    for order, chance in law.items():
        at[list(order), range(n)] += chance
    mean, weighted = np.zeros(3), np.zeros(n)
    found = shown_lists(ranker, X, len(law))
    assert set(found) == set(law)
    positions = np.vstack([np.arange(n) ** 2.0, np.cos(np.arange(n))])
    for order, shown in found.items():
        np.testing.assert_allclose(shown.propensities, at[list(order), range(n)], rtol=1e-12)
        expected = (positions @ at.T)[:, list(order)[:k]]
        np.testing.assert_allclose(ranker.mean_by_position(X, shown, positions), expected, rtol=1e-10)
        ranker.load(saved)
        ranker.learn(shown, R[shown.items[:k]])
        # AdaGrad's first step shows the size of the gradient in the squares, its sign in the weights.
        step = saved["w"] - ranker.state.w
        mean += law[order] * np.sqrt(ranker.state.squares) * np.sign(step)
        assert (np.abs(step[step != 0]) > 0.9 * 0.03 / 100).all()
    epsilon = {"epsilon": float(s.std())} if surrogate == "smooth_dcg" else {}
    loss = surrogates.get(surrogate, **epsilon)
    w = saved["w"]
    seen = at[:, :k].sum(axis=1)
    if surrogate == "centred_squared":
        alpha = (t + 1) ** (-1 / 3)
        weighted = (1 - alpha) / n + alpha * seen / k
        gaps = 2.0 * weighted * (s - s.mean() + 7.0 / 4.0 - R)
        wanted = (X - X.mean(axis=0)).T @ gaps
    elif surrogate == "smooth_dcg" and "epsilon" not in more:
        sides = 1e-5 * np.eye(3)
        wanted = [(smooth_gain(w - side, X, R) - smooth_gain(w + side, X, R)) / 2e-5 for side in sides]
        np.testing.assert_allclose(mean @ w, 0.0, atol=1e-12)  # wider scores are no better
    else:
        share = {"smooth_dcg": -1.0, "ranksvm": 1.0 / (n * (n - 1))}.get(surrogate, 1.0 / n)
        wanted = share * X.T @ loss.gradient(s, R)
    exact = surrogate != "smooth_dcg" or "epsilon" in more  # differences on both sides of w are not
    np.testing.assert_allclose(mean, wanted, rtol=1e-9 if exact else 1e-6, atol=1e-12 if exact else 1e-7)


def test_uniform_weights_are_the_gradient_of_the_surrogate() -> None:
    # What the weights above are for: with equal ones, the estimate is that of the surrogate itself.
    X, R = a_list(4, 3, seed=1)
    s = X @ np.array([0.3, -0.1, 0.2])
    loss = surrogates.CentredSquared()
    centred = (X - X.mean(axis=0)).T @ (2.0 * (s - s.mean() + 1.3 - R))
    np.testing.assert_allclose(centred, X.T @ loss.gradient(s, R), rtol=1e-12, atol=1e-12)
    terms = sum(loss.h(s, [i], [R[i]]) for i in range(4))
    np.testing.assert_allclose(terms, loss.gradient(s, R), rtol=1e-12, atol=1e-12)


def test_a_feature_that_is_equal_up_to_rounding_is_not_learnt_from() -> None:
    # The mean of three thirds is not a third: a difference of 1e-17 must not become the scale of the feature.
    ranker = RTopKF(n_features=2, k=2)
    for key in range(20):
        X = np.column_stack([np.full(7, 0.1 + 1e-3 * key), np.arange(7.0)])
        shown = ranker.rank(X, rng=keyed(key))
        ranker.learn(shown, [1.0, 0.0])
    assert ranker.state.scale[0] == 0.0
    assert ranker.state.w[0] == 0.0
    assert ranker.state.scale[1] == pytest.approx(3.0)


def test_a_feature_larger_than_ever_makes_no_gradient_of_any_size() -> None:
    ranker = RTopKF(n_features=1, k=2, max_grade=4)
    for key in range(30):
        shown = ranker.rank(np.arange(5.0)[:, None] * 1e-9, rng=keyed(key))
        ranker.learn(shown, shown.items[:2] / 2.0)
    before = float(ranker.state.squares[0])
    shown = ranker.rank(np.arange(5.0)[:, None] * 1e9, rng=keyed(1))
    assert (shown.memo[1][:, 1] >= -4.0).all()
    assert (shown.memo[1][:, 1] <= 8.0).all()
    ranker.learn(shown, [4.0, 0.0])
    assert before < ranker.state.squares[0] < (2 * 12.0 * 2 * 2e9) ** 2


def test_with_a_schedule_of_exploration_whole_lists_are_random() -> None:
    ranker = RTopKF(n_features=1, surrogate="kl", exploration=0.5, max_grade=1)
    ranker.state.w[0] = 1.0
    law = chances([2, 1, 0], 0, 3, 0.5)
    X = np.arange(3.0)[:, None]
    assert set(shown_lists(ranker, X, 6)) == set(law)
    assert len(keys(3, 0.5, tied=False)) == 6
    shown = ranker.rank(X, rng=keyed(1))
    np.testing.assert_allclose(
        shown.propensities, [2 / 3 if i == g else 1 / 6 for i, g in zip(shown.items, [2, 1, 0], strict=True)]
    )


def queries(factor: Any = 1.0, offset: Any = 0.0) -> Any:
    made = data.synthetic_letor(n_queries=60, n_features=4, seed=3)
    return SimpleNamespace(
        features=made.features * factor + offset,
        relevance=made.relevance,
        offsets=made.offsets,
        max_grade=made.max_grade,
    )


def in_plain_python(tickets: list[tuple[Any, Floats]], d: int, rate: float, radius: float) -> Floats:
    """AdaGrad over the tickets of centred_squared, in numpy."""
    w, squares, scale = np.zeros(d), np.zeros(d), np.zeros(d)
    for shown, labels in tickets:
        _, columns, _, rows = shown.memo
        g = rows.T @ (2.0 * (columns[:, 1] - labels) * columns[:, 4])
        wider = np.maximum(scale, np.abs(rows).max(axis=0))
        w *= np.divide(scale, wider, out=np.ones(d), where=wider > 0)
        scale = wider
        squares += g**2
        w -= rate * np.divide(g, scale * np.sqrt(squares), out=np.zeros(d), where=squares > 0)
        w = np.clip(w, -radius / scale, radius / scale)
    return w


def test_a_run_is_adagrad_in_plain_python() -> None:
    stream = environments.QueryStream(queries(), measure="ndcg@10")
    ranker = RTopKF(n_features=4, k=2, radius=0.3)
    rng, users = np.random.default_rng(1), np.random.default_rng(2)
    tickets = []
    for _ in range(200):
        shown = ranker.rank(stream.arrive(rng=users), rng=rng)
        labels = stream.respond(shown, rng=users)[:2]
        tickets.append((shown, labels))
        ranker.learn(shown, labels)
    expected = in_plain_python(tickets, 4, 0.03, 0.3)
    np.testing.assert_allclose(ranker.state.w, expected, rtol=1e-9)
    assert np.isclose(np.abs(ranker.state.w * ranker.state.scale), 0.3).any()  # the radius was met


SMOOTH = partial(RTopKF, surrogate="smooth_dcg", k=2)


@pytest.mark.parametrize("kind", [RTopKF, SMOOTH, ListNet], ids=["RTopKF", "smooth_dcg", "ListNet"])
@pytest.mark.parametrize("factor", [2.0**10, 2.0**-10, np.array([1.0, 2.0**20, 2.0**-20, 2.0**5])], ids=str)
def test_units_of_features_do_not_matter(kind: Any, factor: Any) -> None:
    # Powers of two, so that not even rounding differs: the same lists, to the last one.
    found = []
    for scaled in (1.0, factor):
        ranker = kind(n_features=4)
        stream = environments.QueryStream(queries(scaled), measure="ndcg@10")
        found.append((simulation.play(ranker, stream, rounds=500, seed=4), ranker.state.w * scaled))
    (one, w), (other, scaled_w) = found
    np.testing.assert_array_equal(one.total, other.total)
    np.testing.assert_array_equal(w, scaled_w)


@pytest.mark.parametrize("kind", [RTopKF, SMOOTH, ListNet], ids=["RTopKF", "smooth_dcg", "ListNet"])
def test_features_ten_times_as_large_or_small_change_nothing_but_rounding(kind: Any) -> None:
    def learnt(factor: float) -> float:
        stream = environments.QueryStream(queries(factor), measure="ndcg@10")
        return simulation.play(kind(n_features=4), stream, rounds=2_000, seed=4).mean_value

    assert [learnt(10.0), learnt(0.1)] == pytest.approx([learnt(1.0)] * 2, rel=0.03)


def test_long_rows_are_learnt_as_well_as_short_ones() -> None:
    # With the paper's schedules rows of length 1,000 end below a random order.
    long = environments.QueryStream(queries(1_000.0, offset=5_000.0), measure="ndcg@10")
    ranker, uniform = RTopKF(n_features=4, k=2), rankers.Uniform()
    learnt = simulation.play(ranker, long, rounds=3_000, seed=1).mean_value
    long.restart()
    random = simulation.play(uniform, long, rounds=3_000, seed=1).mean_value
    assert learnt > random + 0.25


def test_lists_that_reveal_every_label_are_not_explored() -> None:
    ranker = RTopKF(n_features=2, k=3)
    for n in (1, 2, 3):
        shown = ranker.rank(np.eye(3)[:n, :2], rng=keyed(5))
        assert not shown.explored
        assert (shown.propensities == 1.0).all()
        ranker.learn(shown, [1.0] * n)


@pytest.mark.parametrize(
    ("part", "given"),
    [
        ("squares", [-1.0, 0.0]),
        ("scale", [np.inf, 0.0]),
        ("scale", [0.0, -1.0]),
        ("w", [0.0, 11.0]),
        ("t", [-1]),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [RTopKF, ListNet])
def test_a_state_that_cannot_be_is_refused(kind: Any, part: str, given: Any) -> None:
    ranker = kind(n_features=2, radius=10.0)
    saved = ranker.save() | {"scale": np.ones(2)}
    ranker.load(saved)
    broken = saved | {part: np.array(given, saved[part].dtype)}
    with pytest.raises(ValueError, match=part):
        ranker.load(broken)
    np.testing.assert_array_equal(ranker.state.scale, 1.0)


def test_a_ticket_with_an_impossible_weight_is_refused() -> None:
    ranker = RTopKF(n_features=2, k=2)
    shown = ranker.rank(np.eye(3)[:, :2], rng=keyed(1))
    shown.memo[1][0, 4] = -1.0
    with pytest.raises(ValueError, match="memo"):
        ranker.learn(shown, [1.0, 0.0])


@pytest.mark.parametrize("k", [1, 3])
def test_the_regret_bound_is_above_its_exact_sum_and_only_where_it_is_proved(k: int) -> None:
    T, m = 5_000, 12
    ranker = RTopKF(n_features=2, k=k, max_grade=3, radius=2.0)
    t = np.arange(1, T + 1)
    gamma = np.minimum(0.5, 1.5 * (m / (k * t)) ** (1 / 3))
    exact = 2 * (2 * 2.0**2 / 0.03 + 0.03) * np.sqrt(((4 * 3) ** 2 * (k / gamma + 1)).sum())
    assert exact < ranker.regret_bound(T, n_documents=m) < 2 * exact
    long, longer = (ranker.regret_bound(10**power, n_documents=m) for power in (15, 18))
    np.testing.assert_allclose(longer / long, 100.0, rtol=0.01)
    for other in ({"surrogate": "kl"}, {"exploration": 0.1}, {"learning_rate": "camera-ready"}):
        with pytest.raises(ValueError, match="regret_bound is proved for"):
            RTopKF(n_features=2, **other).regret_bound(T, n_documents=m)  # type: ignore[arg-type]
