"""The setting of Chaudhuri and Tewari (2016), section 6, shared by the experiments that reproduce it.

Queries come one by one with documents described by features; a linear ranker orders them, and observes the labels of
the top. Features go from 0 to 1 within each query and no row is longer than 1, which the paper leaves open (erratum
B11). The queries are cut into five parts. Run s learns on four of them, and what it has learnt is evaluated on part
s, so that over five runs every query is held out once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import polars as pl

from rankloop import data
from rankloop.data import Dataset
from rankloop.environments import QueryStream
from rankloop.experiments.experiment import Experiment, Plain
from rankloop.rankers import ListNet, RTopKF, Uniform
from rankloop.simulation import Trace, play

PAPER = "S. Chaudhuri and A. Tewari, Online learning to rank with feedback at the top, AISTATS 2016"
MEASURE = "ndcg@10"
SEEDS = range(1, 6)
PARTS = 5
PARTS_SEED = 2016
SYNTHETIC = "synthetic"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set is and its name."""

    label: str
    folder: str
    preset: str | None = None
    n_features: int | None = None


SOURCES = {
    "mq2008": Source("MQ2008", "ltr/mq2008", preset="mq2008"),
    "yahoo": Source("Yahoo sample", "ltr/yahoo_sample", n_features=300),
    "mslr": Source("MSLR fragment", "ltr/mslr", preset="mslr"),
}


def label_of(name: str) -> str:
    """The name of a data set.

    >>> label_of("mq2008"), label_of("synthetic")
    ('MQ2008', 'Synthetic')
    """
    return SOURCES[name].label if name in SOURCES else name.capitalize()


def skipped() -> dict[str, str]:
    """The real data sets that are not on this machine, and what is missing of each."""
    lacks = {}
    for name, source in SOURCES.items():
        try:
            data.find(source.folder)
        except data.DataMissing as missing:
            lacks[name] = str(missing)
    return lacks


def available() -> list[str]:
    """The data sets that can be played here; the synthetic one always can."""
    return [*(name for name in SOURCES if name not in skipped()), SYNTHETIC]


def played_note(played: list[str], *, wanted: Iterable[str] = tuple(SOURCES)) -> str:
    """On which data sets the verdict rests, and which were left out because they are not on this machine."""
    missing = skipped()
    lacks = [f"skipped {label_of(name)}, {missing[name]}" for name in wanted if name in missing]
    return "; ".join([f"Played on {', '.join(map(label_of, played))}", *lacks])


def sets(results: pl.DataFrame) -> list[str]:
    """The data sets that were played, in order of appearance."""
    return [str(name) for name in results["set"].unique(maintain_order=True).to_list()]


@lru_cache(maxsize=len(SOURCES) + 1)
def queries(name: str) -> Dataset:
    """A whole data set, features as the module says."""
    if name == SYNTHETIC:
        made = data.synthetic_letor(n_queries=500, n_features=50, seed=PARTS_SEED)
        return made.with_dtype("float32")  # one type of features for all sets: one compiled loop
    if name not in SOURCES:
        raise ValueError(f"name must be one of {', '.join(SOURCES)}, {SYNTHETIC}, got {name!r}")
    source = SOURCES[name]
    return data.read_letor(
        data.find(source.folder), preset=source.preset, n_features=source.n_features, name=source.label
    ).bounded()


@lru_cache(maxsize=(len(SOURCES) + 1) * PARTS)
def parts(name: str, seed: int) -> tuple[Dataset, Dataset]:
    """What run `seed` learns on, and the fifth of the queries that it is evaluated on."""
    whole = queries(name)
    shuffled = np.random.default_rng(PARTS_SEED).permutation(whole.n_queries)
    held_out = np.zeros(whole.n_queries, dtype=bool)
    held_out[shuffled[(seed - 1) % PARTS :: PARTS]] = True
    return whole.select(np.flatnonzero(~held_out)), whole.select(np.flatnonzero(held_out))


def make_ranker(arguments: Mapping[str, Plain], dataset: Dataset) -> RTopKF | ListNet | Uniform:
    """A fresh ranker from plain settings: a surrogate makes an RTopKF, "listnet" and "uniform" the two references.

    >>> queries = data.synthetic_letor(n_queries=2, n_features=3, seed=1)
    >>> make_ranker({"surrogate": "kl", "k": 1, "learning_rate": [0.1, 0.5]}, queries).learning_rate
    Schedule(scale=0.1, power=0.5)
    """
    chosen: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in arguments.items()
    }
    if chosen["surrogate"] == "uniform":
        return Uniform()
    if chosen["surrogate"] == "listnet":
        del chosen["surrogate"]
        return ListNet(n_features=dataset.n_features, **chosen)
    return RTopKF(n_features=dataset.n_features, max_grade=dataset.max_grade, **chosen)


def play_on(ranker: RTopKF | ListNet | Uniform, dataset: Dataset, *, rounds: int, seed: int) -> Trace:
    """Play over the queries, each pass in a new random sequence."""
    return play(ranker, QueryStream(dataset, measure=MEASURE), rounds=rounds, seed=seed, progress=False)


def greedy_value(ranker: RTopKF | ListNet | Uniform, dataset: Dataset) -> float:
    """Mean NDCG@10 over the queries when nothing is explored; of a random order, its expectation."""
    stream = QueryStream(dataset, measure=MEASURE)
    if isinstance(ranker, Uniform):
        return float(random_values(stream).mean())
    return float(stream.greedy_values(ranker.state.w).mean())


def random_values(stream: QueryStream) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The expected value of a random order of each query's documents.

    At every position stands each document equally often, so a query's discounts meet its mean gain.
    """
    table, offsets = stream.params, stream.params.offsets
    lengths = np.diff(offsets)
    discounts = np.concatenate(([0.0], np.cumsum(table.discount)))[np.minimum(lengths, table.cutoff)]
    gains = np.add.reduceat(table.gains, offsets[:-1]) / lengths
    values: np.ndarray[Any, np.dtype[np.float64]] = table.query_offset + discounts * gains
    return values


class LetorExperiment(Experiment):
    """An experiment on the LETOR data sets of this machine."""

    wanted: ClassVar[tuple[str, ...]] = tuple(SOURCES)

    def notes(self, results: pl.DataFrame) -> tuple[str, ...]:
        return (played_note(sets(results), wanted=self.wanted),)
