"""The kernels of RTop-kF, ListNet and the stream of queries: whole runs in plain Python, buffers that are too long."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rankloop import environments, measures, rankers, simulation, surrogates
from tests.kernels.splitmix import uniforms
from tests.rankers.one_step import FORMS, Learner, keyed, project

Floats = NDArray[np.float64]


def queries(dtype: Any = np.float64, longest: int = 7) -> Any:
    rng = np.random.default_rng(11)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, longest, 15))])
    features = rng.normal(size=(offsets[-1], 5)) / 3.0
    features[3] = features[2]  # two documents alike
    return SimpleNamespace(
        features=features.astype(dtype),
        relevance=rng.integers(0, 5, offsets[-1]).astype(np.float64),
        offsets=offsets,
    )


def shuffled(numbers: list[float]) -> list[int]:
    """Inside-out Fisher-Yates."""
    items: list[int] = []
    for i, u in enumerate(numbers):
        j = int(u * (i + 1))
        items.append(items[j] if j < i else i)
        items[j] = i
    return items


def greedy(scores: Floats, numbers: list[float]) -> list[int]:
    """By falling score; in a run of ties, item i of the list changes places with one before it in the run."""
    items = sorted(range(len(scores)), key=lambda i: -scores[i])
    start = 0
    for i in range(1, len(items)):
        if scores[items[i]] != scores[items[i - 1]]:
            start = i
        else:
            j = start + int(numbers[i] * (i - start + 1))
            items[i], items[j] = items[j], items[i]
    return items


def in_plain_python(learner: Learner, dataset: Any, rounds: int, seed: int) -> tuple[Floats, float, int]:
    """Algorithm 1 with the reference's estimates, on the words that `play` draws for this seed."""
    mine, theirs = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    words = [int(word) for word in mine.bit_generator.random_raw(rounds)]
    arrivals = [int(word) for word in theirs.bit_generator.random_raw(2 * rounds)[::2]]
    n_queries = len(dataset.offsets) - 1
    ndcg = measures.get("ndcg@3")
    state = learner.ranker.state
    assert not state.w.any()  # w_1 = 0
    total, explored, sequence = 0.0, 0, list[int]()
    for t in range(rounds):
        if t % n_queries == 0:
            sequence = shuffled(uniforms(arrivals[t], n_queries))
        rows = slice(*dataset.offsets[sequence[t % n_queries] :][:2])
        X, R = dataset.features[rows].astype(np.float64), dataset.relevance[rows]
        n = len(X)
        numbers = uniforms(words[t], 2 * n + 1)
        scores = X @ state.w
        scores[np.abs(scores) < 1e-300] = 0.0
        best = greedy(np.round(scores, 12), numbers[1:])
        exploring = numbers[0] < learner.gamma
        shown = np.array(shuffled(numbers[1 + n :]) if exploring else best)
        labels = R[shown[: learner.k]]
        z = learner.z(X, shown, np.array(best), labels)
        state.w[:] = project(state.w - learner.eta * z, learner.radius)
        used = min(learner.ranker.params.n_observed, n)
        state.labels[:] += [labels[:used].sum(), used]
        total += float(ndcg(shown, R))
        explored += exploring
    return state.w.copy(), total, explored


@pytest.mark.judges("2016-102")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "estimator", "variate"), FORMS)
def test_a_run_is_algorithm_1_in_plain_python(
    name: str, estimator: str, variate: str | None, dtype: Any
) -> None:
    dataset, rounds, seed = queries(dtype), 150, 4
    learner = Learner(name, 3, estimator, variate, n_features=5, eta=0.004, gamma=0.4, radius=1.5)
    compiled = Learner(name, 3, estimator, variate, n_features=5, eta=0.004, gamma=0.4, radius=1.5).ranker
    trace = simulation.play(
        compiled, environments.QueryStream(dataset, measure="ndcg@3"), rounds=rounds, seed=seed
    )
    w, total, explored = in_plain_python(learner, dataset, rounds, seed)
    near = 1e-10 if dtype is np.float64 else 1e-5  # features in float32 are scored in float32
    np.testing.assert_allclose(compiled.state.w, w, rtol=1e-8, atol=near)
    np.testing.assert_allclose(trace.total_value, total, rtol=1e-10)
    assert int(trace.explored[-1]) == explored
    np.testing.assert_allclose(compiled.state.labels, learner.ranker.state.labels)


@pytest.mark.parametrize(
    ("kind", "name"), [(rankers.ListNet, "listnet"), (rankers.CalibratedSquared, "calibrated_squared")]
)
def test_a_run_with_full_information_in_plain_python(kind: Any, name: str) -> None:
    dataset, rounds = queries(), 200
    ranker = kind(n_features=5, learning_rate=(0.5, 0.5), radius=1.0)
    stream = environments.QueryStream(dataset, order="in-order")
    simulation.play(ranker, stream, rounds=rounds, seed=1)
    w, surrogate = np.zeros(5), surrogates.get(name)
    for t in range(rounds):
        rows = slice(*dataset.offsets[t % 15 :][:2])
        X, R = dataset.features[rows], dataset.relevance[rows]
        w = project(w - 0.5 * (t + 1) ** -0.5 * X.T @ surrogate.gradient(X @ w, R), 1.0)
    np.testing.assert_allclose(ranker.state.w, w, rtol=1e-9, atol=1e-12)


def _filled(parts: Any, with_: float) -> Any:
    for part in parts:
        part[...] = with_
    return parts


@pytest.mark.parametrize("longest", [7, 128, 129, 400])
@pytest.mark.parametrize(
    "make",
    [
        lambda: rankers.RTopKF(
            n_features=3,
            k=4,
            learning_rate="camera-ready",
            estimator="horvitz-thompson",
            control_variate="score",
            exploration=0.5,
        ),
        lambda: rankers.RTopKF(
            n_features=3, surrogate="smooth_dcg", k=4, control_variate="mean", exploration=0.5
        ),
        lambda: rankers.RTopKF(
            n_features=3, surrogate="ranksvm", k=4, estimator="horvitz-thompson", exploration=0.5
        ),
        lambda: rankers.RTopKF(n_features=3, k=4),
        lambda: rankers.ListNet(n_features=3),
        lambda: rankers.CalibratedSquared(n_features=3, learning_rate=(0.01, 0.5)),
    ],
    ids=["kl", "smooth_dcg", "ranksvm", "centred_squared", "listnet", "calibrated_squared"],
)
def test_buffers_of_the_longest_list_serve_every_list(make: Any, longest: int) -> None:
    # The compiled loop keeps one ticket for all rounds: nothing of a long list may leak into a short one after it.
    rng = np.random.default_rng(longest)
    stepwise, looped = make(), make()
    scratch = _filled(looped.scratch(longest), 77)
    items, propensities, memo = looped.blank_ticket(longest)
    _filled((items, *memo), 99)
    revealed = np.full(looped.feedback.length(longest), 1e6)
    for t, n in enumerate((longest, 1, 2, 3, longest - 1, 6, 1)):
        X, key = rng.normal(size=(n, 3)), np.uint64(1000 + t)
        labels = rng.integers(0, 5, n).astype(np.float64)
        shown = stepwise.rank(X, rng=keyed(int(key)))
        ticket = (items, propensities, memo)
        looped.kernels.rank(looped.params, looped.state, X, key, scratch, *ticket)
        np.testing.assert_array_equal(items[:n], shown.items)
        if shown.propensities is not None:
            np.testing.assert_array_equal(propensities[:n], shown.propensities)
        told = stepwise.feedback.length(n)
        revealed[:told] = labels[items[:told]]
        stepwise.learn(shown, labels[shown.items[:told]])
        looped.kernels.learn(looped.params, looped.state, X, scratch, *ticket, revealed)
        for part, value in stepwise.save().items():
            np.testing.assert_array_equal(looped.save()[part], value, err_msg=f"{part} after round {t}")


def test_ranking_a_short_list_leaves_the_rest_of_the_buffers_alone() -> None:
    ranker = rankers.RTopKF(n_features=2, k=3, estimator="horvitz-thompson", exploration=1.0)
    items, propensities, memo = ranker.blank_ticket(9)
    _filled((items, propensities), 55)
    ranker.kernels.rank(
        ranker.params, ranker.state, np.eye(2), np.uint64(1), ranker.scratch(9), items, propensities, memo
    )
    assert (items[2:] == 55).all()
    assert (propensities[2:] == 55).all()
