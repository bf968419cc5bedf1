"""The command `rankloop warm`: compiles once what would be compiled at the first call, in containers and CI."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankloop.cli import completion

if TYPE_CHECKING:
    from rankloop.base import Environment, Ranker


def warm(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RANKER",
            help="Rankers, see [b]rankloop list rankers[/b].",
            autocompletion=completion.rankers,
            show_default="all of them",
        ),
    ] = None,
    calls: Annotated[
        bool, typer.Option("--calls", help="Only what a service and your own calls need, no simulations.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Processes at once.", show_default="one for each core")
    ] = None,
) -> None:
    """Compile everything now, so that nothing is compiled at the first call.

    Compiled code is kept on disk, beside the package or where NUMBA_CACHE_DIR says. Run it while an image is built or
    before the tests of CI: whoever starts with that folder starts warm.

    [b]Examples[/b]

      rankloop warm

      rankloop warm --calls FTRLPBM TopFTRL
    """
    from rankloop.arguments import whole
    from rankloop.kernels.jit import CACHE
    from rankloop.rankers import registry

    kinds = {name: registry.find(name) for name in names or _packaged()}
    workers = whole("jobs", (os.cpu_count() or 1) if jobs is None else jobs, at_least=1)
    begun, done = time.perf_counter(), 0
    with _told(len(kinds)) as tell:
        for name, count in _each(list(kinds), calls, min(workers, len(kinds))):
            done += count
            tell(name)
    seconds = time.perf_counter() - begun
    typer.echo(f"{done} kernels and loops for {len(kinds)} ranker(s) in {seconds:.0f} s: {CACHE}")


def _packaged() -> list[str]:
    from rankloop import rankers

    return list(rankers.__all__)


def _each(names: list[str], calls: bool, workers: int) -> Iterator[tuple[str, int]]:
    if workers == 1:
        for name in names:
            yield name, compile_ranker(name, calls)
        return
    # Not forked: a compiler that was started before cannot be used in a fork of it.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[int], str] = {pool.submit(compile_ranker, name, calls): name for name in names}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def compile_ranker(name: str, calls: bool) -> int:
    """Compile what one ranker needs, by calling it.

    Parameters
    ----------
    name : str
        The ranker.
    calls : bool
        Whether to leave out the loops of simulations.

    Returns
    -------
    int
        How many kernels and loops are ready.
    """
    from rankloop.kernels.jit import muted
    from rankloop.rankers import registry

    ready = set()
    with muted():
        for ranker in registry.find(name).examples():
            ready |= _call(ranker)
            if not calls:
                ready |= _play(ranker, ready)
    return len(ready)


def _call(ranker: Ranker) -> set[Any]:
    import numpy as np

    rng = np.random.default_rng(1)
    shown = ranker.rank(ranker.example_context(rng), rng=rng)
    ranker.learn(shown, np.zeros(ranker.feedback.length(len(shown.items))))
    return set(getattr(ranker, "kernels", ()))


def _play(ranker: Ranker, ready: set[Any]) -> set[Any]:
    from rankloop import simulation
    from rankloop.compiled import CompiledEnvironment, CompiledRanker

    found: set[Any] = set()
    if not isinstance(ranker, CompiledRanker) or not ranker.fusable:
        return found
    for world in _worlds():
        if isinstance(world, CompiledEnvironment) and (pair := (ranker.kernels, world.kernels)) not in ready:
            try:
                simulation.play(_fitting(ranker, world), world, rounds=1, seed=1, fused=True, progress=False)
            except ValueError:  # they do not fit together
                continue
            found.add(pair)
    return found


def _fitting(ranker: Any, world: Environment) -> Ranker:
    """The same ranker for as many items, positions and features as this world has."""
    sizes = {
        "n_items": world.n_items,
        "n_positions": None if world.n_items is None else world.n_positions,
        "n_features": world.n_features,
    }
    known = ranker.get_params()
    changed = {name: size for name, size in sizes.items() if size is not None and known.get(name) is not None}
    made: Ranker = type(ranker)(**(known | changed))
    return made


def _worlds() -> Iterator[Environment]:
    from rankloop.checks import every_environment

    for _, make in every_environment():
        yield make()


@contextlib.contextmanager
def _told(total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar where there is a terminal, else a line for each ranker."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("compiling", total=total)

        def tell(name: str) -> None:
            bar.update(task, description=name, advance=1)
            if not console.is_terminal:
                typer.echo(name, err=True)

        yield tell
