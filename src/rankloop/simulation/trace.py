"""The result of a run; what made it; and how both lie in a Parquet file."""

from __future__ import annotations

import abc
import hashlib
import importlib.metadata
import json
import os
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop import __version__
from rankloop.extras import MissingExtra, card, installed, require, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl
    from matplotlib.figure import Figure

_PACKAGE = Path(__file__).parents[1]
# What cannot change a number. Experiments are among it because they carry a version of their own, but not the
# rankers that some of them bring along.
_SHOWING = {
    "__init__",
    "__main__",
    "advice",
    "checks",
    "claims",
    "cli",
    "experiments",
    "plotting",
    "serving",
    "spacing",
}
_KEY = "rankloop"  # of the JSON among the metadata of a file
_COLUMNS = ("value", "total", "regret", "explored")
_FACTS = ("measure", "is_loss", "seed", "seconds", "counters")


@cache
def code_fingerprint() -> str:
    """A hash over the source of everything that computes.

    Stored with each job's rows: rows made by other code are made again instead of being resumed, so that a
    changed ranker is never evaluated on the results of the old one.
    """
    digest = hashlib.sha256()
    for source in sorted(_PACKAGE.rglob("*.py")):
        inside = source.relative_to(_PACKAGE)
        if "__pycache__" in inside.parts:  # compiled loops are written there as they are needed
            continue
        if inside.parts[0].removesuffix(".py") not in _SHOWING or {"rankers", "rankers.py"} & {*inside.parts}:
            digest.update(inside.as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """The software a result depends on."""
    software = {"rankloop": __version__, "python": platform.python_version()}
    for name in ("numpy", "numba", "polars", "matplotlib"):
        try:
            software[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            software[name] = "not installed"
    return software


def machine() -> str:
    """The kind of machine, without its name."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count() or 1} cores"


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def provenance(of_runs: dict[str, Any]) -> dict[str, Any]:
    """What a file says about its making: what the runs know already, and the rest as it is here and now."""
    here = {"versions": versions(), "machine": machine(), "code": code_fingerprint(), "made": now()}
    return here | of_runs


def write_frame(path: str | os.PathLike[str], frame: pl.DataFrame, facts: dict[str, Any]) -> None:
    """Write a frame with facts about it, entirely or not at all."""
    metadata = {_KEY: json.dumps(facts)}
    write_whole(Path(path), lambda part: frame.write_parquet(part, metadata=metadata))


def read_frame(path: str | os.PathLike[str], *, kind: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The frame and the facts about it; ValueError where `kind` has not been saved there."""
    require("polars", extra="data", for_=f"reading a {kind}")
    import polars

    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(2, f"there is no saved {kind}", str(path))
    try:
        facts = json.loads(polars.read_parquet_metadata(file)[_KEY])
        if facts["kind"] != kind:
            raise ValueError
        return polars.read_parquet(file), facts
    except (KeyError, TypeError, ValueError, polars.exceptions.PolarsError):
        raise ValueError(f"path must be of a {kind} that rankloop saved, got {path}") from None


def polars_frame(columns: Mapping[str, Any]) -> pl.DataFrame:
    """The columns as a frame of polars; MissingExtra where that is not installed."""
    require("polars", extra="data", for_="a frame")
    import polars

    return polars.DataFrame(dict(columns))


class Framed(abc.ABC):
    """What has columns of recorded rounds, and gives them as a frame."""

    @abc.abstractmethod
    def columns(self) -> dict[str, Any]:
        """The columns, by name."""

    def to_polars(self) -> pl.DataFrame:
        """Every recorded round as a frame of polars, a row for each, with the columns that `columns` gives."""
        return polars_frame(self.columns())

    def to_pandas(self) -> Any:
        """Every recorded round as a frame of pandas, which no extra brings, with the columns that `columns` gives."""
        if not installed("pandas"):
            raise MissingExtra("to_pandas needs pandas: pip install pandas", name="pandas")
        import pandas

        return pandas.DataFrame(self.columns())


@dataclass(frozen=True, slots=True, eq=False)
class Trace(Framed):
    """The result of a run at each recorded round. All sums are exact, however few rounds are recorded.

    Parameters
    ----------
    measure : str
        The measure of the rankings.
    is_loss : bool
        Whether a smaller value is better.
    seed : int
        The seed of the run.
    rounds : ndarray of int
        The recorded rounds, counted from 1. Every round of a short run; of a long one, evenly spread.
    value : ndarray of float
        Mean value a round since the round recorded before, so the value itself where every round is recorded.
    total : ndarray of float
        Cumulative value.
    regret : ndarray of float
        Cumulative, against the best fixed ranking in hindsight of the rounds so far; positive is worse, for
        losses and gains alike.
    explored : ndarray of int
        How many of the rounds so far showed a ranking to find something out.
    seconds : float
        How long the run took.
    counters : dict of str to int, optional
        What the ranker counts about itself, such as a solver's fallbacks.
    provenance : dict, optional
        Which ranker played in which environment; of a trace from a file also the versions, the kind of machine, a
        fingerprint of the code and the time of saving.

    Examples
    --------
    >>> from rankloop import environments, rankers, simulation
    >>> users = environments.FixedItems(environments.users.bernoulli([0.2, 0.9, 0.5]), measure="dcg")
    >>> simulation.play(rankers.Uniform(n_items=3), users, rounds=100, seed=1)
    <Trace of Uniform in FixedItems: 100 rounds, seed 1, mean dcg 1.211, regret 16.76>
    """

    measure: str
    is_loss: bool
    seed: int
    rounds: NDArray[np.int64]
    value: NDArray[np.float64]
    total: NDArray[np.float64]
    regret: NDArray[np.float64]
    explored: NDArray[np.int64]
    seconds: float
    counters: dict[str, int] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def n_rounds(self) -> int:
        """How many rounds were played."""
        return int(self.rounds[-1])

    @property
    def total_value(self) -> float:
        """Summed value of all rounds."""
        return float(self.total[-1])

    @property
    def mean_value(self) -> float:
        """Mean value per round."""
        return self.total_value / self.n_rounds

    @property
    def total_regret(self) -> float:
        """Regret after the last round."""
        return float(self.regret[-1])

    @property
    def exploration_share(self) -> float:
        """Share of the rounds that explored."""
        return float(self.explored[-1]) / self.n_rounds

    def columns(self) -> dict[str, NDArray[Any]]:
        """The recorded rounds as named arrays: `round`, `value`, `mean_value`, `total`, `regret`, `explored`.

        `mean_value` is the mean over all rounds so far.
        """
        return {
            "round": self.rounds,
            "value": self.value,
            "mean_value": self.total / self.rounds,
            "total": self.total,
            "regret": self.regret,
            "explored": self.explored,
        }

    def plot(
        self,
        measure: str | None = None,
        *,
        log: bool | None = None,
        titles: bool = True,
        width: float | str | None = None,
    ) -> Figure:
        """Draw the run, regret or value against rounds, as a figure that a notebook shows.

        Parameters
        ----------
        measure : str, optional
            `regret`, `value` (of the rounds since the point before) or `mean_value` (of all rounds so far); by default
            the regret where it is known, else the mean value.
        log : bool, optional
            Whether axes are logarithmic; None takes logarithms where they help.
        titles : bool, optional
            Whether the title and the caption are part of the picture.
        width : float or str, optional
            Inches, "column" (3.4) or "page" (7) of a paper in two columns; None for the screen.
        """
        from rankloop.simulation.report import draw_trace

        return draw_trace(self, measure, log=log, titles=titles, width=width)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recorded rounds, and what made them, as a Parquet file to `path`, whole or not at all."""
        frame = polars_frame({"round": self.rounds} | {name: getattr(self, name) for name in _COLUMNS})
        facts = self.facts() | {"kind": "trace", "provenance": provenance(self.provenance)}
        write_frame(path, frame, facts)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The trace that `save` wrote to `path`, with what made it in `provenance`; ValueError where there is none."""
        return cls.of(*read_frame(path, kind="trace"))

    def facts(self) -> dict[str, Any]:
        """What `columns` does not hold, as JSON can hold it; the provenance is left out."""
        return {name: getattr(self, name) for name in _FACTS}

    @classmethod
    def of(cls, frame: pl.DataFrame, told: dict[str, Any]) -> Self:
        """A trace from the columns of a `frame`, and what is `told` of it: its `facts`, and `provenance` among them."""
        columns: dict[str, Any] = {name: frame[name].to_numpy() for name in _COLUMNS}
        columns |= {name: told[name] for name in (*_FACTS, "provenance")}
        return cls(rounds=frame["round"].to_numpy(), **columns)

    @property
    def who(self) -> str:
        """Which ranker played in which environment, by their classes; empty where that is not known."""
        return " in ".join(
            self.provenance[part].partition("(")[0]
            for part in ("ranker", "environment")
            if part in self.provenance
        )

    def __repr__(self) -> str:
        who = f" of {self.who}" if self.who else ""
        if not len(self.rounds):
            return f"<Trace{who}: no rounds yet, seed {self.seed}>"
        regret = "" if np.isnan(self.regret[-1]) else f", regret {_plain(self.total_regret)}"
        return (
            f"<Trace{who}: {self.n_rounds:,} rounds, seed {self.seed}, "
            f"mean {self.measure} {self.mean_value:.4g}{regret}>"
        )

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {
            part: self.provenance[part] for part in ("ranker", "environment") if part in self.provenance
        }
        facts["seed"] = self.seed
        if len(self.rounds):
            unknown = np.isnan(self.regret[-1])
            facts |= {
                "rounds": f"{self.n_rounds:,}, of which {len(self.rounds):,} are recorded",
                f"mean {self.measure}": f"{self.mean_value:.4g}",
                "regret": "not known" if unknown else _plain(self.total_regret),
                "explored": f"{self.exploration_share:.1%} of the rounds",
                "time": f"{self.seconds:.2f} s",
            }
        return card("Trace", facts | self.counters)


def _plain(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1_000 else f"{number:.4g}"
