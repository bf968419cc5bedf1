"""Users who click on documents: who clicks on what, what they see, and what a list is worth."""

from __future__ import annotations

from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rankloop import checks, environments, feedback, measures, rankers, simulation
from rankloop.base import Ranking
from rankloop.environments import ClickedQueries
from rankloop.features import sparse_rows

KINDS = ("perfect", "navigational", "informational", "near-random")


def dataset(lengths: Any, grades: int, seed: int, *, d: int = 3) -> Any:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    relevance = rng.integers(0, grades, offsets[-1]).astype(np.float64)
    relevance[0] = grades - 1.0
    return SimpleNamespace(
        features=rng.normal(size=(offsets[-1], d)), relevance=relevance, offsets=offsets, max_grade=grades - 1
    )


def by_document(model: Any, labels: Any) -> Any:
    """The model whose items are the documents, from the one whose items are the grades."""
    own: dict[str, Any] = {"attraction": model.attraction[labels]}
    if isinstance(model, feedback.DynamicBayesianModel):
        own |= {"satisfaction": model.satisfaction[labels], "continuation": model.continuation}
    elif isinstance(model, feedback.PositionBasedModel | feedback.UserBrowsingModel):
        own["examination"] = model.examination
    elif isinstance(model, feedback.DependentClickModel):
        own["continuation"] = model.continuation
    return type(model)(**own)


MODELS: list[Any] = [
    *KINDS,
    feedback.CascadeModel(attraction=[0.1, 0.5, 0.8]),
    feedback.DependentClickModel(attraction=[0.1, 0.5, 0.8], continuation=[0.9, 0.5, 0.3]),
    feedback.PositionBasedModel(attraction=[0.1, 0.5, 0.8], examination=[1.0, 0.5, 0.3]),
    feedback.UserBrowsingModel(
        attraction=[0.1, 0.5, 0.8], examination=[[1.0, 0, 0], [0.5, 0.9, 0], [0.2, 0.4, 0.8]]
    ),
]


@pytest.mark.parametrize(
    "clicks", MODELS, ids=lambda given: given if isinstance(given, str) else type(given).__name__
)
def test_clicks_come_as_often_as_the_model_says(clicks: Any) -> None:
    labels = np.array([2, 0, 1, 0, 1])
    queries = SimpleNamespace(features=np.eye(5), relevance=labels.astype(float), offsets=np.array([0, 5]))
    users = ClickedQueries(queries, clicks=clicks, n_positions=3)
    rng = np.random.default_rng(7)
    users.arrive(rng=rng)
    shown = Ranking(np.array([1, 2, 0, 3, 4]))
    n = 4_000
    drawn = np.array([users.respond(shown, rng=rng) for _ in range(n)])
    assert not drawn[:, 3:].any(), "what is not shown is not clicked"
    exact = by_document(users.click_model, labels)
    patterns = list(product((0, 1), repeat=3))
    expected = np.array([float(exact.likelihood(shown.items[:3], one)) for one in patterns])
    counted = np.array([(drawn[:, :3] == one).all(axis=1).sum() for one in patterns])
    assert counted[expected == 0].sum() == 0
    possible = expected > 0
    assert stats.chisquare(counted[possible], n * expected[possible]).pvalue > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_grade", [1, 2, 4])
def test_better_documents_are_clicked_more_and_stop_more(kind: str, max_grade: int) -> None:
    users = ClickedQueries(dataset([4, 3], max_grade + 1, seed=1), clicks=kind)
    model: Any = users.click_model
    assert model.n_items == max_grade + 1
    assert (np.diff(model.attraction) > 0).all()
    assert (np.diff(model.satisfaction) >= 0).all()


@pytest.mark.parametrize("measure", ["ndcg@3", "dcg@2", "precision@3", "err@3"])
def test_the_truth_is_the_measure_of_the_shown_list(measure: str) -> None:
    queries = dataset([4, 2], 3, seed=3)
    users = ClickedQueries(queries, n_positions=3, measure=measure, order="in-order")
    rng, best = np.random.default_rng(1), 0.0
    for query in (0, 1):
        users.arrive(rng=rng)
        labels = queries.relevance[queries.offsets[query] : queries.offsets[query + 1]]
        exact = measures.get(measure).graded(2) if measure.startswith("err") else measures.get(measure)
        values = []
        for order in permutations(range(len(labels))):
            values.append(float(exact(order, labels)))
            assert users.value(Ranking(np.array(order))) == pytest.approx(values[-1], rel=1e-12)
        assert users.value(users.best()) == pytest.approx(max(values), rel=1e-12)
        best += max(values)
    assert users.hindsight() == pytest.approx(best, rel=1e-12)
    w = rng.normal(size=3)
    stream = environments.QueryStream(queries, measure=measure)
    np.testing.assert_array_equal(users.greedy_values(w), stream.greedy_values(w))


def test_the_measure_is_ndcg_of_what_is_shown() -> None:
    assert ClickedQueries(dataset([12, 4], 3, 1)).measure == "ndcg@10"
    assert ClickedQueries(dataset([12, 4], 3, 1), n_positions=5).measure == "ndcg@5"


@pytest.mark.parametrize("clicks", ["navigational", MODELS[-1]], ids=["navigational", "UserBrowsingModel"])
def test_both_loops_tell_the_same_story(clicks: Any) -> None:
    queries = dataset([3, 40, 1, 6], 3, seed=2)
    checks.check_same_story(
        rankers.Uniform, lambda: ClickedQueries(queries, clicks=clicks, n_positions=3), rounds=300
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"clicks": "drunk"}, "clicks.*'drunk'"),
        ({"clicks": 3}, "clicks must be one of perfect.*got 3"),
        (
            {"clicks": feedback.CascadeModel(attraction=[0.1, 0.2])},
            "grades 0 to 2, got a model of 2",
        ),
        ({"clicks": MODELS[-1]}, "n_positions must be at most 3"),
        ({"n_positions": 0}, "n_positions"),
        ({"measure": "ndcg"}, "measure must look at no more than the 10 positions.*'ndcg'"),
        ({"measure": "dcg@11"}, "measure.*'dcg@11'"),
        ({"order": "backwards"}, "order.*'backwards'"),
    ],
)
def test_arguments_that_make_no_sense_are_named(arguments: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ClickedQueries(dataset([12, 4], 3, 1), **arguments)


def test_labels_that_no_kind_of_user_knows_are_refused() -> None:
    with pytest.raises(ValueError, match="labels up to 3"):
        ClickedQueries(dataset([4], 4, 1))
    queries = dataset([2], 3, 1)
    queries.relevance[1] = 0.5
    with pytest.raises(ValueError, match="whole numbers"):
        ClickedQueries(queries)


def test_rankers_that_do_not_fit_are_refused() -> None:
    users = ClickedQueries(dataset([12, 4], 3, 1), n_positions=5)
    for ranker, says in (
        (rankers.ListNet(n_features=3), "learns from relevance.*reveals clicks"),
        (rankers.PBMTS(n_items=12, n_positions=5), "same 5 items"),
    ):
        with pytest.raises(ValueError, match=says):
            simulation.play(ranker, users, rounds=1, seed=1)


def test_queries_come_by_their_frequency() -> None:
    n, users = 20_000, ClickedQueries(dataset([1] * 5, 3, 1), frequency="zipf")
    rng, seen = np.random.default_rng(1), np.zeros(5)
    for _ in range(n):
        users.arrive(rng=rng)
        seen[users.state.query[0]] += 1
    expected = 1 / np.arange(1, 6)
    assert stats.chisquare(seen, n * expected / expected.sum()).pvalue > 1e-3
    for given, words in (
        ({"frequency": "even"}, "frequency must be one of 'zipf', got 'even'"),
        ({"frequency": 2}, "frequency must be one of 'zipf', got 2"),
        ({"frequency": "zipf", "order": "in-order"}, "order must be left out where queries have a frequency"),
    ):
        with pytest.raises(ValueError, match=words):
            ClickedQueries(dataset([1] * 5, 3, 1), **given)


def test_a_request_says_which_query_and_documents_it_is_about() -> None:
    queries = dataset([2, 3, 1], 3, 1)
    users, rng = ClickedQueries(queries, order="in-order", named=True), np.random.default_rng(1)
    for query in (0, 1, 2, 0):
        request = users.arrive(rng=rng)
        start, stop = queries.offsets[query : query + 2]
        assert request.query == query
        assert request.items.tolist() == list(range(start, stop))
        np.testing.assert_array_equal(request.features, queries.features[start:stop])
    memory, plain = rankers.QueryMemory(n_features=3), rankers.PDGD(n_features=3)
    with pytest.raises(ValueError, match=r"PDGD takes no names of queries: ClickedQueries\(named=False\)"):
        simulation.play(plain, users, rounds=1, seed=1)
    with pytest.raises(
        ValueError, match=r"QueryMemory needs the names of queries: ClickedQueries\(named=True"
    ):
        simulation.play(memory, ClickedQueries(queries), rounds=1, seed=1)
    sparse = SimpleNamespace(**vars(queries) | {"features": sparse_rows(queries.features)})
    with pytest.raises(ValueError, match="named=True needs dense features"):
        ClickedQueries(sparse, named=True)
