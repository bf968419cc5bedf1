"""Games from files: what people write is taken as written, and what is wrong is named with its line."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from rankloop.games import classify
from rankloop.games.read import read_game


def _write(folder: Path, text: str) -> Path:
    file = folder / "game.csv"
    file.write_text(text)
    return file


def test_csv(tmp_path: Path) -> None:
    game = read_game(
        _write(tmp_path, "# apples\n0, 1\n1, 0\n1/2, 0.5\n\n# what is seen\n?, ?\n?,?\nheads, tails\n\n")
    )
    assert game.loss.tolist() == [[0, 1], [1, 0], [0.5, 0.5]]
    assert game.signals.tolist() == [[0, 0], [0, 0], [0, 1]]
    assert classify(game).degenerate == (2,)


def test_decimals_are_taken_as_written(tmp_path: Path) -> None:
    game = read_game(_write(tmp_path, "0.1,0.2\n0.3,1e-30\n\na,b\na,b\n"))
    assert game.unit * int(game.whole[0, 0]) == Fraction(1, 10)
    assert game.unit * int(game.whole[1, 1]) == Fraction(1, 10**30)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are 0 blocks"),
        ("0,1\n1,0\n", "there are 1 blocks"),
        ("0,1\n\n?,?\n\n1,2\n", "there are 3 blocks"),
        ("0,1\n1\n\n?,?\n?,?\n", "line 2: 1 losses, the first line has 2"),
        ("0,1\n1,0\n\n?,?\n?,?,?\n", "line 5: 3 signals, the first line has 2"),
        ("0,1\n1,0\n\n?,?\n", "2 rows of losses but 1 rows of signals"),
        ("0,much\n1,0\n\n?,?\n?,?\n", "line 1: loss 2 must be a number, got 'much'"),
        ("0,nan\n1,0\n\n?,?\n?,?\n", "line 1: loss 2 must be a number, got 'nan'"),
        ("0,\n1,0\n\n?,?\n?,?\n", "line 1: entry 2 of the losses is empty"),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        read_game(_write(tmp_path, text))
    assert "game.csv" in str(refused.value)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no such file"):
        read_game(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is a folder"):
        read_game(tmp_path)
    (tmp_path / "game.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"game\.csv: "):
        read_game(tmp_path / "game.csv")
    wide = ",".join("0" * 1001)
    with pytest.raises(ValueError, match="at most 1000"):
        read_game(_write(tmp_path, f"{wide}\n\n{wide}\n"))
