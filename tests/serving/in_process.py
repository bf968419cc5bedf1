"""Requests to an application in this process, without a socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from rankloop.serving.http.app import App


async def ask(app: App, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
    """The status and the decoded answer, without its headers."""
    return (await ask_with_headers(app, method, path, body, **more))[:2]


async def ask_with_headers(
    app: App,
    method: str,
    path: str,
    body: Any = None,
    *,
    key: str = "",
    headers: dict[str, str] | None = None,
    unread: bool = False,
) -> tuple[int, Any, dict[str, str]]:
    """The status, the decoded answer and its headers; `unread`: the body must not be looked at."""
    sent: list[Any] = []
    said = {"host": "localhost", "content-type": "application/json"} | (headers or {})
    if key:
        said["authorization"] = f"Bearer {key}"
    where, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": where,
        "raw_path": where.encode(),
        "query_string": query.encode(),
        "client": ("127.0.0.1", 50_000),
        "headers": [(name.encode(), value.encode()) for name, value in said.items()],
    }

    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    given = iter([{"type": "http.request", "body": raw}])

    async def receive() -> Any:
        assert not unread, "a body was read"
        for message in given:
            return message
        return await asyncio.get_running_loop().create_future()  # the caller stays, and says no more

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    told = b"".join(one.get("body", b"") for one in sent[1:])
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    is_json = "/json" in answered.get("content-type", "")
    return sent[0]["status"], json.loads(told) if is_json else told.decode(), answered
