"""Queries with documents of their own, described by features: the setting of learning to rank (2016).

The value of a ranking of a query depends on labels that never change, so gains, offsets and the best value of every
query are computed once. Only average precision, ERR and the pairwise loss of grades are evaluated as they are
shown.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop import measures
from rankloop.arguments import one_of
from rankloop.base import Floats, Ints, Ranking
from rankloop.compiled import CompiledEnvironment, EnvironmentKernels
from rankloop.features import LARGEST_FEATURE, is_sparse, read_sparse
from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.measures import average_precision, err, pairwise_loss
from rankloop.kernels.random import below, shuffle, uniform
from rankloop.kernels.rows import plain_dot
from rankloop.kernels.sparse_rows import SparseRows
from rankloop.measures import Measure

IN_ORDER, SHUFFLED, DRAWN, BY_FREQUENCY = range(4)
SEPARABLE, AVERAGE_PRECISION, ERR, PAIRWISE_LOSS = range(4)


class QueryStreamParams(NamedTuple):
    """The documents of query q are rows offsets[q] to offsets[q + 1] of features, relevance and gains."""

    features: Any  # an array, or `SparseRows`
    relevance: Floats
    offsets: Ints
    order: int
    measure: int
    discount: Floats
    cutoff: int
    max_grade: int
    gains: Floats
    query_offset: Floats
    best: Floats
    frequency: Floats  # of a query and those before it, where they differ


class QueryStreamState(NamedTuple):
    """The present query, and the total value of the best rankings."""

    t: Ints  # queries so far
    query: Ints  # which one is here
    sequence: Ints  # of the queries in this pass
    total_best: Floats  # summed values of the best rankings


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
    elif params.order == BY_FREQUENCY:
        query = first_above(params.frequency, uniform(key, 0) * params.frequency[n_queries - 1])
    else:
        query = place
    state.query[0] = query
    state.t[0] += 1
    state.total_best[0] += params.best[query]
    return query


@hot
def first_above(rising: Any, target: float) -> Any:
    """The place of the first of `rising` numbers above `target`, which is below the last."""
    low, high = 0, len(rising) - 1
    while low < high:
        middle = (low + high) // 2
        if rising[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def arrive(params: Any, state: Any, key: Any) -> Any:
    """The features of the next query's documents."""
    query = next_query(params, state, key)
    return params.features[params.offsets[query] : params.offsets[query + 1]]


@kernel
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


@hot
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


_ORDERS = {"in-order": IN_ORDER, "shuffled": SHUFFLED, "drawn": DRAWN}
_UNSEPARABLE = {
    "average_precision": AVERAGE_PRECISION,
    "err": ERR,
    "pairwise_loss": PAIRWISE_LOSS,
}


class Queries(Protocol):
    """What a stream needs of a dataset: query q owns rows offsets[q] to offsets[q + 1] of the other two."""

    @property
    def features(self) -> Any: ...
    @property
    def relevance(self) -> Floats: ...
    @property
    def offsets(self) -> Ints: ...


class QueryStream(CompiledEnvironment):
    """Queries that come one by one, each with its documents; rankings are evaluated on the labels of all of them.

    Parameters
    ----------
    dataset : Queries
        Queries with features and labels, such as `rankloop.data.read_letor` reads. Features may be sparse:
        `Dataset.sparse()`, or CSR rows as `rankloop.features.SparseRows` or of `scipy.sparse`. Every list
        is then the same as with dense rows; rounds are faster where less than a tenth of the entries is not zero.
    measure : str or Measure, optional
        What a ranking is worth: "ndcg@10", "dcg", "precision@5", "average_precision", "err@10" and so on.
    order : str, optional
        "shuffled" goes through all queries in a new random sequence each pass, "in-order" as they are listed,
        "drawn" takes one at random each round.
    frequency : str, optional
        "zipf" takes query i, counted from 1, with a chance in proportion to 1 / i each round, instead of an `order`:
        the first of the dataset is the most frequent. By default all are equally frequent.

    Notes
    -----
    Regret is against the best ranking of each query, which no linear ranker reaches in general. A query
    without any relevant document counts as the measure's convention says (NDCG: 1 whatever is shown).

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> queries = SimpleNamespace(features=np.eye(3), relevance=np.array([0.0, 1.0, 2.0]), offsets=np.array([0, 2, 3]))
    >>> stream = QueryStream(queries, measure="ndcg@10", order="in-order")
    >>> stream.arrive(rng=np.random.default_rng(1))
    array([[1., 0., 0.],
           [0., 1., 0.]])
    >>> stream.best().items, stream.value(stream.best())
    (array([1, 0]), 1.0)
    """

    reveals: ClassVar[str] = "relevance"
    kernels = EnvironmentKernels(arrive, respond, value, hindsight)

    def __init__(
        self,
        dataset: Queries,
        *,
        measure: str | Measure = "ndcg@10",
        order: str = "shuffled",
        frequency: str | None = None,
    ) -> None:
        features, relevance, offsets = _read(dataset)
        lengths = np.diff(offsets)
        self.max_grade = max(1, int(np.ceil(relevance.max())), getattr(dataset, "max_grade", 1))
        scored = measures.get(measure)
        if scored.family == "err":
            scored = scored.graded(max(self.max_grade, scored.max_grade or 1))
        if scored.binary and self.max_grade > 1:
            raise ValueError(
                f"measure {scored.name!r} takes relevance 0 or 1, the queries have grades up to {self.max_grade}"
            )
        self.scored = scored
        self.measure = scored.name
        self.is_loss = scored.is_loss
        self.n_positions = int(lengths.max())
        self.n_features = int(features.shape[1])
        self.sparse = isinstance(features, SparseRows)
        if self.sparse:
            self.kernels = self.kernels._replace(arrive=arrive_sparse)
        # pairwise_loss is of the form f(order) . g(relevance) for labels 0 and 1 only (erratum A4).
        binary = bool(np.isin(relevance, (0.0, 1.0)).all())
        separable = scored.separable and (binary or scored.family != "pairwise_loss")
        gains, query_offset, best = self._score_queries(relevance, offsets, separable=separable)
        self.params = QueryStreamParams(
            features=features,
            relevance=relevance,
            offsets=offsets,
            order=_read_order(order, frequency),
            measure=SEPARABLE if separable else _UNSEPARABLE[scored.family],
            discount=scored.discount(self.n_positions) if separable else np.empty(0),
            cutoff=self.n_positions if scored.cutoff is None else scored.cutoff,
            max_grade=scored.max_grade or self.max_grade,
            gains=gains,
            query_offset=query_offset,
            best=best,
            frequency=np.cumsum(1.0 / np.arange(1.0, len(lengths) + 1.0)) if frequency else np.empty(0),
        )
        self.state = QueryStreamState(
            np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(len(lengths), np.int64), np.zeros(1)
        )

    def _score_queries(
        self, relevance: Floats, offsets: Ints, *, separable: bool
    ) -> tuple[Floats, Floats, Floats]:
        gains, query_offset = np.zeros(len(relevance)), np.zeros(len(offsets) - 1)
        best = np.zeros(len(offsets) - 1)
        lengths = np.diff(offsets)
        # Queries with equally many documents are one array, and are scored in one call.
        for length in np.unique(lengths):
            queries = np.flatnonzero(lengths == length)
            rows = offsets[queries, None] + np.arange(length)
            labels = relevance[rows]
            if separable:
                gains[rows] = self.scored.gain(labels)
                query_offset[queries] = self.scored.offset(labels)
            best[queries] = self.scored(np.argsort(-labels, axis=1, kind="stable"), labels)
        return gains, query_offset, best

    def start_counting(self) -> None:
        self.state.total_best[...] = 0

    @property
    def list_length(self) -> int:
        query = int(self.state.query[0])
        return int(self.params.offsets[query + 1] - self.params.offsets[query])

    @property
    def n_read(self) -> int:
        if self.params.measure != SEPARABLE:
            return self.n_positions
        return min(int(self.params.cutoff), self.n_positions)

    def best(self, context: Any = None) -> Ranking:
        """The documents of the present query by falling label."""
        query = int(self.state.query[0])
        labels = self.params.relevance[self.params.offsets[query] : self.params.offsets[query + 1]]
        return Ranking(np.argsort(-labels, kind="stable"))

    def greedy_values(self, w: ArrayLike) -> Floats:
        """The value of every query when its documents are shown by falling score X `w`, without exploration.

        Documents with equal scores stay as they are listed.
        """
        weights = np.ascontiguousarray(w, dtype=np.float64)
        if weights.shape != (self.n_features,) or not np.isfinite(weights).all():
            raise ValueError(f"w must be {self.n_features} weights, all finite, got {weights!r}")
        values = np.empty(len(self.params.best))
        greedy_values(self.params, weights, values)
        return values


def _read_order(order: str, frequency: str | None) -> int:
    number = _ORDERS[one_of("order", order, tuple(_ORDERS))]
    if frequency is None:
        return number
    one_of("frequency", frequency, ("zipf",))
    if number == IN_ORDER:
        raise ValueError(f"order must be left out where queries have a frequency, got {order!r}")
    return BY_FREQUENCY


def _read(dataset: Queries) -> tuple[NDArray[Any] | SparseRows, Floats, Ints]:
    features = _read_rows(dataset.features)
    n = features.shape[0]
    relevance = np.ascontiguousarray(dataset.relevance, dtype=np.float64)
    offsets = np.ascontiguousarray(dataset.offsets, dtype=np.int64)
    if relevance.shape != (n,):
        raise ValueError(
            f"dataset.relevance must be one label for each of {n} documents, got {relevance.shape}"
        )
    if not (np.isfinite(relevance).all() and (relevance >= 0).all()):
        raise ValueError("dataset.relevance must be finite and not negative")
    rising = offsets.ndim == 1 and len(offsets) > 1 and offsets[0] == 0 and offsets[-1] == n
    if not rising or (np.diff(offsets) < 1).any():
        raise ValueError("dataset.offsets must rise from 0 to the number of documents, with no empty query")
    return features, relevance, offsets


def _read_rows(given: Any) -> NDArray[Any] | SparseRows:
    if is_sparse(given):
        return read_sparse("dataset.features", given)
    features = np.ascontiguousarray(given)
    if features.ndim != 2 or 0 in features.shape or features.dtype not in (np.float32, np.float64):
        raise ValueError(
            f"dataset.features must be float documents x features, got {features.dtype}{features.shape}"
        )
    # NaN comes through min and max, and neither makes an array as large as the features.
    if not (features.max() <= LARGEST_FEATURE and features.min() >= -LARGEST_FEATURE):
        raise ValueError(f"dataset.features must be finite and at most {LARGEST_FEATURE:g}")
    return features
