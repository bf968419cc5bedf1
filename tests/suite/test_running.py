"""Playing the suite: who can play where, what is kept, and what a submission says of itself."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop import rankers, simulation
from rankloop.suite import Entry, NotApplicable, Submission, every_entry, read_submission, run, running
from rankloop.suite import entry as entries
from rankloop.suite.delayed import Delayed
from rankloop.suite.worlds import WORLDS
from tests.suite import small


def test_a_submission_has_every_run_and_every_reason(tmp_path: Path) -> None:
    found = small.submission()
    rows = found.results.rows(named=True)
    assert len(rows) == 2 * (3 * 2 + 1)
    for row in rows:
        if row["world"] == "relevant":
            assert row["value"] is None
            assert row["score"] is None, "not applicable is not a score of zero"
            assert "learns from clicks" in row["not_applicable"]
        else:
            own = (row["value"] - row["random"]) / (row["best"] - row["random"])
            assert row["score"] == pytest.approx(own)
    one = next(row for row in rows if (row["ranker"], row["world"], row["seed"]) == ("FTRLPBM", "still", 1))
    trace = simulation.play(
        rankers.FTRLPBM(n_items=4, n_positions=2), small.STILL.make(300), rounds=300, seed=1
    )
    random = simulation.play(
        rankers.Uniform(n_items=4, n_positions=2), small.STILL.make(300), rounds=300, seed=1
    )
    assert one["value"] == trace.mean_value
    assert one["random"] == random.mean_value
    assert one["best"] == pytest.approx(1.15)
    told = found.provenance
    assert told["worlds"] == {world.name: world.fingerprint(full=False) for world in small.WORLDS}
    assert (told["version"], told["seeds"], set(told["rankers"])) == ("quick", 2, {"FTRLPBM", "CascadeKLUCB"})
    assert {"rankloop", "python", "numpy", "numba"} <= set(told["versions"])
    found.write(tmp_path / "one.parquet")
    read = read_submission(tmp_path / "one.parquet")
    assert read.results.equals(found.results)
    assert read.provenance == told


def test_a_file_that_is_no_submission_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("no")
    with pytest.raises(ValueError, match="must be one that `rankloop suite run` wrote"):
        read_submission(tmp_path / "text.parquet")
    found = small.submission()
    Submission(found.results.drop("seed"), found.provenance).write(tmp_path / "less.parquet")
    with pytest.raises(ValueError, match="rows must have the columns"):
        read_submission(tmp_path / "less.parquet")


def test_what_has_ended_is_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[str] = []
    real = running._play

    def noted(group: Any, *rest: Any) -> Any:
        if len(played) == 2:
            raise KeyboardInterrupt
        played.append(group[0].world.name)
        return real(group, *rest)

    monkeypatch.setattr(running, "_play", noted)
    with pytest.raises(KeyboardInterrupt):
        small.submission(tmp_path)
    assert played == ["still", "turning"]
    assert not [file for file in tmp_path.rglob("*") if file.name.endswith(".part")]
    monkeypatch.setattr(
        running, "_play", lambda group, *rest: (played.append(group[0].world.name), real(group, *rest))[1]
    )
    again = small.submission(tmp_path)
    assert played == ["still", "turning", "late"], "two were kept"
    monkeypatch.setattr(running, "_play", real)
    assert again.results.equals(small.submission().results)
    kept = sorted((tmp_path / "runs").iterdir())
    kept[0].write_text("half a fi")
    assert small.submission(tmp_path).results.equals(again.results), "what cannot be read is played again"
    assert json.loads(kept[0].read_text())


def test_late_feedback_is_learnt_late() -> None:
    ranker = rankers.CascadeKLUCB(n_items=3, n_positions=1)
    late = Delayed(ranker, delay=2)
    rng = np.random.default_rng(1)
    for seen in (0, 0, 1, 2):
        late.learn(late.rank(rng=rng), [1.0])
        assert ranker.state.t[0] == seen
    assert late.current().tolist() == ranker.current().tolist()


def test_entries_are_read_as_the_command_line_writes_them() -> None:
    one = Entry.read("FTRLPBM,regulariser=hybrid,estimator=mean,forget=none")
    assert one.settings == {"regulariser": "hybrid", "estimator": "mean", "forget": None}
    assert one.label == "FTRLPBM,regulariser=hybrid,estimator=mean,forget=none"
    assert Entry.read(one.label) == one
    assert one.described()["path"] == "rankloop.rankers:FTRLPBM"
    assert Entry.read("rankloop.rankers.ftrl_pbm:FTRLPBM").path == "rankloop.rankers:FTRLPBM"
    for text, message in (
        ("Nobody", "ranker must be one of"),
        ("FTRLPBM,wrong=1", "FTRLPBM has no argument 'wrong'"),
        ("FTRLPBM,half", "RANKER FTRLPBM takes KEY=VALUE, got 'half'"),
        ("Uniform", "Uniform takes no part in the suite: it is the zero"),
    ):
        with pytest.raises(ValueError, match=message):
            Entry.read(text)


def test_who_cannot_play_anywhere_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MOST_BYTES", 10**8)
    with pytest.raises(
        ValueError, match="ListNet can play in none of the worlds: it ranks items by features"
    ):
        run([Entry("ListNet")], worlds=small.WORLDS, progress=False)
    with pytest.raises(ValueError, match="none twice"):
        run([Entry("FTRLPBM"), Entry("FTRLPBM")], worlds=small.WORLDS, progress=False)
    with pytest.raises(ValueError, match="seeds must be"):
        run(small.ENTRIES, worlds=small.WORLDS, seeds=0, progress=False)
    many = dataclasses.replace(next(world for world in WORLDS if world.name == "scale-10000"))
    with pytest.raises(NotApplicable, match=r"with 10,000 items it needs about 0\.4 GB of memory"):
        Entry("TopRank").make(many, rounds=10)


def test_every_ranker_of_the_package_can_play_somewhere() -> None:
    references = {"Uniform", "Fixed", "BestInHindsight"}
    assert {entry.name for entry in every_entry()} == set(rankers.__all__) - references
    small_enough = [world for world in WORLDS if not world.name.startswith("scale-1000")]
    for entry in every_entry():
        places = 0
        for world in small_enough:
            try:
                entry.make(world, rounds=100)
            except NotApplicable:
                continue
            places += 1
        assert places, entry


def test_an_executor_gives_the_same() -> None:
    options: dict[str, Any] = {"worlds": (small.LATE,), "seeds": 2, "progress": False}
    with ThreadPoolExecutor(1) as pool:
        elsewhere = run([Entry("CascadeKLUCB")], executor=pool, **options)
    assert elsewhere.results.equals(run([Entry("CascadeKLUCB")], **options).results)
    with pytest.raises(ValueError, match="executor must be"):
        run([Entry("CascadeKLUCB")], executor="nowhere", **options)
