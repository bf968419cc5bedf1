"""Documents of User Behavior Insights (UBI), versions 1.0 to 1.3, as they arrive: searches, and what users did then.

A document carries no version, so it is read by its shape. It is checked by the published schema with two corrections:
`action_name` and `object_id_type` are there "one of" some words and any string, which refuses those words themselves;
here they are any string. Beyond the schema these are accepted: null for what is missing, an empty position, `x` and `y`
without `xy`, `ordinal` beside `xy` or as `{"index": 3}`, `rank` for the ordinal, times since 1970, the camelCase of
Data Prepper, `_source` around a document, and the older names of the hit ids.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

CLICKS = frozenset({"click", "item_click", "product_click"})
IMPRESSIONS = frozenset({"impression", "item_impression", "product_impression"})
NO_ORDINAL = "an impression without an ordinal"
GAPS = "impressions with a position twice or left out"

_ACTIONS = frozenset({"index", "create", "update", "delete"})
_HITS = ("query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids", "doc_ids")
# The longest that each text may be; 0 for no limit.
_TEXTS = {
    **dict.fromkeys(
        (
            *("action_name", "query_id", "session_id", "client_id", "user_id", "application"),
            *("message_type", "object_id_field"),
        ),
        100,
    ),
    "message": 1_024,
    "query_response_id": 0,
}
_OBJECT = {"object_id": 256, "internal_id": 256, "object_id_type": 100, "object_id_field": 100}
_NUMBERS_TOO = {"query_id", "object_id", "internal_id"}  # which some write as a number
_LONGEST_QUERY = 1_024
_SECONDS = 1e11  # a number of seconds since 1970 is below it, one of milliseconds above
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Query(NamedTuple):
    """A search: its words, and the ids of what came back, best first; none where the document does not say.

    propensities: the chance of each id at its position, in what `rankloop export` wrote; else None.
    """

    query_id: str
    user_query: str
    shown: tuple[str, ...]
    application: str = ""
    at: int | None = None  # milliseconds since 1970
    propensities: tuple[float, ...] | None = None


class Event(NamedTuple):
    """What a user did: `action` is "click", "impression", or "" for anything else, which nothing is learnt from."""

    query_id: str
    action: str
    item: str
    ordinal: int | None
    at: int
    event_id: str
    user_query: str = ""
    application: str = ""


class Unknown(ValueError):
    """A document that cannot be used, and why; `field` names what is wrong with it, where that is one field."""

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason)
        self.field = field


def is_action(value: Any) -> bool:
    """Whether a line of a bulk request says what is to be done with the next one.

    >>> is_action({"index": {"_index": "ubi_queries"}}), is_action({"user_query": "tea"})
    (True, False)
    """
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _ACTIONS


def read_document(document: Any) -> Query | Event:
    """A search or an event; `Unknown` for anything else.

    >>> read_document({"queryId": "q1", "userQuery": "tea", "queryResponse": {"queryResponseHitIds": ["7", "9"]}}).shown
    ('7', '9')
    """
    if isinstance(document, dict) and isinstance(document.get("_source"), dict):
        document = document["_source"]
    if not isinstance(document, dict):
        raise Unknown(f"a document must be an object, got {type(document).__name__}")
    fields = {name: value for name, value in _snake(document).items() if value is not None}
    fields |= {name: value for name, value in _part(fields, "query_response").items() if name not in fields}
    if "action_name" not in fields and not {"user_query", *_HITS} & fields.keys():
        raise Unknown("neither a query (user_query) nor an event (action_name)")
    _check_texts(fields, _TEXTS)
    return _event(fields) if "action_name" in fields else _query(fields)


def _snake(document: dict[Any, Any]) -> dict[str, Any]:
    """The same with names such as user_query for userQuery, also in the objects inside that the schema knows."""
    found: dict[str, Any] = {}
    for given, value in document.items():
        name = given if given.islower() else re.sub(r"(?<=[a-z])([A-Z])", r"_\1", given).lower()
        inner = name in ("query_response", "event_attributes", "object", "position")
        found[name] = _snake(value) if inner and isinstance(value, dict) else value
    return found


def _part(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object inside another, without what is null in it."""
    part = fields.get(name) or {}
    if not isinstance(part, dict):
        raise Unknown(f"{name} must be an object, got {part!r:.40}", name)
    return {name: value for name, value in part.items() if value is not None}


def _check_texts(fields: Mapping[str, Any], longest: Mapping[str, int]) -> None:
    for name, most in longest.items():
        value = fields.get(name)
        if value is None:
            continue
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not isinstance(value, str) and not (is_number and name in _NUMBERS_TOO):
            raise Unknown(f"{name} must be text, got {value!r:.40}", name)
        if most and len(str(value)) > most:
            raise Unknown(f"{name} must have at most {most} characters, got {len(str(value))}", name)


def _name(value: Any, field: str) -> str:
    """An id that can name something: text or a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int) or not 0 < len(str(value)) <= 256:
        raise Unknown(
            f"{field} must be text of 1 to 256 characters or a whole number, got {value!r:.40}", field
        )
    if _CONTROL.search(str(value)):
        raise Unknown(f"{field} must not have control characters, got {value!r:.40}", field)
    return str(value)


def _query(fields: Mapping[str, Any]) -> Query:
    hits: Any = next((fields[name] for name in _HITS if name in fields), [])
    if isinstance(hits, str):
        hits = [one.strip() for one in hits.split(",") if one.strip()]
    if not isinstance(hits, list):
        raise Unknown(f"query_response_hit_ids must be a list, got {hits!r:.40}", _HITS[0])
    shown = tuple(_name(one, _HITS[0]) for one in hits)
    if len(set(shown)) < len(shown):
        raise Unknown("query_response_hit_ids must not repeat an id", _HITS[0])
    if "query_id" not in fields:
        raise Unknown("a query without a query_id: no event can be joined to it", "query_id")
    attributes = fields.get("query_attributes")
    chances = attributes.get("propensities") if isinstance(attributes, dict) else None
    at = fields.get("timestamp")
    return Query(
        _name(fields["query_id"], "query_id"),
        _words(fields.get("user_query", "")),
        shown,
        fields.get("application", ""),
        None if at is None else _time(at),
        _chances(chances, len(shown)),
    )


def _chances(given: Any, n: int) -> tuple[float, ...] | None:
    if not isinstance(given, list) or len(given) != n:
        return None
    right = all(isinstance(one, int | float) and not isinstance(one, bool) and 0 < one <= 1 for one in given)
    return tuple(map(float, given)) if right and given else None


def _words(query: Any) -> str:
    """What the user asked; Solr's component may write an object."""
    if isinstance(query, dict):
        query = query.get("query") or query.get("q") or json.dumps(query, sort_keys=True)
    if not isinstance(query, str):
        raise Unknown(f"user_query must be text, got {query!r:.40}", "user_query")
    if len(query) > _LONGEST_QUERY:
        raise Unknown(
            f"user_query must have at most {_LONGEST_QUERY:,} characters, got {len(query):,}", "user_query"
        )
    return query


def _event(fields: Mapping[str, Any]) -> Event:
    attributes = _part(fields, "event_attributes")
    thing, position = _part(attributes, "object"), attributes.get("position")
    _check_texts(thing, _OBJECT)
    name = fields["action_name"].lower()
    action = "click" if name in CLICKS else "impression" if name in IMPRESSIONS else ""
    ordinal = _ordinal(position if position is not None else {}, attributes.get("rank"))
    if "timestamp" not in fields:
        raise Unknown("an event without a timestamp", "timestamp")
    at = _time(fields["timestamp"])
    item, query_id = thing.get("object_id", ""), fields.get("query_id", "")
    if action and item == "":
        raise Unknown(
            f"{'a click' if action == 'click' else 'an impression'} without an object_id", "object_id"
        )
    if action and query_id == "":
        raise Unknown(f"{'a click' if action == 'click' else 'an impression'} without a query_id", "query_id")
    item, query_id = str(item) and _name(item, "object_id"), str(query_id) and _name(query_id, "query_id")
    own = fields.get("event_id")
    return Event(
        query_id,
        action,
        item,
        ordinal,
        at,
        _name(own, "event_id")[:128] if own else event_id(query_id, name, item, ordinal, at),
        _words(fields.get("user_query", "")),
        fields.get("application", ""),
    )


def event_id(query_id: str, action: str, item: str, ordinal: int | None, at: int) -> str:
    """The id of an event that has none: the same for each delivery of it."""
    told = json.dumps([query_id, action, item, ordinal, at])
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


def _ordinal(position: Any, rank: Any) -> int | None:
    found = position.get("ordinal") if isinstance(position, dict) else position
    if isinstance(found, dict):
        found = found.get("index")
    found = rank if found is None else found
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < 1 << 31:
        raise Unknown(f"position.ordinal must be a whole number from 0 on, got {found!r:.40}", "position")
    return found


def _time(given: Any) -> int:
    """Milliseconds since 1970, from a date and time or a number of seconds or milliseconds."""
    if isinstance(given, str) and re.fullmatch(r"\d{9,15}(\.\d+)?", given):
        given = float(given)
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < 1e15:
        return round(given if given >= _SECONDS else given * 1000)
    try:
        when = datetime.fromisoformat(given)
        return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        raise Unknown(
            f"timestamp must be a date and time, or a time since 1970, got {given!r:.40}", "timestamp"
        ) from None


def impressed(seen: Iterable[tuple[int | None, str]], *, first: int) -> list[str]:
    """The list that impressions show, given what their source calls the top position; `Unknown` where they leave gaps.

    >>> impressed([(1, "b"), (0, "a"), (1, "b")], first=0)
    ['a', 'b']
    """
    by_place: dict[int, str] = {}
    for ordinal, item in seen:
        if ordinal is None:
            raise Unknown(NO_ORDINAL)
        if by_place.setdefault(ordinal, item) != item:
            raise Unknown(GAPS)
    shown = [by_place[place] for place in sorted(by_place)]
    if sorted(by_place) != list(range(first, first + len(shown))) or len(set(shown)) < len(shown):
        raise Unknown(GAPS)
    return shown
