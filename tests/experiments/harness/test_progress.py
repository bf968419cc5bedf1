"""The bar over the jobs: silent without a terminal, and the time left told from costs."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from rankloop.experiments.experiment import Job
from rankloop.experiments.harness import progress
from rankloop.experiments.harness.progress import duration, job_bar, rate

JOBS = [Job(name="dear", seed=1, cost=3.0), Job(name="cheap", seed=2, cost=1.0)]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599.4, "59 min 59 s"),
        (3600, "1 h 0 min"),
    ],
)
def test_durations_at_the_borders(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_a_rate_needs_a_finished_job_and_time() -> None:
    assert rate(0, 1.0) == rate(1, 0.0) == ""
    assert (rate(4, 4.0), rate(3, 4.0)) == ("1.0 jobs/s", "1.3 s/job")


def test_nothing_is_written_where_nobody_looks() -> None:
    written = io.StringIO()
    with job_bar("toy", JOBS, console=Console(file=written, force_terminal=False)) as advance:
        advance(JOBS[0])
    assert written.getvalue() == ""


def test_the_time_left_is_told_from_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=120)
    with job_bar("toy", JOBS, console=console) as advance:
        monkeypatch.setattr(progress.time, "perf_counter", lambda: 1e9)  # far later than the start
        advance(JOBS[0])
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.getvalue())
    assert "1/2 jobs" in shown
    # A third of the time that three quarters of the cost took.
    spent, left = (re.search(pattern, shown) for pattern in (r"([\d.]+) s/job", r"(\d+) h \d+ min left"))
    assert spent is not None
    assert left is not None
    assert int(left[1]) == pytest.approx(float(spent[1]) / 3 / 3600, rel=1e-3)
