"""The results folder of an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rankloop.whole_file import sweep


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
            sweep(folder)
