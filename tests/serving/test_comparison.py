"""A comparison of rankings as it is served: mixed lists, a verdict at any time, stop and promote, and nothing lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop.serving.admission import Conflict, RequestError
from rankloop.serving.api import PromoteRequest, StopRequest
from rankloop.serving.client import RankloopError
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.log.comparison import METHODS
from rankloop.serving.log.snapshots import revive, take
from rankloop.serving.views import ranker_answer
from tests.serving.in_process import ask
from tests.serving.process import Service
from tests.serving.service import ITEMS, Clock, adds_up, answer, create, play, rank, running
from tests.serving.test_replicas import replicas

ENGINE, NEW = list("abcdef"), list("cbadef")
LIKED = {"c": 0.6, "a": 0.1}


async def _compare(engine: Engine, *, rankings: tuple[str, ...] = ("engine", "new"), **more: Any) -> None:
    await create(engine, "vs", algorithm="Comparison", parameters={"rankings": rankings, **more})


async def _searches(engine: Engine, n: int, *, first: int = 0, liked: Any = LIKED, **more: Any) -> None:
    """Searches, whose users click what they like."""
    given = {"rankings": {"engine": ENGINE, "new": NEW}} | more
    for i in range(first, first + n):
        rng = np.random.default_rng(i)
        unit = {"unit": f"session {i // 3}"} if given.get("unit") else {}
        shown = await rank(engine, f"d{i}", "vs", **given | unit)
        clicked = [item for item in shown.items if rng.random() < liked.get(item, 0.05)]
        assert (await answer(engine, f"d{i}", name="vs", relevance=None, clicked=clicked)).learnt


async def _verdict(engine: Engine) -> Any:
    return (await ranker_answer(await engine.find("vs"))).comparison


@pytest.mark.parametrize("method", METHODS)
def test_the_better_ranking_wins_and_the_log_adds_up(method: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await _compare(engine, method=method)
            told = await _verdict(engine)
            assert (told.lists, told.winner, told.shown) == (0, None, None)
            assert told.sentence == "Nothing is decided yet, after 0 searches."
            await _searches(engine, 60)
            await engine.snapshot("vs")
            await _searches(engine, 90, first=60)
            told = await _verdict(engine)
            (pair,) = told.pairs
            assert (told.lists, told.winner, pair.winner) == (150, "new", "new")
            assert pair.share.rounds == pair.wins + pair.losses < 150
            assert pair.share.high < 0.5
            assert told.sentence.startswith("'new' wins: ")
            assert told.sentence.endswith(" of decided searches, 150 searches; you may stop.")
            fold = engine.rankers["vs"].fold
            assert revive(take(fold, epoch=1)).state_hash() == fold.state_hash()
            await adds_up(engine, "vs")

    play(story)


def test_stop_and_promote_are_rows_and_change_what_is_shown() -> None:
    async def story() -> None:
        async with running() as engine:
            await _compare(engine)
            await _searches(engine, 30)
            open_list = await rank(engine, "open", "vs", rankings={"engine": ENGINE, "new": NEW})
            assert (await engine.stop("vs", StopRequest("once"))).status == "accepted"
            assert (await engine.stop("vs", StopRequest("once"))).status == "duplicate"
            before = engine.rankers["vs"].fold.applied
            with pytest.raises(Conflict, match="'vs' was stopped already, and shows 'engine'"):
                await engine.stop("vs", StopRequest())
            assert engine.rankers["vs"].fold.applied == before
            told = await _verdict(engine)
            assert (told.shown, told.lists) == ("engine", 30)
            assert told.sentence.endswith("Stopped: lists show 'engine'.")
            # A list from before still counts when its clicks come, one from after it has nothing to say.
            await answer(engine, "open", name="vs", relevance=None, clicked=open_list.items[:1])
            assert (await _verdict(engine)).lists == 31
            shown = await rank(engine, "after", "vs", rankings={"engine": ENGINE, "new": NEW})
            assert shown.items == ENGINE
            await answer(engine, "after", name="vs", relevance=None, clicked=["a"])
            assert (await _verdict(engine)).lists == 31
            await engine.promote("vs", PromoteRequest(ranking="new"))
            shown = await rank(engine, "promoted", "vs", rankings={"engine": ENGINE, "new": NEW})
            assert shown.items == NEW
            assert (await _verdict(engine)).shown == "new"
            with pytest.raises(
                RequestError, match="ranking must be one of engine, new, for all requests, got 'x'"
            ):
                await engine.promote("vs", PromoteRequest(ranking="x"))
            with pytest.raises(RequestError, match="got None"):
                await engine.promote("vs", PromoteRequest(0.5))
            await adds_up(engine, "vs")

    play(story)


def test_of_a_session_the_first_decided_list_counts() -> None:
    async def story() -> None:
        async with running() as engine:
            await _compare(engine)
            given = {"engine": ENGINE, "new": NEW}
            for i, (unit, clicked) in enumerate(
                [
                    ("s", []),
                    ("s", ["c"]),
                    ("s", ["c"]),
                    ("t", ["a"]),
                    ("s", ["a"]),
                    (None, ["c"]),
                    (None, ["c"]),
                ]
            ):
                await rank(engine, f"d{i}", "vs", rankings=given, unit=unit)
                await answer(engine, f"d{i}", name="vs", relevance=None, clicked=clicked)
                if i == 3:
                    await engine.snapshot("vs")
            told = await _verdict(engine)
            assert told.lists == 5
            assert told.pairs[0].wins + told.pairs[0].losses == 4
            rows = await engine.store.read("vs", after=0, limit=100)
            assert not any(b"session" in row.body for row in rows)
            await adds_up(engine, "vs")

    play(story)


def test_clicks_that_come_one_by_one_count_when_the_list_closes() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await _compare(engine)
            await rank(engine, "d", "vs", rankings={"engine": ENGINE, "new": NEW})
            for item in ("c", "b"):
                told = await answer(engine, "d", name="vs", relevance=None, item=item)
                assert not told.learnt
                clock.seconds += 10
            assert (await _verdict(engine)).lists == 0
            clock.seconds += 30
            await engine.housekeeping.tick()
            assert (await _verdict(engine)).lists == 1
            await adds_up(engine, "vs")

    play(story)


def test_rankers_of_the_service_are_asked_and_a_retry_is_the_same_list() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, "new", algorithm="FTRLPBM", items=ITEMS, parameters={"n_positions": 3})
            await create(engine, "wide", algorithm="PDGD", parameters={"n_features": 2})
            await _compare(engine, rankings=("engine", "new", "wide"))
            for i in range(20):
                asked = {"rankings": {"engine": ITEMS}, "features": np.eye(5, 2).tolist()}
                shown = await rank(engine, f"d{i}", "vs", **asked)
                assert sorted(shown.items) == sorted(ITEMS)
                # The ranker learns meanwhile: the same request still gets the same list.
                await rank(engine, f"own{i}", "new")
                await answer(engine, f"own{i}", name="new", relevance=None, clicks=[1.0, 0.0, 0.0])
                again = await rank(engine, f"d{i}", "vs", **asked)
                assert (again.items, again.duplicate) == (shown.items, True)
                await answer(engine, f"d{i}", name="vs", relevance=None, clicked=shown.items[:1])
            told = await _verdict(engine)
            assert told.lists == 20
            assert len(told.pairs) == 3
            # Without items they are all that the first ranker has, whatever it shows of them.
            await create(engine, "two", algorithm="Comparison", parameters={"rankings": ["new", "wide"]})
            shown = await rank(engine, "all", "two", features=np.eye(5, 2).tolist())
            assert sorted(shown.items) == sorted(ITEMS)
            assert (
                engine.rankers["new"].fold.counts.decisions == 20
            )  # its own; it is asked, and nothing is logged
            with pytest.raises(Conflict):
                await rank(
                    engine, "d0", "vs", rankings={"engine": ITEMS[::-1]}, features=np.eye(5, 2).tolist()
                )
            await adds_up(engine, "vs")
            await adds_up(engine, "new")

    play(story)


def test_replicas_agree() -> None:
    async def story() -> None:
        async with replicas() as (_, _, engines):
            await _compare(engines[0])
            given = {"engine": ENGINE, "new": NEW}
            for i in range(20):
                shown = await rank(engines[i % 2], f"d{i}", "vs", rankings=given, unit=f"u{i % 7}")
                other = engines[(i + 1) % 2]
                await answer(other, f"d{i}", name="vs", relevance=None, clicked=shown.items[:1])
            await engines[1].stop("vs", StopRequest())
            states = {(await engine.find("vs")).fold.state_hash() for engine in engines}
            assert len(states) == 1
            with pytest.raises(Conflict):
                await engines[0].stop("vs", StopRequest())
            for engine in engines:
                assert (await _verdict(engine)).lists == 7
                await adds_up(engine, "vs")

    play(story)


def test_a_ranker_learns_from_the_mixed_lists_as_an_apprentice() -> None:
    """The recipe of the how-to: the mixed list is the baseline of the ranker, under the same decision ID."""

    async def story() -> None:
        async with running() as engine:
            policy = {"apprentice": True}
            await create(
                engine,
                "learner",
                algorithm="ClickMix",
                items=ENGINE,
                parameters={"n_positions": 6},
                policy=policy,
            )
            await _compare(engine, rankings=("engine", "learner"), n_positions=6)
            rng = np.random.default_rng(1)
            for i in range(300):
                shown = await rank(engine, f"d{i}", "vs", rankings={"engine": ENGINE})
                there = await rank(engine, f"d{i}", "learner", baseline=shown.items)
                assert there.items == shown.items
                clicked = [item for item in shown.items if rng.random() < {"f": 0.7}.get(item, 0.05)]
                for name in ("vs", "learner"):
                    await answer(engine, f"d{i}", name=name, relevance=None, clicked=clicked)
            learner = engine.rankers["learner"].fold
            assert (learner.rounds, learner.current()[0]) == (300, "f")
            assert (await _verdict(engine)).winner == "learner"
            await adds_up(engine, "learner")
            await adds_up(engine, "vs")

    play(story)


def test_a_memory_of_queries_competes_while_it_learns() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(
                engine,
                "memory",
                algorithm="QueryMemory",
                parameters={"n_features": 1},
                policy={"apprentice": True},
            )
            await _compare(engine, rankings=("engine", "memory"))
            hits = [f"doc-{i}" for i in range(12)]
            scores = [[1.0 - i / 12] for i in range(12)]  # the engine's
            rng = np.random.default_rng(1)
            for i in range(150):
                query = int(rng.integers(3))
                asked = {"features": scores, "query": f"query {query}"}
                shown = await rank(engine, f"d{i}", "vs", rankings={"engine": hits}, **asked)
                there = await rank(engine, f"d{i}", "memory", items=hits, baseline=shown.items, **asked)
                assert there.items == shown.items
                seen = shown.items[:10]
                clicked = [one for one in seen if rng.random() < (0.8 if one == f"doc-{7 + query}" else 0.05)]
                for name in ("vs", "memory"):
                    told = await answer(engine, f"d{i}", name=name, relevance=None, clicked=clicked)
                    assert told.learnt
            assert (await _verdict(engine)).winner == "memory"
            for name in ("vs", "memory"):
                await adds_up(engine, name)

    play(story)


def test_a_killed_service_has_lost_nothing(tmp_path: Path) -> None:
    given = {"engine": ENGINE, "new": NEW}
    with Service("--data", str(tmp_path)) as service, service.client() as client:
        client.create("vs", algorithm="Comparison", parameters={"rankings": ["engine", "new"]})
        for i in range(12):
            shown = client.rank("vs", decision_id=f"d{i}", rankings=given, unit=f"u{i % 5}")
            client.feedback("vs", f"d{i}", clicked=shown.items[:1])
        client.rank("vs", decision_id="open", rankings=given)
        before = client.ranker("vs")
        service.kill()
    with Service("--data", str(tmp_path)) as service, service.client() as client:
        after = client.ranker("vs")
        assert (after.state_hash, after.comparison) == (before.state_hash, before.comparison)
        assert after.comparison is not None
        assert after.comparison.lists == 5
        assert client.rank("vs", decision_id="open", rankings=given).duplicate
        assert client.feedback("vs", "open", clicked=["c"]).learnt
        assert client.promote("vs", ranking="new").status == "accepted"
        with pytest.raises(RankloopError, match="409 conflict: 'vs' was stopped already, and shows 'new'"):
            client.stop("vs")
        assert client.rank("vs", rankings=given).items == NEW


WRONG_LISTS: list[tuple[dict[str, Any], str]] = [
    ({"rankings": {"engine": ["a", "b"], "new": ["a", "c"]}}, "'new' has 'c', unlike the others"),
    ({"rankings": {"engine": ["a", "b"], "new": ["a"]}}, "'new' lacks 'b', unlike the others"),
    (
        {"rankings": {"engine": ["a", "a"], "new": ["a"]}},
        "'engine' must have at least one item, and none twice",
    ),
    ({"rankings": {"engine": [], "new": []}}, "'engine' must have at least one item"),
    ({"rankings": {"engine": ["a"], "newer": ["a"]}}, "rankings must be of engine, new, got 'newer'"),
    ({"rankings": {"engine": ["a"]}}, "must have the order of 'new', which is no ranker of this service"),
    ({}, "must have the order of 'engine', which is no ranker of this service"),
]


def test_wrong_requests_are_refused_and_nothing_changes() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            for parameters, words in (
                ({"rankings": ["engine", "engine"]}, "none twice"),
                ({"rankings": ["engine"]}, "two names or more"),
                ({"rankings": "engine"}, "two names or more"),
                ({}, "two names or more"),
                ({"rankings": ["a", "b"], "n_features": 3}, "n_features must be the number of rankings, 2"),
                ({"rankings": ["a", "b"], "method": "balanced"}, "method must be one of"),
                ({"rankings": ["a", "b"], "error": 2}, "error must be"),
            ):
                body = {"name": "vs", "algorithm": "Comparison", "parameters": parameters}
                status, told = await ask(app, "POST", "/v1/rankers", body)
                assert status == 422
                assert words in told["error"]["message"]
            await create(engine)
            await _compare(engine)
            await _searches(engine, 3)
            applied, before = engine.rankers["vs"].fold.applied, engine.rankers["vs"].fold.state_hash()
            for body, words in WRONG_LISTS:
                status, told = await ask(app, "POST", "/v1/rankers/vs/rank", body)
                assert (status, told["error"]["field"]) == (422, "rankings")
                assert words in told["error"]["message"]
            told_by = "/v1/rankers/vs/feedback"
            status, told = await ask(app, "POST", told_by, {"decision_id": "d0", "clicked": ["nothing"]})
            assert (status, "not among the items" in told["error"]["message"]) == (422, True)
            for path, body, status in (
                ("/v1/rankers/unwind/stop", {}, 422),
                ("/v1/rankers/unwind/promote", {"ranking": "new"}, 422),
                ("/v1/rankers/unwind/rank", {"rankings": {"a": ["tea"]}}, 422),
                ("/v1/rankers/unwind/rank", {"unit": "u"}, 422),
                ("/v1/rankers/nothing/stop", {}, 404),
            ):
                assert (await ask(app, "POST", path, body))[0] == status
            await create(engine, "itself", algorithm="Comparison", parameters={"rankings": ["itself", "vs"]})
            status, told = await ask(app, "POST", "/v1/rankers/itself/rank", {"items": ["a"]})
            assert (status, "it is a comparison" in told["error"]["message"]) == (422, True)
            assert engine.rankers["vs"].fold.applied == applied
            assert engine.rankers["vs"].fold.state_hash() == before

    play(story)
