"""The table of rates: cells for up to four items, structure for up to eight, and both alike wherever both can run."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import groupby

import pytest

from rankloop import measures
from rankloop.games import Undecided, classify, ranking_game, verify
from rankloop.games.cells import Cells, find_cells
from rankloop.games.classify_cells import classify_cells
from rankloop.games.rates import rates, source, usual_measures

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
def cells_of(measure: str, m: int) -> Cells:
    return find_cells(ranking_game(measure=measure, n_items=m, k=1))  # they depend on the losses alone


@pytest.mark.judges("2015-032")
@pytest.mark.parametrize("m", range(2, 9))
def test_by_structure(m: int) -> None:
    extra = ["average_precision@1", "average_precision@2"]
    names = [*usual_measures(m), *(name for name in extra if int(name[-1]) < m)]
    for row in rates(n_items=m, names=names):
        assert list(row.classes) == expected(row.measure, m), row.measure


@pytest.mark.parametrize("m", [2, 3])
def test_by_cells(m: int) -> None:
    for row in rates(n_items=m, route="cells"):
        assert list(row.classes) == expected(row.measure, m), row.measure


@pytest.mark.parametrize("measure", [*usual_measures(4), "average_precision@1", "average_precision@2"])
def test_by_cells_with_four_items(measure: str) -> None:
    cells = cells_of(measure, 4)
    for k, class_ in enumerate(expected(measure, 4), 1):
        assert classify_cells(ranking_game(measure=measure, n_items=4, k=k), cells=cells).class_ == class_, k


@pytest.mark.parametrize("measure", ["precision@2", "dcg@2", "average_precision@1", "err@2"])
def test_by_cells_with_five_items(measure: str) -> None:
    cells = cells_of(measure, 5)
    for k, class_ in enumerate(expected(measure, 5), 1):
        assert classify_cells(ranking_game(measure=measure, n_items=5, k=k), cells=cells).class_ == class_, k


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
    cells, found = None, ""
    for k in range(1, m + 1):
        game = ranking_game(measure=loss, n_items=m, k=k)
        cells = cells or find_cells(game)
        found += next(key for key, name in SHORT.items() if name == classify_cells(game, cells=cells).class_)
    assert found == classes


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
        assert rates_of_ndcg(m) == (m - 1, m)


def rates_of_ndcg(m: int) -> tuple[int, int]:
    from rankloop.games.classify_ranking import thresholds

    return thresholds(ranking_game(measure="ndcg", n_items=m, k=1))


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
