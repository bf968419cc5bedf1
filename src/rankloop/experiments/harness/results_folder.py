"""The results folder of an experiment; a file is written entirely or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ResultFolder:
    """The layout under ``<out>/<experiment>``.

    >>> ResultFolder(out=Path("results"), experiment="toy").job("12ab").as_posix()
    'results/toy/jobs/12ab.parquet'
    """

    out: Path
    experiment: str

    @property
    def path(self) -> Path:
        return self.out / self.experiment

    @property
    def jobs(self) -> Path:
        return self.path / "jobs"

    @property
    def results(self) -> Path:
        return self.path / "results.parquet"

    @property
    def claims(self) -> Path:
        return self.path / "claims.json"

    def job(self, identity: str) -> Path:
        return self.jobs / f"{identity}.parquet"

    def figure(self, name: str, ending: str) -> Path:
        return self.path / f"{name}.{ending}"

    def sweep(self) -> None:
        """Remove what a killed process left half-written."""
        for folder in (self.path, self.jobs):
            for left_over in folder.glob(".*.part"):
                with suppress(OSError):
                    left_over.unlink()


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one step.

    A reader of `path` sees the old file or the new one, and never a part of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The process id keeps two runs over the same folder from writing into one temporary file.
    part = path.parent / f".{path.name}.{os.getpid()}.part"
    try:
        write(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
