"""A progress bar for those who wait."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """A progress bar that appears only on a terminal, and only when there is something to wait for."""

    def __init__(self, rounds: int, *, wanted: bool | None) -> None:
        self.rounds = rounds
        self.wanted = sys.stderr.isatty() if wanted is None else wanted
        self.patience = 0.3 if wanted is None else 0.0
        self.begun = time.perf_counter()
        self.bar: Progress | None = None
        self.task: TaskID | None = None

    def __enter__(self) -> Bar:
        return self

    def show(self, t: int) -> None:
        """Move to round `t`."""
        spent = time.perf_counter() - self.begun
        if not self.wanted or spent < self.patience:
            return
        if self.bar is None:
            if self.patience and spent * (self.rounds - t) / max(t, 1) < 2.0:
                return
            from rich.console import Console
            from rich.progress import Progress, TextColumn

            self.bar = Progress(
                *Progress.get_default_columns(),
                TextColumn("{task.fields[rate]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self.bar.start()
            self.task = self.bar.add_task("rounds", total=self.rounds, rate="")
        assert self.task is not None
        self.bar.update(self.task, completed=t, rate=f"{t / spent:,.0f} rounds/s")

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
