"""What a play of lists with features holds in memory: the features once, and nothing that grows with the rounds.

Two meters: NumPy's arrays as Python's `tracemalloc` sees them, and the allocations that compiled code makes, which
numba counts when asked.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba.core.runtime import _nrt_python, rtsys
from rich.console import RenderableType
from rich.table import Table

from benchmarks.timing import Effort
from benchmarks.topk import LEARNERS, MEASURE, Learner, datasets
from rankloop import environments, simulation

FEW, MANY = 20_000, 200_000
POINTS = 100


@dataclass(frozen=True, slots=True)
class Memory:
    """Allocations of compiled code and the peak of traced bytes, by rounds played; and whether features are shared."""

    learner: str
    dataset: str
    feature_bytes: int
    dataset_shared: bool
    lists_shared: bool
    allocations: dict[int, int]
    peak_bytes: dict[int, int]


def measure(effort: Effort, tell: Callable[[str], None]) -> list[Memory]:
    """Play each learner for few and for many rounds, on the first dataset that is here."""
    name, dataset = next(iter(datasets()[0].items()))
    stream = environments.QueryStream(dataset, measure=MEASURE)
    shared = np.shares_memory(stream.params.features, dataset.features)
    documents = stream.arrive(rng=np.random.default_rng(1))
    lists_shared = np.shares_memory(documents, dataset.features)
    found = []
    for title, learner in LEARNERS.items():
        tell(f"memory: {title}")
        play(learner, stream, 1)  # compiles
        held = {rounds: play(learner, stream, rounds) for rounds in (FEW, MANY)}
        allocations = {rounds: count for rounds, (count, _) in held.items()}
        peaks = {rounds: peak for rounds, (_, peak) in held.items()}
        found.append(Memory(title, name, dataset.features.nbytes, shared, lists_shared, allocations, peaks))
    return found


def play(learner: Learner, stream: environments.QueryStream, rounds: int) -> tuple[int, int]:
    """How often compiled code allocated in so many rounds, and how many bytes were held at most."""
    stream.restart()
    ranker = learner.ours(stream.n_features)
    _nrt_python.memsys_enable_stats()
    tracemalloc.start()
    try:
        before = rtsys.get_allocation_stats()
        simulation.play(ranker, stream, rounds=rounds, seed=1, points=POINTS, fused=True, progress=False)
        after = rtsys.get_allocation_stats()
        return after.alloc - before.alloc, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        _nrt_python.memsys_disable_stats()


def tables(found: list[Memory]) -> list[RenderableType]:
    """What each learner allocated, and where the features are."""
    title = f"Memory of a play on {found[0].dataset}, fused"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("")
    for column in ("allocations", "peak, MB"):
        for rounds in (FEW, MANY):
            table.add_column(f"{column}, {rounds:,} rounds", justify="right")
    for one in found:
        table.add_row(
            one.learner,
            *(f"{one.allocations[rounds]:,}" for rounds in (FEW, MANY)),
            *(f"{one.peak_bytes[rounds] / 1e6:.1f}" for rounds in (FEW, MANY)),
        )
    return [table, *_verdicts(found)]


def _verdicts(found: list[Memory]) -> list[RenderableType]:
    most = max((one.allocations[MANY] - one.allocations[FEW]) / (MANY - FEW) for one in found)
    once = all(one.dataset_shared and one.lists_shared for one in found)
    megabytes = found[0].feature_bytes / 1e6
    return [
        f"{_met(most < 0.01)}  no allocation a round: at most {most:.4f}, for the calls that play many rounds each",
        f"{_met(once)}  features held once ({megabytes:.1f} MB): dataset, environment and every list share them",
    ]


def _met(good: bool) -> str:
    return "[green]   met[/]" if good else "[red]missed[/]"
