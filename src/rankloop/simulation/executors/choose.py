"""An executor from what `executor=` was given."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankloop.arguments import whole
from rankloop.simulation.executors.dispatch import Executor
from rankloop.simulation.executors.processes import Processes
from rankloop.simulation.executors.ray_cluster import RayCluster

NAMES = ("threads", "processes", "ray")


def is_threads(executor: Any) -> bool:
    """Whether `executor` means threads of this process, which need nothing to be sent.

    Parameters
    ----------
    executor : str or Executor
        As `simulation.play_many` takes it.

    Returns
    -------
    bool
        False for everything else that can run jobs.

    Raises
    ------
    ValueError
        Where it is neither a known name nor something with `submit`.

    Examples
    --------
    >>> is_threads("threads"), is_threads("processes")
    (True, False)
    """
    if isinstance(executor, str) and executor in NAMES:
        return executor == "threads"
    if isinstance(executor, str) or not callable(getattr(executor, "submit", None)):
        raise ValueError(
            f"executor must be {', '.join(map(repr, NAMES))} or an object with submit, got {executor!r}"
        )
    return False


@contextmanager
def opened(executor: str | Executor, *, workers: int | None = None) -> Iterator[tuple[Executor, int]]:
    """An executor, and how many jobs it works on at once.

    One that is named is started here and ended on the way out; one that is given stays as it is.

    Parameters
    ----------
    executor : str or Executor
        "processes", "ray", or an object with `submit`.
    workers : int, optional
        How many jobs at once; by default one for each core of the machine or the cluster.

    Yields
    ------
    tuple of (Executor, int)
        The executor and the number.
    """
    if workers is not None:
        workers = whole("workers", workers, at_least=1)
    if isinstance(executor, str):
        with Processes(workers) if executor == "processes" else RayCluster(workers=workers) as started:
            yield started, started.workers
        return
    yield executor, workers or getattr(executor, "workers", None) or os.cpu_count() or 1
