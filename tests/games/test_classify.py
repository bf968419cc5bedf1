"""Classes of the zoo and of every measure: both routes alike wherever both can run, exactly, and with proofs."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop import games, measures
from rankloop.games import Game, Undecided, classify, ranking_game, verify, zoo
from rankloop.games.cells import find_cells
from rankloop.games.classify import classify_cells, rates, source, thresholds, usual_measures


def test_the_zoo() -> None:
    for name, (make, class_) in zoo.known.items():
        game = make()
        verdict = classify(game)
        assert verdict.class_ == class_, name
        assert verdict.rate == games.RATES[class_]
        assert verify(game, verdict)


def test_pareto_degenerate_and_dominated() -> None:
    half = classify(zoo.matching_pennies())
    assert (half.pareto, half.degenerate, half.dominated) == ((0, 1), (2,), ())
    dear = classify(zoo.matching_pennies(price=0.51))
    assert (dear.pareto, dear.degenerate, dear.dominated) == ((0, 1), (), (2,))
    free = classify(zoo.matching_pennies(price=0))
    assert (free.pareto, free.degenerate) == ((2,), (0, 1))


def test_duplicates_lend_their_eyes() -> None:
    # Two actions that look away compete; a copy of one of them looks: same losses, so it is between the two.
    loss = [[0, 1], [1, 0], [1, 0]]
    assert classify(Game(loss, [["?", "?"], ["?", "?"], ["a", "b"]])).class_ == "easy"
    assert classify(Game(loss, [["?", "?"]] * 3)).class_ == "hopeless"


def test_a_price_just_above_a_half_is_hard_however_small_the_difference() -> None:
    for exponent in (3, 9, 15, 40):
        tiny = Fraction(1, 10**exponent)
        assert classify(zoo.matching_pennies(price=Fraction(1, 2) + tiny)).class_ == "hard"
        below = classify(zoo.matching_pennies(price=Fraction(1, 2) - tiny))
        assert below.class_ == "easy"
        assert len(below.pareto) == 3


def test_floats_mean_what_they_print() -> None:
    loss = [[0, 1], [1, 0], [0.1 + 0.4, 0.5]]
    assert classify(Game(loss, [["?", "?"], ["?", "?"], ["a", "b"]])).degenerate == (2,)


def test_a_hopeless_verdict_has_two_worlds_that_look_alike() -> None:
    game = zoo.blind_pennies()
    worlds = classify(game).worlds
    assert worlds is not None
    assert worlds.forced == Fraction(1, 2)
    assert worlds.best[0] != worlds.best[1]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9))
def test_random_games_have_proofs_and_permuting_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(2, 7)), int(rng.integers(2, 6)))
    loss, signal = rng.integers(0, 3, shape), rng.integers(0, 2, shape)
    game = Game(loss, signal)
    verdict = classify(game)
    assert verify(game, verdict)
    rows, columns = rng.permutation(shape[0]), rng.permutation(shape[1])
    other = classify(Game(loss[rows][:, columns], signal[rows][:, columns]))
    assert other.class_ == verdict.class_
    assert len(other.pareto) == len(verdict.pareto)
    assert len(other.neighbours) == len(verdict.neighbours)
    # More is never worse: with everything seen nothing is hard.
    seen = classify(Game(loss, [list(range(shape[1]))] * shape[0]))
    assert seen.class_ in ("trivial", "easy")
    assert (seen.class_ == "trivial") == (verdict.class_ == "trivial")


@pytest.mark.judges("2015-029")
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**9))
def test_cells_contain_what_sampling_finds(seed: int) -> None:
    # An action that is the only best one in a random world is Pareto-optimal; sampling cannot find more than there are.
    rng = np.random.default_rng(seed)
    loss = rng.integers(0, 6, (6, 4))
    verdict = classify(Game(loss, loss))
    worlds = rng.dirichlet(np.full(4, 0.5), 20_000)
    values = np.sort(loss @ worlds.T, axis=0)
    clear = values[1] - values[0] > 1e-9
    found = set(np.argmin(loss @ worlds.T, axis=0)[clear].tolist())
    assert found <= set(verdict.pareto)


def test_many_actions_and_outcomes() -> None:
    rng = np.random.default_rng(5)
    game = Game(rng.random((16, 40)).round(3), rng.integers(0, 4, (16, 40)))
    verdict = classify(game)
    assert len(verdict.pareto) == 16
    assert verdict.class_ == "hard"
    assert verify(game, verdict)


def test_work_can_be_shared_between_processes() -> None:
    game = games.ranking_game(measure="average_precision", n_items=3, k=2)
    alone = classify(game, route="cells", jobs=1)
    together = classify(game, route="cells", jobs=2)
    assert alone.neighbours == together.neighbours
    assert alone.class_ == together.class_ == "hard"


def test_routes_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="route must be one of"):
        classify(zoo.bandit(), route="guess")
    with pytest.raises(ValueError, match="needs a ranking game"):
        classify(zoo.bandit(), route="structure")


SHORT = {"t": "trivial", "e": "easy", "h": "hard", "H": "hopeless"}


def expected(measure: str, m: int) -> list[str]:
    """The rows of the table as rules: where hopeless ends, and where easy begins."""
    family, _, n = measure.partition("@")
    cut = int(n) if n else m
    hopeless, easy = 0, 1  # hopeless up to and including, easy from
    if m > 1 and family in ("sum_loss", "pairwise_loss"):
        easy = max(1, m - 1)
    elif family == "dcg":
        easy = max(1, min(cut, m - 1))
    elif family == "ndcg" and cut > 1 and m >= 3:
        hopeless, easy = m - 2, m
    elif family == "average_precision" and m >= 3:
        hopeless, easy = (m - 2, m) if cut > 1 else (m - 2, m - 1)
    elif family == "auc" and m == 3:
        easy = 2
    elif family == "auc" and m >= 4:
        hopeless, easy = (m - 2 if m % 2 == 0 else m - 3), m
    elif family == "err":
        hopeless, easy = min(cut, m - 1) - 1, min(cut, m - 1)
    return ["hopeless" if k <= hopeless else "easy" if k >= easy else "hard" for k in range(1, m + 1)]


@cache
def cells_of(measure: str, m: int) -> games.CellWitness:
    return find_cells(ranking_game(measure=measure, n_items=m, k=1))  # they depend on the losses alone


@pytest.mark.judges("2015-032")
def test_by_structure() -> None:
    for m in range(2, 9):
        extra = ["average_precision@1", "average_precision@2"]
        names = [*usual_measures(m), *(name for name in extra if int(name[-1]) < m)]
        for row in rates(n_items=m, names=names):
            assert list(row.classes) == expected(row.measure, m), (row.measure, m)


def test_by_cells() -> None:
    for m in (2, 3):
        for row in rates(n_items=m, route="cells"):
            assert list(row.classes) == expected(row.measure, m), (row.measure, m)


WITH_FOUR = [*usual_measures(4), "average_precision@1", "average_precision@2"]
WITH_FIVE = ["precision@2", "dcg@2", "average_precision@1", "err@2"]


@pytest.mark.parametrize(
    ("measure", "m"), [*((name, 4) for name in WITH_FOUR), *((name, 5) for name in WITH_FIVE)]
)
def test_by_cells_with_more_items(measure: str, m: int) -> None:
    cells = cells_of(measure, m)
    for k, class_ in enumerate(expected(measure, m), 1):
        assert classify_cells(ranking_game(measure=measure, n_items=m, k=k), cells=cells).class_ == class_, k


@pytest.mark.judges("2015-025", "2015-065", "2015-080")
@pytest.mark.parametrize(
    ("measure", "m", "classes"),
    [
        ("pairwise_loss", 4, "Hhhe"),
        ("pairwise_loss", 2, "He"),
        ("pairwise_loss", 3, "Hhe"),
        ("ndcg", 2, "He"),
        ("ndcg", 3, "HHe"),
        ("ndcg@1", 3, "HHe"),
        ("sum_loss", 3, "hee"),
        ("dcg", 3, "hee"),
        ("dcg@1", 3, "eee"),
        ("err", 3, "Hee"),
        ("precision@2", 3, "eee"),
    ],
)
def test_three_grades(measure: str, m: int, classes: str) -> None:
    # Errata A4, A5: with grades PairwiseLoss is no longer SumLoss, and the top item tells nothing, from two items on.
    wanted = [SHORT[each] for each in classes]
    for route in ("structure", "cells"):
        (row,) = rates(n_items=m, names=[measure], grades=3, route=route)
        assert list(row.classes) == wanted, route


def test_verdicts_of_both_routes_are_proofs() -> None:
    for measure in ("dcg@2", "ndcg", "average_precision", "auc", "err", "precision@2"):
        for k in range(1, 5):
            game = ranking_game(measure=measure, n_items=4, k=k)
            by_cells, by_structure = classify_cells(game, cells=cells_of(measure, 4)), classify(game)
            assert by_cells.class_ == by_structure.class_
            assert verify(game, by_cells)
            assert verify(game, by_structure)
            if by_cells.worlds is not None and by_structure.worlds is not None:
                # The linear programme looks for the dearest worlds; ours are two of those it may choose from.
                assert by_cells.worlds.forced >= by_structure.worlds.forced * Fraction(99, 100)


@pytest.mark.parametrize(
    ("measure", "m", "pareto", "neighbours"),
    [
        ("sum_loss", 3, 6, 6),
        ("sum_loss", 4, 24, 36),
        ("precision@1", 4, 4, 6),
        ("precision@2", 4, 6, 12),
        ("precision@2", 5, 10, 30),
        ("average_precision", 3, 6, 15),
        ("average_precision", 4, 24, 264),
    ],
)
def test_how_many_cells_and_walls(measure: str, m: int, pareto: int, neighbours: int) -> None:
    cells = cells_of(measure, m)
    assert (len(cells.points), len(cells.walls)) == (pareto, neighbours)


WEIGHTS = [(3, 2, 1, 0), (3, 3, 1, 0), (3, 1, 1, 0), (3, 1, 0, 0), (2, 2, 1, 1), (1, 1, 1, 0), (1, 0, 0, 0)]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_any_gain_that_falls_with_the_rank(weights: tuple[int, ...]) -> None:
    # Hard below, easy from the first rank of the second-to-last level of the weights on.
    def loss(order: tuple[int, ...], relevance: tuple[int, ...]) -> int:
        return -sum(w * relevance[item] for w, item in zip(weights, order, strict=True))

    levels = [len(list(run)) for _, run in groupby(weights)]
    first = 1 + sum(levels[:-2])
    cells = None
    for k in range(1, 5):
        game = ranking_game(measure=loss, n_items=4, k=k)
        cells = cells or find_cells(game)
        assert classify_cells(game, cells=cells).class_ == ("easy" if k >= first else "hard")


def _unnormalised_precision(order: tuple[int, ...], relevance: tuple[int, ...]) -> Fraction:
    shown = [relevance[item] for item in order]
    return -sum((Fraction(r * sum(shown[:rank]), rank) for rank, r in enumerate(shown, 1)), Fraction(0))


def _reciprocal_rank(order: tuple[int, ...], relevance: tuple[int, ...]) -> Fraction:
    return -next((Fraction(1, rank) for rank, item in enumerate(order, 1) if relevance[item]), Fraction(0))


@pytest.mark.parametrize(
    ("loss", "m", "classes"),
    [
        (_unnormalised_precision, 3, "Hee"),
        (_unnormalised_precision, 4, "Hhee"),
        (_reciprocal_rank, 3, "Hee"),
        (_reciprocal_rank, 4, "HHee"),
    ],
)
def test_measures_of_ones_own(loss: object, m: int, classes: str) -> None:
    cells, reached = None, []
    for k in range(1, m + 1):
        game = ranking_game(measure=loss, n_items=m, k=k)
        cells = cells or find_cells(game)
        reached.append(classify_cells(game, cells=cells).class_)
    assert reached == [SHORT[each] for each in classes]


def test_far_beyond() -> None:
    at = {k: classify(ranking_game(measure="ndcg@10", n_items=50, k=k)) for k in (5, 48, 49, 50)}
    assert [verdict.class_ for verdict in at.values()] == ["hopeless", "hopeless", "hard", "easy"]
    assert at[5].easier_k == {"hard": 49, "easy": 50}
    assert at[5].worlds is not None
    assert at[5].worlds.forced > 0
    assert at[48].worlds is None  # 2^50 vectors
    assert classify(ranking_game(measure="auc", n_items=51, k=48)).easier_k == {"hard": 49, "easy": 51}
    assert classify(ranking_game(measure="dcg@10", n_items=10_000, k=3)).easier_k == {"easy": 10}


def test_every_difference_of_the_inverse_ideal_counts() -> None:
    # NDCG needs m - 1 labels at once for every m: the highest difference of 1/Z is never zero.
    for m in (*range(3, 12), 25, 40, 60):
        assert thresholds(ranking_game(measure="ndcg", n_items=m, k=1)) == (m - 1, m)


def test_who_found_it() -> None:
    def found(name: str, k: int, **more: bool) -> str:
        return source(measures.get(name), k, 4, **more)

    assert [found("dcg", k) for k in (1, 2)] == ["2015", "2023"]
    assert [found("ndcg", k) for k in (1, 2)] == ["2015", "ours"]
    assert [found(name, 1) for name in ("precision@2", "dcg@2", "ndcg@2", "err")] == [
        "2023",
        "ours",
        "ours",
        "ours",
    ]
    assert found("pairwise_loss", 1, graded=True) == "ours"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 4}, "k must be a whole number from 1 to 3, got 4"),
        ({"k": 0}, "k must be a whole number from 1 to 3, got 0"),
        ({"n_items": 0}, "n_items must be"),
        ({"measure": "precision"}, "precision needs a cut-off"),
        ({"measure": "auc", "grades": 3}, "takes relevance 0 or 1"),
        ({"measure": "best"}, "is not known"),
        ({"grades": 1}, "grades must be a whole number of at least 2"),
        ({"grades": [2, 1]}, "rising grades"),
    ],
)
def test_bad_arguments(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ranking_game(**({"measure": "dcg", "n_items": 3, "k": 1} | settings))


def test_large_games_say_how_large() -> None:
    with pytest.raises(ValueError, match="n_items=12 makes 479,001,600 orders and 4,096 relevance vectors"):
        _ = ranking_game(measure="dcg", n_items=12, k=1).loss


def test_a_function_has_no_known_structure() -> None:
    with pytest.raises(ValueError, match="no known structure"):
        classify(ranking_game(measure=_reciprocal_rank, n_items=3, k=1), route="structure")
    with pytest.raises(ValueError, match="grades must be 0, 1, 2"):
        classify(ranking_game(measure="dcg", n_items=3, k=1, grades=[0, 2]), route="structure")
    assert issubclass(Undecided, ValueError)
