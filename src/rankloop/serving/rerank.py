"""Rerank: the engine behind clients of Cohere's rerank API, such as those of search engines and frameworks.

The model is a ranker, the documents are its candidates, and the ID of the answer is that of the decision. Callers sort
by score, so scores say the order of the drawn list and nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from rankloop.serving.admission import Limits, RequestError, TooLarge
from rankloop.serving.api import EventId, Matrix, RankRequest
from rankloop.serving.engine import Engine
from rankloop.serving.log.candidate_lists import may_show_baseline
from rankloop.serving.log.comparison import comparison_of
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.guard_rails import bound_of
from rankloop.serving.rank_request import is_name

Features = list[list[float]] | Matrix
Extractor = Callable[[str, str, list[Any]], Any]
AGAIN = 30_000  # milliseconds in which the same request is one that is sent again
_OURS = {"items": "documents", "baseline": "documents", "n_positions": "top_n"}


class RerankRequest(msgspec.Struct, frozen=True, gc=False):
    """Documents to order for a query. Fields that only other services know are ignored.

    model: the ranker, or a comparison of the caller's order with one. top_n: how many to answer; else all.
    documents: names of items, or objects with an `id` or a `text`; in the order that the caller has them in.
    features: a row for each document, as in a request for a list.
    decision_id: as the header X-Decision-Id, which counts before it. unit: for a comparison, the session or user.
    """

    model: str
    query: str
    documents: Annotated[list[str | dict[str, Any]], Meta(min_length=1)]
    top_n: Annotated[int, Meta(ge=1)] | None = None
    return_documents: bool | None = None
    features: Features | None = None
    decision_id: EventId | None = None
    unit: EventId | None = None


class Reranked(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A document of the request, by its place there, and a score that falls along the list."""

    index: int
    relevance_score: float
    document: dict[str, Any] | None = None


class RerankAnswer(msgspec.Struct, frozen=True, gc=False):
    """Documents, best first. id: of the decision, for feedback."""

    id: str
    results: list[Reranked]
    meta: dict[str, Any]


async def rerank(
    engine: Engine, request: RerankRequest, *, caller: bytes = b"", decision_id: str | None = None
) -> RerankAnswer:
    """Draw a list of the documents. caller: what tells callers apart, where a request has no ID of its own."""
    if len(request.documents) > engine.limits.documents:
        raise TooLarge(
            f"documents must be at most {engine.limits.documents:,}, got {len(request.documents):,}",
            field="documents",
        )
    fold = judged = (await engine.at_hand(request.model)).fold
    comparison, rankings = comparison_of(fold), None
    if comparison is not None:  # the first ranking is the caller's order, and the others are asked for theirs
        fold = (await engine.at_hand(comparison.rankings[1])).fold
    names = _names(fold, request)
    if comparison is not None:
        rankings = {comparison.rankings[0]: names}
    wanted = len(names) if request.top_n is None else min(request.top_n, len(names))
    most = judged.ranker.n_positions or len(names)
    asked = RankRequest(
        decision_id=decision_id or request.decision_id or _same_id(judged, request, caller, engine.now()),
        items=names,
        features=await _features(fold, request, engine.extractor, engine.limits),
        n_positions=None if wanted == len(names) <= most else min(wanted, most),
        baseline=names if bound_of(judged.config.policy) or may_show_baseline(judged) else None,
        query=request.query,
        rankings=rankings,
        unit=request.unit,
    )
    try:
        shown = await engine.rank(request.model, asked)
    except RequestError as error:
        raise _in_its_words(error) from None
    place = {name: i for i, name in enumerate(names)}
    order = [place.pop(name) for name in shown.items]
    order += list(place.values())[: wanted - len(order)]  # beyond what the ranker orders
    warning = {"warnings": ["not in the log: feedback on it is lost"]} if shown.degraded else {}
    return RerankAnswer(
        shown.decision_id,
        [
            Reranked(index, score, _document(request, index))
            for index, score in zip(order, falling(len(order)), strict=True)
        ],
        {"api_version": {"version": "2"}, **warning},
    )


def falling(n: int) -> list[float]:
    """Scores from 1 down, none of them 0, that differ in float32 also where a caller adds 1 to them.

    >>> falling(4)
    [1.0, 0.75, 0.5, 0.25]
    """
    return [(n - i) / n for i in range(n)]


def _names(fold: Fold, request: RerankRequest) -> list[str]:
    """What the documents are called: by their ID, else by their text where it may be a name, else by their places."""
    names = [
        str(one.get("id", one.get("text", ""))) if isinstance(one, dict) else one for one in request.documents
    ]
    is_known = fold.has_items or fold.stored.n_columns or fold.ranker.takes_queries
    if is_known or (all(map(is_name, names)) and len({*names}) == len(names)):
        return names
    return [str(i) for i in range(len(names))]


async def _features(
    fold: Fold, request: RerankRequest, extractor: Extractor | None, limits: Limits
) -> Features | None:
    """The features that the request brings, the operator's function finds, or the caller's order is."""
    if request.features is not None or fold.has_items:
        return request.features
    n = len(request.documents)
    if extractor is not None:
        try:
            if inspect.iscoroutinefunction(extractor):
                found = await extractor(request.model, request.query, request.documents)
            else:
                found = await asyncio.to_thread(extractor, request.model, request.query, request.documents)
            rows = np.asarray(found, "<f4")
        except (ValueError, TypeError) as error:
            raise RequestError(f"no features for these documents: {error}", field="documents") from None
        if rows.ndim != 2 or len(rows) != n:
            raise RequestError(
                f"the extractor must return a row of features for each of {n} documents, got {rows.shape}",
                field="documents",
            )
    elif fold.ranker.n_features == fold.stored.n_columns + 1:
        # With weight w the ranker then draws by place**-w, where it draws by exp(score).
        rows = -np.log(np.arange(1, n + 1, dtype=np.float64)).astype("<f4")[:, None]
    else:
        return None
    return Matrix((n, rows.shape[1]), rows.tobytes())


def _same_id(fold: Fold, request: RerankRequest, caller: bytes, now: int) -> str:
    """The ID of a request that brings none: the same if it is sent again soon, to whichever replica."""
    digest = hashlib.blake2b(caller + msgspec.msgpack.encode(request), digest_size=12).hexdigest()
    this, before = (f"{now // AGAIN - back:010x}-{digest}" for back in (0, 1))
    earlier = fold.recent.get(before)
    return before if earlier is not None and now - earlier.at < AGAIN else this


def _document(request: RerankRequest, index: int) -> dict[str, Any] | None:
    if not request.return_documents:
        return None
    document = request.documents[index]
    return {"text": document} if isinstance(document, str) else document


def _in_its_words(error: RequestError) -> RequestError:
    """The same error in the words of a request to rerank."""
    name, bracket, rest = (error.field or "").partition("[")
    if name in _OURS:
        error.message = error.message.replace(name, _OURS[name])
        error.field = _OURS[name] + bracket + rest
    return error


def load_extractor(place: str) -> Extractor:
    """The function `package.module:function` that finds features of documents: (model, query, documents) -> rows.

    >>> load_extractor("json:nothing")
    Traceback (most recent call last):
    ...
    ValueError: extractor must be package.module:function, got 'json:nothing': module 'json' has no attribute 'nothing'
    """
    module, _, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"extractor must be package.module:function, got {place!r}: {error}") from None
    if not callable(found):
        raise ValueError(f"extractor must be package.module:function, got {place!r}, which is none")
    extractor: Extractor = found
    return extractor
