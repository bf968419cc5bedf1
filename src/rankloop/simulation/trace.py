"""The result of a run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.notebook import card
from rankloop.simulation import trace_file
from rankloop.simulation.frames import Framed, polars_frame

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

_COLUMNS = ("value", "total", "regret", "explored")


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

        Returns
        -------
        dict of str to numpy.ndarray
            An array for each; `mean_value` is the mean over all rounds so far.
        """
        return {
            "round": self.rounds,
            "value": self.value,
            "mean_value": self.total / self.rounds,
            "total": self.total,
            "regret": self.regret,
            "explored": self.explored,
        }

    def plot(self, measure: str | None = None, *, log: bool | None = None, titles: bool = True) -> Figure:
        """Draw the run: regret or value against rounds.

        Parameters
        ----------
        measure : str, optional
            `regret`, `value` (of the rounds since the point before) or `mean_value` (of all rounds so far); by default
            the regret where it is known, else the mean value.
        log : bool, optional
            Whether axes are logarithmic; None takes logarithms where they help.
        titles : bool, optional
            Whether the title and the caption are part of the picture.

        Returns
        -------
        matplotlib.figure.Figure
            A figure that a notebook shows; `figure.savefig("run.pdf")` keeps it.

        Raises
        ------
        MissingExtra
            Where matplotlib is not installed.
        """
        from rankloop.simulation.comparison_figure import draw_trace

        return draw_trace(self, measure, log=log, titles=titles)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file with the recorded rounds, and with what made them among its metadata.

        Parameters
        ----------
        path : str or os.PathLike
            The file. It is written whole or not at all; `Trace.load` reads it.

        Raises
        ------
        MissingExtra
            Where polars is not installed.
        """
        frame = polars_frame({"round": self.rounds} | {name: getattr(self, name) for name in _COLUMNS})
        told = self.facts() | {"kind": "trace", "provenance": trace_file.provenance(self.provenance)}
        trace_file.write(path, frame, told)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a trace that `save` wrote.

        Parameters
        ----------
        path : str or os.PathLike
            The file.

        Returns
        -------
        Trace
            The same numbers, and in `provenance` what made them.

        Raises
        ------
        ValueError
            Where the file holds no trace.
        """
        frame, told = trace_file.read(path, kind="trace")
        return cls.of(frame, told)

    def facts(self) -> dict[str, Any]:
        """What `columns` does not hold, as JSON can hold it; the provenance is left out."""
        return {
            "measure": self.measure,
            "is_loss": self.is_loss,
            "seed": self.seed,
            "seconds": self.seconds,
            "counters": self.counters,
        }

    @classmethod
    def of(cls, frame: pl.DataFrame, told: dict[str, Any]) -> Self:
        """A trace from its columns and its `facts`, with `provenance` among them.

        Parameters
        ----------
        frame : polars.DataFrame
            The columns `round`, `value`, `total`, `regret` and `explored`.
        told : dict
            The facts.

        Returns
        -------
        Trace
            The trace.
        """
        rounds, value, total, regret, explored = (frame[name].to_numpy() for name in ("round", *_COLUMNS))
        facts = {
            name: told[name] for name in ("measure", "is_loss", "seed", "seconds", "counters", "provenance")
        }
        return cls(rounds=rounds, value=value, total=total, regret=regret, explored=explored, **facts)

    def __repr__(self) -> str:
        who = " in ".join(
            self.provenance[part].partition("(")[0]
            for part in ("ranker", "environment")
            if part in self.provenance
        )
        if not len(self.rounds):
            return f"<Trace{f' of {who}' if who else ''}: no rounds yet, seed {self.seed}>"
        regret = "" if np.isnan(self.regret[-1]) else f", regret {_plain(self.total_regret)}"
        return (
            f"<Trace{f' of {who}' if who else ''}: {self.n_rounds:,} rounds, seed {self.seed}, "
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
