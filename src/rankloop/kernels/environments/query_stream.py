"""Queries that come one by one, each with documents of its own.

The value of a ranking of a query depends on labels that never change, so gains, offsets and the best value of every
query are computed once. Only average precision, ERR and the pairwise loss of grades are evaluated as they are shown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot, inlined, kernel
from rankloop.kernels.measures import average_precision, err, pairwise_loss
from rankloop.kernels.random import below, shuffle
from rankloop.kernels.rows import SparseRows, plain_dot

IN_ORDER, SHUFFLED, DRAWN = range(3)
SEPARABLE, AVERAGE_PRECISION, ERR, PAIRWISE_LOSS = range(4)


class QueryStreamParams(NamedTuple):
    """The documents of query q are rows offsets[q] to offsets[q + 1] of features, relevance and gains."""

    features: Any  # an array, or `SparseRows`
    relevance: NDArray[np.float64]
    offsets: NDArray[np.int64]
    order: int
    measure: int
    discount: NDArray[np.float64]
    cutoff: int
    max_grade: int
    gains: NDArray[np.float64]
    query_offset: NDArray[np.float64]
    best: NDArray[np.float64]


class QueryStreamState(NamedTuple):
    """The present query, and the total value of the best rankings."""

    t: NDArray[np.int64]  # queries so far
    query: NDArray[np.int64]  # which one is here
    sequence: NDArray[np.int64]  # of the queries in this pass
    total_best: NDArray[np.float64]  # summed values of the best rankings


@hot
def next_query(params: Any, state: Any, key: Any) -> Any:
    """The number of the next query."""
    n_queries = len(params.offsets) - 1
    place = state.t[0] % n_queries
    if params.order == SHUFFLED:
        if place == 0:
            shuffle(key, 0, n_queries, state.sequence)
        query = state.sequence[place]
    elif params.order == DRAWN:
        query = below(key, 0, n_queries)
    else:
        query = place
    state.query[0] = query
    state.t[0] += 1
    state.total_best[0] += params.best[query]
    return query


@inlined
def arrive(params: Any, state: Any, key: Any) -> Any:
    """The features of the next query's documents."""
    query = next_query(params, state, key)
    return params.features[params.offsets[query] : params.offsets[query + 1]]


@inlined
def arrive_sparse(params: Any, state: Any, key: Any) -> Any:
    """The same of `SparseRows`."""
    query, rows = next_query(params, state, key), params.features
    start, stop = params.offsets[query], params.offsets[query + 1]
    shape = (stop - start, rows.shape[1])
    return SparseRows(rows.data, rows.indices, rows.indptr[start : stop + 1], shape)


@hot
def respond(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """The labels of the first documents shown."""
    start, stop = params.offsets[state.query[0]], params.offsets[state.query[0] + 1]
    for position in range(min(len(revealed), stop - start)):
        revealed[position] = params.relevance[start + items[position]]


@hot
def value(params: Any, state: Any, items: Any) -> Any:
    """The measure, of this query's labels."""
    return value_of(params, state.query[0], items)


@inlined
def value_of(params: Any, query: int, items: Any) -> Any:
    """The measure of `items` for `query`."""
    start, stop = params.offsets[query], params.offsets[query + 1]
    if params.measure == SEPARABLE:
        total = params.query_offset[query]
        for position in range(min(params.cutoff, stop - start)):
            total += params.discount[position] * params.gains[start + items[position]]
    elif params.measure == AVERAGE_PRECISION:
        total = average_precision(items[: stop - start], params.relevance[start:stop], params.cutoff)
    elif params.measure == ERR:
        total = err(items[: stop - start], params.relevance[start:stop], params.cutoff, params.max_grade)
    else:
        total = pairwise_loss(items[: stop - start], params.relevance[start:stop])
    return total


@hot
def hindsight(params: Any, state: Any) -> Any:
    """The best ranking of every query that came."""
    return state.total_best[0]


@kernel
def greedy_values(params: Any, w: Any, out: Any) -> None:
    """The value of every query when its documents are shown by falling score X w, first come first."""
    for query in range(len(params.offsets) - 1):
        start, stop = params.offsets[query], params.offsets[query + 1]
        scores = np.zeros(stop - start)
        for i in range(stop - start):
            scores[i] = plain_dot(params.features, start + i, w)
        out[query] = value_of(params, query, np.argsort(-scores, kind="mergesort"))
