"""Queries with documents of their own, and users who click on them: what a search engine sees."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from rankloop import measures
from rankloop.arguments import one_of, whole
from rankloop.base import Floats, Ints
from rankloop.compiled import EnvironmentKernels
from rankloop.environments import query_stream
from rankloop.environments.click_users import draw_clicks
from rankloop.environments.query_stream import Queries, QueryStream
from rankloop.feedback import ClickModel, DynamicBayesianModel
from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.sparse_rows import QueryRows
from rankloop.measures import Measure


class ClickedQueriesParams(NamedTuple):
    """Those of a query stream, the grade of each document, and how users of a document of that grade behave."""

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
    frequency: Floats
    grades: Ints
    n_shown: int
    browsing: Any  # tables by grade
    documents: Ints  # their keys, where requests say which they are


@kernel
def arrive_named(params: Any, state: Any, key: Any) -> Any:
    """The features of the next query's documents, with the keys of the query and of its documents."""
    query = query_stream.next_query(params, state, key)
    start, stop = params.offsets[query], params.offsets[query + 1]
    return QueryRows(params.features[start:stop], params.documents[start:stop], query)


@hot
def respond(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """Clicks on the documents that are shown."""
    start, stop = params.offsets[state.query[0]], params.offsets[state.query[0] + 1]
    n_shown = min(params.n_shown, stop - start)
    draw_clicks(params.browsing, params.grades, start, items, n_shown, key, revealed)


# By kind of user and highest grade: the chance of a click on a document of each grade, and the chance to stop after it.
_KINDS: dict[str, dict[int, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "perfect": {
        1: ((0.0, 1.0), (0.0, 0.0)),
        2: ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
        4: ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    },
    "navigational": {
        1: ((0.05, 0.95), (0.2, 0.9)),
        2: ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        4: ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
    },
    "informational": {
        1: ((0.4, 0.9), (0.1, 0.5)),
        2: ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        4: ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
    },
    "near-random": {
        1: ((0.4, 0.6), (0.5, 0.5)),
        2: ((0.4, 0.5, 0.6), (0.5, 0.5, 0.5)),
        4: ((0.4, 0.45, 0.5, 0.55, 0.6), (0.5, 0.5, 0.5, 0.5, 0.5)),
    },
}


class ClickedQueries(QueryStream):
    """Queries that come one by one; a user sees the first documents of the ranking, and clicks on some.

    A ranking orders all documents of the query. The user sees the first `n_positions` of them and goes down that list.
    What is revealed is a click or none for each of those positions; the labels are the truth, and stay hidden.

    Parameters
    ----------
    dataset : Queries
        Queries with features and labels, such as `rankloop.data.read_letor` reads. Labels are whole numbers.
    clicks : str or ClickModel, optional
        "perfect", "navigational", "informational" or "near-random", for labels up to 1, 2 or 4; or a click model whose
        items are the grades: `attraction[g]` is the chance of a click on a document with label g.
    n_positions : int, optional
        How many documents of a list are shown.
    measure : str or Measure, optional
        What the shown list is worth, "ndcg@10" for ten positions. It may not look at documents that are not shown.
    order : str, optional
        As for `QueryStream`: "shuffled", "in-order" or "drawn".
    frequency : str, optional
        As for `QueryStream`: "zipf", or all equally frequent.
    named : bool, optional
        Whether a request says which query and documents it is about, as `features.QueryRows`: for rankers that
        remember queries, such as `QueryMemory`. The keys are the numbers of the query and of the documents' rows.

    Attributes
    ----------
    click_model : ClickModel
        How users click, by grade.
    n_shown : int
        How many documents of a list are shown.

    Notes
    -----
    The kinds of users go down the list, click on a document with a chance that depends on its label, and after a click
    stop with another such chance: a `DynamicBayesianModel` of the grades. For the labels 0, 1 and 2 the chances of a
    click, and to stop after one, are:

    ============== ============= ==========
    kind           click         stop
    ============== ============= ==========
    perfect        0, .5, 1      0, 0, 0
    navigational   .05, .5, .95  .2, .5, .9
    informational  .4, .7, .9    .1, .3, .5
    near-random    .4, .5, .6    .5, .5, .5
    ============== ============= ==========

    References
    ----------
    K. Hofmann, A. Schuth, S. Whiteson, M. de Rijke (2013). Reusing historical interaction data for faster online
    learning to rank for IR. *WSDM*. There "near-random" is called almost random. H. Oosterhuis, M. de Rijke (2018).
    Differentiable unbiased online learning to rank. *CIKM*.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> queries = SimpleNamespace(features=np.eye(3), relevance=np.array([0.0, 2.0, 0.0]), offsets=np.array([0, 3]))
    >>> users = ClickedQueries(queries, clicks="perfect")
    >>> rng = np.random.default_rng(1)
    >>> documents = users.arrive(rng=rng)
    >>> users.best().items, users.respond(users.best(), rng=rng)
    (array([1, 0, 2]), array([1., 0., 0.]))
    """

    reveals: ClassVar[str] = "clicks"
    kernels = EnvironmentKernels(query_stream.arrive, respond, query_stream.value, query_stream.hindsight)

    def __init__(
        self,
        dataset: Queries,
        *,
        clicks: str | ClickModel = "perfect",
        n_positions: int = 10,
        measure: str | Measure | None = None,
        order: str = "shuffled",
        frequency: str | None = None,
        named: bool = False,
    ) -> None:
        shown = whole("n_positions", n_positions, at_least=1)
        scored = measures.get(f"ndcg@{shown}" if measure is None else measure)
        super().__init__(dataset, measure=scored, order=order, frequency=frequency)
        self.n_shown = min(shown, self.n_positions)
        looks_at = self.n_positions if scored.cutoff is None else min(scored.cutoff, self.n_positions)
        if looks_at > self.n_shown:
            raise ValueError(
                f"measure must look at no more than the {shown} positions that are shown, got {scored.name!r}"
            )
        grades = self.params.relevance.astype(np.int64)
        if (grades != self.params.relevance).any():
            raise ValueError("dataset.relevance must be whole numbers, for a user clicks by the grade")
        self.click_model = _model(clicks, self.max_grade)
        if self.click_model.n_items <= grades.max():
            raise ValueError(
                f"clicks must know the grades 0 to {grades.max()}, got a model of {self.click_model.n_items}"
            )
        tables = self.click_model.browsing(self.n_shown)
        self.names_queries = bool(named)
        if self.names_queries:
            if self.sparse:
                raise ValueError("named=True needs dense features, those of dataset are sparse")
            self.kernels = self.kernels._replace(arrive=arrive_named)
        self.params: Any = ClickedQueriesParams(
            **self.params._asdict(),
            grades=grades,
            n_shown=self.n_shown,
            browsing=tables,
            documents=np.arange(len(grades) if self.names_queries else 0),
        )


def _model(clicks: Any, max_grade: int) -> ClickModel:
    if isinstance(clicks, ClickModel):
        return clicks
    if not isinstance(clicks, str):
        raise ValueError(f"clicks must be one of {', '.join(_KINDS)} or a click model, got {clicks!r}")
    by_grade = _KINDS[one_of("clicks", clicks, tuple(_KINDS))]
    if max_grade not in by_grade:
        raise ValueError(
            f"clicks={clicks!r} is known for labels up to 1, 2 or 4, the queries have labels up to {max_grade}:"
            " give a click model of those grades"
        )
    attraction, satisfaction = map(np.array, by_grade[max_grade])
    return DynamicBayesianModel(attraction=attraction, satisfaction=satisfaction)
