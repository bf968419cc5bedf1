"""Games as data, the zoo's known classes, and ties that floating point would get wrong."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop import games
from rankloop.games import Game, classify, verify, zoo


@pytest.mark.parametrize("name", zoo.known)
def test_the_zoo(name: str) -> None:
    make, class_ = zoo.known[name]
    game = make()
    verdict = classify(game)
    assert verdict.class_ == class_
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


@pytest.mark.parametrize("exponent", [3, 9, 15, 40])
def test_a_price_just_above_a_half_is_hard_however_small_the_difference(exponent: int) -> None:
    above = Fraction(1, 2) + Fraction(1, 10**exponent)
    assert classify(zoo.matching_pennies(price=above)).class_ == "hard"
    below = classify(zoo.matching_pennies(price=Fraction(1, 2) - Fraction(1, 10**exponent)))
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


@pytest.mark.parametrize(
    ("loss", "signal", "message"),
    [
        ([[0, 1], [1]], [[0, 0], [0, 0]], "loss row 1 has 1 entries, row 0 has 2"),
        ([[0, 1]], [[0, 1], [0, 1]], "same shape, got 1 x 2 and 2 x 2"),
        ([[0, float("nan")]], [[0, 1]], r"loss\[0, 1\]: nan is not a finite number"),
        ([[0, "much"]], [[0, 1]], r"loss\[0, 1\]: 'much' is not a number"),
        ([], [], "at least one action"),
        (3, [[0]], "loss must be rows"),
        ([[0, 1]], [[[0], 1]], r"signal\[0, 0\] must be a number or a word"),
    ],
)
def test_bad_games_are_refused_by_name(loss: object, signal: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Game(loss, signal)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="route must be one of"):
        classify(zoo.bandit(), route="guess")
    with pytest.raises(ValueError, match="needs a ranking game"):
        classify(zoo.bandit(), route="structure")
