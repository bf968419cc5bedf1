"""The log as a table: one row for each position with feedback, with the chance that it was so shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rankloop.cli import app
from rankloop.data import read_lists, read_logged_lists
from rankloop.serving.api import ItemsRequest
from rankloop.serving.importing import ImportRequest, import_history
from rankloop.serving.log.export import answered_lists, export
from tests.serving.service import Clock, adds_up, answer, create, play, rank, running


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


def test_lists_with_features_go_from_a_service_into_evaluation_and_into_another_ranker(
    tmp_path: Path,
) -> None:
    """The whole path: rank, click, export, evaluate on the command line, import."""
    path = tmp_path / "log.parquet"

    async def story() -> None:
        rng = np.random.default_rng(1)
        async with running() as engine:
            parameters = {"n_features": 2, "k": 2, "surrogate": "squared", "max_grade": 1}
            await create(engine, algorithm="RTopKF", parameters=parameters)
            asked = {}
            for i in range(30):
                names = [f"doc {n}" for n in rng.permutation(9)[: 4 - i % 2]]
                features = rng.normal(size=(len(names), 2)).round(3).tolist()
                shown = await rank(engine, f"d{i}", items=names, features=features)
                asked[f"d{i}"] = (dict(zip(names, np.float32(features).tolist(), strict=True)), shown)
                await answer(engine, f"d{i}", relevance=[float(i % 2), 0.0])
            assert await export(engine.store, "unwind", path) == 60
            rows = _table(path)
            for row in rows:
                features_by_name, shown = asked[row["decision"]]
                assert row["features"] == features_by_name[row["item"]]
                if row["position"] == 1:
                    assert sorted([*row["others"], *shown.items[:2]]) == sorted(features_by_name)
                    assert row["other_features"] == [features_by_name[name] for name in row["others"]]
                else:
                    assert row["others"] is None

            lists = read_logged_lists(path)
            assert lists.features is not None
            assert lists.features.sizes.tolist() == [4 - i % 2 for i in range(30)]
            assert lists.clicks.sum() == 15
            assert lists.propensities is not None
            assert lists.propensities[0].tolist() == [row["propensity"] for row in rows[:2]]
            told = CliRunner().invoke(app, ["evaluate", str(path), "--ranker", "1,0", "--json"])
            assert told.exit_code == 0, told.output

            await create(engine, "next", algorithm="LinTSPBM", parameters={"n_features": 2, "n_positions": 2})
            history = {"lists": list(read_lists(path)), "source": "export"}
            learnt = await import_history(engine, "next", msgspec.convert(history, ImportRequest))
            assert (learnt.learnt, learnt.left_out) == (30, {})
            await adds_up(engine, "next")

    play(story)
