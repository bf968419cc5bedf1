"""The log as a table: one row for each position with feedback, with the chance that it was so shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rankloop.base import Ranking
from rankloop.cli import app
from rankloop.data import read_lists, read_logged_lists
from rankloop.rankers import FTRLPBM, RTop1F
from rankloop.serving.api import ItemsRequest
from rankloop.serving.engine import Engine
from rankloop.serving.history_import import ImportRequest, import_history
from rankloop.serving.log.export import Answered, _chances, _summary, answered_lists, export, replay
from rankloop.serving.log.records import Decision, Row, pack
from rankloop.serving.log.stored_features import StoredFeatures
from tests.serving.service import ITEMS, Clock, adds_up, answer, create, play, rank, running


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


# How another ranker would have done on a log: unbiased where the two agree, silent where they never do.

CLICKED = {"a": 0.1, "b": 0.3, "c": 0.8}


async def _log(engine: Engine, n: int) -> None:
    rng = np.random.default_rng(1)
    parameters = {"n_positions": 1, "eta": 0.0, "gamma": 1.0}  # every item with the same chance, always
    await create(engine, "log", algorithm="MW", items=list(CLICKED), parameters=parameters)
    for i in range(n):
        shown = await rank(engine, f"d{i}", "log")
        clicks = [float(rng.random() < CLICKED[name]) for name in shown.items]
        await answer(engine, f"d{i}", name="log", relevance=None, clicks=clicks)


@pytest.mark.parametrize("other", ["CascadeKLUCB", "FTRLPBM"])
def test_a_learner_is_estimated_near_what_it_would_earn(other: str) -> None:
    """On a log of random lists a third of the rounds match; both learners come to show c, which is worth 0.8."""

    async def story() -> None:
        async with running() as engine:
            await _log(engine, 900)
            told = await replay(engine.store, "log", other=other, parameters={"n_positions": 1})
            assert told.rounds == 900
            assert told.logged == pytest.approx(0.4, abs=0.06)
            assert 240 < told.matches < 360
            assert told.value is not None
            assert told.low is not None
            assert told.high is not None
            assert told.logged + 0.1 < told.value < 0.85
            assert told.low < told.value < told.high
            again = await replay(engine.store, "log", other=other, parameters={"n_positions": 1})
            assert again == told  # the draws follow from the log alone

    play(story)


@pytest.mark.parametrize(
    ("other", "words"),
    [("FTPL", "learns from relevance, the log .* has clicks"), ("ListNet", "do not take the same requests")],
)
def test_a_ranker_that_cannot_take_the_log_is_refused(other: str, words: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await _log(engine, 1)
            with pytest.raises(ValueError, match=words):
                await replay(engine.store, "log", other=other)

    play(story)


def _answered(decision: Decision) -> Answered:
    return Answered(
        Row(2, 1, "decision", "d", b""), decision, ITEMS[:2], np.array([1.0]), 0.0, StoredFeatures()
    )


def test_propensities_count_and_else_the_chance_of_exploration() -> None:
    shown = np.array([1, 0], "<i4").tobytes()
    exact = Decision(1, 0, shown, b"k", 9, False, np.array([0.25, 0.5]).astype("<f8").tobytes())
    assert _chances(FTRLPBM(n_items=2), _answered(exact), 2).tolist() == [0.25, 0.5]
    explored = Decision(1, 0, shown, b"k", 9, True, memo=(pack(np.array([0.125])),))
    assert _chances(RTop1F(n_items=2), _answered(explored), 1).tolist() == [0.125]
    greedy = Decision(1, 0, shown, b"k", 9, False, memo=(pack(np.array([0.0])),))
    assert _chances(RTop1F(n_items=2), _answered(greedy), 1) is None
    assert _chances(FTRLPBM(n_items=2), _answered(greedy), 1) is None


def test_the_chance_of_exploration_is_of_rounds_that_explored() -> None:
    ranker = RTop1F(n_items=3)
    rng = np.random.default_rng(1)
    chances = [
        (shown.explored, ranker.exploration_chance(shown))
        for shown in (ranker.rank(rng=rng) for _ in range(50))
    ]
    assert {explored for explored, _ in chances} == {True, False}
    for explored, chance in chances:
        assert (chance is not None and 0 < chance <= 1) == explored
    assert FTRLPBM(n_items=2).exploration_chance(Ranking(np.arange(2))) is None


def test_without_any_match_there_is_no_estimate() -> None:
    told = _summary("a", "b", np.zeros(3), np.zeros(3), np.ones(3), 0)
    assert (told.logged, told.value, told.low) == (1.0, None, None)
    assert _summary("a", "b", np.zeros(0), np.zeros(0), np.zeros(0), 0).value is None
    half = _summary("a", "b", np.array([2.0, 0.0]), np.array([2.0, 0.0]), np.array([1.0, 0.0]), 1)
    assert half.value == 1.0  # self-normalised
