"""Rounding must not decide a class in silence: NaN is refused, short floats are taken as written, ties named."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from rankloop.games import Game, NearTieWarning, classify, ranking_game
from rankloop.games.read_game import read_game

PENNIES = [["?", "?"], ["?", "?"], ["heads", "tails"]]


@pytest.mark.parametrize("nan", [float("nan"), np.float32("nan"), Decimal("nan"), (1, float("nan")), np.nan])
def test_nan_is_no_signal(nan: object) -> None:
    with pytest.raises(ValueError, match=r"signal\[0, 0\] must be a number or a word, got NaN"):
        Game([[0, 1], [1, 0]], [[nan, nan], [nan, nan]])
    with pytest.raises(ValueError, match=r"signal\[0, 0\]"):
        Game(np.eye(2), np.full((2, 2), np.nan))


def test_a_short_float_is_its_shortest_decimal() -> None:
    loss = np.array([[0.0, 1.0], [1.0, 0.0], [0.1, 0.9]], dtype=np.float32)
    game = Game(loss, PENNIES)
    assert game.unit * int(game.whole[2, 0]) == Fraction(1, 10)
    assert game.unit * int(game.whole[2, 1]) == Fraction(9, 10)
    assert classify(game).class_ == classify(Game(loss.astype(str).tolist(), PENNIES)).class_
    half = Game(np.array([[0.1, 1.5]], dtype=np.float16), [[0, 1]])
    assert half.unit * int(half.whole[0, 0]) == Fraction(1, 10)
    with pytest.raises(ValueError, match=r"loss\[0, 1\]: inf is not a finite number"):
        Game(np.array([[0, np.inf]], dtype=np.float32), [[0, 1]])


@pytest.mark.parametrize(
    "loss",
    [
        [[0.1 + 0.2, 1], [0.3, 1]],
        [["0.30000000000000004", 1], ["0.3", 1]],
        [[0.3 - 0.1 - 0.2, 1], [1, 1]],
        np.array([[0.1, 1], [1, 1]], dtype=np.float32) * np.float32(3)
        - np.array([[0, 0], [2.7, 2.7]], dtype=np.float32),
    ],
)
def test_near_ties_are_warned_of(loss: object) -> None:
    with pytest.warns(NearTieWarning, match="differ by .* if the two should be equal"):
        Game(loss, [["?", "?"], ["?", "!"]])


def test_what_was_meant_is_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Game([[Fraction(1, 2) + Fraction(1, 10**40), Fraction(1, 2)]], [[0, 1]])
        Game([["0.3", "1e-30"]], [[0, 1]])
        Game([[0.1, 0.2, 0.3, 1 / 3, 0.3333]], [[0, 1, 2, 3, 4]])


def test_a_function_that_computes_near_ties() -> None:
    def loss(order: tuple[int, ...], relevance: tuple[int, ...]) -> float:
        return 0.1 + 0.2 if order[0] else 0.3

    with pytest.warns(NearTieWarning):
        classify(ranking_game(measure=loss, n_items=2, k=1))


def test_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "game.npz", loss=np.array([[0.1, 1]], dtype=np.float32), signal=[[0.0, np.nan]])
    with pytest.raises(ValueError, match=r"game\.npz: signal\[0, 1\] .* NaN"):
        read_game(tmp_path / "game.npz")
