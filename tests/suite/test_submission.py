"""Playing the suite: who can play where, what is kept, and what verify finds of a forged submission."""

from __future__ import annotations

import copy
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from rankloop import rankers, simulation
from rankloop.suite import (
    Entry,
    NotApplicable,
    Submission,
    Verification,
    every_entry,
    read_submission,
    run,
    submission,
    verify,
)
from rankloop.suite.submission import Delayed
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
    real = submission._begin

    def noted(part: Any) -> Any:
        if len(played) == 4:
            raise KeyboardInterrupt
        played.append(part.world.name)
        return real(part)

    monkeypatch.setattr(submission, "_begin", noted)
    with pytest.raises(KeyboardInterrupt):
        small.submission(tmp_path, workers=1)
    assert not [file for file in tmp_path.rglob("*") if file.name.endswith(".part")]
    monkeypatch.setattr(submission, "_begin", lambda part: (played.append(part.world.name), real(part))[1])
    again = small.submission(tmp_path)
    assert sorted(played) == 3 * ["late"] + 3 * ["still"] + 3 * ["turning"], "four were kept"
    monkeypatch.setattr(submission, "_begin", real)
    assert again.results.equals(small.submission().results)
    kept = min((tmp_path / "runs").iterdir())
    kept.write_text("half a fi")
    assert small.submission(tmp_path).results.equals(again.results), "what cannot be read is played again"
    assert pl.read_parquet(kept).height == 2


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
    monkeypatch.setattr(submission, "MOST_BYTES", 10**8)
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


@pytest.fixture(scope="module")
def honest() -> Submission:
    return small.submission()


def checked(given: Submission, tmp_path: Path, *, sample: int = 100) -> Verification:
    given.write(tmp_path / "given.parquet")
    return verify(tmp_path / "given.parquet", sample=sample, worlds=small.WORLDS)


def at(ranker: str, world: str, seed: int) -> pl.Expr:
    return (pl.col("ranker") == ranker) & (pl.col("world") == world) & (pl.col("seed") == seed)


def test_an_honest_submission_holds(honest: Submission, tmp_path: Path) -> None:
    found = checked(honest, tmp_path)
    assert found.holds, found.problems
    assert len(found.replays) == 12
    assert all(replay.agrees for replay in found.replays)
    assert found.remarks == ()
    assert len(checked(honest, tmp_path, sample=3).replays) == 3


def test_a_forged_value_is_found(honest: Submission, tmp_path: Path) -> None:
    better = pl.when(at("FTRLPBM", "still", 1)).then(pl.col("value") + 1e-6).otherwise(pl.col("value"))
    forged = honest.results.with_columns(better.alias("value"))
    assert "its score does not follow" in checked(Submission(forged, honest.provenance), tmp_path).problems[0]
    share = (pl.col("value") - pl.col("random")) / (pl.col("best") - pl.col("random"))
    careful = Submission(forged.with_columns(share.alias("score")), honest.provenance)
    found = checked(careful, tmp_path)
    assert [problem.partition(":")[0] for problem in found.problems] == ["FTRLPBM in still, seed 1"]
    assert [replay.agrees for replay in found.replays].count(False) == 1


def test_forged_references_are_found(honest: Submission, tmp_path: Path) -> None:
    share = (pl.col("value") - pl.col("random")) / (pl.col("best") - pl.col("random"))
    for name in ("random", "best"):
        low = pl.when(at("FTRLPBM", "late", 0)).then(pl.col(name) - 1e-3).otherwise(pl.col(name)).alias(name)
        forged = honest.results.with_columns(low).with_columns(share.alias("score"))
        assert not checked(Submission(forged, honest.provenance), tmp_path).holds


def test_what_is_left_out_is_found(honest: Submission, tmp_path: Path) -> None:
    for dropped, message in (
        (honest.results.filter(~at("FTRLPBM", "turning", 0)), "must have the seeds 0 to 1"),
        (honest.results.filter(pl.col("ranker") != "FTRLPBM"), "rows of worlds or rankers"),
        (honest.results.with_columns(rounds=pl.col("rounds") + 1), "another number of rounds"),
    ):
        found = checked(Submission(dropped, honest.provenance), tmp_path)
        assert not found.holds
        assert message in found.problems[0]
    lazy = honest.results.filter(
        ~((pl.col("ranker") == "FTRLPBM") & (pl.col("world") == "turning") & (pl.col("seed") == 1))
    ).with_columns(
        seed=pl.when(at("FTRLPBM", "turning", 0)).then(None).otherwise(pl.col("seed")),
        not_applicable=pl.when(at("FTRLPBM", "turning", 0))
        .then(pl.lit("it would lose"))
        .otherwise(pl.col("not_applicable")),
    )
    excuse = pl.col("not_applicable") == "it would lose"
    blank = [
        pl.when(excuse).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("value", "random", "best", "score")
    ]
    found = checked(Submission(lazy.with_columns(blank), honest.provenance), tmp_path)
    assert found.problems == ("FTRLPBM can play in turning, and the file says that it cannot",)


def test_other_worlds_and_versions_are_found(honest: Submission, tmp_path: Path) -> None:
    for change, message in (
        ({"suite": 0}, "it is of version 0 of the suite"),
        (
            {"worlds": honest.provenance["worlds"] | {"still": "0" * 16}},
            "the world still is another one there",
        ),
        ({"worlds": {"still": honest.provenance["worlds"]["still"]}}, "it leaves out the world turning"),
    ):
        found = checked(Submission(honest.results, honest.provenance | change), tmp_path)
        assert message in found.problems[0]
    other = copy.deepcopy(honest.provenance) | {"code": "another"}
    found = checked(Submission(honest.results, other), tmp_path)
    assert found.holds
    assert "other code of rankloop" in found.remarks[0]
