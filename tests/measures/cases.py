"""Random rankings, and each measure once more in the shortest way that is plainly its formula."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from rankloop import measures
from rankloop.measures import Measure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ALL = [
    measures.sum_loss,
    measures.pairwise_loss,
    measures.dcg,
    measures.dcg.at(3),
    measures.precision.at(1),
    measures.precision.at(4),
    measures.ndcg,
    measures.ndcg.at(2),
    measures.ndcg.at(5),
    measures.average_precision,
    measures.average_precision.at(3),
    measures.auc,
    measures.err,
    measures.err.at(2),
    measures.err.graded(4),
    measures.err.graded(4).at(3),
]
# Every family by name, whole and cut off.
NAMES = [
    "sum_loss",
    "pairwise_loss",
    "dcg",
    "dcg@2",
    "precision@2",
    "ndcg",
    "ndcg@2",
    "average_precision",
    "average_precision@2",
    "auc",
    "err",
    "err@2",
]
SEPARABLE = [measure for measure in ALL if measure.separable]


def by_name(measure: Measure) -> str:
    return f"{measure.name}:{measure.max_grade}"


def highest_grade(measure: Measure) -> int:
    return 4 if measure.max_grade is None else measure.max_grade


@st.composite
def rankings(draw: Any, max_grade: int = 1, min_items: int = 1, max_items: int = 12) -> tuple[Ints, Floats]:
    """An order and a relevance vector of whole grades."""
    m = draw(st.integers(min_items, max_items))
    order = draw(st.permutations(range(m)))
    relevance = draw(st.lists(st.integers(0, max_grade), min_size=m, max_size=m))
    return np.array(order, dtype=np.int64), np.array(relevance, dtype=np.float64)


def sum_loss(order: Ints, r: Floats, k: int, top: int) -> float:
    return float(sum((position + 1) * r[item] for position, item in enumerate(order)))


def pairwise_loss(order: Ints, r: Floats, k: int, top: int) -> float:
    return float(sum(r[higher] < r[lower] for higher, lower in combinations(order, 2)))


def dcg(order: Ints, r: Floats, k: int, top: int) -> float:
    return float(sum((2 ** r[item] - 1) / np.log2(1 + rank) for rank, item in enumerate(order[:k], start=1)))


def precision(order: Ints, r: Floats, k: int, top: int) -> float:
    return float(r[order[:k]].sum())


def ndcg(order: Ints, r: Floats, k: int, top: int) -> float:
    return dcg(order, r, k, top) / dcg(np.argsort(-r), r, k, top) if r.any() else 1.0


def average_precision(order: Ints, r: Floats, k: int, top: int) -> float:
    shares = [r[order[: i + 1]].mean() for i in range(min(k, len(r))) if r[order[i]] == 1]
    return float(sum(shares) / r.sum()) if r.any() else 1.0


def auc(order: Ints, r: Floats, k: int, top: int) -> float:
    unequal = sum(r[i] != r[j] for i, j in combinations(order, 2))
    return pairwise_loss(order, r, k, top) / unequal if unequal else 0.0


def err(order: Ints, r: Floats, k: int, top: int) -> float:
    stop = ((2**r - 1) / 2**top)[order[:k]]
    return float(sum(stop[i] * np.prod(1 - stop[:i]) / (i + 1) for i in range(len(stop))))


def formula(measure: Measure, order: Ints, relevance: Floats) -> float:
    k = len(relevance) if measure.cutoff is None else measure.cutoff
    return float(globals()[measure.family](order, relevance, k, measure.max_grade))
