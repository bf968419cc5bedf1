"""The table of items: counts that follow from the log, whatever way it is folded."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from rankloop.serving.http.app import App
from rankloop.serving.item_counts import ItemCounts
from rankloop.serving.log.fold import Fold, Saved
from rankloop.serving.log.records import Decision, unpack
from tests.serving.in_process import ask
from tests.serving.memory_store import MemoryStore
from tests.serving.service import ITEMS, Clock, create, play, rank, rounds, running


async def _table(app: App, more: str = "") -> Any:
    status, told = await ask(app, "GET", f"/v1/rankers/unwind/items{more}")
    assert status == 200, told
    return told


def test_shown_observed_and_estimated() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with running(store) as engine:
            app = App(engine)
            await create(engine)
            await rounds(engine, 40)
            await rank(engine, "unanswered")
            told = await _table(app)
            rows = {row["item"]: row for row in told["items"]}
            assert [row["item"] for row in told["items"]] == engine.rankers["unwind"].fold.current()
            assert [row["place"] for row in told["items"]] == [1, 2, 3, 4, 5]
            assert (told["total"], told["since"]) == (5, 0)
            assert {row["shown"] for row in rows.values()} == {41}
            assert sum(row["observed"] for row in rows.values()) == 40  # feedback is on the top only
            for name, row in rows.items():
                liked = float(name in ("walk", "tea"))
                assert row["positive"] == liked * row["observed"]
                assert row["estimate"] == (liked if row["observed"] else None)
                if row["observed"]:
                    assert 0.0 <= row["low"] <= row["estimate"] <= row["high"] <= 1.0
                    assert row["high"] - row["low"] > 0
            again = await _table(app, "?search=A&sort=name&limit=2")
            assert [row["item"] for row in again["items"]] == ["meditate", "nap"]
            most = await _table(app, "?sort=observed")
            counts = [row["observed"] for row in most["items"]]
            assert counts == sorted(counts, reverse=True)
            await engine.snapshot("unwind")
            await rounds(engine, 3, first=40)
            live = await _table(app)
        async with running(store) as engine:  # from the snapshot, and the rows after it
            assert await _table(App(engine)) == live

    play(story)


def test_wrong_questions_are_refused() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine)
            for path, told, field in (
                ("items?sort=best", "Invalid enum value 'best'", "sort"),
                ("items?limit=0", "Expected `int` >= 1", "limit"),
                ("items?limit=many", "Expected `int`, got `str`", "limit"),
                ("items?serach=x", "unknown field `serach`", "serach"),
                ("series?window=week", "Invalid enum value 'week'", "window"),
                ("events?after=-1", "Expected `int` >= 0", "after"),
            ):
                status, answer = await ask(app, "GET", f"/v1/rankers/unwind/{path}")
                assert (status, answer["error"]["field"]) == (422, field)
                assert told in answer["error"]["message"]

    play(story)


def test_a_snapshot_without_counts_says_since_when() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await rounds(engine, 3)
            saved = msgspec.msgpack.decode(
                msgspec.msgpack.encode(engine.rankers["unwind"].fold.save()), type=dict
            )
            del saved["items"]
            old = msgspec.msgpack.decode(msgspec.msgpack.encode(saved), type=Saved)
            fold = Fold.restore(old)
            assert fold.item_counts.since == 7
            assert fold.state_hash() == engine.rankers["unwind"].fold.state_hash()
            assert fold.item_counts.of(fold.number[ITEMS[0]]) == [0.0] * 5

    play(story)


def test_rankers_with_items_of_each_request_have_no_table() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm="RTopKF", parameters={"n_features": 2})
            features = np.eye(2).tolist()
            await rank(engine, "d", items=["a", "b"], features=features)
            assert (await _table(App(engine)))["items"] == []

    play(story)


def test_the_last_hour_and_day() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            app = App(engine)
            await create(engine)
            await rounds(engine, 5)
            clock.seconds += 7_200.0
            for window, lists in (("all", 5), ("hour", 0), ("day", 5)):
                _, told = await ask(app, "GET", f"/v1/rankers/unwind/series?window={window}")
                assert sum(told["series"]["decisions"]) == lists, window

    play(story)


def test_counts_are_the_plain_sums_whenever_they_are_read() -> None:
    rng = np.random.default_rng(3)
    counts, sums = ItemCounts(), np.zeros((5, 7))
    for i in range(150):
        shown, values = rng.permutation(7), rng.random(rng.integers(1, 7))
        decision = Decision(0, 0, shown.astype("<i4").tobytes(), b"", 0, False)
        counts.shown(decision, n_items=7)
        sums[0, shown] += 1.0
        if i % 3:
            counts.observed(decision, values, n_items=7)
            first = shown[: len(values)]
            for row, term in enumerate((np.ones_like(values), values > 0, values, values * values), 1):
                sums[row, first] += term
        if i % 40 == 7:  # with some waiting
            assert [counts.of(item) for item in range(7)] == sums.T.tolist()
    assert np.array_equal(unpack(counts.save().sums), sums)
