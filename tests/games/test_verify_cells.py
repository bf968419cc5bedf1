"""A tampered witness is refused: every part of it, in every class."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest

from rankloop.games import classify, verify, zoo
from rankloop.games.inequalities import Mixture
from tests.games.verdicts import CELLS, GAMES, SWAPS, changed, refused


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("found", [CELLS, SWAPS], ids=["cells", "structure"])
def test_the_right_class_passes_and_all_others_do_not(name: str, found: dict[str, Any]) -> None:
    assert found[name].class_ == name
    assert verify(GAMES[name], found[name])
    for other in set(GAMES) - {name}:
        refused(GAMES[name], dataclasses.replace(found[name], class_=other))


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("found", [CELLS, SWAPS], ids=["cells", "structure"])
def test_a_witness_of_another_game_isrefused(name: str, found: dict[str, Any]) -> None:
    other = "hard" if name != "hard" else "hopeless"
    refused(GAMES[other], found[name])


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
    for found in (CELLS, SWAPS):
        game, verdict = GAMES["hopeless"], found["hopeless"]
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
