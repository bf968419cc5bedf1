"""Runs of experiments: rows chosen, means with their spread, and runs played once that several look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from rankloop import environments, rankers, simulation
from rankloop.base import Environment, Ranker
from rankloop.experiments import runs
from rankloop.experiments.experiment import Job
from rankloop.experiments.pbm_2022 import comparison, estimators, ftrl, table1
from rankloop.simulation import Trace

SIZE: dict[str, Any] = {"n_items": 10, "n_positions": 5}
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


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who was played, run by run; nothing is known when a test begins or ends."""
    found: list[str] = []

    def play(ranker: Ranker, *args: Any, **options: Any) -> Trace:
        found.append(repr(ranker))
        return simulation.play(ranker, *args, **options)

    monkeypatch.setattr(runs, "play", play)
    monkeypatch.setattr(runs, "_played", {})
    return found


def once(ranker: Ranker, environment: Environment, *, seed: int = 1, points: int = 20) -> Trace:
    return runs.play_once(ranker, environment, rounds=200, seed=seed, points=points)


def test_the_same_run_is_played_once(played: list[str]) -> None:
    first = once(rankers.FTRLPBM(**SIZE), environments.named("yandex"))
    again = once(rankers.FTRLPBM(**SIZE, estimator="loss"), environments.named("yandex"))
    assert again is first
    assert len(played) == 1
    alone = simulation.play(
        rankers.FTRLPBM(**SIZE), environments.named("yandex"), rounds=200, seed=1, points=20
    )
    np.testing.assert_array_equal(first.total, alone.total)


def test_another_run_is_another_one(played: list[str]) -> None:
    users = environments.named("yandex")
    once(rankers.FTRLPBM(**SIZE), users)
    once(rankers.FTRLPBM(**SIZE, estimator="mean"), users.clone())
    once(rankers.FTRLPBM(**SIZE), users.clone(), seed=2)
    once(rankers.FTRLPBM(**SIZE), users.clone(), points=10)
    once(rankers.FTRLPBM(**SIZE), environments.named("gap-0.03"))
    once(rankers.FTRLPBM(**SIZE), environments.Periodic.reversing(users.clone(), phase=50))
    once(rankers.FTRLPBM(**SIZE), environments.Periodic.reversing(users.clone(), phase=60))
    assert len(played) == 7
    runs.forget()
    once(rankers.FTRLPBM(**SIZE), users.clone())
    assert len(played) == 8


def test_rankers_of_others_play_each_time(played: list[str]) -> None:
    for _ in range(2):
        once(Mine(**SIZE), environments.named("yandex"))
    assert len(played) == 2


class Mine(rankers.Uniform):
    """A ranker of another package."""


def _short(job: Job) -> Job:
    return Job(job.name, job.seed, dict(job.settings) | {"rounds": 4_000, "phase": 2_000})


def test_the_experiments_of_the_2022_paper_share_their_runs(played: list[str]) -> None:
    def jobs(experiment: Any, **wanted: Any) -> list[Job]:
        listed = experiment.jobs(quick=True)
        return [_short(job) for job in listed if wanted.items() <= job.settings.items() and job.seed == 1]

    figure, table, alone, form = (
        comparison.PBMFigure1(),
        table1.PBMTable1(),
        ftrl.PBMFTRL(),
        estimators.PBMEstimators(),
    )
    rows = figure.run(jobs(figure, algorithm=comparison.FTRL, panel="b")[0])
    of_table = table.run(jobs(table, algorithm=comparison.FTRL, panel="a")[0])
    figure.run(jobs(figure, algorithm=comparison.FTRL, panel="a")[0])
    same = alone.run(jobs(alone, source="gap-0.03", kind="periodic 1")[0])
    last = form.run(jobs(form, source="gap-0.03", kind="periodic 1", estimator="loss")[0])
    assert len(played) == 2  # panels (a) and (b)
    assert (len(rows), len(same), len(last), len(of_table)) == (200, 200, 50, 200)
    assert rows["regret"].to_list() == same["regret"].to_list()
    assert rows["round"].to_list()[3::4] == last["round"].to_list()
    assert rows["regret"].to_list()[3::4] == last["regret"].to_list()
