"""Serves the page at `/`, the one about the API at `/docs`, and their files. They use the public API only."""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# Nothing from elsewhere, nothing inline, no frames: a name that somebody gave to an item can never become code.
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


class _File(NamedTuple):
    body: bytes
    kind: str
    tag: str


def page_routes() -> list[BaseRoute]:
    """The routes of the page, to stand beside those of the API."""
    files = _files()

    async def serve(request: Request) -> Response:
        first = "docs.html" if request.url.path == "/docs" else "index.html"
        file = files.get(request.path_params.get("file", first))
        if file is None:
            raise HTTPException(404, "there is no such page")
        headers = _HEADERS | {"etag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.body, media_type=file.kind, headers=headers)

    return [Route("/", serve), Route("/docs", serve), Route("/page/{file}", serve)]


def _files() -> dict[str, _File]:
    found = {
        entry.name: entry.read_bytes()
        for entry in resources.files("rankloop.serving.dashboard").iterdir()
        if entry.name.rpartition(".")[2] in _KINDS
    }
    return {
        name: _File(
            body, _KINDS[name.rpartition(".")[2]], f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        )
        for name, body in found.items()
    }
