"""Runs that are played elsewhere: a pair goes out as it stands, its trace and the pair come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rankloop.base import Environment, Ranker
from rankloop.compiled import CompiledEnvironment, CompiledRanker
from rankloop.simulation.bar import Bar
from rankloop.simulation.executors import Dispatch, Executor, opened
from rankloop.simulation.run import begin
from rankloop.simulation.trace import Trace


class RunJob(NamedTuple):
    """One run as data."""

    ranker: Ranker
    environment: Environment
    rounds: int
    seed: int
    points: int
    fused: bool | None
    returned: bool  # whether ranker and environment come back, too


def play_elsewhere(
    jobs: Sequence[RunJob], *, executor: str | Executor, workers: int | None, bar: Bar
) -> list[Trace]:
    """Play every run with an executor.

    Parameters
    ----------
    jobs : sequence of RunJob
        The runs, checked. Rankers and environments go on from where they stand, and are left where they then stand
        if their job says so.
    executor : str or Executor
        As `play_many` takes it; not threads.
    workers : int or None
        How many play at once.
    bar : Bar
        Shows the rounds of the runs that have ended.

    Returns
    -------
    list of Trace
        In the order of `jobs`.
    """
    traces: dict[int, Trace] = {}
    played = 0

    def ended(place: int, result: tuple[Trace, Any, Any], seconds: float) -> None:
        nonlocal played
        traces[place], *states = result
        if jobs[place].returned:
            _take_over(jobs[place].ranker, states[0])
            _take_over(jobs[place].environment, states[1])
        played += jobs[place].rounds

    with opened(executor, workers=workers) as (chosen, count):
        Dispatch(
            play_job,
            jobs,
            names=[f"the run of {type(job.ranker).__name__} with seed {job.seed}" for job in jobs],
            costs=[float(job.rounds) for job in jobs],
            executor=chosen,
            workers=count,
        ).run(ended, lambda: bar.show(played))
    return [traces[place] for place in range(len(jobs))]


def play_job(job: RunJob) -> tuple[Trace, Any, Any]:
    """Play one run, here.

    Parameters
    ----------
    job : RunJob
        The run.

    Returns
    -------
    tuple
        Its trace, and what has changed of ranker and environment where the job asks for it.
    """
    run = begin(*job[:6])
    for _ in run.pieces():
        pass
    states = [_changed(each) if job.returned else None for each in (job.ranker, job.environment)]
    return run.trace(), states[0], states[1]


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
