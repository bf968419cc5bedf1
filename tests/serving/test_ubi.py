"""UBI over HTTP: lists and clicks of other systems, each once, whatever order and shape they come in."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from rankloop import data
from rankloop.data.ubi import Event, Query, is_action, read_document
from rankloop.serving.admission import Limits, Malformed, TooLarge, Unsupported
from rankloop.serving.api import FeedbackRequest
from rankloop.serving.auth import make_key
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.log.export import answered_lists, export_ubi
from rankloop.serving.stores.sqlite import SQLiteStore
from rankloop.serving.ubi import read_lines
from tests.serving.in_process import ask
from tests.serving.service import ITEMS, Clock, adds_up, create, play, rank, running
from tests.serving.shared_store import Crash, SharedStore
from tests.ubi_schema import takes_event, takes_query

AT = 1_717_200_000_000
FEATURES: dict[str, Any] = {
    "name": "shop",
    "algorithm": "LinTSPBM",
    "parameters": {"n_features": 2, "n_positions": 3},
    "items": ITEMS,
    "features": [[1.0, float(i)] for i in range(len(ITEMS))],
}


def search(query_id: str = "s1", hits: Any = ("tea", "nap", "walk"), **more: Any) -> dict[str, Any]:
    told = {"query_id": query_id, "user_query": "calm", "application": "shop", "timestamp": AT}
    return told | ({} if hits is None else {"query_response_hit_ids": list(hits)}) | more


def event(
    action: str = "click", item: str = "nap", query_id: str = "s1", ordinal: int | None = None, **more: Any
) -> dict[str, Any]:
    thing = {"object": {"object_id": item}, "position": {} if ordinal is None else {"ordinal": ordinal}}
    told = {"action_name": action, "query_id": query_id, "timestamp": AT, "application": "shop"}
    return told | {"event_attributes": thing} | more


async def post(app: App, path: str, body: Any, **more: Any) -> Any:
    status, answer = await ask(app, "POST", path, body, **more)
    if "items" not in answer:
        return status, answer["error"]["code"], answer["error"]["field"]
    return [(one["status"], one["result"]) for item in answer["items"] for one in item.values()]


async def learnt(engine: Engine, name: str = "shop") -> list[tuple[list[str], list[float]]]:
    return [(one.shown, one.values.tolist()) async for one in answered_lists(engine.store, name)]


async def gathered(engine: Engine, clock: Clock, seconds: float = 31.0) -> None:
    clock.seconds += seconds
    for served in engine.rankers.values():
        await engine.housekeeping.expire(served)


def test_the_list_of_another_system_and_its_clicks_are_learnt_once() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            app = App(engine)
            await create(engine, **FEATURES)
            before = engine.rankers["shop"].fold.state_hash()
            for again in (False, True):  # a client that retries
                said = (200, "duplicate") if again else (201, "created")
                assert await post(app, "/ubi_queries", [search()]) == [said]
                assert await post(app, "/ubi_events", [event(), event(item="walk")]) == [said] * 2
            await gathered(engine, clock)
            assert await learnt(engine) == [(["tea", "nap", "walk"], [0.0, 1.0, 1.0])]
            fold = engine.rankers["shop"].fold
            assert (fold.counts.decisions, fold.rounds) == (1, 1)
            assert fold.state_hash() != before
            _, told = await ask(app, "GET", "/v1/rankers/shop/decisions/s1")
            assert (told["propensities"], told["shown_by"]) == (None, "baseline")
            assert told["context"] == {"user_query": "calm"}
            _, told = await ask(app, "GET", "/v1/rankers/shop/explain/s1")
            assert {one["reason"] for one in told["items"]} == {"baseline"}
            await adds_up(engine, "shop")

    play(story)


def test_events_on_a_list_of_the_ranker_itself_are_feedback_on_it() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            app = App(engine)
            await create(engine, **FEATURES)
            shown = await rank(engine, "d1", name="shop", items=ITEMS, context={"user_query": "calm"})
            assert shown.propensities is None or len(shown.propensities) == len(shown.items)
            own = search("d1", None)
            seen = [event("impression", item, "d1", i) for i, item in enumerate(shown.items[:2])]
            click = event(item=shown.items[1], query_id="d1", ordinal=1)
            said = await post(
                app, "/v1/ubi/events", [own, *seen, click, click, event("share", query_id="d1")]
            )
            assert said == [
                (200, "noop"),
                (201, "created"),
                (200, "duplicate"),
                (201, "created"),
                (200, "duplicate"),
                (200, "noop"),
            ]
            await gathered(engine, clock)
            (found,) = await learnt(engine)
            assert found[1][1] == 1.0
            assert sum(found[1]) == 1.0
            _, told = await ask(app, "GET", "/v1/rankers/shop/decisions/d1")
            assert (told["activated"], told["shown_by"]) == (True, "ranker")
            await adds_up(engine, "shop")

    play(story)


@pytest.mark.parametrize("first", [0, 1])
def test_impressions_make_the_list_where_no_ids_came(first: int) -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            app = App(engine)
            await create(engine, **FEATURES)
            shown = ["tea", "nap", "walk"]
            seen = [event("impression", item, ordinal=first + i) for i, item in enumerate(shown)]
            click = event(item="walk", ordinal=first + 2)
            for document in (click, *reversed(seen), search(hits=None)):  # one after another, the click first
                assert await post(app, "/ubi_events", [document]) == [(202, "parked")]
                assert await post(app, "/ubi_events", [document]) == [(200, "duplicate")]
            assert engine.rankers["shop"].fold.waiting.n == 5
            await adds_up(engine, "shop")
            await gathered(engine, clock)
            assert engine.rankers["shop"].fold.waiting.n == 0
            await gathered(engine, clock)
            assert await learnt(engine) == [(shown, [0.0, 0.0, 1.0])]
            _, told = await ask(app, "GET", "/v1/rankers/shop/decisions/s1")
            assert (told["activated"], told["context"]) == (True, {"user_query": "calm"})
            await adds_up(engine, "shop")

    play(story)


def test_a_click_that_comes_before_its_list_waits_for_it() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            app = App(engine)
            await create(engine, **FEATURES)
            assert await post(app, "/ubi_events", [event(), event(item="golf")]) == [(202, "parked")] * 2
            clock.seconds += 20
            assert await post(app, "/ubi_queries", [search()]) == [(201, "created")]
            await gathered(engine, clock)
            assert await learnt(engine) == [(["tea", "nap", "walk"], [0.0, 1.0, 0.0])]
            fold = engine.rankers["shop"].fold
            assert (fold.waiting.n, fold.counts.dead) == (1, 0)
            await gathered(engine, clock)
            await rank(engine, name="shop", items=ITEMS)
            assert (fold.waiting.n, fold.counts.dead) == (0, 1)
            (letter,) = fold.dead
            assert (letter.decision, letter.why) == ("s1", "no list of this search has it")
            await adds_up(engine, "shop")

    play(story)


def test_what_cannot_be_joined_becomes_a_counted_dead_letter() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            app = App(engine)
            await create(engine, **FEATURES)
            documents = [
                event(query_id="gone"),
                *[event("impression", item, "gaps", i) for i, item in ((1, "tea"), (3, "nap"))],
                event("impression", "golf", "strange", 1),
                event("impression", "tea", "nowhere"),
                search("words", None),
            ]
            assert await post(app, "/_bulk", documents) == [(202, "parked")] * 6
            for _ in range(3):
                await gathered(engine, clock)
            await rank(engine, name="shop", items=ITEMS)
            fold = engine.rankers["shop"].fold
            assert (fold.counts.dead, fold.waiting.n, fold.counts.decisions) == (6, 0, 1)
            _, told = await ask(app, "GET", "/v1/rankers/shop/dead-letters")
            assert told["total"] == 6
            assert {(one["decision"], one["why"]) for one in told["newest"]} == {
                ("gone", "no list of this search has it"),
                ("words", "no list of this search has it"),
                ("gaps", "no list can be made of its impressions"),
                ("strange", "no list can be made of its impressions"),
                ("nowhere", "no list can be made of its impressions"),
            }
            await adds_up(engine, "shop")

    play(story)


def test_waiting_documents_survive_a_restart(tmp_path: Any) -> None:
    async def story() -> None:
        clock = Clock()
        for snapshot in (False, True):
            name = f"s{snapshot}"
            async with running(SQLiteStore(tmp_path), clock=clock) as engine:
                if not snapshot:
                    await create(engine, **FEATURES)
                app = App(engine)
                seen = [event("impression", item, name, i) for i, item in enumerate(["tea", "nap", "walk"])]
                await post(app, "/ubi_events", [*seen, event(query_id=name)])
                if snapshot:
                    await engine.housekeeping.snapshot(engine.rankers["shop"])
            async with running(SQLiteStore(tmp_path), clock=clock) as engine:
                assert engine.rankers["shop"].fold.waiting.n == 4
                await gathered(engine, clock)
                await gathered(engine, clock)
                assert (await learnt(engine))[-1] == (["tea", "nap", "walk"], [0.0, 1.0, 0.0])
                await adds_up(engine, "shop")

    play(story)


def test_each_document_of_a_bulk_has_its_status_in_order() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, **FEATURES)
            await create(engine, "unwind")
            lines: list[Any] = [
                {"index": {"_index": "ubi_events", "_id": "1"}},
                event(),  # the search is further down
                {"create": {"_index": "ubi_queries"}},
                {"_source": search()},
                {"delete": {"_index": "ubi_events", "_id": "7"}},
                {"update": {"_id": "7"}},
                {"doc": {}},
                {"index": {}},
                {"colour": "red"},
                event(item="golf"),
                search(hits=["nap", "tea", "walk"]),
                search("s2", ["golf", "tea", "nap"]),
                event(application="other"),
                event(query_id=None),
                {"index": {}},
            ]
            body = "".join(json.dumps(one) + "\n" for one in lines).replace('{"colour"', '{colour"')
            headers = {"content-type": "application/x-ndjson"}
            status, answer = await ask(app, "POST", "/_bulk", body.encode(), headers=headers)
            assert (status, answer["errors"]) == (200, True)
            told = [(name, one["status"]) for item in answer["items"] for name, one in item.items()]
            assert told == [
                ("index", 201),
                ("create", 201),
                ("delete", 422),
                ("update", 422),
                ("index", 400),
                ("index", 422),
                ("index", 409),
                ("index", 422),
                ("index", 404),
                ("index", 422),
                ("index", 400),
            ]
            reasons = [item["index"]["error"]["reason"] for item in answer["items"][4:]]
            assert "is not among the items of decision 's1'" in reasons[1]
            assert reasons[2] == "search 's1' is there already, with another list"
            assert reasons[3] == "'golf' has no stored features"
            assert reasons[4] == "there is no ranker 'other'"
            assert reasons[5] == "a click without a query_id"
            await adds_up(engine, "shop")

    play(story)


def test_a_document_by_itself_is_answered_with_its_own_status() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, **FEATURES)
            said = await post(
                app, "/v1/ubi/queries", search(application="anything")
            )  # there is one ranker only
            assert said == [(201, "created")]
            await create(engine, "unwind")
            for document, status, field in (
                ({"colour": "red"}, 422, None),
                (7, 422, None),
                (event(item="golf"), 422, "item"),
                (event(timestamp="soon"), 422, "timestamp"),
                (event(application="other"), 404, None),
                (search(hits=["tea", "nap", "music"]), 409, "query_id"),
                (search("s2", ["tea", "tea"]), 422, "query_response_hit_ids"),
            ):
                assert (await post(app, "/v1/ubi/events", document))[::2] == (status, field), document
            said = await post(app, "/v1/ubi/events?ranker=other", event())
            assert said == (404, "not_found", None)
            assert await post(app, "/v1/ubi/events?ranker=shop", event(application=None)) == [
                (201, "created")
            ]
            assert (await post(app, "/v1/ubi/events", event(application=None)))[0] == 404

    play(story)


def test_a_body_that_is_none_or_too_much_is_refused_whole() -> None:
    limits = Limits()
    for kind, body, error in (
        (b"application/json", b"", Malformed),
        (b"application/json", b"{", Malformed),
        (b"application/json", b"[]", Malformed),
        (b"text/html", b"{}", Unsupported),
        (b"", b"{}", Unsupported),
        (b"application/x-ndjson", b"{}\n" * 10_000, TooLarge),
    ):
        with pytest.raises(error):
            read_lines(kind, body, limits)

    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, **FEATURES)
            rows = engine.rankers["shop"].fold.applied
            assert (await post(app, "/_bulk", [event(item=f"{i}") for i in range(10_000)]))[0] == 413
            assert engine.rankers["shop"].fold.applied == rows
            said = await post(app, "/_bulk", [event(item=f"{i}") for i in range(1_000)])
            assert said == [(202, "parked")] * 1_000

    play(story)


def test_waiting_documents_are_bounded() -> None:
    async def story() -> None:
        async with running(limits=Limits(parked=3)) as engine:
            app = App(engine)
            await create(engine, **FEATURES)
            for i in range(3):
                assert await post(app, "/ubi_events", [event(query_id=f"q{i}")]) == [(202, "parked")]
            status, code, _ = await post(app, "/ubi_events", event(query_id="q3"))
            assert (status, code) == (429, "busy")
            await adds_up(engine, "shop")

    play(story)


def test_rankers_with_items_take_lists_of_their_items() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            app = App(engine)
            await create(engine, "shop", algorithm="FTRLPBM", items=ITEMS, parameters={"n_positions": 2})
            await create(engine, "grab", algorithm="GRAB", items=ITEMS, parameters={"n_positions": 2})
            assert await post(
                app, "/ubi_queries", [search(), search("s2", ["tea"]), search("s3", ["golf", "tea"])]
            ) == [
                (201, "created"),
                (422, "error"),
                (422, "error"),
            ]
            assert await post(app, "/ubi_events", [event(item="tea")]) == [(201, "created")]
            await gathered(engine, clock)
            assert engine.rankers["shop"].fold.rounds == 0  # it weighs by the chances of its own lists
            assert await learnt(engine) == [(["tea", "nap"], [1.0, 0.0])]
            await adds_up(engine, "shop")

    play(story)


def test_a_key_for_events_reports_for_its_rankers_and_ranks_nothing() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, **FEATURES)
            await create(engine, "unwind")
            key = await make_key(engine.store, role="events", at=1, rankers=["shop"])
            reader = await make_key(engine.store, role="reader", at=1)
            await app.access.refresh(engine.store)
            assert await post(app, "/ubi_queries", [search(application="anything")], key=key) == [
                (201, "created")
            ]
            assert await post(app, "/ubi_events", [event()], key=key) == [(201, "created")]
            assert (await post(app, "/ubi_events?ranker=unwind", [event()], key=key))[0] == 403
            assert (await post(app, "/ubi_events", [event()], key=reader))[0] == 403
            assert (await post(app, "/ubi_events", [event()]))[0] == 401
            assert (await ask(app, "POST", "/v1/rankers/shop/rank", {}, key=key))[0] == 403
            assert (await ask(app, "GET", "/v1/rankers/shop", key=key))[0] == 403

    play(story)


def test_what_is_written_out_is_ubi_with_propensities(tmp_path: Path) -> None:
    async def story() -> None:
        clock = Clock(1_717_200_000.0)
        async with running(clock=clock) as engine:
            app = App(engine)
            await create(engine, "shop", algorithm="FTRLPBM", items=ITEMS, parameters={"n_positions": 3})
            await create(engine, "copy", algorithm="FTRLPBM", items=ITEMS, parameters={"n_positions": 3})
            for i in range(4):
                shown = await rank(engine, f"d{i}", name="shop", context={"user_query": "calm"})
                clock.seconds += 2
                told = FeedbackRequest(f"d{i}", clicked=shown.items[: i % 2])
                await engine.feedback("shop", [told])
            await post(app, "/ubi_queries?ranker=shop", search("foreign"))
            await post(app, "/ubi_events?ranker=shop", event(item="tea", query_id="foreign"))
            await gathered(engine, clock)
            path = tmp_path / "shop.ndjson"
            assert await export_ubi(engine.store, "shop", path) == 5
            documents = [json.loads(line) for line in path.read_text().splitlines()]
            assert [is_action(one) for one in documents] == [True, False] * (len(documents) // 2)
            for one in documents[1::2]:
                is_event = "action_name" in one
                assert takes_event(one, corrected=True) if is_event else takes_query(one), one
            read = [read_document(one) for one in documents[1::2]]
            searches = {one.query_id: one for one in read if isinstance(one, Query)}
            assert searches["foreign"].propensities is None
            for i in range(4):
                one = searches[f"d{i}"]
                listed = await ask(app, "GET", f"/v1/rankers/shop/decisions/d{i}")
                assert list(one.propensities or ()) == listed[1]["propensities"]
                assert (list(one.shown), one.user_query, one.application) == (
                    listed[1]["items"],
                    "calm",
                    "shop",
                )
            clicks = [one for one in read if isinstance(one, Event) and one.action == "click"]
            assert [(one.query_id, one.ordinal) for one in clicks] == [("d1", 0), ("d3", 0), ("foreign", 0)]
            assert clicks[0].at == searches["d1"].at + 2_000  # type: ignore[operator]
            assert (await ask(app, "GET", "/v1/rankers/shop/export?format=ubi"))[1] == path.read_text()
            # Another ranker takes it in, as what another system ordered; so does whoever reads the file.
            said = await post(
                app, "/_bulk?ranker=copy", path.read_bytes(), headers={"content-type": "text/plain"}
            )
            assert {status for status, _ in said} == {200, 201}
            assert engine.rankers["copy"].fold.counts.decisions == 5
            lists = data.read_logged_lists(path)
            assert (lists.n_rows, lists.clicks.sum()) == (4, 2)
            assert lists.propensities is not None
            assert data.read_sessions(path).n_rows == 5
            with pytest.raises(ValueError, match="there is no folder"):
                await export_ubi(engine.store, "shop", tmp_path / "no" / "x")

    play(story)


def test_documents_that_come_to_different_replicas_are_joined_once() -> None:
    async def story() -> None:
        store, clock = SharedStore(), Clock(2_000_000.0)
        engines = [Engine(store, clock=clock, housekeeping=False) for _ in range(2)]
        for engine in engines:
            await engine.open()
        one, other = map(App, engines)
        await create(engines[0], **FEATURES)
        seen = [event("impression", item, ordinal=i) for i, item in enumerate(["tea", "nap", "walk"])]
        for i, document in enumerate([*seen, event(), search("s2", None), event(query_id="s2")]):
            for app in (one, other) if i % 2 else (other, one):  # a client that tries both
                said = await post(app, "/ubi_events", [document])
                assert said[0][0] in (200, 202)
        assert (await post(other, "/ubi_queries", [search("s2")])) == [(201, "created")]
        for _ in range(4):
            clock.seconds += 16
            for engine in engines:
                await engine.housekeeping.tick()
        folds = [(await engine.find("shop")).fold for engine in engines]
        assert [(fold.counts.decisions, fold.rounds, fold.waiting.n) for fold in folds] == [(2, 2, 0)] * 2
        assert folds[0].state_hash() == folds[1].state_hash()
        shown = ["tea", "nap", "walk"]
        assert sorted(await learnt(engines[0])) == [(shown, [0.0, 1.0, 0.0])] * 2
        await adds_up(engines[0], "shop")
        for engine in engines:
            await engine.close()

    play(story)


@pytest.mark.parametrize("crash", ["before", "after"])
@pytest.mark.parametrize("at", range(6))
def test_a_crash_at_any_write_loses_and_doubles_nothing(crash: str, at: int) -> None:
    """The client sends again what was not answered; what was waiting is joined by whoever comes next."""

    async def story() -> None:
        store, clock = SharedStore(), Clock(2_000_000.0)
        seen = [event("impression", item, ordinal=i) for i, item in enumerate(["tea", "nap", "walk"])]
        async with running(store, clock=clock) as engine:
            await create(engine, **FEATURES)
        to_send: list[Any] = [[seen[0], event()], seen[1:]]
        for step in range(8):
            # Another process each time; the one of this step is killed while it writes, where it does.
            engine = Engine(store, clock=clock, housekeeping=False, limits=Limits(store_seconds=0.2))
            await engine.open()
            store.crash = crash if step == at else None
            with contextlib.suppress(Crash):
                if step < 6 and to_send:
                    await post(App(engine), "/ubi_events", to_send[0])
                else:
                    clock.seconds += 16
                    served = await engine.find("shop")
                    await engine.housekeeping.hold_leases()
                    await engine.housekeeping.expire(served)
            crashed = step == at and store.crash is None
            store.crash = None
            if not crashed:
                to_send = to_send[1:]
            with contextlib.suppress(Crash):
                await engine.close()
        async with running(store, clock=clock) as engine:
            for _ in range(4):
                clock.seconds += 16
                await engine.find("shop")
                await engine.housekeeping.tick()
            fold = (await engine.find("shop")).fold
            assert (fold.counts.decisions, fold.rounds, fold.waiting.n, fold.counts.dead) == (1, 1, 0, 0)
            assert await learnt(engine) == [(["tea", "nap", "walk"], [0.0, 1.0, 0.0])]
            await adds_up(engine, "shop")

    play(story)


def test_clicks_are_gathered_until_the_deadline_where_the_policy_says_so() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            app = App(engine)
            await create(engine, **FEATURES, policy={"answers": "union", "deadline_seconds": 100.0})
            await post(app, "/_bulk", [search(), event()])
            await gathered(engine, clock, 60.0)
            assert await post(app, "/ubi_events", [event(item="tea")]) == [(201, "created")]
            assert await learnt(engine) == []
            await gathered(engine, clock, 60.0)
            assert await learnt(engine) == [(["tea", "nap", "walk"], [1.0, 1.0, 0.0])]
            assert await post(app, "/ubi_events", [event(item="walk")]) == [(200, "late")]
            await adds_up(engine, "shop")

    play(story)


def test_nothing_waits_where_the_policy_does_not_park() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, **FEATURES, policy={"parking_seconds": 0.0})
            assert await post(app, "/ubi_events", [event()]) == [(200, "unknown")]
            fold = engine.rankers["shop"].fold
            assert (fold.counts.dead, fold.waiting.n) == (1, 0)
            await adds_up(engine, "shop")

    play(story)


def test_a_comparison_takes_events_on_its_lists_and_no_lists_of_others() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, "trial", algorithm="Comparison", parameters={"rankings": ["old", "new"]})
            orders = {"old": ["tea", "nap", "walk"], "new": ["nap", "tea", "walk"]}
            shown = await rank(engine, "d1", name="trial", rankings=orders)
            assert await post(app, "/ubi_events", [event(item=shown.items[0], query_id="d1")]) == [
                (201, "created")
            ]
            assert await post(app, "/ubi_queries", [search()]) == [(422, "error")]
            await adds_up(engine, "trial")

    play(story)
