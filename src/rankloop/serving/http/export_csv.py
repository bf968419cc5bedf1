"""The log of a ranker as CSV over HTTP: the same rows as `rankloop export`, sent as they are read."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from typing import Any

from rankloop.serving.log.export import answered_lists, positions
from rankloop.serving.stores.contract import Store

COLUMNS = (
    "decision",
    "seq",
    "model_seq",
    "at",
    "item",
    "position",
    "click",
    "relevance",
    "propensity",
    "explored",
    "delay_seconds",
    "context_erased",
)
_LISTS = 200  # lists in one piece of the answer


async def csv_rows(store: Store, ranker: str) -> AsyncIterator[bytes]:
    """The table, in pieces. `at` is in milliseconds since 1970; what is not known is empty."""
    yield (",".join(COLUMNS) + "\r\n").encode()
    waiting: list[dict[str, Any]] = []
    n_lists = 0
    async for one in answered_lists(store, ranker):
        waiting += positions(one)
        n_lists += 1
        if n_lists % _LISTS == 0:
            yield _written(waiting)
            waiting = []
    yield _written(waiting)


def _written(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    csv.DictWriter(text, COLUMNS).writerows(rows)
    return text.getvalue().encode()
