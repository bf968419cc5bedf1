"""Where the page is served from: `/` and what it needs. It talks to the same API as everybody else."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route


def page_routes() -> list[BaseRoute]:
    """The routes of the page, to stand beside those of the API."""
    return [Route("/", _front)]


async def _front(request: Request) -> Response:
    return PlainTextResponse("rankloop serves here. The API is described in /openapi.json.\n")
