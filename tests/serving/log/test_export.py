"""The log as a table: one row for each position with feedback, with the chance that it was so shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rankloop.serving.log.export import answered_lists, export
from rankloop.serving.schemas import ItemsRequest
from tests.serving.service import Clock, answer, create, play, rank, running


def _table(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def test_positions_with_feedback_are_rows_with_their_propensities(tmp_path: Path) -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, algorithm="FTRLPBM", parameters={"n_positions": 2})
            shown = {f"d{i}": await rank(engine, f"d{i}") for i in range(4)}
            clock.seconds += 2.5
            await answer(engine, "d2", relevance=None, clicks=[0.0, 1.0])
            await answer(engine, "d0", relevance=None, clicks=[1.0, 0.0])
            await answer(engine, "d0", relevance=None, clicks=[0.0, 0.0], event_id="again")  # a conflict
            assert await export(engine.store, "unwind", tmp_path / "log.parquet") == 4
            rows = _table(tmp_path / "log.parquet")
            assert [(row["decision"], row["position"], row["click"]) for row in rows] == [
                ("d0", 1, 1),
                ("d0", 2, 0),
                ("d2", 1, 0),
                ("d2", 2, 1),
            ]
            for row in rows:
                answered = shown[row["decision"]]
                assert row["item"] == answered.items[row["position"] - 1]
                assert row["propensity"] == answered.propensities[row["position"] - 1]
                assert row["delay_seconds"] == pytest.approx(2.5)

    play(story)


def test_names_follow_changes_of_items(tmp_path: Path) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            before = await rank(engine, "before")
            await answer(engine, "before")
            await engine.change_items("unwind", ItemsRequest(add=["swim", "cook"], retire=[before.items[1]]))
            after = await rank(engine, "after")
            await answer(engine, "after", 0.0)
            found = [one async for one in answered_lists(engine.store, "unwind")]
            assert [one.shown for one in found] == [before.items, after.items]
            assert {"swim", "cook"} <= set(after.items)
            await export(engine.store, "unwind", tmp_path / "log.parquet")
            rows = _table(tmp_path / "log.parquet")
            assert [row["item"] for row in rows] == [before.items[0], after.items[0]]
            assert [row["relevance"] for row in rows] == [1.0, 0.0]
            assert [row["propensity"] for row in rows] == [None, None]

    play(story)


def test_a_log_without_feedback_is_an_empty_table(tmp_path: Path) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await rank(engine, "d")
            assert await export(engine.store, "unwind", tmp_path / "log.parquet") == 0
            assert _table(tmp_path / "log.parquet") == []

    play(story)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            with pytest.raises(ValueError, match=r"there is no folder .*missing"):
                await export(engine.store, "unwind", tmp_path / "missing" / "log.parquet")
            with pytest.raises(ValueError, match="it is a folder"):
                await export(engine.store, "unwind", tmp_path)

    play(story)
