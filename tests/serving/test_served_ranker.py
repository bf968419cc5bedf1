"""One ranker in a running service: lists that are drawn, feedback that is checked, rows that are folded in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rankloop.serving.errors import RequestError
from rankloop.serving.schemas import (
    Matrix,
)
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.service import Clock, adds_up, answer, create, play, rank, rounds, running


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
