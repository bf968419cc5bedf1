"""Several jobs that are sent, computed and returned together, and what computed them."""

from __future__ import annotations

import os
import platform
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from rankloop.simulation.code_version import code_fingerprint
from rankloop.simulation.executors.pickling import NotSendable, dumps, loads


class Answer(NamedTuple):
    """What a job came to: its result as bytes, or the error that ended it."""

    result: bytes | None
    error: BaseException | None
    seconds: float


@cache
def versions() -> dict[str, str]:
    """What decides the bytes of a result; both sides must have the same."""
    return {
        "rankloop": code_fingerprint(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
    }


def run_chunk(data: bytes) -> bytes:
    """Run jobs one after another, wherever this is called.

    Parameters
    ----------
    data : bytes
        A function and its jobs, as `pack` writes them.

    Returns
    -------
    bytes
        What `unpack` reads.
    """
    work, jobs, surroundings = loads(data)
    for name, value in surroundings.items():
        os.environ.setdefault(name, value)
    return dumps((versions(), [_answer(work, job) for job in jobs]), what="the result of a job")


def _answer(work: Callable[[Any], Any], job: Any) -> Answer:
    begun = time.perf_counter()
    try:
        result = dumps(work(job), what="the result of a job")
    except Exception as error:
        error.add_note("".join(traceback.format_exception(error)))
        return Answer(None, _sendable(error), time.perf_counter() - begun)
    return Answer(result, None, time.perf_counter() - begun)


def _sendable(error: Exception) -> Exception:
    try:
        loads(dumps(error))
    except Exception:  # an exception with arguments of its own often cannot be made again
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def pack(work: Callable[[Any], Any], jobs: Sequence[Any], names: Sequence[str]) -> bytes:
    """Write jobs as bytes; what they have in common is written once.

    Parameters
    ----------
    work : callable
        Takes a job and returns its result.
    jobs : sequence
        The jobs.
    names : sequence of str
        What each of them is called, for the error.

    Returns
    -------
    bytes
        What `run_chunk` takes.

    Raises
    ------
    NotSendable
        Naming the first job that cannot be sent.
    """
    try:
        return dumps((work, list(jobs), _surroundings()))
    except NotSendable:
        for job, name in zip(jobs, names, strict=True):
            dumps((work, job), what=name)
        raise


def _surroundings() -> dict[str, str]:
    # Where real data lies; a worker that has a place of its own keeps it.
    named = os.environ.get("RANKLOOP_DATA")
    return {"RANKLOOP_DATA": str(Path(named).expanduser().absolute())} if named else {}


def unpack(data: bytes) -> list[Answer]:
    """Read what `run_chunk` returned.

    Parameters
    ----------
    data : bytes
        What it returned.

    Returns
    -------
    list of Answer
        One for each job, in order.

    Raises
    ------
    RuntimeError
        Where other versions computed there than here.
    """
    theirs, answers = loads(data)
    for name, here in versions().items():
        if theirs[name] != here:
            raise RuntimeError(
                f"a worker has {name} {theirs[name]}, here is {here}: install the same versions on every machine"
            )
    return list(answers)
