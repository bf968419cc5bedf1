"""The contract of an experiment: jobs that make rows, and claims and figures made from the rows.

An experiment is data with tested claims. `jobs` lists independent pieces of work, each with its seed and plain
settings; `run` turns one of them into rows; `claims` compares the rows with what the paper says. How jobs are
scheduled, kept and resumed is not the experiment's concern: see `rankloop.simulation.runs`.
"""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from rankloop.experiments.mutations import Mutation

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]
"""Anything JSON can hold, so that settings can be hashed, stored and shown."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence that is true or false of the results, with the numbers that decide it.

    `name` stays the same when words or numbers change, and `text` has every margin that the claim is allowed. `fixed`
    is True if both stood before the run: a theorem, a sentence of the paper read with standard errors, an independent
    reference. Where the history shows it, it is the commit that fixed them. It is False if a run had been seen when it
    was worded or its margin was chosen. `mutation` is a wrong learner or a wrong constant under which it breaks.
    `failed` is True of a claim that stood before its full run and failed in it: it stays, reported as it came out, and
    the reproduction goes on.
    """

    name: str
    text: str
    holds: bool
    measured: str
    source: str
    fixed: bool | str = field(default=False, kw_only=True)
    failed: bool = field(default=False, kw_only=True)
    mutation: Mutation

    @property
    def worded(self) -> str:
        """When it was worded, as tables show it."""
        return worded(self.fixed)

    @property
    def verdict(self) -> str:
        """Holds, does not hold (as in the run that it was fixed before), or broken."""
        return "holds" if self.holds else "does not hold" if self.failed else "BROKEN"

    @property
    def broken(self) -> bool:
        """Whether it fails although it held before."""
        return not (self.holds or self.failed)

    def record(self) -> dict[str, Plain]:
        """What is stored of it."""
        record = {each.name: getattr(self, each.name) for each in fields(self)}
        return record | {"mutation": self.mutation.name, "verdict": self.verdict}


def worded(fixed: bool | str) -> str:
    """When a claim was worded, in words.

    >>> worded(True), worded("e3e8c6a"), worded(False)
    ('before the run', 'before the run, in e3e8c6a', 'after a run')
    """
    commit = f", in {fixed}" if isinstance(fixed, str) else ""
    return f"before the run{commit}" if fixed else "after a run"


@dataclass(frozen=True, slots=True)
class Job:
    """One independent piece of work: a name to display, a seed, and settings that JSON can hold.

    `cost` is a guess of the work in any unit (rounds to play will do): costly jobs start first, and the time left
    is estimated from it. It changes no result and so is not part of the identity.

    >>> job = Job(name="RTop1F, seed 3", seed=3, settings={"ranker": "RTop1F", "rounds": 1000})
    >>> job.identity(experiment="toy", version=1) == job.identity(experiment="toy", version=2)
    False
    """

    name: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    cost: float = 1.0

    def identity(self, *, experiment: str, version: int) -> str:
        """A name for the file of this job's rows; the same job has the same one on any machine."""
        parts = {
            "experiment": experiment,
            "version": version,
            "name": self.name,
            "seed": self.seed,
            "settings": dict(self.settings),
        }
        try:
            text = json.dumps(parts, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"settings of job {self.name!r} are not plain JSON: {error}") from None
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def seeded(name: str, *, seed: int, cost: float = 1.0, **settings: Any) -> Job:
    """A job whose name ends with its seed, and whose settings are the other keywords.

    >>> seeded("RTop1F", seed=3, rounds=1000).name
    'RTop1F, seed 3'
    """
    return Job(name=f"{name}, seed {seed}", seed=seed, settings=settings, cost=float(cost))


class Experiment(abc.ABC):
    """A reproduced figure or table.

    Subclasses state the class attributes and four methods. Raise `version` whenever a change makes rows that
    were stored earlier wrong. Results are the rows of all jobs, with the columns `job` and `seed` in front.
    """

    name: ClassVar[str]
    """As typed on the command line, such as ``top1-2015-fig1``."""
    title: ClassVar[str]
    """One line, as shown in lists and above the section of the report."""
    paper: ClassVar[str]
    """Where the original is: authors, year, figure or table."""
    caption: ClassVar[str]
    """What was done and what to look at, in a few sentences."""
    departures: ClassVar[tuple[str, ...]] = ()
    """Where and why this differs from the paper."""
    version: ClassVar[int] = 1

    def missing(self) -> str | None:
        """What this machine lacks to run the experiment, as a sentence, or None. The experiment is then skipped."""
        return None

    @abc.abstractmethod
    def jobs(self, *, quick: bool) -> list[Job]:
        """The work to do; with `quick`, a small version that ends within seconds."""

    @abc.abstractmethod
    def run(self, job: Job) -> pl.DataFrame:
        """The rows of one job. Called in a thread: must not touch anything shared."""

    @abc.abstractmethod
    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterable[Claim]:
        """The claims, tested on the results."""

    @abc.abstractmethod
    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        """Pictures by file name without ending; see `rankloop.plotting`."""

    def summary(self, results: pl.DataFrame) -> pl.DataFrame | None:
        """A small table of numbers to show beside the pictures, or None."""
        return None

    def notes(self, results: pl.DataFrame) -> tuple[str, ...]:
        """Lines on what was played and what was left out, shown above the claims; they judge nothing."""
        return ()


def shared_settings(jobs: Sequence[Job]) -> dict[str, Plain]:
    """The settings of many jobs, by name: one value where all agree, otherwise the list of values.

    >>> shared_settings([Job(name=str(k), seed=k, settings={"rounds": 9, "k": k}) for k in (1, 2)])
    {'k': [1, 2], 'rounds': 9}
    """
    shared: dict[str, Plain] = {}
    for key in sorted({key for job in jobs for key in job.settings}):
        values: list[Plain] = []
        for job in jobs:
            if key in job.settings and job.settings[key] not in values:
                values.append(job.settings[key])
        shared[key] = values[0] if len(values) == 1 else values
    return shared
