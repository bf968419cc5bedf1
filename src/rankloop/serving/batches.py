"""Several lists in one request: each is a decision of its own, and all of them share a commit."""

from __future__ import annotations

import asyncio

from rankloop.serving.api import ErrorBody, RankAnswer, RankOutcome, RankRequest
from rankloop.serving.engine import Engine
from rankloop.serving.errors import RequestError


async def rank_many(engine: Engine, name: str, requests: list[RankRequest]) -> list[RankOutcome]:
    """A list for each request, in order; what is wrong with one of them is told in its place.

    All are drawn before the first is written, from one state, and wait for the disk together.
    """
    if len(requests) > engine.limits.batch:
        raise RequestError(
            f"limit reached: {engine.limits.batch:,} lists in one request, got {len(requests):,}"
        )
    await engine.find(name)
    tasks = [asyncio.create_task(engine.rank(name, one)) for one in requests]
    await asyncio.gather(*tasks, return_exceptions=True)
    return [_outcome(task) for task in tasks]


def _outcome(task: asyncio.Task[RankAnswer]) -> RankOutcome:
    error = task.exception()
    if error is None:
        return RankOutcome(task.result())
    if isinstance(error, RequestError):
        return RankOutcome(error=ErrorBody(error.code, error.message, error.field))
    raise error
