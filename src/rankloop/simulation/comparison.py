"""The result of a comparison: runs of several rankers in several worlds with common seeds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import one_of, whole
from rankloop.simulation.frames import Framed, polars_frame
from rankloop.simulation.paired_differences import Difference, paired_differences
from rankloop.simulation.significance import mean_interval
from rankloop.simulation.trace import Trace

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MEASURES = ("regret", "value", "mean_value")


@dataclass(frozen=True, eq=False)
class Comparison(Framed):
    """The result of `simulation.compare`.

    Parameters
    ----------
    rankers : mapping of str to str
        The names of the rankers, and each as it was constructed.
    worlds : mapping of str to str
        The names of the worlds, and each as it was constructed.
    traces : mapping of tuple of (str, str) to tuple of Trace
        For each world and ranker the runs, in the order of the seeds.
    measure : str, optional
        What is compared unless a method is told otherwise; by default the regret where it is known, else the mean
        value.
    level : float, optional
        Of the intervals.
    """

    rankers: Mapping[str, str]
    worlds: Mapping[str, str]
    traces: Mapping[tuple[str, str], tuple[Trace, ...]]
    measure: str | None = None
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.measure is None:
            known = not any(np.isnan(trace.regret).any() for runs in self.traces.values() for trace in runs)
            object.__setattr__(self, "measure", "regret" if known else "mean_value")

    @cached_property
    def _first(self) -> tuple[Trace, ...]:
        return next(iter(self.traces.values()))

    @property
    def seeds(self) -> list[int]:
        """The seeds that every ranker played in every world."""
        return [trace.seed for trace in self._first]

    @property
    def rounds(self) -> NDArray[np.int64]:
        """The recorded rounds."""
        return self._first[0].rounds

    def values(self, world: str, ranker: str, measure: str | None = None) -> NDArray[np.float64]:
        """A measure of every run of a ranker in a world.

        Parameters
        ----------
        world : str
            Its name.
        ranker : str
            Its name.
        measure : str, optional
            `regret`, `value` or `mean_value`; by default that of the comparison.

        Returns
        -------
        ndarray of float
            A row for each seed, a column for each recorded round.

        Raises
        ------
        ValueError
            Where a name is not known, or the regret is not known in this world.
        """
        wanted = self._measure(measure)
        one_of("world", world, self.worlds)
        one_of("ranker", ranker, self.rankers)
        found = np.array([trace.columns()[wanted] for trace in self.traces[world, ranker]])
        if np.isnan(found).any():
            raise ValueError(f"{wanted} is not known in world {world!r}: take measure='mean_value'")
        return found

    def columns(self) -> dict[str, Any]:
        """Every recorded round of every run, as named arrays: a tidy table.

        Returns
        -------
        dict of str to numpy.ndarray
            `world`, `ranker` and `seed`, then the columns of a trace.
        """
        parts: dict[str, list[NDArray[Any]]] = {}
        for (world, ranker), runs in self.traces.items():
            for trace in runs:
                n = len(trace.rounds)
                named = {"world": world, "ranker": ranker, "seed": trace.seed}
                for name, value in named.items():
                    parts.setdefault(name, []).append(np.repeat(np.array([value]), n))
                for name, array in trace.columns().items():
                    parts.setdefault(name, []).append(array)
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}

    def summary(self, measure: str | None = None) -> pl.DataFrame:
        """Mean and interval for each world, ranker and recorded round.

        Parameters
        ----------
        measure : str, optional
            `regret`, `value` or `mean_value`; by default that of the comparison.

        Returns
        -------
        polars.DataFrame
            The columns `world`, `ranker`, `round`, `runs`, `mean`, `low` and `high`; the last two are Student's t
            interval over the seeds, and null for a single seed, which has none.
        """
        n, runs = len(self.rounds), len(self.seeds)
        parts = []
        for world, ranker in self.traces:
            found = mean_interval(self.values(world, ranker, measure), level=self.level)
            names = {"world": np.repeat(world, n), "ranker": np.repeat(ranker, n)}
            numbers = dict(zip(("mean", "low", "high"), found, strict=True))
            parts.append(names | {"round": self.rounds, "runs": np.repeat(runs, n)} | numbers)
        frame = polars_frame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
        return frame.fill_nan(None)

    def differences(
        self,
        measure: str | None = None,
        *,
        against: str | None = None,
        test: str = "t",
        at: int | None = None,
    ) -> pl.DataFrame:
        """Every pair of rankers in every world, compared run by run on the common seeds.

        Parameters
        ----------
        measure : str, optional
            `regret`, `value` or `mean_value`; by default that of the comparison.
        against : str, optional
            Only pairs with this ranker as the second; fewer tests, so that smaller differences count.
        test : str, optional
            `t`, Student's test of the paired differences, or `permutation`, which flips their signs and assumes no
            more than that each could as well have the other sign. With 5 seeds or fewer the latter never gives less
            than 0.06.
        at : int, optional
            At the last recorded round up to this one; by default at the end.

        Returns
        -------
        polars.DataFrame
            A row for each world and pair. `difference` is the mean of the measure of `ranker` minus that of `other`,
            `low` and `high` its interval, `p` the p-value, `p_holm` the same corrected by Holm's rule for all rows of
            this frame, `better` the better one where that is significant, else empty. What a single seed does not
            give is null.
        """
        found = paired_differences(
            self, self._measure(measure), against=against, test=test, place=self.place(at)
        )
        columns = {name: [getattr(each, name) for each in found] for name in Difference._fields}
        return polars_frame(columns).fill_nan(None)

    def table(self, measure: str | None = None, *, form: str = "markdown", at: int | None = None) -> str:
        """Means and intervals as a table: a row for each ranker, a column for each world.

        Parameters
        ----------
        measure : str, optional
            `regret`, `value` or `mean_value`; by default that of the comparison.
        form : str, optional
            `markdown`, `latex` or `html`.
        at : int, optional
            After so many rounds; by default after the last.

        Returns
        -------
        str
            The table. The best of a world is bold; a mark follows where a ranker is not significantly worse.
        """
        from rankloop.simulation.comparison_table import FORMS, cells

        one_of("form", form, FORMS)
        return FORMS[form](cells(self, self._measure(measure), at))

    def plot(
        self,
        measure: str | None = None,
        *,
        log: bool | None = None,
        titles: bool = True,
        columns: int | None = None,
    ) -> Figure:
        """Draw means and intervals against rounds, one panel for each world.

        Parameters
        ----------
        measure : str, optional
            `regret`, `value` or `mean_value`; by default that of the comparison.
        log : bool, optional
            Whether axes are logarithmic; None takes logarithms where they help.
        titles : bool, optional
            Whether the title and the caption are part of the picture.
        columns : int, optional
            Panels side by side; by default at most two.

        Returns
        -------
        matplotlib.figure.Figure
            A figure that a notebook shows; `figure.savefig("comparison.pdf")` keeps it.

        Raises
        ------
        MissingExtra
            Where matplotlib is not installed.
        """
        from rankloop.simulation.comparison_figure import draw_comparison

        return draw_comparison(self, self._measure(measure), log=log, titles=titles, columns=columns)

    def save(self, folder: str | os.PathLike[str], *, titles: bool = True) -> Path:
        """Write the runs, the summary and the differences as Parquet, the figure, and a page that shows them.

        Parameters
        ----------
        folder : str or os.PathLike
            Where; it is made. `Comparison.load` reads it.
        titles : bool, optional
            Whether title and caption are part of the figures.

        Returns
        -------
        pathlib.Path
            The page, `report.html`: one file that needs no other.

        Raises
        ------
        MissingExtra
            Where polars or matplotlib is not installed.
        """
        from rankloop.simulation.comparison_folder import write_folder

        return write_folder(self, Path(folder), titles=titles)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a comparison that `save` wrote.

        Parameters
        ----------
        folder : str or os.PathLike
            Where it was saved.

        Returns
        -------
        Comparison
            The same runs.

        Raises
        ------
        ValueError
            Where the folder holds no comparison.
        """
        from rankloop.simulation.comparison_folder import read_folder

        return cls(**read_folder(Path(folder)))

    def _measure(self, measure: str | None) -> str:
        return one_of("measure", (self.measure or "") if measure is None else measure, MEASURES)

    def place(self, at: int | None) -> int:
        """Where the last recorded round up to `at` stands among the recorded ones; the last of all for None.

        Parameters
        ----------
        at : int or None
            A round.

        Returns
        -------
        int
            An index of `rounds`.
        """
        if at is None:
            return len(self.rounds) - 1
        at = whole("at", at, at_least=int(self.rounds[0]), at_most=int(self.rounds[-1]))
        return int(np.searchsorted(self.rounds, at, side="right")) - 1

    def __repr__(self) -> str:
        from rankloop.simulation.comparison_table import counted

        return f"<Comparison of {counted(self)}, {self.measure}>"

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from rankloop.simulation.comparison_table import fragment

        return fragment(self)
