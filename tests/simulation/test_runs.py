"""Jobs with an identity: run once, whatever runs them, and found again; nothing is mixed."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from rankloop import data, environments
from rankloop.simulation import runs

JOBS = [runs.Job(f"job {n}", f"id{n}", n, cost=float(n)) for n in range(5)]


def square(n: int) -> pl.DataFrame:
    if n < 0:
        raise ValueError(f"n must not be negative, got {n}")
    return pl.DataFrame({"square": [n * n]})


def test_rows_come_in_order_and_are_found_again(tmp_path: Path) -> None:
    kept = runs.Kept(tmp_path)
    screen, began = io.StringIO(), list[int]()

    def work(n: int) -> pl.DataFrame:
        began.append(n)
        return square(n)

    first = runs.run_jobs(work, JOBS, kept=kept, workers=1, progress=True, label="squares", stream=screen)
    assert [each.rows.item() for each in first] == [0, 1, 4, 9, 16]
    assert began == [4, 3, 2, 1, 0]  # the costliest begin
    assert [mark in screen.getvalue() for mark in ("squares", "40% 1/5 jobs", "100% 5/5 jobs")] == [True] * 3
    with ThreadPoolExecutor(1) as pool:
        again = runs.run_jobs(square, JOBS, kept=runs.Kept(tmp_path), executor=pool)
    assert all(each.resumed for each in again)
    assert [(each.rows.item(), each.seconds) for each in again] == [
        (each.rows.item(), each.seconds) for each in first
    ]
    assert not any(each.resumed for each in runs.run_jobs(square, JOBS, kept=kept, fresh=True))


def test_what_ended_before_an_error_is_kept(tmp_path: Path) -> None:
    kept = runs.Kept(tmp_path)
    wrong = runs.Job("the wrong job", "wrong", -1, cost=2.5)
    with pytest.raises(ValueError, match="got -1") as failed:
        runs.run_jobs(square, [*JOBS, wrong], kept=kept, workers=1)
    assert failed.value.__notes__ == ["while running the wrong job"]
    assert [kept.has(job.identity) for job in JOBS] == [False, False, False, True, True]


def test_without_a_folder_nothing_is_kept() -> None:
    kept = runs.Kept(None)
    runs.run_jobs(square, JOBS, kept=kept)
    assert not kept.has("id0")


def test_rows_of_other_code_and_of_others_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = runs.Kept(tmp_path)
    runs.run_jobs(square, JOBS, kept=kept)
    square(7).write_parquet(kept.file("id1"))
    kept.file("id2").write_bytes(b"half a file")
    assert [kept.has(job.identity) for job in JOBS] == [True, False, False, True, True]
    assert [each.rows.item() for each in runs.run_jobs(square, JOBS, kept=kept)] == [0, 1, 4, 9, 16]
    monkeypatch.setattr(runs, "code_fingerprint", lambda: "other")
    assert not any(kept.has(job.identity) for job in JOBS)


def test_what_cannot_be_compared_cannot_be_kept() -> None:
    with pytest.raises(ValueError, match="plain arguments"):
        runs.identity([print])


def test_a_hash_sees_every_number() -> None:
    queries = data.synthetic_letor(n_queries=3, n_features=2, seed=1)
    changed = queries.features.copy()
    changed[-1, -1] += 1e-12
    streams = [
        environments.QueryStream(each)
        for each in (queries, data.synthetic_letor(n_queries=3, n_features=2, seed=1))
    ]
    assert len({runs.identity(stream) for stream in streams}) == 1
    assert runs.identity(queries.features) != runs.identity(changed)
