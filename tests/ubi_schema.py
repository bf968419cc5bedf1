"""What the published schema of UBI 1.3 asks of events and searches, as far as rankloop reads them, in our own words.

Two of its rules are "one of some words, or any text", where exactly one must hold: so the words themselves are refused.
With `corrected` any one is enough.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

ACTIONS = ("click", "impression", "view", "watch", "purchase", "add_to_cart")
OBJECT_TYPES = ("product",)
SHORT = (
    *("query_id", "session_id", "client_id", "user_id", "application", "message_type"),
    "object_id_field",
)


def _is_text(value: Any, most: int | None = None) -> bool:
    return isinstance(value, str) and (most is None or len(value) <= most)


def _one_of(value: Any, words: tuple[str, ...], *, corrected: bool) -> bool:
    holds = [value in words, _is_text(value, 100)]
    return any(holds) if corrected else sum(holds) == 1


def _is_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


def _common(document: dict[str, Any]) -> bool:
    return all(_is_text(document[name], 100) for name in SHORT if name in document)


def takes_event(event: dict[str, Any], *, corrected: bool = False) -> bool:
    """Whether the schema takes an event."""
    if not (
        _one_of(event.get("action_name"), ACTIONS, corrected=corrected) and _is_time(event.get("timestamp"))
    ):
        return False
    if not _common(event) or not _is_text(event.get("message", ""), 1024):
        return False
    attributes = event.get("event_attributes", {"position": {"ordinal": 1}})
    if not isinstance(attributes, dict) or not isinstance(position := attributes.get("position"), dict):
        return False
    whole = isinstance(position.get("ordinal"), int)
    point = isinstance(position.get("xy"), dict) and {"x", "y"} <= position["xy"].keys()
    if whole + point != 1 or ("ordinal" in position) != whole:
        return False
    thing = attributes.get("object", {"object_id": ""})
    if not (isinstance(thing.get("object_id"), int) or _is_text(thing.get("object_id"), 256)):
        return False
    kind = thing.get("object_id_type", "other")
    return _one_of(kind, OBJECT_TYPES, corrected=corrected)


def takes_query(query: dict[str, Any]) -> bool:
    """Whether the schema takes a search."""
    hits = query.get("query_response_hit_ids", [])
    return (
        _is_text(query.get("user_query"))
        and _common(query)
        and _is_time(query.get("timestamp", "2026-01-01T00:00:00Z"))
        and isinstance(query.get("query_attributes", {}), dict)
        and isinstance(hits, list)
        and all(map(_is_text, hits))
    )
