"""A tampered witness is refused, every part of it, in every class; what the verifier takes as known is checked.

Of each measure it must be what all orders and all labels of small games say.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from typing import Any

import pytest

from rankloop.games import Refused, Term, classify, ranking_game, verify, zoo
from rankloop.games.classify import usual_measures
from rankloop.games.exact import Mixture, exact_value
from rankloop.games.verify import counts, is_nonzero, most_labels
from tests.games.verdicts import (
    CELLS,
    GAMES,
    STILL_PROOFS,
    SWAPS,
    changed,
    of_cells,
    of_swaps,
    of_verdict,
    of_worlds,
    refused,
)
from tests.measures.cases import NAMES


def test_the_right_class_and_the_right_game_pass_and_no_others() -> None:
    for name, verdicts in product(GAMES, (CELLS, SWAPS)):
        assert verdicts[name].class_ == name
        assert verify(GAMES[name], verdicts[name])
        for other in set(GAMES) - {name}:
            refused(GAMES[name], dataclasses.replace(verdicts[name], class_=other))
        refused(GAMES["hard" if name != "hard" else "hopeless"], verdicts[name])


def test_cells_are_checked() -> None:
    game, verdict = GAMES["hard"], CELLS["hard"]
    w = verdict.witness
    i = verdict.pareto[0]
    swapped = {**w.points, i: w.points[verdict.pareto[1]]}
    refused(game, changed(verdict, points=swapped), "at the point of")
    refused(game, changed(verdict, points={**w.points, i: (0,) * 8}), "every outcome a chance")
    refused(game, changed(verdict, points={k: p for k, p in w.points.items() if k != i}), "proof of it")
    refused(game, changed(verdict, same=(0, 0, 2, 3, 4, 5)), "do not have the same losses")
    refused(game, dataclasses.replace(verdict, pareto=verdict.pareto[1:]), "names other actions")


def test_walls_are_checked() -> None:
    game, verdict = GAMES["hard"], CELLS["hard"]
    w = verdict.witness
    pair, apart = next(iter(w.walls)), next(iter(w.apart))
    refused(game, changed(verdict, walls={**w.walls, pair: w.points[pair[0]]}), "do not tie")
    without = {k: p for k, p in w.walls.items() if k != pair}
    refused(game, changed(verdict, walls=without), "proof of it")
    claimed = changed(verdict, walls=without, apart={**w.apart, pair: w.apart[apart]})
    refused(game, dataclasses.replace(claimed, neighbours=tuple(without)))
    mixture = w.apart[apart]
    negative = Mixture({c: -weight for c, weight in mixture.weights.items()}, mixture.s)
    refused(game, changed(verdict, apart={**w.apart, apart: negative}), "negative weight")
    refused(game, changed(verdict, apart={**w.apart, apart: Mixture({}, Fraction(0))}), "names other")
    off = Mixture(mixture.weights, mixture.s + 1)
    refused(game, changed(verdict, apart={**w.apart, apart: off}), "not neighbours is wrong")


def test_estimates_are_checked() -> None:
    for name in ("easy", "hard"):
        game, verdict = GAMES[name], CELLS[name]
        w = verdict.witness
        pair, terms = next(iter(w.estimates.items()))
        signal = next(iter(terms))
        bent = {**terms, signal: terms[signal] + Fraction(1, 10**9)}
        refused(game, changed(verdict, estimates={**w.estimates, pair: bent}), "is off")
        refused(game, changed(verdict, estimates={}), "needs one estimate")


def test_an_easy_estimate_may_use_neighbours_only() -> None:
    hard = CELLS["hard"]
    everywhere = dataclasses.replace(
        hard, class_="easy", witness=dataclasses.replace(hard.witness, blind=None)
    )
    refused(GAMES["hard"], everywhere, "is not a neighbour")


def test_blindness_is_checked() -> None:
    game, verdict = GAMES["hard"], CELLS["hard"]
    pair, direction = verdict.witness.blind
    refused(game, changed(verdict, blind=(pair, (1, *direction[1:]))), "sees the direction")
    refused(game, changed(verdict, blind=(pair, (0,) * 8)), "does not change")
    refused(game, changed(verdict, blind=None), "offending pair")


def test_worlds_are_checked() -> None:
    for verdict in (CELLS["hopeless"], SWAPS["hopeless"]):
        game = GAMES["hopeless"]
        worlds = verdict.witness.worlds
        assert worlds.forced > 0
        p, q = worlds.chances
        more = dataclasses.replace(worlds, forced=2 * worlds.forced)
        refused(game, changed(verdict, worlds=more), "force a loss")
        same = dataclasses.replace(worlds, chances=(p, p))
        refused(game, changed(verdict, worlds=same))
        moved = (p[0] + p[1], Fraction(0), *p[2:])
        refused(
            game, changed(verdict, worlds=dataclasses.replace(worlds, chances=(moved, q))), "worlds apart"
        )
        short = tuple(chance / 2 for chance in p)
        refused(
            game, changed(verdict, worlds=dataclasses.replace(worlds, chances=(short, q))), "a distribution"
        )
        back = dataclasses.replace(worlds, best=worlds.best[::-1])
        refused(game, changed(verdict, worlds=back))


def test_the_zoo_refuses_its_neighbours() -> None:
    verdict = classify(zoo.apple_tasting())
    refused(zoo.blind_pennies(), verdict)


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


def test_ranks_that_count_differently() -> None:
    for name, m in product(NAMES, (1, 2, 3, 5)):
        game = ranking_game(measure=name, n_items=m, k=1)
        for rank in range(1, m):
            differs = any(_change(game, rank, labels) for labels in product((0, 1), repeat=m))
            assert counts(game, rank) == differs, (name, m, rank)
        assert not counts(game, 0)
        assert not counts(game, m)


WITH_CUTOFFS = [*NAMES, "ndcg@2", "ndcg@3", "ndcg@4", "average_precision@2", "err@3"]


@pytest.mark.parametrize("m", [2, 3, 4, 5, 6])
def test_terms_are_zero_or_not_as_the_measure_says(m: int) -> None:
    for name in WITH_CUTOFFS:
        _check_terms(name, m)


def _check_terms(name: str, m: int) -> None:
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


def test_terms_with_grades() -> None:
    for name, m in product(("ndcg", "ndcg@1", "ndcg@2", "ndcg@3", "pairwise_loss"), (2, 3, 4, 5)):
        for k in range(1, m):
            game = ranking_game(measure=name, n_items=m, k=k, grades=3)
            term = classify(game).witness.unseen
            assert abs(coefficient(game, term)) > ROUNDED, term


def test_any_number_of_items() -> None:
    names = ("sum_loss", "dcg@10", "precision@3", "ndcg", "ndcg@10", "auc", "map", "err", "err@5")
    for name, m in product(names, (238, 1_000, 1_000_000)):
        for k in (1, 5, m // 2, m - 2, m - 1, m):
            game = ranking_game(measure=name, n_items=m, k=k)
            assert verify(game, classify(game)), game


def test_the_unseen_term_is_checked() -> None:
    game = ranking_game(measure="average_precision", n_items=5, k=4)
    verdict = classify(game)
    assert verdict.class_ == "hard"
    refused(game, changed(verdict, unseen=Term(1, 0, 9)), "not so many items")
    refused(game, changed(verdict, unseen=Term(4, 0, 0)), "can be seen by the neighbours")
    refused(game, changed(verdict, unseen=Term(5, 0, 0)), "changes nothing")
    refused(game, changed(verdict, unseen=None), "is missing")
    refused(game, changed(verdict, blocks=((3, 1), (1, 2))), "ranks that count alike")


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
    for game in games_of(name, grades, (2, 3, 4, 5, 8, 50)):
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
    verdicts = [classify(ranking_game(measure=name, n_items=m, k=k, grades=grades)) for k in range(1, m + 1)]
    for k, own in enumerate(verdicts, 1):
        game = ranking_game(measure=name, n_items=m, k=k, grades=grades)
        for other in (*verdicts, *_others(m)):
            if other.class_ != own.class_:
                taken = dataclasses.replace(own, class_=other.class_, witness=other.witness)
                assert not accepted(game, taken)
                assert not accepted(game, dataclasses.replace(taken, easier_k=other.easier_k))


@cache
def _others(m: int) -> list[Any]:
    return [
        classify(ranking_game(measure=other, n_items=m, k=k)) for other in MEASURES for k in (1, 3, m - 1)
    ]


LISTED = {
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


@pytest.mark.parametrize("name", LISTED)
def test_proofs_by_cells(name: str) -> None:
    game = LISTED[name]
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
