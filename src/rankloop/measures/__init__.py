"""Measures of an order: eight of them, what each requires, and a registry by name."""

from rankloop.measures.cascade import err
from rankloop.measures.measure import Measure
from rankloop.measures.normalised import average_precision, ndcg
from rankloop.measures.pairs import auc, pairwise_loss
from rankloop.measures.positional import dcg, precision, sum_loss
from rankloop.measures.registry import get, names

__all__ = [
    "Measure",
    "auc",
    "average_precision",
    "dcg",
    "err",
    "get",
    "names",
    "ndcg",
    "pairwise_loss",
    "precision",
    "sum_loss",
]
