"""Rounds per second with dense and with sparse features, the same lists in both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from benchmarks.speed import of_rankloop
from benchmarks.timing import Effort, race
from benchmarks.topk import MEASURE, datasets
from rankloop import data, environments, rankers

RANKERS: dict[str, Callable[[int], Any]] = {
    "RTopKF": lambda d: rankers.RTopKF(n_features=d, k=2),
    "ListNet": lambda d: rankers.ListNet(n_features=d),
}
_MOST_ROUNDS = 200_000


@dataclass(frozen=True, slots=True)
class Rates:
    """Rounds per second of one ranker on one dataset; the share of entries, and megabytes of features."""

    ranker: str
    dataset: str
    share: float
    dense_megabytes: float
    sparse_megabytes: float
    dense: float
    sparse: float


def measure(
    effort: Effort, tell: Callable[[str], None], *, queries: dict[str, data.Dataset] | None = None
) -> list[Rates]:
    """Race dense against sparse rows on each dataset."""
    found = []
    for name, dataset in (datasets()[0] if queries is None else queries).items():
        thin = dataset.sparse()
        streams = {
            "dense": environments.QueryStream(dataset, measure=MEASURE),
            "sparse": environments.QueryStream(thin, measure=MEASURE),
        }
        rows = thin.features
        kept = sum(part.nbytes for part in (rows.data, rows.indices, rows.indptr))
        for ranker, make in RANKERS.items():
            tell(f"sparse: {ranker}, {name}")
            racers = {
                kind: of_rankloop(partial(make, dataset.n_features), stream, fused=True)
                for kind, stream in streams.items()
            }
            seconds = race(racers, effort=effort, most_rounds=_MOST_ROUNDS)
            share = len(rows.data) / dataset.features.size
            megabytes = dataset.features.nbytes / 1e6, kept / 1e6
            found.append(Rates(ranker, name, share, *megabytes, 1 / seconds["dense"], 1 / seconds["sparse"]))
    return found


def tables(found: list[Rates]) -> list[RenderableType]:
    """A row for each ranker and dataset."""
    title = f"Sparse features: rounds per second, {MEASURE}"
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("", "entries", "dense MB", "sparse MB", "dense", "sparse", "sparse over dense"):
        table.add_column(column, justify="right" if column else "left")
    for one in found:
        table.add_row(
            f"{one.dataset}, {one.ranker}",
            f"{one.share:.0%}",
            f"{one.dense_megabytes:.1f}",
            f"{one.sparse_megabytes:.1f}",
            f"{one.dense:,.0f}",
            f"{one.sparse:,.0f}",
            f"{one.sparse / one.dense:.2f}x",
        )
    return [table]
