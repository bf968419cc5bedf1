"""Every field of every witness is forged, and refused, but for changes that leave a valid proof."""

from __future__ import annotations

import dataclasses
from itertools import permutations, product
from typing import Any

import pytest

from rankloop.games import Refused, Term, classify, ranking_game, verify, zoo
from rankloop.games.rates import usual_measures
from tests.games.forgeries import STILL_PROOFS, of_cells, of_swaps, of_verdict, of_worlds
from tests.games.test_verify_swaps import ROUNDED, coefficient
from tests.games.verdicts import changed

MEASURES = [*usual_measures(5), "average_precision@1", "average_precision@2"]
GRADED = usual_measures(5, grades=3)


def accepted(game: Any, verdict: Any) -> bool:
    try:
        return verify(game, verdict)
    except Refused:
        return False


def games_of(name: str, grades: int, sizes: tuple[int, ...]) -> list[Any]:
    return [
        ranking_game(measure=name, n_items=m, k=k, grades=grades)
        for m in sizes
        for k in sorted({1, 2, 3, m - 2, m - 1, m})
        if 1 <= k <= m
    ]


def hides(game: Any, verdict: Any) -> bool:
    """Whether the term of a witness is a proof of its class, by listing labels and orders."""
    term, m, k = verdict.witness.unseen, game.n_items, game.k
    sizes = (term.rank, term.above, term.below, term.relevant)
    if any(type(x) is not int or x < 0 for x in sizes) or not 1 <= term.rank < m:
        return False
    if term.above >= term.rank or term.below + term.relevant > m - term.rank - 1:
        return False
    if term.steps is not None and not all(0 <= low < high <= game.max_grade for low, high in term.steps):
        return False
    if abs(coefficient(game, term)) < ROUNDED:
        return False
    if verdict.class_ == "hopeless":
        return term.size > k
    x = term.rank - 1
    items = {x, *range(x - term.above, x), *range(m - term.below, m)} | ({x + 1} if term.steps else set())
    swapped = list(range(m))
    swapped[x], swapped[x + 1] = x + 1, x
    labels = list(product(range(game.max_grade + 1), repeat=m))
    worth = {tuple(game.value(order, r) for r in labels) for order in (list(range(m)), swapped)}
    between = [
        order for order in permutations(range(m)) if tuple(game.value(order, r) for r in labels) in worth
    ]
    return not any(items <= set(order[:k]) for order in between)


@pytest.mark.parametrize(
    ("name", "grades"), [*((name, 2) for name in MEASURES), *((name, 3) for name in GRADED)]
)
def test_proofs_by_swaps(name: str, grades: int) -> None:
    for game in games_of(name, grades, (2, 3, 4, 6, 8, 50)):
        verdict = classify(game)
        assert accepted(game, verdict)
        for forge in (of_verdict, of_worlds, of_swaps):
            for change, forged in forge(verdict):
                if change == "term changed":
                    # Another term may be a proof as well: whether it is, is decided here by listing everything.
                    passed = accepted(game, forged)
                    assert not passed or game.n_items > 4 or hides(game, forged), (
                        game,
                        forged.witness.unseen,
                    )
                else:
                    assert accepted(game, forged) == (change in STILL_PROOFS), (game, change)


@pytest.mark.parametrize(("name", "grades"), [*((name, 2) for name in MEASURES), ("ndcg", 3), ("err", 3)])
def test_a_proof_at_another_k_or_of_another_measure_is_none(name: str, grades: int) -> None:
    m = 6
    found = [classify(ranking_game(measure=name, n_items=m, k=k, grades=grades)) for k in range(1, m + 1)]
    others = [
        classify(ranking_game(measure=other, n_items=m, k=k)) for other in MEASURES for k in (1, 3, m - 1)
    ]
    for k, own in enumerate(found, 1):
        game = ranking_game(measure=name, n_items=m, k=k, grades=grades)
        for other in (*found, *others):
            if other.class_ != own.class_:
                taken = dataclasses.replace(own, class_=other.class_, witness=other.witness)
                assert not accepted(game, taken)
                assert not accepted(game, dataclasses.replace(taken, easier_k=other.easier_k))


CELLS = {
    "apple tasting": zoo.apple_tasting(),
    "label-efficient": zoo.label_efficient(),
    "bandit": zoo.bandit(),
    "pennies": zoo.matching_pennies(),
    "dear pennies": zoo.matching_pennies(price="2/3"),
    "blind pennies": zoo.blind_pennies(),
    "dominated": zoo.dominated(),
    "pricing": zoo.dynamic_pricing(n_prices=3),
    **{
        f"{name}, k = {k}": ranking_game(measure=name, n_items=3, k=k)
        for name in ("sum_loss", "precision@2", "ndcg", "auc", "err", "average_precision@1", "precision@3")
        for k in (1, 2)
    },
}


@pytest.mark.parametrize("name", CELLS)
def test_proofs_by_cells(name: str) -> None:
    game = CELLS[name]
    verdict = classify(game, route="cells")
    assert accepted(game, verdict)
    forgeries = [*of_verdict(verdict), *of_worlds(verdict), *of_cells(game, verdict)]
    for change, forged in forgeries:
        still = change in STILL_PROOFS and change != "worlds removed"
        assert accepted(game, forged) == still, change


def test_the_forgeries_that_were_once_accepted() -> None:
    for name in ("sum_loss", "dcg", "err"):
        game = ranking_game(measure=name, n_items=6, k=1)
        verdict = changed(classify(game), blocks=((1, 1), (1, 5)), unseen=None, worlds=None)
        assert not accepted(game, dataclasses.replace(verdict, class_="easy"))
        assert not accepted(game, dataclasses.replace(verdict, class_="easy", easier_k={}))
    game = ranking_game(measure="sum_loss", n_items=8, k=3)
    verdict = changed(classify(game), unseen=Term(1, 0, 4))
    assert not accepted(game, dataclasses.replace(verdict, class_="hopeless"))
    game = ranking_game(measure="pairwise_loss", n_items=4, k=3, grades=3)
    verdict = changed(classify(game), worlds=None)
    for easier in ({}, verdict.easier_k, {"hard": 4, "easy": 4}):
        assert not accepted(game, dataclasses.replace(verdict, class_="hopeless", easier_k=easier))
