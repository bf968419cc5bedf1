"""A verdict survives being written to a file."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from rankloop.games import verify
from rankloop.games.verdict import as_plain, from_plain, load, save
from tests.games.verdicts import CELLS, GAMES, SWAPS


def test_a_saved_verdict_is_the_same(tmp_path: Path) -> None:
    for name, verdicts in product(GAMES, (CELLS, SWAPS)):
        save(verdicts[name], tmp_path / "verdict.json")
        again = load(tmp_path / "verdict.json")
        assert again == verdicts[name]
        assert verify(GAMES[name], again)
        assert from_plain(as_plain(again)) == again


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"format": 1}')
    with pytest.raises(ValueError, match="is not a saved verdict"):
        load(tmp_path / "other.json")
    with pytest.raises(ValueError, match="No such file"):
        load(tmp_path / "nowhere.json")
