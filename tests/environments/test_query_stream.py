"""Queries that come one by one: in which order, with which labels, and what a ranking of each is worth."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from rankloop import checks, environments, measures, rankers, simulation
from rankloop.base import Floats, Ranking
from rankloop.environments import QueryStream

GRADED = ["sum_loss", "pairwise_loss", "dcg", "dcg@2", "dcg@50", "precision@1", "precision@3"]
GRADED += ["ndcg", "ndcg@2", "ndcg@50", "err", "err@2", "err@50"]
BINARY = [*GRADED, "auc", "average_precision", "average_precision@2", "average_precision@50"]
SEEDS = st.integers(0, 2**32 - 1)
ORDERS = {n: np.array(list(permutations(range(n)))) for n in range(1, 7)}


def dataset(lengths: Any, grades: int, seed: int, *, d: int = 3, dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    relevance = rng.integers(0, grades, offsets[-1]).astype(np.float64)
    relevance[rng.integers(offsets[-1])] = (
        grades - 1.0
    )  # the scale of err comes from the highest grade there is
    features = rng.normal(size=(offsets[-1], d)).astype(dtype)
    return SimpleNamespace(features=features, relevance=relevance, offsets=offsets)


def labels(queries: Any, query: int) -> Floats:
    found: Floats = queries.relevance[queries.offsets[query] : queries.offsets[query + 1]]
    return found


def query_of(queries: Any, context: NDArray[Any]) -> int:
    """Which query these documents belong to."""
    (start,) = np.flatnonzero((queries.features == context[0]).all(axis=1))
    query = int(np.searchsorted(queries.offsets, start))
    np.testing.assert_array_equal(context, queries.features[start : queries.offsets[query + 1]])
    return query


def came(stream: QueryStream, queries: Any, rounds: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    return [query_of(queries, stream.arrive(rng=rng)) for _ in range(rounds)]


# What a ranking is worth


@pytest.mark.judges("2016-092")
@settings(max_examples=25)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), SEEDS)
@pytest.mark.parametrize(("name", "grades"), [(n, 2) for n in BINARY] + [(n, 4) for n in GRADED])
def test_value_response_and_hindsight_of_every_query(
    name: str, grades: int, lengths: list[int], seed: int
) -> None:
    queries = dataset(lengths, grades, seed)
    measure = measures.get(name)
    if name.startswith("err"):
        measure = measure.graded(grades - 1)
    stream = QueryStream(queries, measure=name, order="in-order")
    assert (stream.measure, stream.is_loss) == (measure.name, measure.is_loss)
    rng, best = np.random.default_rng(seed), 0.0
    for query in [*range(len(lengths)), 0]:
        context = stream.arrive(rng=rng)
        assert query_of(queries, context) == query
        R = labels(queries, query)
        shown = Ranking(rng.permutation(len(R)))
        np.testing.assert_allclose(stream.value(shown), measure(shown.items, R), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(stream.respond(shown, rng=rng), R[shown.items])
        values = np.asarray(measure(ORDERS[len(R)], R))
        highest = values.min() if measure.is_loss else values.max()
        np.testing.assert_allclose(stream.value(stream.best(context)), highest, rtol=1e-12, atol=1e-12)
        best += highest
        np.testing.assert_allclose(stream.hindsight(), best, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("measure", ["ndcg@10", "dcg", "err@10", "sum_loss", "precision@5", "pairwise_loss"])
def test_fractional_grades_are_judged_as_they_are(measure: str) -> None:
    queries = SimpleNamespace(
        features=np.eye(4), relevance=np.array([0.07, 3.43, 0.0, 1.0]), offsets=np.array([0, 3, 4])
    )
    stream = QueryStream(queries, measure=measure, order="in-order")
    assert stream.max_grade == 4
    stream.arrive(rng=np.random.default_rng(1))
    exact = measures.get(measure).graded(4) if measure.startswith("err") else measures.get(measure)
    for order in permutations(range(3)):
        shown = Ranking(np.array(order))
        np.testing.assert_allclose(stream.value(shown), exact(order, queries.relevance[:3]), rtol=1e-12)


def test_err_on_a_wider_scale_than_the_labels_is_err_on_that_scale() -> None:
    queries = dataset([4, 3], 3, seed=1)  # grades up to 2, on a scale that goes up to 4
    measure = measures.get("err@10", max_grade=4)
    stream = QueryStream(queries, measure=measure, order="in-order")
    stream.arrive(rng=np.random.default_rng(1))
    R = labels(queries, 0)
    np.testing.assert_allclose(stream.value(Ranking(np.arange(4))), measure(np.arange(4), R), rtol=1e-12)
    np.testing.assert_allclose(stream.value(stream.best()), stream.hindsight(), rtol=1e-12)


def test_the_scale_of_a_dataset_is_kept_by_its_parts() -> None:
    # Two parts of one dataset must be judged on one scale, whether or not each has a document of the highest grade.
    queries = dataset([4, 3], 3, seed=1)
    queries.max_grade = 4
    stream = QueryStream(queries, measure="err@10", order="in-order")
    stream.arrive(rng=np.random.default_rng(1))
    assert stream.max_grade == 4
    exact = measures.get("err@10", max_grade=4)(np.arange(4), labels(queries, 0))
    np.testing.assert_allclose(stream.value(Ranking(np.arange(4))), exact, rtol=1e-12)


def test_a_query_without_a_relevant_document_counts_one_for_ndcg() -> None:
    queries = SimpleNamespace(features=np.eye(3), relevance=np.zeros(3), offsets=np.array([0, 3]))
    stream = QueryStream(queries, measure="ndcg@2")
    stream.arrive(rng=np.random.default_rng(1))
    assert stream.value(Ranking(np.array([2, 0, 1]))) == 1.0


@pytest.mark.judges("2016-095")
@settings(max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), SEEDS, st.booleans())
@pytest.mark.parametrize("name", ["ndcg@3", "sum_loss", "pairwise_loss", "average_precision", "err@2"])
def test_greedy_values_are_those_of_a_plain_loop(
    name: str, lengths: list[int], seed: int, single: bool
) -> None:
    queries = dataset(lengths, 2, seed, dtype=np.float32 if single else np.float64)
    stream = QueryStream(queries, measure=name)
    w = np.random.default_rng(seed).normal(size=3)
    scores = queries.features.astype(np.float64) @ w
    expected = [
        measures.get(name)(np.argsort(-scores[start:stop], kind="stable"), queries.relevance[start:stop])
        for start, stop in pairwise(queries.offsets)
    ]
    np.testing.assert_allclose(stream.greedy_values(w), expected, rtol=1e-12, atol=1e-12)
    assert stream.state.t[0] == 0, "asking moves nobody on"


@pytest.mark.parametrize("w", [np.zeros(2), np.zeros((1, 3)), 0.0], ids=["too short", "a matrix", "a number"])
def test_weights_of_the_wrong_shape_are_refused(w: Any) -> None:
    with pytest.raises(ValueError, match="w must be 3 weights"):
        QueryStream(dataset([2], 2, 1)).greedy_values(w)


def test_weights_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="w must be"):
        QueryStream(dataset([2], 2, 1)).greedy_values([np.nan, 0.0, 1.0])


# Who comes when


def test_in_order_goes_round_and_round() -> None:
    queries = dataset([2, 1, 3], 2, 1)
    stream = QueryStream(queries, order="in-order")
    assert came(stream, queries, 8, seed=1) == [0, 1, 2, 0, 1, 2, 0, 1]
    stream.restart()
    assert came(stream, queries, 2, seed=1) == [0, 1]
    assert stream.hindsight() == 2.0


def test_shuffled_brings_every_query_once_a_pass_each_pass_anew() -> None:
    queries = dataset([1, 2, 3, 1], 2, 2)
    stream = QueryStream(queries, order="shuffled")
    passes = Counter(
        tuple(one) for one in np.reshape(came(stream, queries, 4 * 1500, seed=3), (-1, 4)).tolist()
    )
    assert all(sorted(one) == [0, 1, 2, 3] for one in passes)
    assert len(passes) == 24
    assert stats.chisquare(list(passes.values())).pvalue > 1e-4


def test_drawn_brings_every_query_equally_often_whoever_came_before() -> None:
    queries = dataset([1, 2, 3, 1], 2, 2)
    sequence = came(QueryStream(queries, order="drawn"), queries, 6_000, seed=4)
    assert stats.chisquare(list(Counter(sequence).values())).pvalue > 1e-4
    after = Counter(pairwise(sequence))
    assert len(after) == 16
    assert stats.chisquare(list(after.values())).pvalue > 1e-4


def test_a_story_may_be_left_in_the_middle_of_a_pass_and_gone_on_with() -> None:
    queries = dataset([2] * 7, 3, 5)
    ends = []
    for parts in ((20,), (5, 9, 6)):
        stream, rng = QueryStream(queries), np.random.default_rng(1)
        ends.append([query_of(queries, stream.arrive(rng=rng)) for part in parts for _ in range(part)])
    assert ends[0] == ends[1]
    stream, ranker = QueryStream(queries), rankers.Uniform()
    simulation.play(ranker, stream, rounds=5, seed=1)
    simulation.play(ranker, stream, rounds=9, seed=2)
    assert stream.state.t[0] == 14
    assert sorted(stream.state.sequence) == list(range(7))


# Loops


@pytest.mark.parametrize("order", ["in-order", "shuffled", "drawn"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_loops_tell_the_same_long_story(order: str, dtype: Any) -> None:
    lengths = np.random.default_rng(1).integers(1, 9, 30)
    lengths[7] = 150  # sorted another way than the others
    queries = dataset(lengths, 5, seed=6, d=11, dtype=dtype)
    checks.check_same_story(
        lambda: rankers.RTopKF(
            n_features=11,
            k=3,
            estimator="horvitz-thompson",
            control_variate="mean",
            learning_rate=(0.01, 0.5),
            exploration=(1.0, 1 / 3),
        ),
        lambda: QueryStream(queries, order=order),
        rounds=3_000,
    )


@pytest.mark.parametrize("kind", [rankers.ListNet, rankers.CalibratedSquared])
def test_both_loops_tell_the_same_long_story_with_every_label(kind: Any) -> None:
    queries = dataset([3, 140, 1, 6], 5, seed=6, d=11, dtype=np.float32)
    checks.check_same_story(lambda: kind(n_features=11), lambda: QueryStream(queries), rounds=1_500)


def test_a_random_order_of_every_list_needs_no_number_of_items() -> None:
    queries = dataset([3, 1, 5, 2], 2, seed=3)
    trace = simulation.play(rankers.Uniform(), QueryStream(queries, measure="ndcg@2"), rounds=8_000, seed=1)
    expected = [
        np.mean(measures.get("ndcg@2")(ORDERS[n], labels(queries, query)))
        for query, n in enumerate([3, 1, 5, 2])
    ]
    spread = np.std(trace.value) / np.sqrt(8_000)
    assert abs(trace.mean_value - np.mean(expected)) < 5 * spread
    checks.check_same_story(rankers.Uniform, lambda: QueryStream(queries), rounds=500)


def test_regret_is_against_the_best_ranking_of_each_query() -> None:
    queries = dataset([3, 1, 5, 2], 4, seed=3)
    for measure in ("ndcg@3", "sum_loss"):
        stream = QueryStream(queries, measure=measure)
        trace = simulation.play(rankers.Uniform(), stream, rounds=200, seed=1)
        best = stream.hindsight()
        lost = trace.total_value - best if stream.is_loss else best - trace.total_value
        np.testing.assert_allclose(trace.total_regret, lost)
        assert (np.diff(trace.regret) >= -1e-12).all()


@pytest.mark.parametrize(
    ("ranker", "says"),
    [
        (rankers.Uniform(n_items=3), "same 3 items"),
        (rankers.FTPL(n_items=3), "same 3 items"),
        (rankers.RTopKF(n_features=4), "4 features, environment has 3"),
        (rankers.RTopKF(n_features=3, max_grade=2), "max_grade=2"),
    ],
    ids=["Uniform", "FTPL", "features", "grades"],
)
def test_a_ranker_that_does_not_fit_is_refused(ranker: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        simulation.play(ranker, QueryStream(dataset([3, 3], 5, 1)), rounds=1, seed=1)


def test_a_ranker_by_features_is_refused_where_there_are_none() -> None:
    people = environments.FixedItems(np.eye(3), measure="dcg")
    for ranker in (rankers.RTopKF(n_features=3), rankers.ListNet(n_features=3), rankers.Uniform()):
        with pytest.raises(ValueError, match="features"):
            simulation.play(ranker, people, rounds=1, seed=1)


# Datasets that make no sense


GOOD = {
    "features": np.eye(4)[:, :3],
    "relevance": np.array([0.0, 1.0, 2.0, 0.0]),
    "offsets": np.array([0, 1, 4]),
}


@pytest.mark.parametrize(
    ("part", "given", "says"),
    [
        ("features", np.eye(4)[:, :3].astype(int), "features"),
        ("features", np.eye(4)[0], "features"),
        ("features", np.zeros((4, 0)), "features"),
        ("features", np.eye(3), "relevance"),
        ("features", np.where(np.eye(4)[:, :3], np.nan, 0.0), "features"),
        ("features", np.where(np.eye(4)[:, :3], np.inf, 0.0), "features"),
        ("relevance", np.array([0.0, 1.0, 2.0]), "relevance"),
        ("relevance", np.array([0.0, 1.0, -2.0, 0.0]), "relevance"),
        ("relevance", np.array([0.0, np.nan, 2.0, 0.0]), "relevance"),
        ("relevance", np.array([0.0, 1.0, 2000.0, 0.0]), "relevance"),
        ("offsets", np.array([0, 1, 3]), "offsets"),
        ("offsets", np.array([1, 2, 4]), "offsets"),
        ("offsets", np.array([0, 2, 2, 4]), "offsets"),
        ("offsets", np.array([0, 3, 1, 4]), "offsets"),
        ("offsets", np.array([0]), "offsets"),
        ("offsets", np.array([[0, 4]]), "offsets"),
    ],
)
def test_a_dataset_that_makes_no_sense_is_refused(part: str, given: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        QueryStream(SimpleNamespace(**GOOD | {part: given}))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"order": "backwards"}, "order.*'backwards'"),
        ({"measure": "fame"}, "measure 'fame'"),
        ({"measure": "precision"}, "precision@k"),
        ({"measure": "average_precision"}, "average_precision.*2"),
        ({"measure": "auc"}, "auc.*2"),
    ],
)
def test_arguments_that_make_no_sense_are_named(arguments: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        QueryStream(SimpleNamespace(**GOOD), **arguments)


def test_a_ranking_of_another_list_is_refused() -> None:
    stream = QueryStream(SimpleNamespace(**GOOD), order="in-order")
    rng = np.random.default_rng(1)
    stream.arrive(rng=rng)
    for items in ([0, 1], [1], [-1], []):
        wrong = Ranking(np.array(items, dtype=np.int64))
        with pytest.raises(ValueError, match="items"):
            stream.value(wrong)
        with pytest.raises(ValueError, match="items"):
            stream.respond(wrong, rng=rng)


def test_the_features_are_held_once() -> None:
    queries = dataset([2, 3], 2, 1, dtype=np.float32)
    stream = QueryStream(queries)
    assert np.shares_memory(stream.params.features, queries.features)
    assert np.shares_memory(stream.arrive(rng=np.random.default_rng(1)), queries.features)
