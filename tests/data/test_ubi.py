"""Documents of UBI as they really arrive, and what the published schema says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rankloop import data
from rankloop.data.ubi import Event, Query, Unknown, impressed, is_action, read_document
from tests import ubi_schema

AT = 1_717_200_000_000
TIME = "2024-06-01T00:00:00.000Z"


def event(action: str = "click", **more: Any) -> dict[str, Any]:
    told = {"action_name": action, "query_id": "q1", "timestamp": TIME}
    thing = {"object": {"object_id": "7"}, "position": {"ordinal": 1}}
    return told | {"event_attributes": thing} | more


def attributes(position: Any = None, item: Any = "7", **more: Any) -> dict[str, Any]:
    return {"event_attributes": {"object": {"object_id": item}, "position": position} | more}


def typed(kind: str) -> dict[str, Any]:
    thing = {"object": {"object_id": "7", "object_id_type": kind}, "position": {"ordinal": 1}}
    return {"event_attributes": thing}


@pytest.mark.parametrize(
    ("document", "original", "corrected"),
    [
        *((event(action), False, True) for action in ubi_schema.ACTIONS),
        (event("item_click"), True, True),
        (event("share"), True, True),
        (event("item_click", **typed("product")), False, True),
        (event("item_click", **typed("sku")), True, True),
        (event("item_click", **attributes({})), False, False),  # the sample of the schema itself
        (event("item_click", **attributes({"x": 1, "y": 2})), False, False),
        (event("item_click", **attributes({"xy": {"x": 1, "y": 2}})), True, True),
        (event("item_click", **attributes({"xy": {"x": 1, "y": 2}, "ordinal": 1})), False, False),
        (event("item_click", **attributes({"ordinal": {"index": 1}})), False, False),
        (event("item_click", user_id=None), False, False),
        (event("item_click", timestamp=AT), False, False),
    ],
)
def test_events_that_the_published_schema_refuses_are_read(
    document: dict[str, Any], original: bool, corrected: bool
) -> None:
    """Each of them is a real one: see the words on the schema in `rankloop.data.ubi`."""
    assert ubi_schema.takes_event(document) == original
    assert ubi_schema.takes_event(document, corrected=True) == corrected
    read = read_document(document)
    assert isinstance(read, Event)
    clicks = {"click": "click", "item_click": "click", "impression": "impression"}
    assert read.action == clicks.get(document["action_name"], "")


@pytest.mark.parametrize(
    ("more", "ordinal"),
    [
        (attributes({"ordinal": 3}), 3),  # 1.3
        (attributes({"ordinal": {"index": 3}}), 3),  # 1.2
        (attributes({}), None),  # the sample of the schema itself
        (attributes(None), None),
        (attributes({"x": 1, "y": 2}), None),
        (attributes({"xy": {"x": 1, "y": 2}, "ordinal": 0}), 0),
        (attributes(rank=4), 4),  # the data generator of OpenSearch
        (attributes(2), 2),
        (attributes({"ordinal": 3}, item=7), 3),
        (attributes({"ordinal": 3}) | {"message": None, "user_id": None, "message_type": None}, 3),
        (attributes({"ordinal": 3}) | {"colour": {"of": ["the", "page"]}}, 3),
    ],
)
def test_what_arrives_is_read(more: dict[str, Any], ordinal: int | None) -> None:
    read = read_document(event(**more))
    assert isinstance(read, Event)
    assert (read.query_id, read.item, read.ordinal, read.at) == ("q1", "7", ordinal, AT)


@pytest.mark.parametrize(
    "given", [AT, AT / 1000, str(AT), TIME, "2024-06-01T02:00:00+02:00", "2024-06-01T00:00:00"]
)
def test_times_of_all_kinds_are_read(given: Any) -> None:
    assert read_document(event(timestamp=given)).at == AT


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        ({"query_id": "q", "user_query": "tea", "query_response_hit_ids": ["b", 7]}, ("b", "7")),
        ({"query_id": "q", "user_query": "tea", "query_response_object_ids": ["b"]}, ("b",)),
        ({"query_id": "q", "user_query": {"query": "tea"}, "doc_ids": "b, a"}, ("b", "a")),
        ({"query_id": "q", "user_query": "tea", "query_response_hit_ids": None}, ()),
        ({"query_id": "q", "user_query": "tea"}, ()),
        ({"_id": "1", "_source": {"query_id": "q", "user_query": "tea", "doc_ids": "a"}}, ("a",)),
        (
            {
                "queryId": "q",
                "userQuery": "tea",
                "queryAttributes": {"camelCase": 1},
                "queryResponse": {"queryId": "q", "queryResponseId": "r", "queryResponseHitIds": ["a"]},
                "timestamp": AT,
            },
            ("a",),
        ),
    ],
)
def test_searches_of_all_versions_are_read(document: dict[str, Any], shown: tuple[str, ...]) -> None:
    read = read_document(document)
    assert isinstance(read, Query)
    assert (read.query_id, read.user_query, read.shown, read.propensities) == ("q", "tea", shown, None)


QUERY = {"query_id": "q", "user_query": "tea"}


@pytest.mark.parametrize(
    ("document", "told", "field"),
    [
        (7, "a document must be an object, got int", None),
        ({"_source": 7}, "neither a query", None),
        ({"colour": "red"}, "neither a query", None),
        (event(action_name=7), "action_name must be text, got 7", "action_name"),
        (event("x" * 101), "action_name must have at most 100 characters, got 101", "action_name"),
        (event(client_id=["a"]), "client_id must be text", "client_id"),
        (event(message="x" * 1025), "message must have at most 1024", "message"),
        (event(timestamp="soon"), "timestamp must be a date and time", "timestamp"),
        (event(timestamp=True), "timestamp must be", "timestamp"),
        (event(timestamp=-1), "timestamp must be", "timestamp"),
        (event(timestamp=None), "an event without a timestamp", "timestamp"),
        (event(query_id=None), "a click without a query_id", "query_id"),
        (event("impression", query_id=""), "an impression without a query_id", "query_id"),
        (event(event_attributes=[]), "event_attributes must be an object", None),
        (event(event_attributes="x"), "event_attributes must be an object", "event_attributes"),
        (event(event_attributes={}), "a click without an object_id", "object_id"),
        (event(**attributes({"ordinal": -1})), "position.ordinal must be a whole number", "position"),
        (event(**attributes({"ordinal": "1"})), "position.ordinal must be a whole number", "position"),
        (event(**attributes({"ordinal": True})), "position.ordinal must be a whole number", "position"),
        (event(**attributes(item="x" * 257)), "object_id must have at most 256", "object_id"),
        (event(**attributes(item="a\nb")), "object_id must not have control characters", "object_id"),
        (event(**attributes(item=[1])), "object_id must be text", "object_id"),
        ({"user_query": "tea"}, "a query without a query_id", "query_id"),
        (QUERY | {"user_query": 7}, "user_query must be text", "user_query"),
        (QUERY | {"user_query": "x" * 5000}, "user_query must have at most 1,024", "user_query"),
        (QUERY | {"query_response_hit_ids": {"a": 1}}, "must be a list", "query_response_hit_ids"),
        (QUERY | {"query_response_hit_ids": ["a", "a"]}, "must not repeat an id", "query_response_hit_ids"),
        (QUERY | {"query_response_hit_ids": [None]}, "must be text of 1", "query_response_hit_ids"),
    ],
)
def test_what_is_no_document_is_told(document: Any, told: str, field: str | None) -> None:
    if field is None and document == event(event_attributes=[]):
        told = "a click without an object_id"
    with pytest.raises(Unknown, match=told) as caught:
        read_document(document)
    if field is not None:
        assert caught.value.field == field


def test_the_same_event_has_the_same_id_and_another_has_another() -> None:
    ids = {
        read_document(one).event_id  # type: ignore[union-attr]
        for one in (
            event(),
            event(timestamp=AT),
            event(session_id="s"),
            event(timestamp=AT + 1),
            event("impression"),
            event(query_id="q2"),
            event(**attributes({"ordinal": 1}, item="8")),
            event(**attributes({"ordinal": 2})),
        )
    }
    assert len(ids) == 6
    assert read_document(event(event_id="mine")).event_id == "mine"  # type: ignore[union-attr]


def test_lines_that_say_what_to_do_are_no_documents() -> None:
    assert is_action({"index": {"_index": "ubi_events", "_id": "1"}})
    assert not is_action({"index": 1, "user_query": "x"})


def test_impressions_by_ordinal() -> None:
    assert impressed([(3, "c"), (1, "a"), (2, "b"), (2, "b")], first=1) == ["a", "b", "c"]
    for seen in ([(1, "a"), (3, "c")], [(2, "b")], [(1, "a"), (1, "b")], [(1, "a"), (2, "a")]):
        with pytest.raises(Unknown, match="twice or left out"):
            impressed(seen, first=1)
    with pytest.raises(Unknown, match="without an ordinal"):
        impressed([(None, "a")], first=1)


def generated() -> list[dict[str, Any]]:
    """As the data generator of OpenSearch writes it: action lines, no hit ids, ranks from 0, null messages."""
    lines: list[dict[str, Any]] = []
    for query_id, words, shown, clicked in (("s1", "tea", "abc", "c"), ("s2", "cup", "ba", "")):
        lines += [
            {"index": {"_index": "ubi_queries", "_id": query_id}},
            {"query_id": query_id, "user_query": words, "application": "esci", "timestamp": TIME},
        ]
        for action, items in (("impression", shown), ("click", clicked)):
            for item in items:
                thing = {"object": {"object_id": item, "object_id_field": "id"}, "rank": shown.index(item)}
                lines += [
                    {"index": {"_index": "ubi_events", "_id": f"{query_id}{action}{item}"}},
                    event(
                        action, query_id=query_id, application="esci", message=None, event_attributes=thing
                    ),
                ]
    return lines


@pytest.mark.parametrize("as_array", [False, True])
def test_the_sample_data_of_opensearch_is_read(as_array: bool, tmp_path: Path) -> None:
    path = tmp_path / "ubi_queries_events.ndjson"
    lines = generated()
    text = json.dumps(lines, indent=1) if as_array else "".join(json.dumps(one) + "\n" for one in lines)
    path.write_text(text)
    shape = "ubi" if as_array else None
    pages = data.read_sessions(path, format=shape)
    assert pages.query_ids == ("tea", "cup")
    assert [[pages.item_ids[i] for i in page if i >= 0] for page in pages.items] == [list("abc"), list("ba")]
    assert pages.clicks.tolist() == [[0, 0, 1], [0, 0, 0]]
    assert not pages.bad_rows
    assert data.read_clicks(path, format=shape).clicked.sum() == 1
    assert list(data.read_lists(path, format=shape, query="tea")) == [
        {"items": list("abc"), "clicks": [0, 0, 1], "query": "tea"}
    ]
    with pytest.raises(ValueError, match="no row to read; bad rows: 2 with a list without propensities"):
        data.read_logged_lists(path, format=shape)


def write(path: Path, documents: list[Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in documents))
    return path


def test_what_cannot_be_joined_is_counted(tmp_path: Path) -> None:
    hits = {"query_response_hit_ids": ["a", "b"]}
    one = {"query_id": "s1", "user_query": "tea"}
    seen = [event("impression", query_id="s2", **attributes({"ordinal": n}, item=f"{n}")) for n in (1, 3)]
    path = write(
        tmp_path / "ubi.json",
        [
            one | hits,
            one,  # the page's own document about the search that the engine recorded
            one | {"query_response_hit_ids": ["c"]},
            *seen,
            event("impression", query_id="s1", **attributes({"ordinal": 1}, item="z")),  # hit ids come first
            event("impression", query_id="s3", event_attributes={"object": {"object_id": "a"}}),
            {"query_id": "s4", "user_query": "cup"},
            event(query_id="s1", **attributes(item="b")),
            event(query_id="s1", **attributes(item="x")),
            event(query_id="s9"),
            event(timestamp="soon"),
            "neither",
        ],
    )
    pages = data.read_sessions(path, format="ubi")
    assert (pages.n_rows, pages.clicks.tolist()) == (1, [[0, 1]])
    assert pages.bad_rows == {
        "a query_id that was used for another list": 1,
        "impressions with a position twice or left out": 1,
        "an impression without an ordinal": 1,
        "nothing shown": 1,
        "a click on an id that was not shown": 1,
        "a click of a query that is not in the log": 1,
        "timestamp must be a date and time, or a time since 1970": 1,
        "a document must be an object": 1,
    }


def test_files_of_ubi_are_not_mixed_with_others(tmp_path: Path) -> None:
    write(tmp_path / "a.json", generated())
    (tmp_path / "b.csv").write_text("item,position,click\na,1,0\n")
    with pytest.raises(ValueError, match="files of UBI and of csv cannot be read together"):
        data.read_sessions(tmp_path)
    (tmp_path / "b.csv").unlink()
    (tmp_path / "a.json").write_text('{"user_query": "x", "query_id": "1"}\n{"user_query"\n')
    with pytest.raises(ValueError, match=r"a.json, line 2: not JSON"):
        data.read_sessions(tmp_path)


def test_lists_with_propensities_can_be_evaluated(tmp_path: Path) -> None:
    shown = {"query_id": "s1", "user_query": "tea", "query_response_hit_ids": ["a", "b"]}
    (tmp_path / "log").mkdir()
    write(
        tmp_path / "log" / "queries.json",
        [shown | {"query_attributes": {"propensities": [0.5, 0.25]}}, shown | {"query_id": "s2"}],
    )
    write(tmp_path / "log" / "events.json", [event(query_id="s1", **attributes(item="b"))])
    lists = data.read_logged_lists(tmp_path / "log")
    assert lists.propensities is not None
    assert (lists.propensities.tolist(), lists.clicks.tolist()) == ([[0.5, 0.25]], [[0, 1]])
    assert lists.bad_rows == {"a list without propensities": 1}
