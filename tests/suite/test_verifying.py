"""What verify finds: forged values, dropped worlds, false excuses."""

from __future__ import annotations

import copy
from pathlib import Path

import polars as pl
import pytest

from rankloop.suite import Submission, Verification, verify
from tests.suite import small


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
