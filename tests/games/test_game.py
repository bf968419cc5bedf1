"""Games as data; rounding decides no class in silence: NaN is refused, short floats taken as written, ties named."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop.games import Game, NearTieWarning, classify, ranking_game, verify
from rankloop.games.read import read_game

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


def test_losses_that_were_computed_are_warned_of() -> None:
    # One half plus one third is not the float next to five sixths: sums of such losses no longer cancel.
    with pytest.warns(NearTieWarning, match=r"loss\[0, 1\] = 0.8333333333333333 is no short fraction"):
        Game([[0, 1 / 2 + 1 / 3], [1, 0]], [[0, 1], [0, 1]])


def test_a_function_that_computes_a_tie_with_rounding() -> None:
    def loss(order: tuple[int, ...], relevance: tuple[int, ...]) -> float:
        return 0.1 + 0.2 if order[0] else 0.3

    assert classify(ranking_game(measure=loss, n_items=2, k=1)).class_ == "trivial"


def test_files(tmp_path: Path) -> None:
    (tmp_path / "game.csv").write_text("0.1, 1\n\nyes, no\n")
    assert read_game(tmp_path / "game.csv").n_outcomes == 2
    (tmp_path / "game.csv").write_bytes(b"\x8c")
    with pytest.raises(ValueError, match=r"game\.csv: 'utf-8' codec can't decode byte 0x8c"):
        read_game(tmp_path / "game.csv")


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


def test_signals_that_are_drawn() -> None:
    game = Game([[0, 1], [1, 0]], [[{"a": 0.5, "b": 0.5}, "b"], ["?", "?"]])
    rows, owners = game.signal_rows([0, 1])
    assert game.observations.scale == 2
    assert rows.tolist() == [[1, 0], [1, 2], [2, 2]]
    assert owners == [(0, 0), (0, 1), (1, 0)]
    assert verify(game, classify(game))
    with pytest.raises(ValueError, match="distributions"):
        _ = game.signals
    certain = Game([[0, 1], [1, 0]], [[{"a": 1}, {"b": 1, "a": 0}], ["?", "?"]])
    plain = Game([[0, 1], [1, 0]], [["a", "b"], ["?", "?"]])
    np.testing.assert_array_equal(certain.signal_rows([0])[0], plain.signal_rows([0])[0])


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ({"a": "1/2"}, r"signal\[0, 1\] must hold chances that sum to 1"),
        ({"a": "3/2", "b": "-1/2"}, "chances that sum to 1"),
        ({}, "chances that sum to 1"),
        ({"a": float("nan")}, r"signal\[0, 1\]: nan is not a finite number"),
        ({float("nan"): 1}, "got NaN"),
        ({"a": Fraction(1, 10**12), "b": 1 - Fraction(1, 10**12)}, "too large"),
    ],
)
def test_chances_that_are_none_are_refused(entry: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Game([[0, 1]], [["a", entry]])
