"""Where the page is served from: `/` and what it needs. It talks to the same API as everybody else."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from importlib import resources
from pathlib import Path
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
        file = files.get(request.path_params.get("file", "index.html"))
        if file is None:
            raise HTTPException(404, "there is no such page")
        headers = _HEADERS | {"etag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.body, media_type=file.kind, headers=headers)

    return [Route("/", serve), Route("/page/{file}", serve)]


def _files() -> dict[str, _File]:
    found = {
        entry.name: entry.read_bytes()
        for entry in resources.files("rankloop.serving.dashboard").iterdir()
        if entry.name.rpartition(".")[2] in _KINDS
    }
    d3 = find_d3()
    if d3 is not None:
        found["d3.js"] = d3.read_bytes()
    return {
        name: _File(
            body, _KINDS[name.rpartition(".")[2]], f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        )
        for name, body in found.items()
    }


def find_d3() -> Path | None:
    """D3 as the package mpld3 carries it, the newest where it carries several; None where it is not installed.

    The package is only looked for, not imported: that would load matplotlib.

    >>> find_d3().name
    'd3.v5.min.js'
    """
    spec = importlib.util.find_spec("mpld3")
    if spec is None or spec.origin is None:
        return None
    found = {
        int(match[1]): path
        for path in (Path(spec.origin).parent / "js").glob("d3.v*.min.js")
        if (match := re.fullmatch(r"d3\.v(\d+)\.min\.js", path.name))
    }
    return found[max(found)] if found else None
