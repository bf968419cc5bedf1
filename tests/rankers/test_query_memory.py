"""QueryMemory: who looked where, what the prior is worth, what is remembered, and what is forgotten first."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln

from rankloop import checks, environments, simulation
from rankloop.base import Floats, Ranking
from rankloop.features import QueryRows, query_rows
from rankloop.rankers import PDGD, QueryMemory, query_memory
from rankloop.rankers.query_memory import CLICKED, PASSED, PLACES, STRENGTHS
from tests.examples import refused


def chances_of_stopping(reads: Floats, chance: Floats, clicks: Any) -> Floats:
    """By the last position that is looked at: its probability together with the clicks, one way after the other."""
    m = len(clicks)
    found = np.zeros(m)
    for last in range(m):
        if any(clicks[last + 1 :]):
            continue
        p = 1.0
        for j in range(last + 1):
            p *= chance[j] if clicks[j] else 1 - chance[j]
            on = reads[CLICKED if clicks[j] else PASSED, j]
            goes_on = on[0] / on[1] if j < m - 1 else 0.0
            p *= goes_on if j < last else 1 - goes_on
        found[last] = p
    return found


@pytest.mark.parametrize("m", [1, 2, 4])
def test_who_looked_is_what_all_ways_to_stop_add_up_to(m: int) -> None:
    rng = np.random.default_rng(m)
    reads = np.stack([rng.random((2, m)), np.ones((2, m))], axis=-1)
    chance, looked, below = rng.random(m), np.empty(m), np.empty(m)
    for clicks in product((0.0, 1.0), repeat=m):
        query_memory.say_who_looked(reads, np.array(clicks), m, chance, looked, below)
        ways = chances_of_stopping(reads, chance, clicks)
        np.testing.assert_allclose(looked, np.cumsum(ways[::-1])[::-1] / ways.sum(), rtol=1e-12)


def test_the_evidence_for_a_strength_is_the_likelihood_of_what_is_remembered() -> None:
    # One document, seen each time: a Beta-binomial for each strength, up to what the evidence loses in a round.
    ranker = QueryMemory(n_features=0, n_positions=1)
    request, rng = query_rows("q", ["d"]), np.random.default_rng(1)
    ranker.state.level[:] = 0.0, 1e30  # stays where it is: the prior's mean is one half
    clicks = [1, 0, 0, 1, 1, 1, 0, 1, 1, 1]
    for click in clicks:
        # What all queries say of the document is the prior here; it must not move either.
        of_item = ranker.state.pairs == int(ranker.rank(request, rng=rng).memo[1][1, 0])
        ranker.state.pairs[of_item] = 0
        ranker.state.looks[of_item] = ranker.state.clicks[of_item] = 0.0
        ranker.learn(ranker.rank(request, rng=rng), [click])
    hits, n = sum(clicks), len(clicks)
    half = 0.5 * 2.0 ** np.arange(STRENGTHS) / 2
    first = np.log(0.5)  # of the first one, which all strengths foretell alike, and which is not counted
    expected = betaln(half + hits, half + n - hits) - betaln(half, half) - first
    np.testing.assert_allclose(ranker.state.evidence, expected, rtol=0.01)


def test_lists_are_drawn_from_what_is_known() -> None:
    # How often the first of two comes first, beside draws from two Beta distributions of four times as much.
    ranker, rng = QueryMemory(n_features=0), np.random.default_rng(1)
    request = query_rows(1, [1, 2])
    keys = ranker.rank(request, rng=rng).memo[1][0]
    for key, clicks, looks in zip(sorted_keys(ranker, request), (3.0, 1.5), (5.0, 4.0), strict=True):
        place = key // 2 % (len(ranker.state.pairs) // PLACES) * PLACES
        ranker.state.pairs[place], ranker.state.clicks[place], ranker.state.looks[place] = key, clicks, looks
    assert len(keys) == 2
    strength = float(np.mean(2.0 ** np.arange(-1, STRENGTHS - 1)))
    prior = strength / (1 + np.e)
    n, draws = 4_000, np.random.default_rng(2)
    a, b = (
        draws.beta(4 * (prior + hits), 4 * (strength - prior + misses), 200_000)
        for hits, misses in ((3, 2), (1.5, 2.5))
    )
    first = sum(int(ranker.rank(request, rng=rng).items[0]) == 0 for _ in range(n))
    expected = float((a > b).mean())
    assert stats.binomtest(first, n, expected).pvalue > 1e-3
    np.testing.assert_allclose(
        ranker.scores(request),
        [(prior + 3) / (strength - prior + 2), (prior + 1.5) / (strength - prior + 2.5)],
    )


def sorted_keys(ranker: QueryMemory, request: QueryRows) -> list[int]:
    """The keys of the pairs, in the order of the documents."""
    memo = ranker._written(request, np.arange(len(request.items)))
    return [int(key) for key in memo[1][0]]


def two_kinds(n_queries: int = 40, seed: int = 1) -> Any:
    """Queries whose best document is one that features do not show, beside a feature that helps a little."""
    rng = np.random.default_rng(seed)
    relevance = np.zeros((n_queries, 6))
    relevance[np.arange(n_queries), rng.integers(6, size=n_queries)] = 2
    features = np.stack(
        [rng.normal(size=relevance.size) + relevance.ravel(), rng.normal(size=relevance.size)], 1
    )
    return SimpleNamespace(
        features=features, relevance=relevance.ravel(), offsets=np.arange(0, relevance.size + 1, 6)
    )


def test_what_is_frequent_is_known_and_what_is_new_is_ranked_by_features() -> None:
    queries = two_kinds()
    users: dict[str, Any] = {"clicks": "navigational", "n_positions": 3, "frequency": "zipf"}
    ranker, rival = QueryMemory(n_features=2, n_positions=3), PDGD(n_features=2, n_positions=3)
    mine = simulation.play(
        ranker, environments.ClickedQueries(queries, named=True, **users), rounds=5_000, seed=1
    )
    theirs = simulation.play(rival, environments.ClickedQueries(queries, **users), rounds=5_000, seed=1)
    assert mine.mean_value > theirs.mean_value + 0.1
    first = QueryRows(queries.features[:6], np.arange(6), 0)
    assert ranker.current(first)[0] == np.argmax(queries.relevance[:6])
    new = environments.ClickedQueries(two_kinds(200, seed=2), n_positions=3)
    assert new.greedy_values(ranker.state.w).mean() > new.greedy_values(rival.state.w).mean() - 0.01
    unknown = QueryRows(queries.features[:6], np.arange(6), 1_000)
    np.testing.assert_array_equal(ranker.current(unknown), np.argsort(-queries.features[:6] @ ranker.state.w))


def test_units_of_features_have_no_influence() -> None:
    queries = two_kinds()
    states = []
    for scale, offset in ((1.0, 0.0), (1024.0, 4096.0)):
        queries.features = two_kinds().features * scale + offset
        ranker = QueryMemory(n_features=2)
        users = environments.ClickedQueries(queries, clicks="perfect", named=True)
        simulation.play(ranker, users, rounds=300, seed=1)
        states.append((ranker.state.w * scale, ranker.state.looks))
    for one, other in zip(*states, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_a_document_that_all_queries_like_comes_first_for_a_new_one() -> None:
    ranker, rng = QueryMemory(n_features=0), np.random.default_rng(1)
    for t in range(200):
        shown = ranker.rank(query_rows(f"query {t % 20}", ["a", "b", "c"]), rng=rng)
        ranker.learn(shown, shown.items == 1)
    assert ranker.current(query_rows("never seen", ["a", "b", "c"]))[0] == 1
    assert ranker.current(query_rows("never seen", ["x", "y"])).tolist() == [0, 1]


def test_what_is_known_least_is_forgotten_first() -> None:
    ranker, rng = QueryMemory(n_features=1, n_pairs=PLACES), np.random.default_rng(1)
    known = query_rows("known", ["d"], [[0.0]])
    for _ in range(30):
        ranker.learn(ranker.rank(known, rng=rng), [1])
    looks = ranker.state.looks.max()
    for t in range(PLACES - 1):
        ranker.learn(ranker.rank(query_rows(t, ["d"], [[0.0]]), rng=rng), [0])
    assert ranker.state.looks.max() == looks
    assert (ranker.state.pairs != 0).all()
    before = set(ranker.state.pairs.tolist())
    ranker.learn(ranker.rank(query_rows("new", ["d"], [[0.0]]), rng=rng), [0])
    after = set(ranker.state.pairs.tolist())
    assert len(before - after) == len(after - before) == 1
    assert ranker.state.looks.max() == pytest.approx(0.99 * looks)
    (key,) = sorted_keys(ranker, known)
    assert key in after
    assert len(ranker.state.pairs) == PLACES


def test_a_list_longer_than_the_memory_is_counted_once_each() -> None:
    ranker, rng = QueryMemory(n_features=0, n_positions=20, n_pairs=1), np.random.default_rng(1)
    request = query_rows("q", list(range(20)))
    for _ in range(10):
        ranker.learn(ranker.rank(request, rng=rng), np.ones(20))
        assert (ranker.state.clicks <= ranker.state.looks + 1e-9).all()


@pytest.mark.parametrize("d", [0, 3])
def test_the_compiled_loop_is_the_stepwise_one(d: int) -> None:
    rng = np.random.default_rng(1)
    queries = SimpleNamespace(
        features=rng.random((40, 3)), relevance=rng.integers(0, 3, 40) * 1.0, offsets=np.arange(0, 41, 5)
    )
    checks.check_same_story(
        lambda: QueryMemory(n_features=d, n_pairs=24),
        lambda: environments.ClickedQueries(queries, clicks="navigational", named=True, frequency="zipf"),
    )


def test_it_learns_from_lists_that_others_chose() -> None:
    ranker, rng = QueryMemory(n_features=2), np.random.default_rng(1)
    request = query_rows("shoes", ["a", "b", "c"], [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
    engine, liked = np.array([0, 1, 2]), np.array([0.1, 0.2, 0.7])
    for _ in range(100):
        ranker.learn_logged(engine, rng.random(3) < liked, features=request)
    assert ranker.current(request)[0] == 2
    assert ranker.learns_others_lists()
    with refused(ranker, r"items must be all 3 documents of the request, once each, got \[0 0 1\]"):
        ranker.learn_logged(np.array([0, 0, 1]), [1, 0, 0], features=request)
    with refused(ranker, "context must be a query with its documents"):
        ranker.learn_logged(engine, [1, 0, 0], features=np.eye(3))


def test_a_ticket_without_features_gets_them_back() -> None:
    ranker, rng = QueryMemory(n_features=3, n_positions=2), np.random.default_rng(1)
    request = query_rows("q", ["a", "b", "c"], rng.random((3, 3)).astype(np.float32))
    shown = ranker.rank(request, rng=rng)
    short = ranker.short_memo(shown.memo)
    assert len(short) == 2
    for part, again in zip(shown.memo, ranker.whole_memo(short, shown.items, lambda: request), strict=True):
        assert part.tobytes() == again.tobytes()
    assert ranker.whole_memo(shown.memo, shown.items, lambda: None) is shown.memo


def test_weights_may_be_as_large_as_an_engines_score() -> None:
    ranker, rng = QueryMemory(n_features=1, warm_start=[1.0]), np.random.default_rng(1)
    request = query_rows("q", list(range(5)), [[900.0], [-900.0], [30.0], [28.0], [29.0]])
    assert ranker.current(request).tolist() == [0, 2, 4, 3, 1]
    for _ in range(40):
        shown = ranker.rank(request, rng=rng)
        ranker.learn(shown, shown.items == 1)
    assert all(np.isfinite(part).all() for part in ranker.state)
    assert ranker.current(request)[0] == 1


def test_bad_requests_tickets_and_states_are_refused() -> None:
    ranker, rng = QueryMemory(n_features=2, n_pairs=8), np.random.default_rng(1)
    rows = np.zeros((2, 2))
    for wrong, words in (
        (rows, r"context must be a query with its documents, rankloop\.features\.query_rows"),
        (QueryRows(rows, np.arange(3), 1), "context must have a row of features for each of 3 items, got 2"),
        (QueryRows(rows, np.arange(0), 1), "context.items must be keys of documents, at least one"),
        (QueryRows(rows, np.array([0.5, 1.0]), 1), "context.items must be keys of documents"),  # type: ignore[arg-type]
        (QueryRows(rows, np.array([0, -1]), 1), "context.items must be keys of documents, from 0, got -1"),
        (QueryRows(rows, np.arange(2), -1), "context.query must be"),
        (QueryRows(rows + np.nan, np.arange(2), 1), "context must be finite"),
    ):
        with refused(ranker, words):
            ranker.rank(wrong, rng=rng)
    shown = ranker.rank(query_rows("q", ["a", "b"], rows), rng=rng)
    header, keys, centred = shown.memo
    for memo, words in (
        ((header + 1, keys, centred), "ranking.memo must be of 2 items"),
        ((header, keys * 2, centred), "ranking.memo must have keys of pairs"),
        ((header, keys, centred + np.inf), "ranking.memo must be finite"),
        ((header, keys), "ranking.memo must have 3 parts, got 2"),
    ):
        with refused(ranker, words):
            ranker.learn(Ranking(shown.items, None, memo), [1, 0])
    for name, value in (("clicks", 1.0), ("clicks", -1.0), ("reads", 2.0), ("squares", -1.0)):
        saved = ranker.save()
        saved[name] = np.array(saved[name])
        saved[name][..., 0] = value if name != "reads" else 1e9
        with refused(ranker, f"saved state '{name}' must be"):
            ranker.load(saved)
    for name, value in (("n_features", -1), ("n_positions", 0), ("n_pairs", 0), ("warm_start", [1.0])):
        with pytest.raises(ValueError, match=name):
            QueryMemory(**{"n_features": 2, name: value})
