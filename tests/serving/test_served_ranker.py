"""One ranker in a running service: lists that are drawn, feedback that is checked, rows that are folded in."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from rankloop.rankers import PDGD
from rankloop.serving.admission import Conflict, RequestError
from rankloop.serving.api import Matrix, RankRequest
from rankloop.serving.log.records import Entry, Row
from rankloop.serving.served_ranker import ServedRanker, check_digest
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.service import ITEMS, Clock, adds_up, answer, create, play, rank, rounds, running


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


@pytest.mark.parametrize(
    ("algorithm", "parameters"),
    [
        ("PDGD", {}),
        ("MGD", {}),
        ("DBGD", {}),
        ("RTopKF", {"k": 1, "examination": 1.0}),
        ("CascadeLinUCB", {"n_positions": 3}),
        ("CascadeLinTS", {"n_positions": 3}),
        ("LinUCBPBM", {"n_positions": 3}),
        ("LinTSPBM", {"n_positions": 3}),
    ],
)
def test_clicks_on_documents_with_features(algorithm: str, parameters: dict) -> None:
    async def story() -> None:
        rng = np.random.default_rng(1)
        async with running() as engine:
            await create(
                engine, "clicked", algorithm=algorithm, parameters={"n_features": 3} | parameters, seed=1
            )
            shown_first = []
            for i in range(12):
                features = rng.random((4, 3)).tolist()
                shown = await rank(engine, f"d{i}", "clicked", items=["a", "b", "c", "d"], features=features)
                assert set(shown.items) <= {"a", "b", "c", "d"}
                clicks = [int(position == 1) for position in range(parameters.get("n_positions", 4))]
                feedback = {"relevance": None, "clicks": clicks[: parameters.get("k")]}
                told = await answer(engine, f"d{i}", name="clicked", **feedback)
                assert told.learnt
                shown_first.append(shown.items[0])
            assert len(set(shown_first)) > 1
            await adds_up(engine, "clicked")

    play(story)


def test_weights_from_a_log_go_live() -> None:
    start = [1.0, 0.0, -1.0]
    alike = PDGD(n_features=3, warm_start=start)

    async def story() -> None:
        rng = np.random.default_rng(1)
        async with running() as engine:
            parameters = {
                "n_features": 3,
                "learning_rate": "adagrad",
                "warm_start": start,
                "exploration": 1e-9,
            }
            await create(engine, "begun", algorithm="RTopKF", parameters=parameters, seed=1)
            for i in range(5):
                features = rng.random((4, 3))
                shown = await rank(
                    engine, f"d{i}", "begun", items=["0", "1", "2", "3"], features=features.tolist()
                )
                if i == 0:
                    assert [int(item) for item in shown.items] == alike.current(features).tolist()
                assert (await answer(engine, f"d{i}", name="begun", relevance=[2.0])).learnt
            await adds_up(engine, "begun")
            with pytest.raises(RequestError, match="warm_start must be 3 finite weights"):
                await create(
                    engine, "short", algorithm="RTopKF", parameters=parameters | {"warm_start": [1.0]}
                )

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


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        hashes = []
        for day in range(3):
            async with running(SQLiteStore(tmp_path), clock=Clock(1_000.0 + day)) as engine:
                if day == 0:
                    await create(engine)
                hashes.append(engine.rankers["unwind"].fold.state_hash())
                await rounds(engine, 40, first=100 * day)
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


@pytest.mark.parametrize(
    ("request_", "words", "field"),
    [
        ({}, "needs features", "features"),
        ({"features": []}, "rows of one length", "features"),
        ({"features": [[1.0], [1.0, 2.0]]}, "rows of one length", "features"),
        ({"features": [[1.0, 2.0]]}, "must have 3 columns, got 2", "features"),
        ({"features": [[1.0, 2.0, 1e39]]}, "finite", "features"),
        ({"features": [[1.0, 2.0, 3.0]], "items": ["a", "b"]}, "1 rows of features for 2 items", "features"),
        ({"features": [[1.0] * 3] * 2, "items": ["a", "a"]}, "must not repeat", "items"),
        ({"features": Matrix((2, 3), b"1234")}, "must be 2 x 3 float32, got 4 bytes", "features"),
        ({"features": [[1.0] * 3], "context": "x" * 20_000}, "at most 16000 bytes", "context"),
        ({"features": [[1.0] * 3] * 10_001}, "at most 10000 x 4096", "features"),
    ],
)
def test_a_request_for_a_list_that_makes_no_sense_is_refused(request_: dict, words: str, field: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, "search", algorithm="RTopKF", parameters={"n_features": 3})
            with pytest.raises(RequestError, match=words) as refused:
                await rank(engine, "d", "search", **request_)
            assert refused.value.field == field
            assert await engine.store.last_seq("search") == 1

    play(story)


def test_a_ranker_with_items_takes_no_others() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            with pytest.raises(RequestError, match="takes no features"):
                await rank(engine, "d", features=[[1.0]])
            with pytest.raises(RequestError, match="'golf' is not an item of this ranker"):
                await rank(engine, "d", items=[*ITEMS, "golf"])
            assert sorted((await rank(engine, "d", items=ITEMS[::-1])).items) == sorted(ITEMS)

    play(story)


def test_rows_that_do_not_follow_are_read_from_the_store() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            behind = await ServedRanker.load("unwind", engine.store)
            await rounds(engine, 3)
            rows = await engine.store.read("unwind", after=0, limit=100)
            outcomes = await behind.take_in(rows[-1:])  # the last one alone; those before it are missing
            assert [(one.status, one.learns) for one in outcomes] == [("accepted", True)]
            assert behind.fold.state_hash() == engine.rankers["unwind"].fold.state_hash()

    play(story)


def test_a_decision_is_found_in_the_store_when_it_is_no_longer_at_hand() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            shown = await rank(engine, "d1")
            served = engine.rankers["unwind"]
            served.fold.recent.clear()
            state = await served.decision_state("d1")
            assert state is not None
            assert served.fold.names(state.decision) == shown.items
            assert (await answer(engine, "d1")).learnt
            assert await served.decision_state("nobody") is None

    play(story)


def test_loading_begins_at_the_newest_snapshot_of_this_code() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await rounds(engine, 5)
            seq = await engine.snapshot("unwind")
            await rounds(engine, 5, first=5)
            again = await ServedRanker.load("unwind", engine.store)
            assert (again.snapshot_seq, again.fold.rounds) == (seq, 10)
            (kept,) = await engine.store.snapshots("unwind")
            whole = await engine.store.read_snapshot("unwind", kept.seq)
            assert whole is not None
            other = msgspec.structs.replace(whole, code_hash="0" * 64)
            await engine.store.write_snapshot("unwind", other, keep=1)
            fresh = await ServedRanker.load("unwind", engine.store)
            assert fresh.snapshot_seq == 0  # of other code: folded anew
            assert fresh.fold.state_hash() == again.fold.state_hash()

    play(story)


def test_the_same_id_must_say_the_same() -> None:
    entry = Entry("r", "decision", "d", b"", b"one")
    check_digest(entry, Row(4, 1, "decision", "d", b"", b"one"))
    with pytest.raises(Conflict, match="row 4") as refused:
        check_digest(entry, Row(4, 1, "decision", "d", b"", b"two"))
    assert refused.value.field == "decision_id"


def test_clicks_that_are_neither_0_nor_1_are_refused_and_use_nothing_up() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm="FTRLPBM", parameters={"n_positions": 3})
            await rank(engine, "d")
            before = await engine.store.last_seq("unwind")
            for clicks in ([2, 0, 0], [0.5, 0, 0], [0, 0, 1e-9], [-1, 0, 0], [math.nan, 0, 1]):
                for decision in ("d", "not there yet"):
                    with pytest.raises(RequestError, match="clicks must be 0 or 1") as refused:
                        await answer(engine, decision, relevance=None, clicks=clicks)
                    assert (refused.value.status, refused.value.field) == (422, "clicks")
            assert await engine.store.last_seq("unwind") == before
            assert (await answer(engine, "d", relevance=None, clicks=[0, 1, 0])).learnt
            await adds_up(engine)

    play(story)


def test_rows_that_another_one_folded_while_waiting_are_not_folded_twice() -> None:
    """A lock that was just let go of, and has somebody waiting for it, looks free and is not."""

    async def story() -> None:
        async with running() as engine:
            await create(engine)
            served = engine.rankers["unwind"]
            for i in range(3):
                entry, _ = served.draw(
                    RankRequest(f"d{i}"), f"d{i}", draws=engine.draws, limits=engine.limits
                )
                await served._folding.acquire()
                (done,) = await engine.store.append([entry], at=engine.now())
                looking = asyncio.create_task(served.catch_up())
                await asyncio.sleep(0)
                served._folding.release()
                await served.take_in([done.row])
                await looking
                assert served.fold.applied == done.row.seq
            await adds_up(engine)

    play(story)
