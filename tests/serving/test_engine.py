"""The service without its skin: what each call does, and what the log says of it afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from rankloop.serving.engine import Engine
from rankloop.serving.errors import Busy, Conflict, NotFound, RequestError
from rankloop.serving.schemas import (
    ActivateRequest,
    FeedbackRequest,
    FreezeRequest,
    ItemsRequest,
    Matrix,
    ResetRequest,
    RollbackRequest,
)
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.service import ITEMS, Clock, adds_up, answer, create, play, rank, running


def test_a_round() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            shown = await rank(engine, "d1")
            assert sorted(shown.items) == sorted(ITEMS)
            assert (shown.decision_id, shown.model_seq, shown.duplicate) == ("d1", 1, False)
            told = await answer(engine, "d1")
            assert (told.status, told.seq, told.learnt) == ("accepted", 3, True)
            assert engine.rankers["unwind"].fold.rounds == 1
            assert (await rank(engine)).model_seq == 3
            await adds_up(engine)

    play(story)


def test_the_same_decision_again_is_the_same_list() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            first = await rank(engine, "d1")
            await answer(engine, "d1")
            again = await rank(engine, "d1")
            assert again.duplicate
            assert (again.items, again.model_seq) == (first.items, first.model_seq)
            with pytest.raises(Conflict):
                await rank(engine, "d1", context={"hour": 3})
            kinds = [row.kind for row in await engine.store.read("unwind", after=0, limit=9)]
            assert kinds == ["config", "decision", "feedback", "conflict"]
            await adds_up(engine)

    play(story)


def test_two_asking_for_one_decision_at_once_get_one_list() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            answers = await asyncio.gather(*(rank(engine, "d1") for _ in range(20)))
            assert len({tuple(one.items) for one in answers}) == 1
            assert sum(not one.duplicate for one in answers) == 1
            assert await engine.store.last_seq("unwind") == 2

    play(story)


def test_feedback_counts_once() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await rank(engine, "d1")
            assert (await answer(engine, "d1", event_id="e1")).status == "accepted"
            state = engine.rankers["unwind"].fold.state_hash()
            assert (await answer(engine, "d1", event_id="e1")).status == "duplicate"  # a retry
            assert (
                await answer(engine, "d1", event_id="e2")
            ).status == "duplicate"  # a retry under another id
            assert (await answer(engine, "d1", 0.0, event_id="e1")).status == "conflict"
            assert (await answer(engine, "d1", 0.0, event_id="e3")).status == "conflict"
            fold = engine.rankers["unwind"].fold
            assert (fold.rounds, fold.state_hash()) == (1, state)
            await adds_up(engine)

    play(story)


def test_feedback_before_its_decision_waits_for_it() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, policy={"parking_seconds": 10})
            assert (await answer(engine, "d1")).status == "parked"
            assert engine.rankers["unwind"].fold.rounds == 0
            clock.seconds += 10
            await rank(engine, "d1")
            assert engine.rankers["unwind"].fold.rounds == 1
            assert (await answer(engine, "d1")).status == "duplicate"
            assert (await answer(engine, "d2")).status == "parked"
            clock.seconds += 10.1
            await rank(engine, "d2")  # too late: the answer has gone to the dead letters
            fold = engine.rankers["unwind"].fold
            assert (fold.rounds, fold.counts.dead, fold.dead[0].decision) == (1, 1, "d2")
            await adds_up(engine)

    play(story)


def test_without_parking_it_is_unknown() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, policy={"parking_seconds": 0})
            assert (await answer(engine, "nobody")).status == "unknown"
            assert [letter.decision for letter in engine.rankers["unwind"].fold.dead] == ["nobody"]

    play(story)


@pytest.mark.parametrize(("policy", "rounds"), [("ignore", 0), ("learn", 1)])
def test_late_feedback_is_logged_and_learnt_only_by_policy(policy: str, rounds: int) -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, policy={"deadline_seconds": 5, "late": policy})
            await rank(engine, "d1")
            clock.seconds += 5.001
            told = await answer(engine, "d1")
            assert (told.status, told.learnt) == ("late", bool(rounds))
            assert engine.rankers["unwind"].fold.rounds == rounds
            await adds_up(engine)

    play(story)


def test_expiry_of_an_unseen_relevance_changes_nothing() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, policy={"deadline_seconds": 5})
            for decision in ("d1", "d2", "d3"):
                await rank(engine, decision)
            await engine.activate("unwind", ActivateRequest("d1"))
            await answer(engine, "d3")
            state = engine.rankers["unwind"].fold.learnt()
            clock.seconds += 6
            served = engine.rankers["unwind"]
            assert await engine.housekeeping.expire(served) == 2
            assert await engine.housekeeping.expire(served) == 0
            assert served.fold.learnt() == state
            assert (await answer(engine, "d1")).status == "late"
            await adds_up(engine)

    play(story)


def test_a_frozen_ranker_logs_and_does_not_learn() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await engine.freeze("unwind", FreezeRequest(True))
            await rank(engine, "d1")
            told = await answer(engine, "d1")
            assert (told.status, told.learnt) == ("accepted", False)
            assert engine.rankers["unwind"].fold.rounds == 0
            await engine.freeze("unwind", FreezeRequest(False))
            await rank(engine, "d2")
            assert (await answer(engine, "d2")).learnt
            await adds_up(engine)

    play(story)


def test_rollback_brings_back_what_was_known() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await _rounds(engine, 30)
            seq = await engine.snapshot("unwind")
            then = engine.rankers["unwind"].fold.learnt()
            await _rounds(engine, 30, first=30)
            assert engine.rankers["unwind"].fold.learnt() != then
            assert (await engine.rollback("unwind", RollbackRequest(seq, "r1"))).status == "accepted"
            assert engine.rankers["unwind"].fold.learnt() == then
            assert (await engine.rollback("unwind", RollbackRequest(seq, "r1"))).status == "duplicate"
            await _rounds(engine, 10, first=60)
            with pytest.raises(NotFound):
                await engine.rollback("unwind", RollbackRequest(seq + 1))
            await adds_up(engine)

    play(story)


def test_reset_begins_anew_and_keeps_the_log() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await _rounds(engine, 10)
            seq = await engine.snapshot("unwind")
            await engine.reset("unwind", ResetRequest(parameters={"measure": "sum_loss"}))
            assert engine.rankers["unwind"].fold.rounds == 0
            await _rounds(engine, 5, first=10)
            with pytest.raises(Conflict):
                await engine.rollback("unwind", RollbackRequest(seq))
            await adds_up(engine)

    play(story)


@pytest.mark.parametrize("algorithm", ["RTop1F", "FTPL"])
def test_items_come_and_go(algorithm: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm=algorithm)
            await _rounds(engine, 200)
            open_list = await rank(engine, "open")
            seq = await engine.snapshot("unwind")
            await engine.change_items("unwind", ItemsRequest(add=["swim"], retire=["tea"], event_id="i1"))
            again = await engine.change_items(
                "unwind", ItemsRequest(add=["swim"], retire=["tea"], event_id="i1")
            )
            assert again.status == "duplicate"
            shown = await rank(engine)
            assert sorted(shown.items) == sorted({*ITEMS, "swim"} - {"tea"})
            assert "tea" in open_list.items  # the past stays as it was
            story = await rank(engine, "open")
            assert story.items == open_list.items
            await _rounds(engine, 20, first=300)
            await engine.rollback("unwind", RollbackRequest(seq))  # what was known, about the items of today
            assert "tea" not in (await rank(engine)).items
            with pytest.raises(RequestError, match="there already"):
                await engine.change_items("unwind", ItemsRequest(add=["swim"]))
            with pytest.raises(RequestError, match="is not there"):
                await engine.change_items("unwind", ItemsRequest(retire=["tea"]))
            with pytest.raises(RequestError, match="last item"):
                await engine.change_items("unwind", ItemsRequest(retire=engine.rankers["unwind"].fold.items))
            await engine.change_items("unwind", ItemsRequest(add=["tea"]))
            await adds_up(engine)

    play(story)


def test_a_newcomer_is_seen_and_finds_its_place() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            liked = {"walk": 1.0, "meditate": 1.0}
            await _rounds(engine, 1_500, liked=liked)
            assert set(engine.rankers["unwind"].fold.current()[:2]) == set(liked)
            await engine.change_items("unwind", ItemsRequest(add=["swim", "argue"]))
            on_top = [(await rank(engine)).items[0] for _ in range(300)]
            assert on_top.count("swim") > 15
            assert on_top.count("argue") > 15
            await _rounds(engine, 1_500, first=5_000, liked=liked | {"swim": 1.0})
            current = engine.rankers["unwind"].fold.current()
            assert set(current[:3]) == {"walk", "meditate", "swim"}

    play(story)


def test_a_newcomer_among_clicked_items() -> None:
    async def story() -> None:
        rng = np.random.default_rng(1)
        liked = {"walk": 0.8, "meditate": 0.5, "swim": 0.9}

        async def rounds(engine: Engine, first: int, n: int) -> list[str]:
            tops = []
            for i in range(first, first + n):
                shown = await rank(engine, f"d{i}", "pages")
                tops.append(shown.items[0])
                clicks = [float(rng.random() < liked.get(name, 0.1)) for name in shown.items]
                told = await answer(engine, f"d{i}", name="pages", relevance=None, clicks=clicks)
                assert told.learnt
            return tops

        async with running() as engine:
            await create(engine, "pages", algorithm="FTRLPBM", parameters={"n_positions": 2})
            open_list = await rank(engine, "open", "pages")
            await rounds(engine, 0, 1_200)
            assert set(engine.rankers["pages"].fold.current()) == {"walk", "meditate"}
            await engine.change_items("pages", ItemsRequest(add=["swim"], retire=["nap"]))
            tops = await rounds(engine, 5_000, 1_200)
            assert "nap" not in tops
            assert 0 < tops[:200].count("swim") < 150
            assert set(engine.rankers["pages"].fold.current()) == {"walk", "swim"}
            told = await answer(engine, "open", name="pages", relevance=None, clicks=[1.0, 0.0])
            assert told.status == ("late" if "nap" in open_list.items else "accepted")
            await adds_up(engine, "pages")

    play(story)


def test_the_top_two_and_items_that_change() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, parameters={"k": 2})
            for i in range(120):
                shown = await rank(engine, f"d{i}")
                if i == 60:
                    await engine.change_items("unwind", ItemsRequest(add=["swim", "cook"], retire=["nap"]))
                told = await answer(
                    engine, f"d{i}", relevance=[float(name == "tea") for name in shown.items[:2]]
                )
                assert told.learnt or (i == 60 and told.status == "late")
            assert engine.rankers["unwind"].fold.current()[0] == "tea"
            await adds_up(engine)

    play(story)


def test_an_answer_to_a_list_from_before_a_change_still_counts() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            first, second = await rank(engine, "d1"), await rank(engine, "d2")
            await engine.change_items("unwind", ItemsRequest(add=["swim"], retire=[first.items[0]]))
            assert (await answer(engine, "d1")).status == "late"  # it is about an item that is gone
            status = (await answer(engine, "d2")).status
            assert status == ("late" if second.items[0] == first.items[0] else "accepted")
            await adds_up(engine)

    play(story)


def test_documents_with_features() -> None:
    async def story() -> None:
        rng = np.random.default_rng(1)
        async with running() as engine:
            await create(
                engine,
                "search",
                algorithm="RTopKF",
                parameters={"n_features": 3, "k": 2, "surrogate": "ranksvm"},
            )
            for i in range(30):
                features = rng.random((4, 3)).tolist()
                shown = await rank(
                    engine,
                    f"d{i}",
                    "search",
                    items=["a", "b", "c", "d"],
                    features=features,
                    context={"query": i},
                )
                assert sorted(shown.items) == ["a", "b", "c", "d"]
                assert all(0 < chance <= 1 for chance in shown.propensities)
                told = await answer(engine, f"d{i}", name="search", relevance=[1.0, 0.0])
                assert told.learnt
            packed = Matrix((2, 3), rng.random((2, 3)).astype("<f4").tobytes())
            assert (await rank(engine, None, "search", features=packed)).items in (["0", "1"], ["1", "0"])
            await adds_up(engine, "search")

    play(story)


def test_told_everything_with_features() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, "told", algorithm="ListNet", parameters={"n_features": 2})
            await rank(engine, "d", "told", features=[[0.1, 0.2], [0.3, 0.4]])
            assert (await answer(engine, "d", name="told", relevance=[1.0, 0.0])).learnt
            await adds_up(engine, "told")

    play(story)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"algorithm": "Nobody"}, "algorithm must be one of"),
        ({"algorithm": "Uniform", "items": ["a"]}, "Uniform cannot be served: it learns nothing"),
        ({"items": None}, "needs items"),
        ({"items": ["a", "a"]}, "must not repeat"),
        ({"parameters": {"horizon": 100}}, "no horizon"),
        ({"parameters": {"n_items": 100}}, "no parameter 'n_items'"),
        ({"parameters": {"colour": 1}}, "no parameter 'colour'"),
        ({"parameters": {"measure": "ndcg"}}, "cannot be learnt"),
        ({"parameters": {"measure": {}}}, "measure"),
        ({"algorithm": "RTopKF", "items": None}, "n_features"),
        ({"algorithm": "RTopKF", "items": ["a"], "parameters": {"n_features": 1}}, "with each request"),
        ({"policy": {"deadline_seconds": -1}}, "deadline_seconds"),
    ],
)
def test_a_ranker_that_makes_no_sense_is_refused(settings: dict, words: str) -> None:
    async def story() -> None:
        async with running() as engine:
            with pytest.raises(RequestError, match=words):
                await create(engine, **settings)
            assert await engine.store.rankers() == []

    play(story)


def test_a_ranker_is_not_silently_made_anew() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, seed=None)
            await create(engine, seed=None)
            with pytest.raises(Conflict):
                await create(engine, seed=None, parameters={"measure": "sum_loss"})
            assert await engine.store.rankers() == ["unwind"]
            await adds_up(engine)

    play(story)


@pytest.mark.parametrize(
    "body",
    [
        {"relevance": []},
        {"relevance": [1.0, 1.0]},
        {"relevance": [2.0]},
        {"relevance": [-1.0]},
        {"relevance": [float("nan")]},
        {"relevance": None, "clicks": [1]},
        {"relevance": [1.0], "clicks": [1]},
        {"relevance": None},
    ],
)
@pytest.mark.parametrize("decision", ["d1", "unknown"])
def test_feedback_that_makes_no_sense_is_refused(body: dict, decision: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await rank(engine, "d1")
            before = await engine.store.last_seq("unwind")
            if decision == "unknown" and body.get("relevance") in ([], [1.0, 1.0]) and "clicks" not in body:
                return  # how long it must be is known with its list only
            with pytest.raises(RequestError):
                await answer(engine, decision, **body)
            assert await engine.store.last_seq("unwind") == before

    play(story)


def test_a_parked_answer_that_does_not_fit_is_a_dead_letter() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            assert (await answer(engine, "d1", relevance=[1.0, 1.0])).status == "parked"
            await rank(engine, "d1")
            fold = engine.rankers["unwind"].fold
            assert (fold.rounds, fold.counts.dead) == (0, 1)
            await adds_up(engine)

    play(story)


def test_a_full_queue_says_so_and_writes_nothing() -> None:
    async def story() -> None:
        from rankloop.serving.admission import Limits

        async with running(limits=Limits(waiting=4)) as engine:
            await create(engine)
            answers = await asyncio.gather(
                *(rank(engine, f"d{i}") for i in range(10)), return_exceptions=True
            )
            refused = [one for one in answers if isinstance(one, Busy)]
            assert len(refused) == 6
            assert await engine.store.last_seq("unwind") == 1 + 4

    play(story)


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        hashes = []
        for day in range(3):
            async with running(SQLiteStore(tmp_path), clock=Clock(1_000.0 + day)) as engine:
                if day == 0:
                    await create(engine)
                hashes.append(engine.rankers["unwind"].fold.state_hash())
                await _rounds(engine, 40, first=100 * day)
                await rank(engine, f"over night {day}")
                if day == 1:
                    await engine.snapshot("unwind")
                    assert (await answer(engine, "over night 0")).status == "accepted"
                await answer(engine, f"early {day + 1}")
                hashes.append(engine.rankers["unwind"].fold.state_hash())
                await adds_up(engine)
                await rank(engine, f"early {day}")
                hashes[-1] = engine.rankers["unwind"].fold.state_hash()
        assert hashes[1] == hashes[2]
        assert hashes[3] == hashes[4]

    play(story)


async def _rounds(engine, n: int, *, first: int = 0, liked: dict[str, float] | None = None) -> None:
    told = engine.rankers["unwind"].fold.ranker.feedback.length(len(ITEMS))
    for i in range(first, first + n):
        shown = await rank(engine, f"round {i}")
        names = shown.items[: 1 if told == 1 else len(shown.items)]
        values = [(liked or {"walk": 1.0, "tea": 1.0}).get(name, 0.0) for name in names]
        assert (await answer(engine, f"round {i}", relevance=values)).learnt


def test_a_list_of_feedback_is_written_together() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            for i in range(5):
                await rank(engine, f"d{i}")
            batches = engine.commit.batches
            told = await engine.feedback(
                "unwind", [FeedbackRequest(f"d{i}", relevance=[1.0]) for i in range(5)]
            )
            assert [one.status for one in told] == ["accepted"] * 5
            assert engine.commit.batches == batches + 1

    play(story)
