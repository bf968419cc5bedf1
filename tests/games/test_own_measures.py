"""Measures of one's own: classified by what they compute, alike as a value, as floats and as fractions, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rankloop import games, measures
from rankloop.games import classify, explain, ranking_game, verify
from rankloop.games.exact import recovered
from rankloop.games.verdict import load, save
from rankloop.kernels import discounts
from rankloop.measures import Measure

Loss = Callable[[tuple[int, ...], tuple[int, ...]], Any]


def one_over_rank(n_items: int) -> np.ndarray:
    return 1.0 / np.arange(1, n_items + 1)


def levels(n_items: int) -> np.ndarray:
    return np.array([3.0, 1.0, 1.0, 0.5, 0.5, 0.25])[:n_items]


def rising(n_items: int) -> np.ndarray:
    return np.arange(1.0, n_items + 1) / 4


def middle_first(n_items: int) -> np.ndarray:
    return np.array([0.0, 1.0, 0.5, 0.25, 0.125])[:n_items]


def reciprocal_rank(measure: Measure, rows: tuple[Any, ...]) -> np.ndarray:
    orders, relevances = rows.orders[rows.order_row], rows.relevances[rows.relevance_row]  # type: ignore[attr-defined]
    hits = np.take_along_axis(relevances, orders, axis=1) > 0
    return np.where(hits.any(axis=1), 1.0 / (1 + hits.argmax(axis=1)), 0.0)


def summed(family: str, weights: Any, *, kind: int = discounts.IDENTITY, is_loss: bool = False) -> Measure:
    return Measure(
        family=family, is_loss=is_loss, linear=True, kind=kind, cutoffs="optional", weights=weights
    )


SHELF = summed("shelf", one_over_rank)  # as docs/howto/own-measure.md makes it; so is the next
FIRST_HIT = Measure(family="first_hit", is_loss=False, linear=False, binary=True, score=reciprocal_rank)


def weighed(weights: list[Fraction], *, sign: int = -1) -> Loss:
    def loss(order: tuple[int, ...], relevance: tuple[int, ...]) -> Fraction:
        gains = (weight * relevance[item] for weight, item in zip(weights, order, strict=False))
        return sign * sum(gains, Fraction(0))

    return loss


def first_hit(order: tuple[int, ...], relevance: tuple[int, ...]) -> Fraction:
    return -next((Fraction(1, rank) for rank, item in enumerate(order, 1) if relevance[item]), Fraction(0))


SHARES = [Fraction(1, rank) for rank in range(1, 6)]
CASES: list[tuple[Measure, Loss]] = [
    (SHELF, weighed(SHARES)),
    (SHELF.at(2), weighed([*SHARES[:2], *[Fraction(0)] * 3])),
    (FIRST_HIT, first_hit),
    (summed("levels", levels), weighed([Fraction(str(weight)) for weight in levels(6)])),
    (summed("late", rising, is_loss=True), weighed([Fraction(j, 4) for j in range(1, 6)], sign=1)),
    (summed("middle", middle_first), weighed([Fraction(str(weight)) for weight in middle_first(5)])),
    (summed("even", np.ones), weighed([Fraction(1)] * 5)),
    # Names of the package, with values of the above behind them.
    (summed("dcg", np.ones, kind=discounts.EXP2), weighed([Fraction(1)] * 5)),
    (summed("precision", one_over_rank), weighed(SHARES)),
    (replace(FIRST_HIT, family="ndcg"), first_hit),
]
NAMES_OF_OTHERS = {"dcg", "precision", "ndcg"}


@pytest.mark.parametrize(("measure", "loss"), CASES, ids=[measure.name for measure, _ in CASES])
def test_a_measure_has_the_class_of_what_it_computes(measure: Measure, loss: Loss) -> None:
    # By brute force: all orders, all labels, from a function that knows nothing of measures and gives fractions.
    for m in (2, 3) if measure.family in NAMES_OF_OTHERS else (2, 3, 4):
        for k in range(1, m + 1):
            truth = classify(ranking_game(measure=loss, n_items=m, k=k), route="cells")
            game = ranking_game(measure=measure, n_items=m, k=k)
            verdicts = [classify(game)]
            if verdicts[0].route != "cells":
                verdicts.append(classify(game, route="cells"))
            for verdict in verdicts:
                assert verdict.class_ == truth.class_, (m, k, verdict.route)
                assert verify(game, verdict)


def test_what_the_howto_makes() -> None:
    shelf = [classify(ranking_game(measure=SHELF, n_items=4, k=k)).class_ for k in (1, 2, 3, 4)]
    assert shelf == ["hard", "hard", "easy", "easy"]
    found = classify(ranking_game(measure=SHELF, n_items=100, k=3))
    assert (found.class_, found.route, found.easier_k) == ("hard", "structure", {"easy": 99})
    assert verify(ranking_game(measure=SHELF, n_items=100, k=3), found)
    hit = classify(ranking_game(measure=FIRST_HIT, n_items=4, k=2))
    assert (hit.class_, hit.route) == ("hopeless", "cells")
    with pytest.raises(ValueError, match="'first_hit' has no known structure"):
        classify(ranking_game(measure=FIRST_HIT, n_items=3, k=1), route="structure")


def test_three_grades() -> None:
    for kind, gain in ((discounts.IDENTITY, lambda r: r), (discounts.EXP2, lambda r: 2**r - 1)):
        measure = summed("shelf", one_over_rank, kind=kind)

        def loss(order: tuple[int, ...], labels: tuple[int, ...], gain: Any = gain) -> Fraction:
            return -sum((Fraction(gain(labels[item]), j) for j, item in enumerate(order, 1)), Fraction(0))

        for k in (1, 2):
            truth = classify(ranking_game(measure=loss, n_items=3, k=k, grades=3))
            game = ranking_game(measure=measure, n_items=3, k=k, grades=3)
            assert classify(game).class_ == classify(game, route="cells").class_ == truth.class_


def test_a_verdict_that_bears_the_name_of_another_measure_is_refused() -> None:
    own = ranking_game(measure=summed("dcg", np.ones, kind=discounts.EXP2), n_items=3, k=1)
    packaged = ranking_game(measure="dcg", n_items=3, k=1)
    assert own.measure == "dcg (own)"
    for game, other in ((own, packaged), (packaged, own)):
        with pytest.raises(games.Refused):
            verify(game, classify(other))
        with pytest.raises(games.Refused):
            verify(game, replace(classify(other), measure=game.measure))
    assert measures.dcg.at(2) == measures.get("dcg@2")
    assert ranking_game(measure=measures.dcg.at(2), n_items=3).scored is not None


def test_explanations_and_files(tmp_path: Any) -> None:
    for measure in (SHELF, FIRST_HIT, summed("dcg", np.ones)):
        for k in (1, 2, 3):
            game = ranking_game(measure=measure, n_items=3, k=k)
            verdict = classify(game)
            assert all(explain(verdict))
            assert "TopFTRL" not in " ".join(explain(verdict))  # which learns the package's DCG
            save(verdict, tmp_path / "proof.json")
            assert verify(game, load(tmp_path / "proof.json"))


def test_a_function_of_floats_is_that_of_its_fractions() -> None:
    def computed(order: tuple[int, ...], relevance: tuple[int, ...]) -> float:
        return -sum(relevance[item] / rank for rank, item in enumerate(order, 1))

    for m, least in ((3, 1), (4, 3)):
        for k in range(least, m + 1):
            exact = classify(ranking_game(measure=weighed(SHARES), n_items=m, k=k))
            assert classify(ranking_game(measure=computed, n_items=m, k=k)).class_ == exact.class_


def test_floats_that_stand_for_no_fraction_are_refused() -> None:
    def logarithmic(order: tuple[int, ...], relevance: tuple[int, ...]) -> float:
        return -sum(relevance[item] / math.log2(1 + rank) for rank, item in enumerate(order, 1))

    with pytest.raises(ValueError, match=r"measure 'logarithmic': .* is a rounded number.* give fractions"):
        classify(ranking_game(measure=logarithmic, n_items=3, k=1))
    nearly = summed("nearly", lambda n: np.array([1.0, 0.5, 0.5 + 1e-13][:n])[::-1])
    with pytest.raises(
        ValueError, match=r"weighs ranks 1 and 2 with .*make them equal, or clearly different"
    ):
        ranking_game(measure=summed("close", lambda n: np.array([0.5 + 1e-13, 0.5, 0.1])[:n]), n_items=3)
    assert ranking_game(measure=nearly, n_items=3).levels is None


def test_which_floats_are_recovered() -> None:
    rng = np.random.default_rng(1)
    for _ in range(2_000):
        terms = [Fraction(int(rng.integers(-9, 10)), int(rng.integers(1, 10))) for _ in range(5)]
        assert recovered(sum(float(term) for term in terms)) == sum(terms)
    assert recovered(np.float32(3.0)) == recovered(3) == 3
    refused = 0
    for value in rng.random(2_000):
        try:
            recovered(float(value))
        except ValueError:
            refused += 1
    assert refused == 2_000  # one in a million looks like a fraction by chance
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not a finite number"):
            recovered(bad)
