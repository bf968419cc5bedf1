"""What the verifier takes as known of each measure is what all orders and all labels of small games say."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import pytest

from rankloop.games import Term, Undecided, classify, ranking_game, verify
from rankloop.games.alternating import difference_is_nonzero
from rankloop.games.exact_measures import exact_value
from rankloop.games.rationals import log_discount
from rankloop.games.verify_swaps import counts, is_nonzero, most_labels
from tests.games.verdicts import changed, refused
from tests.measures.cases import NAMES

ROUNDED = Fraction(1, 2**180)  # logarithms have 256 binary digits


def _change(game, rank: int, labels: tuple[int, ...]) -> Fraction:
    m = game.n_items
    swapped = list(range(m))
    swapped[rank - 1], swapped[rank] = rank, rank - 1
    value = [
        exact_value(game.scored, order, labels, max_grade=game.max_grade) for order in (range(m), swapped)
    ]
    return value[0] - value[1]


def coefficient(game, term: Term) -> Fraction:
    """The mixed difference of the swap over the labels of the term, by listing all of them."""
    m, x = game.n_items, term.rank - 1
    steps = term.steps or ((0, 1), (0, 0), (0, 1))
    free = [*range(x - term.above, x), *range(m - term.below, m)]
    total = Fraction(0)
    for ups in product((0, 1), repeat=len(free) + (2 if term.steps else 1)):
        labels = [0] * m
        for item in range(x + 2, x + 2 + term.relevant):
            labels[item] = 1
        labels[x] = steps[0][ups[0]]
        labels[x + 1] = steps[1][ups[1]] if term.steps else 0
        for item, up in zip(free, ups[2 if term.steps else 1 :], strict=True):
            labels[item] = steps[2][up]
        total += (-1) ** sum(ups) * _change(game, term.rank, tuple(labels))
    return total


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_ranks_that_count_differently(name: str, m: int) -> None:
    game = ranking_game(measure=name, n_items=m, k=1)
    for rank in range(1, m):
        differs = any(_change(game, rank, labels) for labels in product((0, 1), repeat=m))
        assert counts(game, rank) == differs
    assert not counts(game, 0)
    assert not counts(game, m)


@pytest.mark.parametrize("name", [*NAMES, "ndcg@2", "ndcg@3", "ndcg@4", "average_precision@2", "err@3"])
@pytest.mark.parametrize("m", [2, 3, 4, 5, 6])
def test_terms_are_zero_or_not_as_the_measure_says(name: str, m: int) -> None:
    game = ranking_game(measure=name, n_items=m, k=1)
    largest = 0
    for rank in (rank for rank in range(1, m) if counts(game, rank)):
        for above, below in product(range(rank), range(m - rank)):
            for relevant in range(m - rank - below):
                term = Term(rank, above, below, relevant)
                size = abs(coefficient(game, term))
                if is_nonzero(game, term):
                    assert size > ROUNDED, term
                elif name.partition("@")[0] not in ("average_precision", "map"):
                    # Of average precision the verifier knows some terms only.
                    assert size < ROUNDED, term
                if size > ROUNDED:
                    largest = max(largest, term.size)
    if largest:
        assert most_labels(game) == largest


@pytest.mark.parametrize("name", ["ndcg", "ndcg@1", "ndcg@2", "ndcg@3", "pairwise_loss"])
@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_terms_with_grades(name: str, m: int) -> None:
    for k in range(1, m):
        game = ranking_game(measure=name, n_items=m, k=k, grades=3)
        term = classify(game).witness.unseen
        assert abs(coefficient(game, term)) > ROUNDED, term


def test_differences_with_a_cut_off_are_decided() -> None:
    def inverse(s: int, cutoff: int) -> Fraction:
        return 1 / sum((log_discount(i) for i in range(1, min(s, cutoff) + 1)), Fraction(0))

    for cutoff, start, order in product((2, 3, 5), (1, 2), range(12)):
        row = [inverse(start + j, cutoff) for j in range(order + 1)]
        while len(row) > 1:
            row = [after - before for before, after in pairwise(row)]
        if start < cutoff and order:
            assert difference_is_nonzero(order, start=start, cutoff=cutoff) == (abs(row[0]) > ROUNDED)
    assert difference_is_nonzero(3, start=2, cutoff=2) is False
    assert difference_is_nonzero(10**5, start=1, cutoff=10**4) is None  # too many terms for the time there is
    with pytest.raises(Undecided, match="a sum of 10000 terms"):
        classify(ranking_game(measure="ndcg@10000", n_items=10**5, k=1))


@pytest.mark.parametrize("m", [238, 1_000, 1_000_000])
@pytest.mark.parametrize(
    "name", ["sum_loss", "dcg@10", "precision@3", "ndcg", "ndcg@10", "auc", "map", "err", "err@5"]
)
def test_any_number_of_items(name: str, m: int) -> None:
    for k in (1, 5, m // 2, m - 2, m - 1, m):
        game = ranking_game(measure=name, n_items=m, k=k)
        assert verify(game, classify(game))


def test_the_unseen_term_is_checked() -> None:
    game = ranking_game(measure="average_precision", n_items=5, k=4)
    verdict = classify(game)
    assert verdict.class_ == "hard"
    refused(game, changed(verdict, unseen=Term(1, 0, 9)), "not so many items")
    refused(game, changed(verdict, unseen=Term(4, 0, 0)), "can be seen by the neighbours")
    refused(game, changed(verdict, unseen=Term(5, 0, 0)), "changes nothing")
    refused(game, changed(verdict, unseen=None), "is missing")
    refused(game, changed(verdict, blocks=((3, 1), (1, 2))), "ranks that count alike")
