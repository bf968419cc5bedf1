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

    ready = set()
    with muted():
        for ranker in _settings(name):
            ready |= _call(ranker)
            if not calls:
                ready |= _play(ranker, ready)
    return len(ready)


# Arguments with which a ranker has other kernels, or the same for other types of arrays.
_CATALOGUE = {"n_features": None, "features": [[1.0, 0.5], [0.5, 1.0], [0.2, 0.1]]}
_OTHER_KERNELS: dict[str, list[dict[str, Any]]] = {
    "CalibratedSquared": [{"learning_rate": 1.0}],
    "CascadeLinTS": [_CATALOGUE],
    "CascadeLinUCB": [_CATALOGUE],
    "FTPL": [{"measure": "ndcg"}],
    "FTRLPBM": [{"n_positions": 2}, {"regulariser": "hybrid"}],
    "LinTSPBM": [_CATALOGUE],
    "LinUCBPBM": [_CATALOGUE],
    "ListNet": [{"learning_rate": 1.0}],
    "RTopKF": [{"learning_rate": "camera-ready"}],
    "Uniform": [{"n_items": None}],
}


def _settings(name: str) -> Iterator[Ranker]:
    """Small rankers of a class; those that it gives itself in `examples`, where it has such a method."""
    from rankloop.checks import small_arguments
    from rankloop.rankers import registry

    kind: Any = registry.find(name)
    if hasattr(kind, "examples"):
        yield from kind.examples()
        return
    for other in ({}, *_OTHER_KERNELS.get(name, ())):
        yield kind(**(small_arguments(kind) | other))


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
    """One environment for each set of kernels."""
    import numpy as np

    from rankloop import data, environments
    from rankloop.feedback import CascadeModel

    cascade = CascadeModel(np.array([0.3, 0.9, 0.1, 0.6]))
    queries = data.synthetic_letor(n_queries=12, n_features=3, seed=1, list_length=(2, 8))
    for users in (environments.users.bernoulli([0.9, 0.5, 0.2]), [[1, 0, 1], [0, 1, 0]]):
        for measure in ("dcg", "average_precision"):
            yield environments.FixedItems(users, measure=measure)
    yield environments.PositionBased(attraction=[0.9, 0.1, 0.5], examination=[1.0, 0.5])
    yield environments.ClickUsers(cascade, n_positions=3)
    yield environments.Promoted(cascade, item=2, share=0.3, n_positions=3)
    yield environments.QueryStream(queries, measure="ndcg@3")
    yield environments.ClickedQueries(queries)


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
