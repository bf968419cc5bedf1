"""Replicas on one store, asked in whatever order: never wrong, only slower. And who looks after which ranker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rankloop.serving.admission import Limits, NotFound, Unavailable
from rankloop.serving.api import ActivateRequest, FeedbackRequest, ItemsRequest, PromoteRequest
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import StoreError
from tests.serving.in_process import ask
from tests.serving.service import ITEMS, Clock, answer, create, play, rank, rounds
from tests.serving.shared_store import SharedStore

SECONDS = 2_000_000.0  # since 1970: long after any lease could have run out


class Watched(SharedStore):
    """Counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.away = False

    async def heads(self, names: set[str] | None = None) -> Any:
        self.asked += 1
        if self.away:
            raise StoreError("the database is away")
        return await super().heads(names)


@contextlib.asynccontextmanager
async def replicas(n: int = 2, **settings: Any) -> AsyncIterator[tuple[Watched, Clock, list[Engine]]]:
    """Engines without anything in the background, on one store and one clock that stands still."""
    store, clock = Watched(), Clock(SECONDS)
    engines = [Engine(store, clock=clock, housekeeping=False, **settings) for _ in range(n)]
    for engine in engines:
        await engine.open()
    yield store, clock, engines
    for engine in engines:
        await engine.close()


def test_what_is_not_asked_for_is_not_folded() -> None:
    async def story() -> None:
        async with replicas() as (_, _, (one, other)):
            for name in ("a", "b", "c"):
                await create(one, name)
            assert other.ready
            assert not other.rankers
            assert (await rank(other, "d", name="b")).model_seq == 1
            assert list(other.rankers) == ["b"]
            await other.housekeeping.take_in_news()
            await other.housekeeping.tick()
            assert list(other.rankers) == ["b"]
            status, told = await ask(App(other), "GET", "/v1/rankers")  # who asks for all is told of all
            assert (status, [ranker["name"] for ranker in told["rankers"]]) == (200, ["a", "b", "c"])

    play(story)


def test_a_list_and_its_feedback_may_go_to_different_replicas() -> None:
    async def story() -> None:
        async with replicas() as (store, _, (one, other)):
            await create(one)
            await rank(other, "first")
            for i in range(6):
                asked, told = (one, other) if i % 2 else (other, one)
                shown = await rank(asked, f"d{i}")
                assert (await rank(told, f"d{i}")).items == shown.items
                await told.activate("unwind", ActivateRequest(f"d{i}"))
                assert (await answer(told, f"d{i}")).learnt
                assert (await answer(asked, f"d{i}")).duplicate
            assert (await answer(other, "first")).learnt
            states = {(await engine.find("unwind")).fold.state_hash() for engine in (one, other)}
            verdict = await verify(store, "unwind")
            assert verdict.holds, verdict.problems
            assert states == {verdict.state_hash}
            assert verdict.learnt == 7

    play(story)


def test_nobody_is_shown_a_list_from_before_a_change() -> None:
    """Whichever replica made it, at once, and without a word between the two."""

    async def story() -> None:
        async with replicas() as (_, _, (one, other)):
            await create(one)
            await rank(other, "before")
            for i, item in enumerate(ITEMS[:2]):
                await one.change_items("unwind", ItemsRequest([], [item]))
                shown = await rank(other, f"retired {i}")
                assert item not in shown.items
                # What it knows of the items is what counts when somebody changes them there.
                await other.change_items("unwind", ItemsRequest([item], []))
                assert item in (await rank(one, f"back {i}")).items
            own = sorted(ITEMS)
            for i in range(20):
                await one.promote("unwind", PromoteRequest(float(i % 2 == 0)))
                shown = await rank(other, f"trial {i}", baseline=own)
                assert i % 2 == 0 or shown.items == own

    play(story)


def test_a_change_spoils_no_batch() -> None:
    """Lists of another ranker, and of the same one drawn after the change, are written with it or right after."""

    async def story() -> None:
        async with replicas() as (_, _, (one, other)):
            for name in ("a", "b"):
                await create(one, name)
                await rank(other, "first", name=name)
            await one.change_items("a", ItemsRequest([], ["tea"]))
            shown = await asyncio.gather(
                *(rank(other, f"d{i}", name="ab"[i % 2]) for i in range(8)), answer(other, "first", name="a")
            )
            assert all(("tea" in one.items) == (i % 2 == 1) for i, one in enumerate(shown[:8]))
            assert shown[8].learnt

    play(story)


def test_a_ranker_that_another_one_made_or_archived() -> None:
    async def story() -> None:
        async with replicas(limits=Limits(rankers=2)) as (_, _, (one, other)):
            with pytest.raises(NotFound):
                await rank(other, "d")
            await create(one)
            await rank(other, "d")
            await create(other, "second")
            with pytest.raises(Exception, match="limit reached: 2 rankers"):  # of all replicas together
                await create(one, "third")
            await one.archive("unwind")
            with pytest.raises(NotFound):
                await rank(other, "e")
            await create(one, algorithm="FTPL")
            assert (await other.find("unwind")).fold.config.algorithm == "FTPL"
            await rank(other, "d")

    play(story)


def test_alone_it_hardly_looks_and_in_company_each_time() -> None:
    async def story() -> None:
        async with replicas() as (store, clock, (one, other)):
            await create(one)
            await rank(one)
            store.asked = 0
            for _ in range(50):
                clock.seconds += 0.01
                await rank(one)
            assert store.asked == 0  # what it writes tells that nobody else does
            clock.seconds += 1
            await rank(one)
            assert store.asked == 1
            await rank(other, "d")
            await answer(one, "d")  # which tells it that somebody else writes
            for _ in range(3):
                shown = await rank(one)
                assert shown.model_seq == await store.last_seq("unwind") - 1
                await rank(other)
            store.asked = 0
            clock.seconds += 11
            for _ in range(50):
                clock.seconds += 0.01
                await rank(one)
            assert store.asked <= 1

    play(story)


def test_the_store_is_away() -> None:
    """What a replica has at hand it goes on with; what it has not, it cannot serve."""

    async def story() -> None:
        async with replicas() as (store, clock, (one, other)):
            await create(one)
            await rank(one)
            store.away = True
            clock.seconds += 1
            assert (await one.find("unwind")).name == "unwind"
            with pytest.raises(Unavailable, match="the database is away"):
                await rank(other)
            store.away = False
            await other.housekeeping.tick()
            await rank(other)

    play(story)


def test_who_is_asked_looks_after_a_ranker() -> None:
    async def story() -> None:
        async with replicas(snapshot_every=10) as (store, clock, (one, other)):
            await create(one)
            await rounds(one, 2)
            await one.housekeeping.tick()
            await rank(other, "d")
            await other.housekeeping.tick()
            assert ("unwind" in one.housekeeping.epochs, "unwind" in other.housekeeping.epochs) == (
                True,
                False,
            )
            # From now on the other one is asked: the first notices, and hands it over.
            for i in range(30):
                clock.seconds += 0.5
                await rank(other, f"e{i}")
                await one.housekeeping.take_in_news({"unwind"})
                for engine in (one, other):
                    await engine.housekeeping.tick()
            assert ("unwind" in one.housekeeping.epochs, "unwind" in other.housekeeping.epochs) == (
                False,
                True,
            )
            assert await store.snapshots("unwind")
            before = one.rankers["unwind"].fold.applied
            for i in range(30):
                clock.seconds += 0.5
                await rank(other, f"f{i}")
                await one.housekeeping.take_in_news()
                for engine in (one, other):
                    await engine.housekeeping.tick()
            assert one.rankers["unwind"].fold.applied == before  # which nobody asks it for
            clock.seconds += 300
            for engine in (other, one):
                await engine.housekeeping.tick()
            assert not one.rankers
            taken = await one.snapshot("unwind")  # somebody wants one, and it is handed over
            assert taken == (await store.snapshots("unwind"))[-1].seq
            assert ("unwind" in one.housekeeping.epochs) is True
            await rank(other)
            await rounds(other, 12, first=2)
            await other.housekeeping.tick()
            assert (await verify(store, "unwind")).holds

    play(story)


@pytest.mark.parametrize("ends", ["killed", "stopped", "idle"])
def test_somebody_looks_after_a_ranker_that_nobody_asks_for(ends: str) -> None:
    """Its lists expire in time, and are looked at by nobody meanwhile."""

    async def story() -> None:
        async with replicas() as (store, clock, (one, other)):
            await create(one, algorithm="FTRLPBM", policy={"deadline_seconds": 600})
            await rank(one, "d")
            await one.activate("unwind", ActivateRequest("d"))
            await one.housekeeping.tick()
            began = clock.seconds
            if ends == "stopped":
                await one.close()
            elif ends == "idle":
                clock.seconds += 301
                await one.housekeeping.tick()
                assert not one.rankers
            while clock.seconds < began + 599:
                clock.seconds += 0.5
                await other.housekeeping.tick()
                looked = began + 350 <= clock.seconds
                if ends == "stopped" or looked:
                    assert not other.rankers
            assert [row.kind for row in await store.read("unwind", after=0, limit=9)][3:] == []
            for _ in range(12):
                clock.seconds += 0.5
                await other.housekeeping.tick()
            assert [row.kind for row in await store.read("unwind", after=0, limit=9)][3:] == ["expire"]
            assert other.rankers["unwind"].fold.counts.learnt == 1
            assert (await verify(store, "unwind")).holds

    play(story)


def test_clicks_gathered_for_one_are_learnt_by_another_which_says_that_it_takes_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with replicas() as (store, clock, (one, other)):
            await create(one, algorithm="FTRLPBM", parameters={"n_positions": 3})
            shown = await rank(one, "d")
            await one.housekeeping.tick()
            assert [record.message for record in caplog.records] == ["this process looks after unwind now"]
            for engine, item in ((other, shown.items[0]), (one, shown.items[2])):
                (told,) = await engine.feedback("unwind", [FeedbackRequest("d", item=item)])
                assert (told.status, told.learnt) == ("accepted", False)
            caplog.clear()
            # The first one ends without a word.
            for _ in range(45):
                clock.seconds += 1
                await other.housekeeping.tick()
            assert [record.message for record in caplog.records] == ["this process looks after unwind now"]
            fold = (await other.find("unwind")).fold
            assert (fold.rounds, fold.gathering) == (1, {})
            assert (await verify(store, "unwind")).holds

    caplog.set_level("INFO", "rankloop.serving")
    play(story)


@pytest.mark.parametrize("ranker", [None, "unwind"])
def test_a_stream_tells_of_what_others_wrote(ranker: str | None) -> None:
    async def story() -> None:
        async with replicas() as (_, _, (one, other)):
            await create(one)
            await rank(other, "d")
            broadcast = App(other).broadcast
            broadcast.start()
            messages = broadcast.listen(ranker)
            assert b"event: health" in await anext(messages)
            assert b'"model_seq":2' in await anext(messages)
            await answer(one, "d")
            if ranker is None:
                await create(one, "another")
            await other.housekeeping.take_in_news()
            async with asyncio.timeout(20):
                told = await anext(messages)
            assert b'"model_seq":3' in told
            assert (b'"another"' in told) == (ranker is None)
            await broadcast.stop()

    play(story)


def test_names_that_nobody_has_are_not_remembered() -> None:
    async def story() -> None:
        async with replicas() as (store, _, (one, _)):
            await create(one)
            asked = [rank(one, "d", name=f"nobody {i % 10}") for i in range(200)]
            told = await asyncio.gather(*asked, return_exceptions=True)
            assert {type(error) for error in told} == {NotFound}
            assert store.asked <= 30  # who asks at the same time shares a look
            loaded = one.loaded
            assert [loaded._looking, loaded._waiting, loaded._loading, loaded.absent] == [{}, {}, {}, {}]

    play(story)
