"""Warm start: history becomes rows of the log, whole or not at all, once, and `verify` replays it."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rankloop import rankers
from rankloop.cli import app
from rankloop.feedback import ClickLog, PositionBasedModel
from rankloop.serving.admission import Conflict, RequestError
from rankloop.serving.api import FreezeRequest, ItemsRequest
from rankloop.serving.engine import Engine
from rankloop.serving.history_import import (
    ImportAnswer,
    ImportRequest,
    import_history,
    saved_state,
    simulated_state,
)
from rankloop.serving.http.app import App
from rankloop.serving.log.verify import verify
from rankloop.serving.registry import served
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.in_process import ask
from tests.serving.memory_store import MemoryStore
from tests.serving.service import INSTEAD, adds_up, create, play, rank, running

ITEMS = ["a", "b", "c", "d"]
LEARN = {
    *("ClickMix", "FTPL", "FTRLPBM", "GRAB", "MW", "PBMTS", "PMED", "CalibratedSquared", "CascadeKLUCB"),
    *("CascadeLinTS", "CascadeLinUCB", "CascadeRobustUCB", "LinTSPBM", "LinUCBPBM", "ListNet", "PLRank"),
    "QueryMemory",
}


async def bring(engine: Engine, name: str = "unwind", **body: Any) -> ImportAnswer:
    return await import_history(engine, name, msgspec.convert(body, ImportRequest))


def pages(n: int, *, seed: int = 1, form: str = "clicks", features: int = 0) -> list[dict[str, Any]]:
    """Lists of all items in random orders; the later an item in the alphabet, the more it is liked."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        order = rng.permutation(4)
        one = {
            "items": [ITEMS[i] for i in order],
            form: (rng.random(4) < 0.2 + 0.2 * order).astype(float).tolist(),
            "propensities": [0.25] * 4,
        }
        if features:
            one |= {"features": [[1.0, i / 4] for i in order.tolist()], "query": "shoes"}
        found.append(one)
    return found


def state(engine: Engine, name: str = "unwind") -> str:
    return engine.rankers[name].fold.state_hash()


def settings_of(algorithm: str) -> dict[str, Any]:
    known = inspect.signature(served()[algorithm]).parameters
    given = dict(INSTEAD.get(algorithm, {}))
    if "n_items" not in known:
        return {"algorithm": algorithm, "parameters": given | {"n_features": 2}}
    if "n_positions" in known:
        given["n_positions"] = 2
    return {"algorithm": algorithm, "parameters": given, "items": ITEMS}


@pytest.mark.parametrize("algorithm", sorted(served()))
def test_a_ranker_learns_from_a_log_or_says_why_not(algorithm: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, **settings_of(algorithm))
            fold = engine.rankers["unwind"].fold
            lists = pages(6, form=fold.ranker.feedback.kind, features=0 if fold.has_items else 2)
            if algorithm not in LEARN:
                with pytest.raises(RequestError, match=f"{algorithm} learns from lists that it drew itself"):
                    await bring(engine, lists=lists)
                assert engine.rankers["unwind"].fold.applied == 1
                return
            before = state(engine)
            answer = await bring(engine, lists=lists, source="six lists")
            assert (answer.status, answer.learnt, answer.left_out) == ("accepted", 6, {})
            assert (fold.rounds, fold.counts.imported, fold.counts.learnt) == (6, 6, 0)
            assert state(engine) != before
            await adds_up(engine)

    play(story)


def test_the_same_history_counts_once_and_another_under_its_name_is_refused() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm="PBMTS", items=ITEMS)
            first = await bring(engine, lists=pages(5))
            after = state(engine)
            again = await bring(engine, lists=pages(5))
            assert again.duplicate
            assert again.history == first.history
            assert again.seq == first.seq
            with pytest.raises(Conflict, match="says something else"):
                await bring(engine, lists=pages(5, seed=2), history=first.history)
            assert state(engine) == after
            assert (await bring(engine, lists=pages(5, seed=2))).learnt == 5
            await adds_up(engine)

    play(story)


def test_a_history_in_parts_is_learnt_with_its_last_part_as_if_it_were_one() -> None:
    async def story() -> None:
        lists = pages(9)
        async with running() as engine:
            await create(engine, algorithm="FTRLPBM", items=ITEMS, parameters={"n_positions": 2})
            whole = (await bring(engine, lists=lists), state(engine))
        async with running() as engine:
            await create(engine, algorithm="FTRLPBM", items=ITEMS, parameters={"n_positions": 2})
            fresh = state(engine)
            with pytest.raises(Conflict, match="part 1 of history 'h' is missing"):
                await bring(engine, lists=lists[3:], history="h", part=2)
            for number in (1, 2):
                part = lists[3 * number - 3 : 3 * number]
                answer = await bring(engine, lists=part, history="h", part=number, last=False)
                assert answer.learnt is None
                assert state(engine) == fresh
                await rank(engine, f"between {number}")
            answer = await bring(engine, lists=lists[6:], history="h", part=3)
            assert answer.learnt == whole[0].learnt == 9
            assert state(engine) == whole[1]
            await engine.snapshot("unwind")
            await adds_up(engine)
        async with running(engine.store) as engine:
            assert state(engine) == whole[1]

    play(story)


def test_lists_that_cannot_be_used_are_left_out_and_counted() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm="CascadeKLUCB", items=ITEMS, parameters={"n_positions": 2})
            odd = [
                {"items": ["a", "zebra"], "clicks": [0, 1]},
                {"items": ["a"], "clicks": [1]},
                {"items": ["b", "a"], "clicks": [1, 0]},
            ]
            answer = await bring(engine, lists=odd)
            assert answer.learnt == 1
            assert answer.left_out == {
                "an item that the ranker does not have": 1,
                "fewer positions than the ranker learns from": 1,
            }
            await engine.change_items("unwind", ItemsRequest(retire=["b"]))
            with pytest.raises(RequestError, match="no list can be learnt from: an item that the ranker"):
                await bring(engine, lists=[odd[0], {"items": ["b", "a"], "clicks": [1, 1]}])
            await adds_up(engine)

    play(story)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"clicks": [0, 2]}, "clicks must be 0 or 1"),
        ({"clicks": [0]}, "clicks must have 2 values"),
        ({"items": ["a", "a"]}, "none twice"),
        ({"propensities": [0.0, 0.5]}, "above 0 and up to 1"),
        ({"features": [[1.0], [2.0]]}, "takes no features"),
        ({"relevance": [1, 0]}, "learns from clicks: send that alone"),
        ({"clicks": None}, "learns from clicks: send that alone"),
    ],
)
def test_bad_lists_are_refused_before_anything_is_written(change: dict[str, Any], told: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm="PBMTS", items=ITEMS, parameters={"n_positions": 2})
            good = {"items": ["a", "b"], "clicks": [0, 1]}
            with pytest.raises(RequestError, match=told) as refused:
                await bring(engine, lists=[good, good | change])
            assert str(refused.value.field).startswith("lists[1].")
            assert engine.rankers["unwind"].fold.applied == 1

    play(story)


def test_weights_need_propensities_and_a_frozen_ranker_takes_nothing() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm="FTRLPBM", items=ITEMS)
            bare = [{"items": ITEMS, "clicks": [1, 0, 0, 0]}]
            with pytest.raises(RequestError, match="FTRLPBM needs the propensity of each shown item"):
                await bring(engine, lists=bare)
            with pytest.raises(RequestError, match="for all lists, or for none"):
                await bring(engine, lists=[*pages(1), *bare])
            with pytest.raises(RequestError, match="either lists or a state"):
                await bring(engine)
            await engine.freeze("unwind", FreezeRequest())
            with pytest.raises(Conflict, match="is frozen"):
                await bring(engine, lists=pages(1))

    play(story)


def test_losses_weighed_by_the_propensities_of_a_log_are_unbiased() -> None:
    """By enumeration: every list of the log's policy, every outcome, each with its probability."""
    attraction, examination = np.array([0.2, 0.5, 0.9]), np.array([1.0, 0.4])
    lists = list(itertools.permutations(range(3), 2))
    policy = np.array([0.05, 0.3, 0.1, 0.25, 0.2, 0.1])
    shown = np.zeros((2, 3))
    for chance, one in zip(policy, lists, strict=True):
        shown[[0, 1], one] += chance
    mean = np.zeros((2, 3))
    for chance, one in zip(policy, lists, strict=True):
        likely = attraction[list(one)] * examination
        for clicks in itertools.product((0.0, 1.0), repeat=2):
            weight = chance * np.prod(np.where(np.array(clicks) > 0, likely, 1 - likely))
            ranker = rankers.FTRLPBM(n_items=3, n_positions=2)
            ranker.learn_logged(np.array(one), np.array(clicks), propensities=shown[[0, 1], one])
            mean += weight * ranker.state.L_hat
    np.testing.assert_allclose(mean, 1 - np.outer(examination, attraction), atol=1e-12)


def test_counts_of_a_log_are_those_of_the_same_lists_played() -> None:
    async def story() -> None:
        lists = pages(20)
        async with running() as engine:
            await create(engine, algorithm="GRAB", items=ITEMS)
            await bring(engine, lists=lists)
            found = engine.rankers["unwind"].fold.ranker.state
        clicks = np.zeros((4, 4))
        for one in lists:
            for j, (item, click) in enumerate(zip(one["items"], one["clicks"], strict=True)):
                clicks[j, ITEMS.index(item)] += click
        np.testing.assert_array_equal(found.S, clicks)
        assert found.N.sum() == 80

    play(story)


def world() -> ClickLog:
    rng = np.random.default_rng(3)
    items = rng.permuted(np.tile(np.arange(4), (3_000, 1)), axis=1)
    users = PositionBasedModel(attraction=[0.1, 0.3, 0.6, 0.9], examination=[1.0, 0.7, 0.5, 0.3])
    log = ClickLog.count(items=items, clicks=users.click(items, rng=rng))
    return dataclasses.replace(log, item_ids=tuple(ITEMS))


@pytest.mark.parametrize("algorithm", ["FTRLPBM", "TopFTRL"])
def test_a_simulation_starts_a_ranker_that_has_learnt_nothing(algorithm: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm=algorithm, items=[*ITEMS, "new"])
            fold = engine.rankers["unwind"].fold
            if algorithm == "FTRLPBM":
                with pytest.raises(ValueError, match="shows 5 positions, and the log has 4"):
                    simulated_state(fold, world(), rounds=10, seed=1, progress=False)
                await engine.archive("unwind")
                await create(
                    engine, algorithm=algorithm, items=[*ITEMS, "new"], parameters={"n_positions": 2}
                )
                fold = engine.rankers["unwind"].fold
            saved = simulated_state(fold, world(), rounds=10_000, seed=1, progress=False)
            answer = await import_history(engine, "unwind", ImportRequest(state=saved, source="simulation"))
            assert answer.learnt == fold.rounds == 10_000
            assert fold.current()[0] == "d"
            assert (await import_history(engine, "unwind", ImportRequest(state=saved))).duplicate
            with pytest.raises(Conflict, match="has learnt from 10,000 lists, and a state would replace"):
                await import_history(engine, "unwind", ImportRequest(state=saved, history="other"))
            await rank(engine, "one")
            await adds_up(engine)

    play(story)


def test_a_saved_ranker_is_taken_over_and_one_of_another_kind_is_not(tmp_path: Path) -> None:
    async def story() -> None:
        mine, other = rankers.PBMTS(n_items=4), rankers.PBMTS(n_items=4, n_positions=2)
        rng = np.random.default_rng(1)
        for one in (mine, other):
            one.learn(one.rank(rng=rng), np.ones(one.n_positions))
        mine.save(tmp_path / "mine.npz")
        other.save(tmp_path / "other.npz")
        async with running() as engine:
            await create(engine, algorithm="PBMTS", items=ITEMS)
            fold = engine.rankers["unwind"].fold
            with pytest.raises(ValueError, match="n_positions=2"):
                saved_state(fold, tmp_path / "other.npz")
            saved = saved_state(fold, tmp_path / "mine.npz")
            wrong = msgspec.structs.replace(saved, items=ITEMS[:3])
            with pytest.raises(RequestError) as refused:
                await import_history(engine, "unwind", ImportRequest(state=wrong))
            assert refused.value.field == "state"
            await import_history(engine, "unwind", ImportRequest(state=saved))
            for name, array in mine.state_arrays().items():
                np.testing.assert_array_equal(array, fold.ranker.state_arrays()[name])
            await adds_up(engine)

    play(story)


def test_the_endpoint_takes_lists_and_a_state() -> None:
    async def story() -> None:
        app = App(Engine(MemoryStore(), housekeeping=False))
        await app.engine.open()
        await create(app.engine, algorithm="PBMTS", items=ITEMS)
        path = "/v1/rankers/unwind/import"
        status, told = await ask(app, "POST", path, {"lists": pages(3), "history": "mine"})
        assert (status, told["learnt"], told["history"]) == (200, 3, "mine")
        status, told = await ask(app, "POST", path, {"lists": pages(3), "history": "mine"})
        assert (status, told["duplicate"]) == (200, True)
        status, told = await ask(app, "POST", path, {"lists": [{"items": ["a"]}]})
        assert (status, told["error"]["field"]) == (422, "lists[0].clicks")
        _, told = await ask(app, "GET", "/v1/rankers/unwind")
        assert (told["rounds"], told["counts"]["imported"]) == (3, 3)
        await app.engine.close()

    play(story)


def write_table(path: Path, lists: list[dict[str, Any]]) -> None:
    rows = [
        {"page": str(number), "item": item, "position": place + 1, "click": int(click), "propensity": 0.25}
        for number, one in enumerate(lists)
        for place, (item, click) in enumerate(zip(one["items"], one["clicks"], strict=True))
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)


def killed_at(crash: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"RANKLOOP_CRASH": crash}
    return subprocess.run(
        [sys.executable, "-m", "rankloop", "import", *arguments, "--data", str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


async def looked_at(folder: Path) -> tuple[str, int, int]:
    """State, rounds and rows of a ranker in a folder, which must verify."""
    store = SQLiteStore(folder)
    async with running(store) as engine:
        fold = engine.rankers["unwind"].fold
        verdict = await verify(store, "unwind")
        assert verdict.holds, verdict.problems
        return fold.state_hash(), fold.rounds, fold.applied


def test_a_crash_in_the_middle_leaves_nothing_half_imported(tmp_path: Path) -> None:
    """Killed while the last of three parts is written, and right after: then nothing, or everything, is learnt."""
    lists = pages(30)
    write_table(tmp_path / "log.parquet", lists)

    async def make(folder: Path) -> None:
        async with running(SQLiteStore(folder)) as engine:
            await create(engine, algorithm="PBMTS", items=ITEMS)

    async def whole() -> str:
        async with running() as engine:
            await create(engine, algorithm="PBMTS", items=ITEMS)
            await bring(engine, lists=lists)
            return state(engine)

    expected = asyncio.run(whole())
    arguments = str(tmp_path / "log.parquet"), "--to", "unwind", "--part", "10"
    for crash, learnt in (("mid-batch:3", 0), ("after-commit:4", 30)):
        folder = tmp_path / crash.replace(":", "-")
        asyncio.run(make(folder))
        killed = killed_at(crash, folder, *arguments)
        assert killed.returncode == -9, killed.stderr
        _, rounds, rows = asyncio.run(looked_at(folder))
        assert rounds == learnt
        assert 1 < rows <= 4
        again = CliRunner().invoke(app, ["import", *arguments, "--data", str(folder)])
        assert ("30 lists learnt" in again.output) == (learnt == 0), again.output
        assert asyncio.run(looked_at(folder)) == (expected, 30, 4)


def test_the_command_tells_what_it_did_and_what_is_wrong(tmp_path: Path) -> None:
    folder, log = tmp_path / "store", tmp_path / "log.parquet"
    write_table(log, pages(40))

    async def make() -> None:
        async with running(SQLiteStore(folder)) as engine:
            await create(engine, name="clicks", algorithm="CascadeKLUCB", items=ITEMS)
            await create(engine, name="simulated", algorithm="TopFTRL", items=ITEMS)

    asyncio.run(make())

    def run(*arguments: str) -> str:
        told = CliRunner().invoke(app, ["import", *arguments, "--data", str(folder)])
        return told.output

    assert "clicks: 40 lists learnt (row 2)" in run(str(log), "--to", "clicks")
    assert "has learnt from this already (row 2); nothing changed" in run(str(log), "--to", "clicks")
    assert "no column for relevance" in run(str(log), "--to", "simulated")
    assert "100 rounds taken over" in run(str(log), "--to", "simulated", "--simulate", "100")
    assert "there is no file" in run(str(tmp_path / "nowhere"), "--to", "clicks")
    assert "--columns must be OURS=THEIRS" in run(str(log), "--to", "clicks", "--columns", "page")
    assert "leave out --url" in run(
        str(log), "--to", "clicks", "--simulate", "9", "--url", "http://127.0.0.1:1"
    )
    assert "there is no ranker 'nobody'" in run(str(log), "--to", "nobody")
