"""Reading rows of many runs: what is chosen, and means with their spread."""

from __future__ import annotations

import polars as pl
import pytest

from rankloop.experiments import runs

ROWS = pl.DataFrame(
    {
        "seed": [2, 2, 1, 1],
        "round": [5, 10, 5, 10],
        "rounds": [10] * 4,
        "learner": ["a"] * 4,
        "regret": [2.0, 8.0, 4.0, 4.0],
    }
)


def test_rows_are_chosen_by_all_values_and_none_is_an_error() -> None:
    assert runs.chosen(ROWS, seed=1, round=10)["regret"].to_list() == [4.0]
    with pytest.raises(ValueError, match=r"no rows with \{'seed': 3\}"):
        runs.chosen(ROWS, seed=3)


def test_means_over_runs_with_all_runs_or_errors_around_them() -> None:
    found = runs.over_runs(ROWS)
    assert found.columns == ["round", "mean", "error", "low", "high"]
    assert found.rows() == [(5, 3.0, pytest.approx(1.0), 2.0, 4.0), (10, 6.0, pytest.approx(2.0), 4.0, 8.0)]
    per_round = runs.over_runs(ROWS, runs.PER_ROUND, errors=3)
    assert per_round.row(1) == pytest.approx((10, 0.6, 0.2, 0.0, 1.2))


def test_the_ends_of_runs_come_by_seed() -> None:
    assert runs.ends(ROWS, "regret", learner="a").tolist() == [4.0, 8.0]


def test_a_run_counts_once_however_many_worlds_it_met() -> None:
    assert runs.level(ROWS, learner="a") == pytest.approx((4.5, 0.5))


def test_a_table_of_means() -> None:
    table = runs.pivot(ROWS, index=["learner"], on="round", digits=1, value=2 * pl.col("regret"))
    assert table.rows(named=True) == [{"learner": "a", "5": 6.0, "10": 12.0}]
