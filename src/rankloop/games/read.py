"""Games from files: a CSV with the losses above the signals."""

from __future__ import annotations

import csv
from pathlib import Path

from rankloop.games.exact import fraction
from rankloop.games.game import Game

_LARGEST = 1_000


def read_game(path: Path | str) -> Game:
    """The game in a file; a ValueError names the file, the line and what is wrong.

    A CSV holds the rows of the
    losses, an empty line, and the rows of the signals, which may be any words. Numbers may be written 0.25, 1/3 or
    1e-3, and are taken as written. Lines that begin with # are comments.
    """
    file = Path(path)
    if not file.exists():
        raise ValueError(f"{file}: there is no such file")
    if file.is_dir():
        raise ValueError(f"{file} is a folder, not a file")
    game = _from_csv(file)
    if max(game.n_actions, game.n_outcomes) > _LARGEST:
        raise ValueError(
            f"{file}: at most {_LARGEST} actions and outcomes, got {game.n_actions} x {game.n_outcomes}"
        )
    return game


def _from_csv(file: Path) -> Game:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise ValueError(f"{file}: {problem}") from None
    parts: list[list[tuple[int, list[str]]]] = [[]]
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            continue
        cells = [cell.strip() for cell in next(csv.reader([line]), [])]
        if any(cells):
            parts[-1].append((number, cells))
        elif parts[-1]:
            parts.append([])
    blocks = [part for part in parts if part]
    if len(blocks) != 2:
        raise ValueError(
            f"{file}: needs the rows of losses, an empty line, and the rows of signals; "
            f"there are {len(blocks)} blocks of rows"
        )
    width = len(blocks[0][0][1])
    for name, block in zip(("losses", "signals"), blocks, strict=True):
        for number, cells in block:
            if len(cells) != width:
                raise ValueError(f"{file}, line {number}: {len(cells)} {name}, the first line has {width}")
            if "" in cells:
                raise ValueError(f"{file}, line {number}: entry {cells.index('') + 1} of the {name} is empty")
    if len(blocks[0]) != len(blocks[1]):
        raise ValueError(f"{file}: {len(blocks[0])} rows of losses but {len(blocks[1])} rows of signals")
    for number, cells in blocks[0]:
        for place, cell in enumerate(cells, 1):
            try:
                fraction(cell)
            except ValueError:
                raise ValueError(
                    f"{file}, line {number}: loss {place} must be a number, got {cell!r}"
                ) from None
    return Game([cells for _, cells in blocks[0]], [cells for _, cells in blocks[1]])
