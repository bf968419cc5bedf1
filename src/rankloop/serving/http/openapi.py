"""The OpenAPI description, made from the same table and the same types that serve and check."""

from __future__ import annotations

import inspect
import re
from typing import Any

import msgspec

from rankloop import __version__
from rankloop.serving.api import ErrorAnswer
from rankloop.serving.http.endpoints import ENDPOINTS, Endpoint

_ERRORS = {
    400: "The body cannot be read",
    401: "A key is needed",
    403: "The key's role does not allow this",
    404: "Not found",
    405: "Not with this method",
    408: "The body did not arrive in time",
    409: "The ID is used for something else",
    413: "Too large",
    415: "Not JSON and not msgpack",
    422: "The request is well-formed but not valid",
    429: "Too busy: try again after Retry-After seconds",
    503: "The store cannot write now",
}
_SECTION = re.compile(r"\n+Parameters\n-+\n")
_FIELD = re.compile(r"^(\w+(?:, \w+)*) : .*\n((?:    .*\n?)+)", re.MULTILINE)
_PLAIN = {
    "/livez": "The process is running",
    "/readyz": "It can rank and write",
    "/metrics": "Numbers for Prometheus",
}


def describe() -> dict[str, Any]:
    """The whole description."""
    types = [ErrorAnswer]
    for endpoint in ENDPOINTS:
        types += [one for one in (endpoint.request, endpoint.answer) if one is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for component in components.values():
        _describe_fields(component)
    schema_of = {repr(one): schema for one, schema in zip(types, schemas, strict=True)}
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schema_of)
    for path, summary in _PLAIN.items():
        paths[path] = {
            "get": {
                "summary": summary,
                "operationId": path.strip("/"),
                "security": [],
                "responses": {
                    "200": {
                        "description": summary,
                        "content": {"text/plain": {"schema": {"type": "string"}}},
                    },
                    **{str(code): _error(code) for code in (401, 403, 405, 503)},
                },
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rankloop",
            "version": __version__,
            "description": "Request a list, show it, and report the feedback; the ranker learns from it.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }


def _describe_fields(component: dict[str, Any]) -> None:
    """Let what a docstring says of its fields stand beside them."""
    text, *section = _SECTION.split(inspect.cleandoc(component.get("description", "")), maxsplit=1)
    component["description"] = text
    for names, words in _FIELD.findall("".join(section)):
        for name in names.split(", "):
            component["properties"][name]["description"] = " ".join(words.split())


def _operation(endpoint: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "summary": endpoint.summary,
        "description": f"Needs the role {endpoint.role} where there are keys.",
        "operationId": endpoint.handle.__name__.strip("_"),
        "responses": {
            "200": {"description": "Done", "content": _content(schema_of[repr(endpoint.answer)])},
            **{str(code): _error(code) for code in _ERRORS},
        },
    }
    if endpoint.method == "POST" and endpoint.path == "/v1/rankers":
        told["responses"]["201"] = {
            "description": "Made",
            "content": _content(schema_of[repr(endpoint.answer)]),
        }
    if endpoint.request is not None:
        told["requestBody"] = {"required": True, "content": _content(schema_of[repr(endpoint.request)])}
    names = re.findall(r"\{(\w+)\}", endpoint.path)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in names
    ]
    parameters += [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in endpoint.query
    ]
    if parameters:
        told["parameters"] = parameters
    return told


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}, "application/msgpack": {"schema": schema}}


def _error(code: int) -> dict[str, Any]:
    return {
        "description": _ERRORS[code],
        "content": _content({"$ref": "#/components/schemas/ErrorAnswer"}),
    }
