"""A tampered witness is refused: every part of it, in every class."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest

from rankloop.games import Refused, classify, ranking_game, verify, zoo
from rankloop.games.inequalities import Mixture
from rankloop.games.verdict_json import as_plain, from_plain, load, save


def _changed(verdict: Any, **parts: Any) -> Any:
    return dataclasses.replace(verdict, witness=dataclasses.replace(verdict.witness, **parts))


def _refused(game: Any, verdict: Any, match: str | None = None) -> None:
    with pytest.raises(Refused, match=match):
        verify(game, verdict)


GAMES = {
    "easy": ranking_game(measure="precision@2", n_items=3, k=1),
    "hard": ranking_game(measure="sum_loss", n_items=3, k=1),
    "hopeless": ranking_game(measure="ndcg", n_items=3, k=1),
    "trivial": ranking_game(measure="precision@3", n_items=3, k=1),
}
CELLS = {name: classify(game, route="cells") for name, game in GAMES.items()}
SWAPS = {name: classify(game, route="structure") for name, game in GAMES.items()}


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("found", [CELLS, SWAPS], ids=["cells", "structure"])
def test_the_right_class_passes_and_all_others_do_not(name: str, found: dict[str, Any]) -> None:
    assert found[name].class_ == name
    assert verify(GAMES[name], found[name])
    for other in set(GAMES) - {name}:
        _refused(GAMES[name], dataclasses.replace(found[name], class_=other))


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("found", [CELLS, SWAPS], ids=["cells", "structure"])
def test_a_witness_of_another_game_is_refused(name: str, found: dict[str, Any]) -> None:
    other = "hard" if name != "hard" else "hopeless"
    _refused(GAMES[other], found[name])


def test_cells_are_checked() -> None:
    game, verdict = GAMES["hard"], CELLS["hard"]
    w = verdict.witness
    i = verdict.pareto[0]
    swapped = {**w.points, i: w.points[verdict.pareto[1]]}
    _refused(game, _changed(verdict, points=swapped), "at the point of")
    _refused(game, _changed(verdict, points={**w.points, i: (0,) * 8}), "every outcome a chance")
    _refused(game, _changed(verdict, points={k: p for k, p in w.points.items() if k != i}), "proof of it")
    _refused(game, _changed(verdict, same=(0, 0, 2, 3, 4, 5)), "do not have the same losses")
    _refused(game, dataclasses.replace(verdict, pareto=verdict.pareto[1:]), "names other actions")


def test_walls_are_checked() -> None:
    game, verdict = GAMES["hard"], CELLS["hard"]
    w = verdict.witness
    pair, apart = next(iter(w.walls)), next(iter(w.apart))
    _refused(game, _changed(verdict, walls={**w.walls, pair: w.points[pair[0]]}), "do not tie")
    without = {k: p for k, p in w.walls.items() if k != pair}
    _refused(game, _changed(verdict, walls=without), "proof of it")
    claimed = _changed(verdict, walls=without, apart={**w.apart, pair: w.apart[apart]})
    _refused(game, dataclasses.replace(claimed, neighbours=tuple(without)))
    mixture = w.apart[apart]
    negative = Mixture({c: -weight for c, weight in mixture.weights.items()}, mixture.s)
    _refused(game, _changed(verdict, apart={**w.apart, apart: negative}), "negative weight")
    _refused(game, _changed(verdict, apart={**w.apart, apart: Mixture({}, Fraction(0))}), "names other")
    off = Mixture(mixture.weights, mixture.s + 1)
    _refused(game, _changed(verdict, apart={**w.apart, apart: off}), "not neighbours is wrong")


def test_estimates_are_checked() -> None:
    for name in ("easy", "hard"):
        game, verdict = GAMES[name], CELLS[name]
        w = verdict.witness
        pair, terms = next(iter(w.estimates.items()))
        signal = next(iter(terms))
        bent = {**terms, signal: terms[signal] + Fraction(1, 10**9)}
        _refused(game, _changed(verdict, estimates={**w.estimates, pair: bent}), "is off")
        _refused(game, _changed(verdict, estimates={}), "needs one estimate")


def test_an_easy_estimate_may_use_neighbours_only() -> None:
    hard = CELLS["hard"]
    everywhere = dataclasses.replace(
        hard, class_="easy", witness=dataclasses.replace(hard.witness, blind=None)
    )
    _refused(GAMES["hard"], everywhere, "is not a neighbour")


def test_blindness_is_checked() -> None:
    game, verdict = GAMES["hard"], CELLS["hard"]
    pair, direction = verdict.witness.blind
    _refused(game, _changed(verdict, blind=(pair, (1, *direction[1:]))), "sees the direction")
    _refused(game, _changed(verdict, blind=(pair, (0,) * 8)), "does not change")
    _refused(game, _changed(verdict, blind=None), "offending pair")


def test_worlds_are_checked() -> None:
    for found in (CELLS, SWAPS):
        game, verdict = GAMES["hopeless"], found["hopeless"]
        worlds = verdict.witness.worlds
        assert worlds.forced > 0
        p, q = worlds.chances
        more = dataclasses.replace(worlds, forced=2 * worlds.forced)
        _refused(game, _changed(verdict, worlds=more), "force a loss")
        same = dataclasses.replace(worlds, chances=(p, p))
        _refused(game, _changed(verdict, worlds=same))
        moved = (p[0] + p[1], Fraction(0), *p[2:])
        _refused(
            game, _changed(verdict, worlds=dataclasses.replace(worlds, chances=(moved, q))), "worlds apart"
        )
        short = tuple(chance / 2 for chance in p)
        _refused(
            game, _changed(verdict, worlds=dataclasses.replace(worlds, chances=(short, q))), "a distribution"
        )
        back = dataclasses.replace(worlds, best=worlds.best[::-1])
        _refused(game, _changed(verdict, worlds=back))


def test_terms_are_checked() -> None:
    game = ranking_game(measure="average_precision", n_items=5, k=4)
    verdict = classify(game)
    assert verdict.class_ == "hard"
    terms = verdict.witness.terms
    bent = dataclasses.replace(
        terms, by_sizes={**terms.by_sizes, (0, 1): terms.by_sizes[0, 1] + Fraction(1, 10**6)}
    )
    _refused(game, _changed(verdict, terms=bent), "do not give the swap")
    _refused(game, _changed(verdict, unseen=(1, 0, 9)), "none of the terms")
    _refused(game, _changed(verdict, unseen=(4, 0, 0)), "can be seen by the neighbours")
    _refused(game, _changed(verdict, blocks=(1, 1, 1, 2)), "between the blocks")


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("found", [CELLS, SWAPS], ids=["cells", "structure"])
def test_a_saved_verdict_is_the_same(name: str, found: dict[str, Any], tmp_path: Any) -> None:
    save(found[name], tmp_path / "verdict.json")
    again = load(tmp_path / "verdict.json")
    assert again == found[name]
    assert verify(GAMES[name], again)
    assert from_plain(as_plain(again)) == again


def test_other_files_are_refused(tmp_path: Any) -> None:
    (tmp_path / "other.json").write_text('{"format": 1}')
    with pytest.raises(ValueError, match="is not a saved verdict"):
        load(tmp_path / "other.json")
    with pytest.raises(ValueError, match="No such file"):
        load(tmp_path / "nowhere.json")


def test_the_zoo_refuses_its_neighbours() -> None:
    verdict = classify(zoo.apple_tasting())
    _refused(zoo.blind_pennies(), verdict)
