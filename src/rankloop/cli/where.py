"""The options that say where jobs run: `--executor` and `--address`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rankloop.simulation.executors import Executor


class Where(StrEnum):
    """Where jobs run."""

    THREADS = "threads"
    PROCESSES = "processes"
    RAY = "ray"


WhereOption = Annotated[
    Where, typer.Option("--executor", help="Where jobs run. It changes how long they take, and no result.")
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="The Ray cluster, for [b]--executor ray[/b].",
        show_default="RAY_ADDRESS, or one that is started on this machine",
    ),
]


def check_address(where: Where, address: str | None) -> None:
    """ValueError where an address has no use."""
    if address is not None and where is not Where.RAY:
        raise ValueError(f"--address is of --executor ray, got {address!r} with --executor {where}")


@contextmanager
def started(where: Where, address: str | None, *, workers: int | None) -> Iterator[str | Executor]:
    """What `executor=` takes, once for several calls; workers end on the way out."""
    check_address(where, address)
    if where is Where.THREADS:
        yield "threads"
        return
    from rankloop.simulation.executors import Processes, RayCluster

    chosen = Processes(workers) if where is Where.PROCESSES else RayCluster(address, workers=workers)
    with chosen as executor:
        yield executor
