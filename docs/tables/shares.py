"""How far RTopKF comes from a random order to the best ListNet, from the labels of the top alone."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
from cells import cell, markdown
from numpy.typing import NDArray

from rankloop import data, environments, rankers, simulation
from rankloop.base import Ranker
from rankloop.data import Dataset
from rankloop.experiments.top_2016 import setting

CHECKPOINTS, SEEDS, FEW_SEEDS = (2_000, 20_000, 200_000), range(1, 6), range(1, 4)
SCHEDULES = (0.3, 1.0, 3.0, 10.0, 30.0)  # of ListNet, times t^(-1/2), beside its default
OTHERS = ("squared", "kl", "ranksvm", "smooth_dcg")
MET = {
    "synthetic, 50 features": "synthetic",
    "MQ2008": "mq2008",
    "Yahoo sample": "yahoo",
    "MSLR fragment": "mslr",
}


def synthetic(n_queries: int, n_features: int, seed: int, **more: Any) -> Dataset:
    """Queries as `data.synthetic_letor` draws them; one type of features for all sets is one compiled loop."""
    drawn = data.synthetic_letor(n_queries=n_queries, n_features=n_features, seed=seed, **more)
    return drawn.with_dtype("float32")


def with_features(queries: Dataset, features: NDArray[Any]) -> Dataset:
    """The same queries and labels with other features."""
    return Dataset(
        features=np.ascontiguousarray(features, np.float32),
        relevance=queries.relevance,
        offsets=queries.offsets,
        name=queries.name,
        query_ids=queries.query_ids,
        max_grade=queries.max_grade,
    )


def long_lists() -> Dataset:
    """Lists of 50 to 300 documents, more noise, and features whose units differ by factors of a thousand."""
    queries = synthetic(300, 100, seed=31, list_length=(50, 300), noise=1.0)
    return with_features(queries, queries.features * np.exp(np.random.default_rng(5).normal(0, 2, 100)))


def with_noise() -> Dataset:
    """MQ2008 with a hundred features that say nothing."""
    queries = data.read_letor(data.find("ltr/mq2008"), preset="mq2008")
    noise = np.random.default_rng(3).normal(size=(queries.n_documents, 100))
    return with_features(queries, np.hstack([queries.features, noise]))


SETS: dict[str, Callable[[], Dataset]] = {
    **{label: (lambda name=name: setting.queries(name)) for label, name in MET.items()},
    "MovieLens": lambda: data.read_letor(data.find("ltr/movielens_ltr")).bounded(),
    "ClueWeb09": lambda: data.read_letor(data.find("ltr/clueweb09")).bounded(),
    "MSLR fragment, raw features": lambda: data.read_letor(
        data.find("ltr/mslr"), preset="mslr", normalize=None
    ),
    "MQ2008 and 100 features of noise": with_noise,
    "synthetic, long lists": long_lists,
    "synthetic, 300 features": lambda: synthetic(2_000, 300, seed=33, list_length=(5, 15)),
    "synthetic, two grades": lambda: synthetic(
        1_000, 10, seed=32, list_length=(10, 20), noise=2.0, max_grade=1
    ),
}


@cache
def queries_of(name: str) -> Dataset:
    """Four fifths of the queries of a set, as in the experiments."""
    whole = SETS[name]()
    shuffled = np.random.default_rng(setting.PARTS_SEED).permutation(whole.n_queries)
    return whole.select(np.sort(np.delete(shuffled, np.s_[:: setting.PARTS])))


def averages(ranker: Ranker, name: str, seed: int) -> NDArray[np.float64]:
    """NDCG@10 averaged over the rounds up to each checkpoint."""
    stream = environments.QueryStream(queries_of(name), measure=setting.MEASURE)
    trace = simulation.play(ranker, stream, rounds=CHECKPOINTS[-1], seed=seed, progress=False)
    kept = np.searchsorted(trace.rounds, CHECKPOINTS)
    found: NDArray[np.float64] = (trace.total / trace.rounds)[kept]
    return found


@cache
def ends(name: str) -> tuple[float, NDArray[np.float64]]:
    """NDCG@10 of a random order, and of the best ListNet at each checkpoint."""
    d = queries_of(name).n_features
    tuned = [rankers.ListNet(n_features=d, learning_rate=(scale, 0.5), radius=100.0) for scale in SCHEDULES]
    best = np.max([averages(ranker, name, 1) for ranker in (rankers.ListNet(n_features=d), *tuned)], axis=0)
    stream = environments.QueryStream(queries_of(name), measure=setting.MEASURE)
    return float(setting.random_values(stream).mean()), best


def shares(name: str, *, seeds: Iterable[int], **arguments: Any) -> NDArray[np.float64]:
    """Per cent of the way from a random order to the best ListNet, by run and checkpoint."""
    queries = queries_of(name)
    lowest, highest = ends(name)
    runs = [
        averages(
            rankers.RTopKF(n_features=queries.n_features, max_grade=queries.max_grade, **arguments),
            name,
            seed,
        )
        for seed in seeds
    ]
    return 100.0 * (np.array(runs) - lowest) / (highest - lowest)


def table() -> str:
    """The defaults on all sets."""
    rows = []
    for name in SETS:
        by_k = [shares(name, seeds=SEEDS, k=k) for k in (1, 2)]
        rows.append([name, *(cell(column.tolist(), digits=1) for found in by_k for column in found.T)])
    head = [f"k = {k}: {rounds:,}" for k in (1, 2) for rounds in CHECKPOINTS]
    return markdown(["", *head], rows)


def others() -> str:
    """The other surrogates at the last checkpoint, k = 2."""
    rows = []
    for name in SETS:
        found = [shares(name, seeds=FEW_SEEDS, k=2, surrogate=other)[:, -1].tolist() for other in OTHERS]
        rows.append([name, *(cell(column, digits=1) for column in found)])
    return markdown(["", *(f'`"{other}"`' for other in OTHERS)], rows)
