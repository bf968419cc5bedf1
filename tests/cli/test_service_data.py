"""The commands for operators, and the client, against a service that was really started."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import rankloop
from rankloop import data, logs
from rankloop.cli import app
from rankloop.serving.log import records
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.cli.call import call, refused
from tests.serving.process import Service

LIKED = {"walk": 0.9, "tea": 0.6, "nap": 0.3, "argue": 0.05}


def _run(folder: Path, *arguments: str) -> str:
    return call(*arguments, "--data", folder).output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A service that some people and some clicking pages have used, stopped again."""
    folder = tmp_path_factory.mktemp("used")
    rng = np.random.default_rng(1)
    with Service("--data", str(folder)) as service:
        client = rankloop.Client(service.url)
        client.create("unwind", algorithm="RTop1F", items=list(LIKED), seed=3)
        client.create("pages", algorithm="FTRLPBM", items=list(LIKED), parameters={"n_positions": 2}, seed=3)
        for i in range(
            150
        ):  # with ids of our own: what is drawn follows from them, and is the same every time
            shown = client.rank("unwind", decision_id=f"u{i}", context={"hour": 7})
            liked = float(rng.random() < LIKED[shown.items[0]])
            assert client.feedback("unwind", shown.decision_id, relevance=[liked]).status == "accepted"
            shown = client.rank("pages", decision_id=f"p{i}")
            client.activate("pages", shown.decision_id)
            clicks = [float(rng.random() < LIKED[name]) for name in shown.items]
            client.feedback("pages", shown.decision_id, clicks=clicks)
        client.rank("unwind", decision_id="unanswered")
        client.change_items("unwind", add=["swim"])
        assert client.series("unwind").series["learnt"]
        service.stop()
    return folder


def test_rankers_are_listed(folder: Path) -> None:
    told = _run(folder, "rankers")
    assert "unwind  RTop1F, 150 rounds learnt" in told
    found = {one["name"]: one for one in json.loads(_run(folder, "rankers", "--json"))}
    assert found["pages"]["counts"]["activated"] == 150
    assert found["unwind"]["current"][0] in {"walk", "swim"}
    assert found["pages"]["estimates"]["value"]["clicks"]["mean"] > 0.5


def test_everything_adds_up(folder: Path) -> None:
    told = _run(folder, "verify")
    assert told.count("adds up") == 2
    assert "151 lists drawn again" in told
    assert "adds up" in _run(folder, "verify", "pages")
    assert "no ranker 'nobody'" in refused("verify", "nobody", "--data", folder)


def test_a_log_that_was_tampered_with_does_not_add_up(folder: Path, tmp_path: Path) -> None:
    import shutil

    import apsw

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    database = apsw.Connection(str(copy / "rankloop.db"))
    kind = records.KINDS.index("feedback")
    liked = records.encode(records.Answer("relevance", np.ones(1).tobytes()))
    disliked = records.encode(records.Answer("relevance", np.zeros(1).tobytes()))
    database.execute("UPDATE log SET body = ? WHERE topic & 31 = ? AND body = ?", (disliked, kind, liked))
    changed = database.changes()
    database.close()
    assert changed
    assert "DOES NOT ADD UP" in call("verify", "unwind", "--data", copy, code=1).output


def test_the_log_as_a_table(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "pages.parquet"
    assert "300 rows" in _run(folder, "export", "pages", "--parquet", str(file))
    table = pl.read_parquet(file)
    assert {"item", "position", "click", "propensity"} <= set(table.columns)
    assert set(table["position"]) == {1, 2}
    assert ((table["propensity"] > 0) & (table["propensity"] <= 1)).all()
    first = table.filter(pl.col("position") == 1)
    # Each item's chance at a position, weighed, says how often it would be clicked there: the truth is known.
    walk = first.filter(pl.col("item") == "walk")
    assert walk["click"].mean() == pytest.approx(LIKED["walk"], abs=0.12)
    log = data.read_logged_lists(file, item_ids=list(LIKED))
    assert (log.n_rows, dict(log.bad_rows)) == (300, {})
    found = logs.evaluate(log, [0, 1], estimator="item-position", least_effective=5)  # walk, then tea
    # A row of the table is one position, so this is the clicks for each: half of 0.9 + 0.6.
    assert found.low < 0.75 < found.high
    unwind = tmp_path / "unwind.parquet"
    _run(folder, "export", "unwind", "--parquet", str(unwind))
    assert pl.read_parquet(unwind)["decision"].n_unique() == 150
    lines = tmp_path / "pages.ndjson"
    said = _run(folder, "export", "pages", "--parquet", str(file), "--ubi", str(lines))
    assert f"{lines}: 150 lists" in said
    assert data.read_logged_lists(lines).n_rows == 150
    assert "--parquet or --ubi" in refused("export", "unwind", "--data", folder)


def test_another_ranker_on_the_log(folder: Path) -> None:
    told = _run(folder, "replay", "pages", "--ranker", "FTRLPBM", "--set", "n_positions=2")
    assert "150 lists with feedback" in told
    assert "FTRLPBM: " in told
    assert "95% from" in told
    assert "matches" in _run(folder, "replay", "unwind", "--ranker", "RTop1F", "--set", "measure=sum_loss")
    refused("replay", "unwind", "--ranker", "ListNet", "--data", folder)


def test_a_folder_that_is_served_already_is_named(tmp_path: Path) -> None:
    async def hold() -> str:
        store = SQLiteStore(tmp_path)
        await store.open()
        try:
            done = await asyncio.to_thread(
                CliRunner().invoke, app, ["serve", "--data", str(tmp_path), "--port", "0"]
            )
            assert done.exit_code == 2
            return done.output
        finally:
            await store.close()

    told = asyncio.run(hold())
    assert told.startswith(
        f"error: {tmp_path} is served by another process already (process ID {os.getpid()})"
    )
    assert told.count("\n") == 1


def test_what_goes_wrong_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    parquet = folder / "none" / "x.parquet"
    for arguments, words in (
        ("serve --database foo --port 0", "a URL looks like postgresql://user@host:5432/name"),
        ("serve --database postgresql://host:port/x --port 0", "cannot use the database"),
        ("serve --database postgresql://me:secret@127.0.0.1:1/x --port 0", "cannot connect to"),
        ("rankers --database postgresql://nobody@127.0.0.1:1/none", "cannot connect to postgresql:"),
        ("serve --data /proc/none --port 0", "cannot write to the folder /proc/none"),
        ("serve --memory --ranker nowhere.at:All", "'nowhere.at:All' cannot be imported"),
        ("serve --memory --ranker os:system", "must be a subclass of rankloop.base.Ranker"),
        (f"keys delete --data {tmp_path}", "keys delete needs the ID of a key"),
        (f"keys change --data {tmp_path}", "action must be one of"),
        (f"keys add --role owner --data {folder}", "role must be one of"),
        (f"keys delete abc --data {folder}", "there is no key 'abc'"),
        (f"export unwind --parquet {parquet} --data {folder}", "there is no folder"),
    ):
        sentence = refused(*arguments.split())
        assert words in sentence
        assert "secret" not in sentence


def test_a_folder_without_a_store_is_told_and_not_made(tmp_path: Path) -> None:
    mistyped = tmp_path / "none"
    for arguments in (
        *("rankers", "verify", "upgrade", "trim", "delete unwind", "erase --subject somebody"),
        *("keys list", "keys delete abc", "keys open"),
    ):
        assert refused(*arguments.split(), "--data", mistyped).startswith(
            f"there is no store in {mistyped}: "
        )
        assert not mistyped.exists()
