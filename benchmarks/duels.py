"""Rounds per second of DBGD and MGD from clicks on documents, beside plain NumPy and one pass over the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from benchmarks import bare_topk
from benchmarks.numpy_mgd import PlainMGD
from benchmarks.speed import of_rankloop
from benchmarks.timing import Contender, Effort, race
from benchmarks.topk import sequence_of
from rankloop import data, environments, rankers
from rankloop.kernels import sorting

N_DOCUMENTS, N_FEATURES = 120, 136  # as large as a list of MSLR-WEB
RANKERS: dict[str, tuple[Any, int]] = {"DBGD": (rankers.DBGD, 1), "MGD": (rankers.MGD, 9)}

FUSED = "rankloop, fused"
STEPWISE = "rankloop, step by step"
NUMPY = "NumPy, round by round"
BARE = "bare: one pass and a sort"

_MOST_ROUNDS = 100_000


@dataclass(frozen=True, slots=True)
class DuelRates:
    """Rounds per second of each contender for one ranker."""

    ranker: str
    rounds_per_second: dict[str, float]


def users(n_documents: int = N_DOCUMENTS, n_features: int = N_FEATURES) -> environments.ClickedQueries:
    """Perfect users of made-up queries, all of one length."""
    length = (n_documents, n_documents)
    queries = data.synthetic_letor(n_queries=60, n_features=n_features, seed=1, list_length=length)
    return environments.ClickedQueries(queries.with_dtype("float32"), clicks="perfect")


def measure(effort: Effort, tell: Callable[[str], None]) -> list[DuelRates]:
    """Race the contenders of each ranker."""
    people, found = users(), []
    for name in RANKERS:
        tell(f"clicks on documents: {name}")
        seconds = race(contenders(name, people), effort=effort, most_rounds=_MOST_ROUNDS)
        found.append(DuelRates(name, {way: 1 / spent for way, spent in seconds.items()}))
    return found


def contenders(name: str, people: environments.ClickedQueries) -> dict[str, Contender]:
    """Fused, step by step, in NumPy, and the least that any linear ranker costs."""
    kind, n_candidates = RANKERS[name]
    make = partial(kind, n_features=people.n_features)
    return {
        FUSED: of_rankloop(make, people, fused=True),
        STEPWISE: of_rankloop(make, people, fused=False),
        NUMPY: _plain(n_candidates, people),
        BARE: _bare(people),
    }


def _plain(n_candidates: int, people: environments.ClickedQueries) -> Contender:
    params = people.params
    starts = zip(params.offsets[:-1], params.offsets[1:], strict=True)
    queries = [(params.features[a:b], params.grades[a:b]) for a, b in starts]
    attraction = np.asarray(people.click_model.attraction)

    def ready(rounds: int) -> Callable[[], object]:
        rng = np.random.default_rng(1)
        ranker = PlainMGD(n_features=people.n_features or 1, n_candidates=n_candidates, rng=rng)
        sequence = sequence_of(len(queries), rounds).tolist()
        return lambda: ranker.play(queries, sequence, attraction)

    return ready


def _bare(people: environments.ClickedQueries) -> Contender:
    n, features, offsets = people.n_positions, people.params.features, people.params.offsets
    w = np.random.default_rng(1).standard_normal(features.shape[1])
    scores, items, scratch = np.empty(n), np.empty(n, np.int64), sorting.scratch(n)

    def ready(rounds: int) -> Callable[[], object]:
        words = np.random.default_rng(1).bit_generator.random_raw(rounds)
        sequence = sequence_of(len(offsets) - 1, rounds)
        return lambda: bare_topk.score_and_sort(features, offsets, sequence, words, w, scores, items, scratch)

    return ready


def tables(found: list[DuelRates]) -> list[RenderableType]:
    """One table."""
    table = Table(
        title=f"Clicks on {N_DOCUMENTS} documents x {N_FEATURES} features: rounds per second",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("")
    for way in (FUSED, STEPWISE, NUMPY, BARE, "fused over NumPy", "fused over bare"):
        table.add_column(way, justify="right")
    for rates in found:
        rate = rates.rounds_per_second
        cells = [f"{rate[way]:,.0f}" for way in (FUSED, STEPWISE, NUMPY, BARE)]
        ratios = f"{rate[FUSED] / rate[NUMPY]:.1f}x", f"{rate[FUSED] / rate[BARE]:.2f}x"
        table.add_row(rates.ranker, *cells, *ratios)
    return [table]
