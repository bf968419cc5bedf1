"""The stream of all rankers: what this replica tells of its own, and what the others tell of theirs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from rankloop.serving.http.app import App
from rankloop.serving.http.endpoints import Receive, Scope, Send
from rankloop.serving.owners.hop import NoAnswer, NotSent
from rankloop.serving.owners.routing import Router

_PAUSE = 1.0  # seconds between two looks at who is there
_RANKER = b"event: ranker"


async def merged_stream(app: App, router: Router, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request for the stream of all rankers, until the caller goes."""
    sending = asyncio.Lock()
    following: list[asyncio.Task[None]] = []

    async def tell(message: Any) -> None:
        async with sending:
            await send(message)

    async def pass_on(event: bytes) -> None:
        await tell({"type": "http.response.body", "body": event, "more_body": True})

    async def own(message: Any) -> None:
        await tell(message)
        if message["type"] == "http.response.start" and message["status"] == 200:
            following.append(asyncio.create_task(_follow_others(router, scope, pass_on)))

    try:
        await app(scope, receive, own)
    finally:
        await _end(following)


async def _follow_others(router: Router, scope: Scope, pass_on: Callable[[bytes], Awaitable[None]]) -> None:
    """Listen to every other replica for as long as it is there."""
    listening: dict[str, asyncio.Task[None]] = {}
    try:
        while True:
            others = {one.address for one in router.ownership.members} - {router.ownership.address}
            for address in [one for one, task in listening.items() if task.done() or one not in others]:
                await _end([listening.pop(address)])
            for address in others - listening.keys():
                listening[address] = asyncio.create_task(_listen(router, address, scope, pass_on))
            await asyncio.sleep(_PAUSE)
    finally:
        await _end(listening.values())


async def _listen(
    router: Router, address: str, scope: Scope, pass_on: Callable[[bytes], Awaitable[None]]
) -> None:
    with contextlib.suppress(NotSent, NoAnswer):
        async for event in _events(router.stream_from(address, scope)):
            if event.startswith(_RANKER):  # their health is theirs
                await pass_on(event)


async def _events(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole events, however the bytes came."""
    rest = b""
    async for part in parts:
        *whole, rest = (rest + part).split(b"\n\n")
        for event in whole:
            yield event + b"\n\n"


async def _end(tasks: Any) -> None:
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
