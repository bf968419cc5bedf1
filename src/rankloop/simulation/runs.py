"""Many runs at once; and jobs with an identity, whose rows are kept in a folder as soon as they end, and found again.

Workers only compute; files are written by the thread that began the work, the one that Ctrl-C interrupts, so that an
interrupted run leaves whole files only. `reproduce`, the suite and `tune` all go on from there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from rankloop.base import Constructed, Environment, Ranker, import_path
from rankloop.compiled import CompiledEnvironment, CompiledRanker
from rankloop.extras import sweep, write_whole
from rankloop.simulation.executors import Dispatch, Executor, is_threads, opened
from rankloop.simulation.play import Bar, Run, begin, checked
from rankloop.simulation.trace import Trace, code_fingerprint

if TYPE_CHECKING:
    import polars as pl


def play_many(
    pairs: Iterable[tuple[Ranker, Environment]] | Callable[[], tuple[Ranker, Environment]],
    *,
    rounds: int,
    seeds: Iterable[int],
    points: int = 10_000,
    fused: bool | None = None,
    progress: bool | None = None,
    workers: int | None = None,
    executor: str | Executor = "threads",
) -> list[Trace]:
    """Play many independent runs at once, on all cores: the traces that `play` would give one after another.

    `rounds`, `points` and `fused` are as in `play`, of every run; `progress` is one bar for all runs together.

    Parameters
    ----------
    pairs : iterable of tuple of (Ranker, Environment) or callable
        A ranker and an environment for each run, or a function that makes such a pair, called once for each
        seed.
    seeds : iterable of int
        One for each run.
    workers : int, optional
        How many run at once; None takes one for each core. Of threads, only compiled runs gain from more than one.
    executor : str or Executor, optional
        Where the runs are played: ``"threads"`` of this process, ``"processes"`` of this machine, ``"ray"``, a Ray
        cluster, ``"cuda"``, a GPU, or any executor of `concurrent.futures`, such as `executors.Processes` or what
        Dask's `Client.get_executor()` gives. It does not change a trace, except for its `seconds`.

    Raises
    ------
    WorkerLost
        Where a run has lost its worker, and the executor does not replace it.

    Examples
    --------
    >>> from rankloop import environments, rankers
    >>> def make():
    ...     return rankers.FTRLPBM(n_items=10, n_positions=5), environments.named("yandex")
    >>> traces = play_many(make, rounds=1000, seeds=range(4))
    >>> [trace.seed for trace in traces]
    [0, 1, 2, 3]
    """
    seeds = list(seeds)
    made = [pairs() for _ in seeds] if callable(pairs) else list(pairs)
    if len(made) != len(seeds):
        raise ValueError(f"seeds must be one for each of {len(made)} runs, got {len(seeds)}")
    for i, kind in enumerate(("ranker", "environment")):
        if len({id(pair[i]) for pair in made}) < len(made):
            raise ValueError(f"every run needs its own {kind}, pairs has one of them twice")
    jobs = [
        _RunJob(*pair, *checked(*pair, rounds, seed, points, fused), fused, not callable(pairs))
        for pair, seed in zip(made, seeds, strict=True)
    ]
    names = [f"the run of {type(job.ranker).__name__} with seed {job.seed}" for job in jobs]
    if executor == "cuda":
        return _on_gpu(jobs, progress)
    traces: dict[int, Trace] = {}
    played = 0

    def ended(place: int, answer: tuple[Trace, Any, Any], seconds: float) -> None:
        nonlocal played
        traces[place], *states = answer
        if jobs[place].returned:
            _take_over(jobs[place].ranker, states[0])
            _take_over(jobs[place].environment, states[1])
        played += jobs[place].rounds

    with (
        Bar(sum(job.rounds for job in jobs), wanted=progress) as bar,
        opened(executor, workers=workers) as (chosen, count),
    ):
        if is_threads(executor):
            # Here the bar sees how far each run is, and nothing needs to be taken over.
            runs = [begin(*job[:6]) for job in jobs]
            Dispatch(finish, runs, names=names, executor=chosen, workers=count).run(
                lambda place, trace, seconds: None, lambda: bar.show(sum(run.t for run in runs))
            )
            return [run.trace() for run in runs]
        Dispatch(_play_job, jobs, names=names, executor=chosen, workers=count).run(
            ended, lambda: bar.show(played)
        )
    return [traces[place] for place in range(len(jobs))]


def _on_gpu(jobs: list[_RunJob], progress: bool | None) -> list[Trace]:
    from rankloop.simulation.cuda import played

    runs = [begin(*job[:5], fused=False) for job in jobs]
    with Bar(sum(run.rounds for run in runs), wanted=progress) as bar:
        bar.show(0)
        for _ in played(runs, bar.show):
            pass
    return [run.trace() for run in runs]


class _RunJob(NamedTuple):
    """One run as data: a pair goes out as it stands; its trace and, if `returned`, the pair come back."""

    ranker: Ranker
    environment: Environment
    rounds: int
    seed: int
    points: int
    fused: bool | None
    returned: bool


def _play_job(job: _RunJob) -> tuple[Trace, Any, Any]:
    trace = finish(begin(*job[:6]))
    states = [_changed(each) if job.returned else None for each in (job.ranker, job.environment)]
    return trace, states[0], states[1]


def finish(run: Run) -> Trace:
    """Play a run to the end."""
    for _ in run.pieces():
        pass
    return run.trace()


def _changed(thing: Ranker | Environment) -> Any:
    # Of what is made of kernels only the state changes: the rest, perhaps a large data set, stays there.
    if isinstance(thing, CompiledRanker | CompiledEnvironment):
        return tuple(thing.state)
    return vars(thing)


def _take_over(thing: Ranker | Environment, changed: Any) -> None:
    if isinstance(thing, CompiledRanker | CompiledEnvironment):
        for mine, theirs in zip(thing.state, changed, strict=True):
            mine[...] = theirs
    else:
        vars(thing).update(changed)


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of work: its name in errors, the identity of its rows, what `work` takes, and a guess of the cost."""

    name: str
    identity: str
    argument: Any
    cost: float = 1.0


@dataclass(frozen=True, slots=True)
class Finished:
    """The rows of a job, the seconds that it took, and whether it was found finished."""

    rows: pl.DataFrame
    seconds: float
    resumed: bool


class Kept:
    """The rows of finished jobs in a folder, a Parquet file for each; without a folder, nowhere.

    Rows that other code made do not count.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None:
            sweep(folder)

    def file(self, identity: str) -> Path:
        """Where the rows of a job are, or will be."""
        assert self.folder is not None
        return self.folder / f"{identity}.parquet"

    def has(self, identity: str) -> bool:
        """Whether the job is finished, by this code."""
        return self._seconds(identity) is not None

    def find(self, identity: str) -> Finished | None:
        """The rows of a job, if it is finished."""
        import polars

        seconds = self._seconds(identity)
        if seconds is None:
            return None
        return Finished(polars.read_parquet(self.file(identity)), seconds, resumed=True)

    def keep(self, identity: str, rows: pl.DataFrame, seconds: float) -> None:
        """Write the rows of a job."""
        if self.folder is not None:
            metadata = {"seconds": repr(seconds), "code": code_fingerprint()}
            write_whole(self.file(identity), lambda part: rows.write_parquet(part, metadata=metadata))

    def _seconds(self, identity: str) -> float | None:
        import polars

        if self.folder is None:
            return None
        try:
            metadata = polars.read_parquet_metadata(self.file(identity))
        except (OSError, polars.exceptions.PolarsError):
            return None  # absent, or not written by us
        known = metadata.get("code") == code_fingerprint() and "seconds" in metadata
        return float(metadata["seconds"]) if known else None


@dataclass(frozen=True)
class Plays:
    """Work that plays runs: it begins those of a job, and makes rows of their traces.

    On a GPU the runs of all jobs are played side by side.
    """

    begin: Callable[[Any], list[Run]]
    rows: Callable[[Any, list[Trace]], pl.DataFrame]

    def __call__(self, argument: Any) -> pl.DataFrame:
        return self.rows(argument, [finish(run) for run in self.begin(argument)])


def run_jobs(
    work: Callable[[Any], pl.DataFrame],
    jobs: Sequence[Job],
    *,
    kept: Kept,
    executor: str | Executor = "threads",
    workers: int | None = None,
    fresh: bool = False,
    progress: bool | None = False,
    label: str = "jobs",
    stream: TextIO | None = None,
) -> list[Finished]:
    """Run what is not kept yet, or with `fresh` everything, and return all of it in the order of `jobs`.

    `work` takes the argument of a job and returns its rows. `progress`, `label` and `stream` are of a `Bar`, which
    moves by the costs of the jobs: costly ones come first, and their number says little about the rest. With
    ``executor="cuda"`` the work must be `Plays`; jobs that a GPU cannot play are left to threads.
    """
    finished = {} if fresh else {job.identity: rows for job in jobs if (rows := kept.find(job.identity))}
    # The costliest first, so that no core is left alone with a long job at the end.
    todo = sorted((job for job in jobs if job.identity not in finished), key=lambda job: -job.cost)

    found, done = len(finished), 0.0

    def keep(place: int, rows: pl.DataFrame, seconds: float) -> None:
        nonlocal done
        kept.keep(todo[place].identity, rows, seconds)
        finished[todo[place].identity] = Finished(rows, seconds, resumed=False)
        done += todo[place].cost
        bar.show(done, f"{len(finished) - found}/{len(todo)} jobs")

    if todo:
        with Bar(sum(job.cost for job in todo), wanted=progress, label=label, stream=stream) as bar:
            bar.show(0, "until the first ends (new code compiles once)")
            left: Sequence[int] = range(len(todo))
            if executor == "cuda":
                left = _jobs_on_gpu(work, todo, keep)
            with opened(executor, workers=workers) as (chosen, count):
                Dispatch(
                    work,
                    [todo[place].argument for place in left],
                    names=[todo[place].name for place in left],
                    executor=chosen,
                    workers=count,
                ).run(lambda number, rows, seconds: keep(left[number], rows, seconds))
    return [finished[job.identity] for job in jobs]


def _jobs_on_gpu(work: Any, jobs: list[Job], keep: Callable[[int, pl.DataFrame, float], None]) -> list[int]:
    """Play what a GPU can play of these jobs, and return the places of the others."""
    from rankloop.simulation.cuda import played, reason_against

    if not isinstance(work, Plays):
        raise ValueError(
            'executor="cuda" plays runs of rankers in environments, and these jobs do other work'
        )
    begun = [work.begin(job.argument) for job in jobs]
    left = [place for place, runs in enumerate(begun) if any(map(reason_against, runs))]
    missing = {place: len(runs) for place, runs in enumerate(begun) if place not in left}
    owners = {id(run): place for place in missing for run in begun[place]}
    for those in played([run for place in missing for run in begun[place]]):
        for run in those:
            place = owners[id(run)]
            missing[place] -= 1
            if not missing[place]:
                traces = [one.trace() for one in begun[place]]
                keep(place, work.rows(jobs[place].argument, traces), run.seconds)
                begun[place] = []
    return left


def identity(value: Any) -> str:
    """A hash of an object's class and arguments, down to the last number of its data.

    ValueError where something in it has no content that could be compared, such as a function.
    """
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()[:16]


def _add(digest: Any, value: Any) -> None:
    digest.update(type(value).__name__.encode() + b"(")
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.data if array.dtype.kind in "biuf" else array.tobytes())
    elif value is None or isinstance(value, bool | int | float | str):
        digest.update(repr(value).encode())
    elif isinstance(value, list | tuple | range):
        for part in value:
            _add(digest, part)
    elif isinstance(value, dict):
        for name, part in value.items():
            digest.update(f"{name}=".encode())
            _add(digest, part)
    elif isinstance(value, Constructed):
        digest.update(import_path(type(value)).encode())
        _add(digest, value.get_params())
    elif hasattr(value, "as_argument"):
        _add(digest, value.as_argument())
    elif is_dataclass(value):
        _add(digest, {each.name: getattr(value, each.name) for each in fields(value)})
    elif isinstance(value, SimpleNamespace):
        _add(digest, vars(value))
    else:
        raise ValueError(
            "folder needs a ranker and environments made of plain arguments, so that a search that goes on is "
            f"known to be the same, got {value!r} among them"
        )
    digest.update(b")")
