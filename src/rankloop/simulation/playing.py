"""Play one run, or many at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from rankloop.arguments import whole
from rankloop.base import Environment, Ranker
from rankloop.simulation.bar import Bar
from rankloop.simulation.executors import Executor, is_threads
from rankloop.simulation.run import begin, check
from rankloop.simulation.sent_runs import RunJob, play_elsewhere
from rankloop.simulation.threads import finish_all
from rankloop.simulation.trace import Trace


def play(
    ranker: Ranker,
    environment: Environment,
    *,
    rounds: int,
    seed: int,
    points: int = 10_000,
    fused: bool | None = None,
    progress: bool | None = None,
    watch: Callable[[Trace], None] | None = None,
) -> Trace:
    """Play `rounds` rounds, from wherever ranker and environment stand.

    Parameters
    ----------
    ranker : Ranker
        Who ranks. It goes on from its present state.
    environment : Environment
        Who responds. It goes on from its present state; `environment.restart()` begins anew.
    rounds : int
        How many.
    seed : int
        The same seed gives the same run, on any machine.
    points : int, optional
        At most so many rounds are recorded.
    fused : bool, optional
        True demands the compiled loop, False forbids it, None takes it where it exists.
    progress : bool, optional
        A bar on the terminal; None shows one where there is a terminal and more than two seconds to go.
    watch : callable, optional
        Called a few times a second with the trace so far.

    Returns
    -------
    Trace
        What the run came to.

    Examples
    --------
    >>> from rankloop import environments, rankers
    >>> people = environments.FixedItems(environments.users.bernoulli([0.2, 0.9, 0.5]), measure="dcg")
    >>> trace = play(rankers.FTPL(n_items=3), people, rounds=1000, seed=1)
    >>> len(trace.value), bool(trace.total_regret < 60)
    (1000, True)
    """
    run = begin(ranker, environment, rounds, seed, points, fused)
    with Bar(run.rounds, wanted=progress) as bar:
        for t in run.pieces():
            bar.show(t)
            if watch is not None and run.place:
                watch(run.trace())
    return run.trace()


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

    Parameters
    ----------
    pairs : iterable of tuple of (Ranker, Environment) or callable
        A ranker and an environment for each run, or a function that makes such a pair, called once for each
        seed.
    rounds : int
        Of every run, as in `play`.
    seeds : iterable of int
        One for each run.
    points : int, optional
        Of every run, as in `play`.
    fused : bool, optional
        Of every run, as in `play`.
    progress : bool, optional
        One bar for all runs together.
    workers : int, optional
        How many run at once; None takes one for each core. Of threads, only compiled runs gain from more than one.
    executor : str or Executor, optional
        Where the runs are played: ``"threads"`` of this process, ``"processes"`` of this machine, ``"ray"``, a Ray
        cluster, or an object with `submit`, such as `executors.RayCluster` or a pool of `concurrent.futures`. It does
        not change a trace, except for its `seconds`.

    Returns
    -------
    list of Trace
        A trace for each run, in order.

    Raises
    ------
    ValueError
        Where an argument is wrong, or a ranker or an environment cannot be sent to another process.
    WorkerLost
        Where a run has lost its worker four times.

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
    workers = None if workers is None else whole("workers", workers, at_least=1)
    if not is_threads(executor):
        jobs = [
            RunJob(*pair, *check(*pair, rounds, seed, points, fused), fused, not callable(pairs))
            for pair, seed in zip(made, seeds, strict=True)
        ]
        with Bar(sum(job.rounds for job in jobs), wanted=progress) as bar:
            return play_elsewhere(jobs, executor=executor, workers=workers, bar=bar)
    threads = (os.cpu_count() or 1) if workers is None else workers
    runs = [begin(*pair, rounds, seed, points, fused) for pair, seed in zip(made, seeds, strict=True)]
    with Bar(sum(run.rounds for run in runs), wanted=progress) as bar:
        finish_all([lambda run=run: run for run in runs], workers=threads, bar=bar)  # type: ignore[misc]
    return [run.trace() for run in runs]
