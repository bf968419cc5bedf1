"""Small rankers and environments of every class of the package: odd sizes, every kernel, every way to be set up.

The transcripts of tests/golden are of these rankers, in this order: a new one goes to the end of its list.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankloop import rankers
from rankloop.base import Environment, Floats, Ranker
from rankloop.environments import (
    Attacked,
    ClickedQueries,
    ClickMatrix,
    ClickUsers,
    Corrupted,
    Drifting,
    FixedItems,
    Indistinguishable,
    LowerBound,
    Periodic,
    PositionBased,
    Promoted,
    QueryStream,
)
from rankloop.environments.users import bernoulli, graded, listed, noisy_halves, switching
from rankloop.feedback import (
    CascadeModel,
    ClickChainModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)

Arguments = dict[str, Any]


def _catalogue(n_items: int, n_features: int) -> Floats:
    return np.random.default_rng(1).random((n_items, n_features)) / n_features


_CATALOGUES: list[Arguments] = [
    {"features": _catalogue(5, 3), "n_positions": 3},
    {"n_features": 3, "n_positions": 3},
]
_EXAMINED: list[Arguments] = [
    {"features": _catalogue(4, 2), "examination": [0.2, 1.0, 0.5, 0.1]},
    {"n_features": 2, "examination": [1.0, 0.5]},
]
_DESCENT: list[Arguments] = [
    {"n_features": 3, "learning_rate": 1.0},
    {"n_features": 1, "learning_rate": (0.01, 0.5)},
    {"n_features": 3},
]

RANKERS: dict[str, list[Arguments]] = {
    "DBGD": [
        {"n_features": 3, "n_positions": 3, "learning_rate": 0.5},
        {"n_features": 4, "n_positions": 2, "learning_rate": (0.5, 0.5), "delta": 0.5, "radius": 1.0},
        {"n_features": 1, "n_positions": 3, "tau": 1.0},
    ],
    "ClickMix": [
        {"n_items": 5, "n_positions": 3},
        {"n_items": 4, "memory": 500, "insurance": 0.0},
        {"n_items": 3, "n_positions": 1, "insurance": 9.0},
        {"n_items": 1},
    ],
    "FTPL": [
        {"n_items": 4, "horizon": 500},
        {"n_items": 5, "measure": "sum_loss"},
        {"n_items": 3, "horizon": 100, "measure": "dcg", "max_grade": 4},
        {"n_items": 1},
        {"n_items": 4, "measure": "ndcg@3", "max_grade": 2},
        {"n_items": 4, "measure": "auc", "horizon": 200},
    ],
    "FTRLPBM": [
        {"n_items": 6, "n_positions": 3},
        {"n_items": 4, "estimator": "reduced-variance"},
        {"n_items": 5, "n_positions": 2, "estimator": "mean"},
        {"n_items": 3, "n_positions": 1},
        {"n_items": 1},
        {"n_items": 4, "n_positions": 2, "solver": "frank-wolfe", "sampler": "birkhoff", "steps": 20},
        {"n_items": 6, "n_positions": 3, "regulariser": "hybrid", "estimator": "mean"},
        {"n_items": 3, "regulariser": "hybrid", "forget": 10},
        {"n_items": 4, "n_positions": 2, "forget": 20},
    ],
    "GRAB": [
        {"n_items": 5, "n_positions": 3},
        {"n_items": 4, "gamma": 2},
        {"n_items": 3, "n_positions": 1},
        {"n_items": 1},
    ],
    "MGD": [
        {"n_features": 3, "n_positions": 3, "learning_rate": 0.5},
        {
            "n_features": 4,
            "n_positions": 2,
            "n_candidates": 2,
            "learning_rate": (0.5, 0.5),
            "delta": 0.5,
            "radius": 1.0,
        },
        {"n_features": 1, "n_positions": 3, "n_candidates": 1, "tau": 1.0},
    ],
    "MW": [
        {"n_items": 6, "n_positions": 3, "horizon": 100},
        {"n_items": 4, "eta": 0.5, "gamma": 0.05},
        {"n_items": 3, "n_positions": 1, "horizon": 1000},
        {"n_items": 1, "horizon": 1},
    ],
    "P2LinRank": [
        {"n_features": 3},
        {"n_features": 9, "n_positions": 3, "n_models": 2, "noise": 1.0},
        {"n_features": 1, "n_positions": 1, "n_models": 1},
    ],
    "PBMPIE": [
        {"n_items": 5, "n_positions": 3, "horizon": 1000, "examination": [1.0, 0.5, 0.2]},
        {"n_items": 6, "n_positions": 3, "horizon": 1000},
        {"n_items": 4, "horizon": 100},
        {"n_items": 1, "horizon": 1},
    ],
    "PBMTS": [
        {"n_items": 5, "n_positions": 3},
        {"n_items": 4, "examination": [0.2, 1.0, 0.5, 0.1], "sweeps": 2},
        {"n_items": 1},
        {"n_items": 4, "n_positions": 2, "forget": 10},
    ],
    "PDGD": [
        {"n_features": 3, "learning_rate": 0.1},
        {"n_features": 9, "n_positions": 3, "learning_rate": 1.0},
        {"n_features": 1, "n_positions": 1},
        {"n_features": 3},
    ],
    "PEGE": [
        {"n_items": 4},
        {"n_items": 5, "measure": "sum_loss", "k": 2},
        {"n_items": 3, "measure": "dcg", "max_grade": 4},
        {"n_items": 1},
    ],
    "PMED": [
        {"n_items": 5, "n_positions": 3, "growth": 4.0, "tolerance": 0.3},
        {"n_items": 3, "growth": 4.0, "every": 20, "tolerance": 0.3},
        {"n_items": 3, "n_positions": 1, "growth": 2.0, "every": 20, "tolerance": 0.3},
        {"n_items": 1},
    ],
    "BestInHindsight": [{"relevance": [[0, 1, 0], [0, 1, 1]], "measure": "ndcg"}],
    "CalibratedSquared": _DESCENT,
    "CascadeKLUCB": [{"n_items": 5, "n_positions": 3}, {"n_items": 4}, {"n_items": 1}],
    "CascadeLinTS": [*_CATALOGUES, {"n_features": 2, "n_positions": 4, "sigma": 0.5}],
    "CascadeLinUCB": [*_CATALOGUES, {"n_features": 2, "n_positions": 4, "sigma": 0.5}],
    "CascadeRobustUCB": [{"n_items": 5, "n_positions": 3, "budget": 2}, {"n_items": 4}, {"n_items": 1}],
    "FeedExp3": [
        {"n_items": 3, "measure": "sum_loss"},
        {"n_items": 4, "measure": "dcg", "pooled": True},
        {"n_items": 3, "measure": "ndcg", "k": 2},
        {"n_items": 3, "measure": "pairwise_loss", "k": 2, "max_grade": 2, "pooled": True},
        {"n_items": 1},
    ],
    "Fixed": [{"order": [2, 0, 1]}, {"order": [4, 1], "n_items": 5}, {"order": [0]}],
    "LinTSPBM": _CATALOGUES + _EXAMINED,
    "LinUCBPBM": _CATALOGUES + _EXAMINED,
    "ListNet": _DESCENT,
    "PLRank": [
        {"n_features": 3},
        {"n_features": 2, "cutoff": 2, "n_samples": 1, "learning_rate": (0.5, 0.5)},
    ],
    "PrecisionFTRL": [
        {"n_items": 4, "measure": "precision@2"},
        {"n_items": 5, "measure": "precision@3", "k": 2},
        {"n_items": 3, "measure": "precision@1", "max_grade": 4},
        {"n_items": 3, "measure": "precision@3", "k": 3},
        {"n_items": 1},
    ],
    "QueryMemory": [
        {"n_features": 3, "n_pairs": 40},
        {"n_features": 2, "n_positions": 3, "n_pairs": 1},
        {"n_features": 0, "n_positions": 1, "n_pairs": 32},
        {"n_features": 1, "n_pairs": 16, "warm_start": [2.0]},
    ],
    "RTop1F": [
        {"n_items": 4, "horizon": 500},
        {"n_items": 5, "measure": "sum_loss", "explore": "random"},
        {"n_items": 7, "horizon": 400, "measure": "precision@3", "k": 3},
        {"n_items": 3, "horizon": 100, "measure": "dcg", "max_grade": 4},
        {"n_items": 1, "horizon": 10},
        {"n_items": 6, "horizon": 4, "measure": "pairwise_loss"},
    ],
    "RTopKF": [
        {"n_features": 3, "surrogate": "squared", "learning_rate": (0.5, 2 / 3), "exploration": (1.0, 1 / 3)},
        {"n_features": 9, "surrogate": "ranksvm", "k": 2, "learning_rate": (0.5, 2 / 3), "exploration": 0.3},
        {
            "n_features": 3,
            "surrogate": "kl",
            "k": 3,
            "learning_rate": "camera-ready",
            "estimator": "horvitz-thompson",
            "exploration": 0.5,
        },
        {
            "n_features": 4,
            "surrogate": "smooth_dcg",
            "learning_rate": "camera-ready",
            "epsilon": (1.0, 0.2),
            "exploration": (1.0, 1 / 3),
            "control_variate": "mean",
        },
        {
            "n_features": 2,
            "surrogate": "ranksvm",
            "k": 4,
            "learning_rate": "camera-ready",
            "estimator": "horvitz-thompson",
            "exploration": 0.5,
        },
        {
            "n_features": 1,
            "surrogate": "kl",
            "control_variate": "score",
            "horizon": 100,
            "learning_rate": "preprint",
        },
        {"n_features": 3},
        {"n_features": 9, "k": 2},
        {"n_features": 3, "surrogate": "ranksvm", "k": 3},
        {"n_features": 2, "surrogate": "smooth_dcg", "k": 2, "control_variate": "mean", "epsilon": None},
        {"n_features": 2, "surrogate": "kl", "exploration": 0.5},
        {"n_features": 4, "surrogate": "smooth_dcg", "k": 2},
    ],
    "RankedExp3": [
        {"n_items": 6, "n_positions": 3, "horizon": 100},
        {"n_items": 4, "gamma": 0.3},
        {"n_items": 1, "horizon": 1},
    ],
    "SemiBanditFTRL": [
        {"n_items": 5, "measure": "dcg@3"},
        {"n_items": 4, "measure": "sum_loss"},
        {"n_items": 4, "measure": "dcg@1", "max_grade": 2},
        {"n_items": 3, "measure": "precision@2"},
        {"n_items": 1},
    ],
    "TopFTRL": [
        {"n_items": 4},
        {"n_items": 5, "measure": "sum_loss"},
        {"n_items": 7, "measure": "precision@3", "k": 3},
        {"n_items": 3, "measure": "dcg", "max_grade": 4, "k": 2},
        {"n_items": 6, "measure": "dcg@3"},
        {"n_items": 2, "measure": "pairwise_loss"},
        {"n_items": 1},
    ],
    "TopRank": [
        {"n_items": 5, "n_positions": 3, "horizon": 1000},
        {"n_items": 6, "n_positions": 3, "delta": 0.9},
        {"n_items": 4, "horizon": 10},
        {"n_items": 1, "horizon": 1},
    ],
    "Uniform": [{"n_items": 4}, {"n_items": 1}, {"n_items": 6, "n_positions": 2}, {}],
}


class Queries:
    """Twelve small queries."""

    def __init__(self, seed: int, grades: int) -> None:
        rng = np.random.default_rng(seed)
        self.offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 8, 12))])
        self.features = rng.random((self.offsets[-1], 3)).astype(np.float32) / 3
        self.relevance = rng.integers(0, grades, self.offsets[-1]).astype(np.float64)


_ATTRACTION = np.array([0.3, 0.9, 0.1, 0.6, 0.4, 0.2, 0.5])
_FIVE = {"attraction": [0.9, 0.1, 0.5, 0.6, 0.3], "examination": [1.0, 0.5, 0.2]}


def _indistinguishable() -> Iterator[Environment]:
    # The top item seen: whether the first and the third agree tells the worlds apart, and no learner sees both.
    for measure, others, world in (("ndcg", (), None), ("average_precision", (0, 0, 0), 1)):
        vectors = [(*r, *others) for r in ((0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 0, 1))]
        chances = ((0.5, 0.0, 0.0, 0.5), (0.0, 0.5, 0.5, 0.0))
        worlds = SimpleNamespace(outcomes=vectors, chances=chances, forced=0.01)
        yield Indistinguishable(SimpleNamespace(measure=measure, worlds=worlds), world=world)


def _promoted() -> Iterator[Environment]:
    yield Promoted(CascadeModel(_ATTRACTION), item=2, share=0.3, n_positions=3)
    yield Promoted(PositionBasedModel(_ATTRACTION, np.array([1.0, 0.5])), item=0, share=0.0)


def _attacked() -> Iterator[Environment]:
    yield Attacked(CascadeModel(_ATTRACTION), item=2, victims=[1, 3], budget=20, n_positions=3)


def _click_users() -> Iterator[Environment]:
    three = np.array([1.0, 0.5, 0.3])
    cascade = CascadeModel(_ATTRACTION)
    yield ClickUsers(cascade, n_positions=3)
    yield ClickUsers(DependentClickModel(_ATTRACTION, np.array([0.2, 0.9, 0.5])))
    yield ClickUsers(UserBrowsingModel(_ATTRACTION, np.random.default_rng(1).random((3, 3))))
    yield ClickUsers(DynamicBayesianModel(_ATTRACTION, _ATTRACTION[::-1], 0.9), n_positions=4)
    yield ClickUsers(ClickChainModel(_ATTRACTION, np.array([0.9, 0.6, 0.2])), n_positions=2)
    yield ClickUsers(TrustBiasModel(_ATTRACTION, three, np.array([0.9, 0.9, 0.8]), 0.5 * three))
    yield ClickUsers([cascade, PositionBasedModel(_ATTRACTION[::-1], three[:2])], phase=7)


def _click_matrix() -> Iterator[Environment]:
    rng = np.random.default_rng(1)
    yield ClickMatrix(rng.random((3, 5)))
    yield ClickMatrix(rng.random((4, 4)))
    yield ClickMatrix([[0.0]])


def _position_based() -> Iterator[Environment]:
    yield PositionBased(**_FIVE)
    yield PositionBased(attraction=[0.2, 0.9, 0.4, 0.4], examination=[0.1, 0.3, 0.6, 1.0])
    yield PositionBased(attraction=[0.2, 0.9, 0.4], examination=[1.0])
    yield PositionBased(attraction=[1.0], examination=[0.0])


def _periodic() -> Iterator[Environment]:
    world = PositionBased(**_FIVE)
    yield Periodic.exchanging(world, phase=7)
    yield Periodic.reversing(world, phase=30)
    matrices = np.random.default_rng(1).random((3, 4, 4))
    yield Periodic([ClickMatrix(matrix) for matrix in matrices], phase=1)
    yield Periodic([world], phase=3)


def _drifting() -> Iterator[Environment]:
    world = PositionBased(**_FIVE)
    yield Drifting(world, steps=4, phase=5)
    yield Drifting(world, to=world.exchanged(), steps=1, phase=20)


def _corrupted() -> Iterator[Environment]:
    world = PositionBased(**_FIVE)
    yield Corrupted(world, share=0.3)
    yield Corrupted(world, share=0.0)
    matrices = np.random.default_rng(1).random((2, 3, 3))
    yield Corrupted(ClickMatrix(matrices[0]), against=ClickMatrix(matrices[1]), share=0.5)


def _lower_bound() -> Iterator[Environment]:
    yield LowerBound(n_items=6, n_positions=3, horizon=100)
    yield LowerBound(n_items=4, n_positions=1, horizon=4, best=[2])


def _clicked_queries() -> Iterator[Environment]:
    for seed, (clicks, shown, measure, order, grades) in enumerate(
        [
            ("perfect", 10, "ndcg@3", "shuffled", 3),
            ("navigational", 3, "dcg@2", "in-order", 2),
            ("informational", 3, "precision@3", "drawn", 5),
            ("near-random", 3, "err@2", "shuffled", 3),
        ]
    ):
        queries = Queries(seed, grades)
        yield ClickedQueries(queries, clicks=clicks, n_positions=shown, measure=measure, order=order)
    yield ClickedQueries(Queries(4, 3), clicks="perfect", n_positions=3, frequency="zipf")
    yield ClickedQueries(Queries(5, 3), clicks="navigational", named=True)


def _fixed_items() -> Iterator[Environment]:
    yield FixedItems(np.random.default_rng(1).integers(0, 2, (400, 4)), measure="dcg")
    yield FixedItems(noisy_halves(n_items=5), measure="ndcg@3")
    yield FixedItems(bernoulli([0.9, 0.5, 0.2]), measure="average_precision")
    yield FixedItems(switching([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]], period=7), measure="sum_loss")
    yield FixedItems(graded([[0.2, 0.3, 0.5], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8]]), measure="pairwise_loss")
    yield FixedItems(listed([[1, 0, 2, 0], [0, 1, 0, 3]], weights=[1, 2]), measure="err")
    yield FixedItems(listed([[1, 0, 1], [0, 1, 0]]), measure="auc")
    yield FixedItems(noisy_halves(n_items=1), measure="precision@1")


def _query_stream() -> Iterator[Environment]:
    for seed, (measure, order, grades) in enumerate(
        [
            ("ndcg@3", "shuffled", 3),
            ("dcg", "in-order", 3),
            ("average_precision", "drawn", 2),
            ("err@2", "shuffled", 3),
            ("precision@2", "drawn", 2),
            ("pairwise_loss", "in-order", 3),
        ]
    ):
        yield QueryStream(Queries(seed, grades), measure=measure, order=order)
    yield QueryStream(Queries(6, 3), measure="ndcg@3", frequency="zipf")


ENVIRONMENTS: dict[str, Callable[[], Iterator[Environment]]] = {
    "Attacked": _attacked,
    "ClickMatrix": _click_matrix,
    "ClickUsers": _click_users,
    "ClickedQueries": _clicked_queries,
    "Corrupted": _corrupted,
    "Drifting": _drifting,
    "FixedItems": _fixed_items,
    "Indistinguishable": _indistinguishable,
    "LowerBound": _lower_bound,
    "Periodic": _periodic,
    "PositionBased": _position_based,
    "Promoted": _promoted,
    "QueryStream": _query_stream,
}


def of_ranker(name: str) -> Iterator[Any]:
    """Fresh rankers of one class."""
    for arguments in RANKERS[name]:
        yield getattr(rankers, name)(**arguments)


def every_ranker() -> Iterator[tuple[str, Callable[[], Ranker]]]:
    """A name and a maker for each example of each ranker."""
    for name, examples in RANKERS.items():
        for i, arguments in enumerate(examples):
            yield f"{name}-{i}", functools.partial(getattr(rankers, name), **arguments)


def every_environment() -> Iterator[tuple[str, Callable[[], Environment]]]:
    """A name and a maker for each example of each environment."""
    for name, make in ENVIRONMENTS.items():
        for i, _ in enumerate(make()):
            yield f"{name}-{i}", functools.partial(_nth, make, i)


def _nth(make: Callable[[], Iterator[Environment]], i: int) -> Environment:
    return list(make())[i]


def same(one: Any, other: Any) -> bool:
    """Whether two hold the same in `params` and `state`."""
    return type(one) is type(other) and all(
        np.array_equal(mine, theirs)
        for kind in ("state", "params")
        for mine, theirs in zip(_flat(getattr(one, kind)), _flat(getattr(other, kind)), strict=True)
    )


@contextmanager
def refused(ranker: Ranker, match: str) -> Iterator[None]:
    """What follows is a ValueError in words that match, and leaves the ranker as it was."""
    before = ranker.save()
    with pytest.raises(ValueError, match=match):
        yield
    for name, value in ranker.save().items():
        np.testing.assert_array_equal(before[name], value, err_msg=name)


def _flat(parts: Any) -> list[Any]:
    return [leaf for part in parts for leaf in (_flat(part) if isinstance(part, tuple) else [part])]
