"""A progress bar: one line of plain text, redrawn in place; in a notebook, a bar below the cell."""

from __future__ import annotations

import sys
import time

from rankloop.notebook import Line, in_notebook

_WIDTH = 30


class Bar:
    """A progress bar that appears only on a terminal or in a notebook, and only for runs that take a while."""

    def __init__(self, rounds: int, *, wanted: bool | None) -> None:
        self.rounds = rounds
        self.line = Line() if in_notebook() else None
        self.wanted = (self.line is not None or sys.stderr.isatty()) if wanted is None else wanted
        self.patience = 0.3 if wanted is None else 0.0
        self.begun = time.perf_counter()
        self.drawn = 0  # characters of the line on the screen

    def __enter__(self) -> Bar:
        return self

    def show(self, t: int) -> None:
        """Move to round `t`."""
        spent = time.perf_counter() - self.begun
        if not self.wanted or spent < self.patience:
            return
        left = spent * (self.rounds - t) / max(t, 1)
        if self.patience and not self.drawn and left < 2.0:
            return
        done = _WIDTH * t // self.rounds
        told = f" {t / spent:,.0f} rounds/s, {left:,.0f} s left" if t else ""
        if self.line is not None:
            self.line.show(t / self.rounds, f"{t:,} of {self.rounds:,} rounds{told and ','}{told}")
            self.drawn = 1
            return
        line = f"rounds [{'#' * done}{'.' * (_WIDTH - done)}] {t / self.rounds:4.0%}{told}"
        print(f"\r{line:<{self.drawn}}", end="", file=sys.stderr, flush=True)
        self.drawn = len(line)

    def __exit__(self, *_: object) -> None:
        if self.line is not None:
            self.line.clear()
        elif self.drawn:
            print(f"\r{'':<{self.drawn}}\r", end="", file=sys.stderr, flush=True)
