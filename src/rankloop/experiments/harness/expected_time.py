"""How long an experiment will take: recorded seconds of computing, scaled to this machine by a short calibration.

`python -m benchmarks.reproduce_times` records them: it plays a sample of the jobs of every experiment, drawn with
chances proportional to their costs, so that seconds per cost times all costs is an unbiased estimate.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rankloop.experiments.experiment import Experiment, Job

RECORDED = Path(__file__).with_name("recorded_times.json")
_ROUNDS = 200_000


@dataclass(frozen=True, slots=True)
class Expected:
    """The work of an experiment on this machine: seconds of computing on one core, and their standard error."""

    seconds: float
    error: float


def expected(
    experiment: Experiment, jobs: Sequence[Job], todo: Sequence[Job], *, slowness: float
) -> Expected | None:
    """The work that is left of an experiment, on a machine that takes `slowness` times as long as that of the record.

    None where nothing is recorded of this experiment, as it is played here.
    """
    record = _recorded()["experiments"].get(experiment.label)
    if record is None or record["jobs"] != len(jobs):
        return None
    share = sum(job.cost for job in todo) / sum(job.cost for job in jobs)
    return Expected(*(record[part] * slowness * share for part in ("seconds", "error")))


def is_recorded(experiment: Experiment) -> bool:
    """Whether something is known of how long an experiment takes: not of one of one's own."""
    return experiment.label in _recorded()["experiments"]


def calibrate() -> float:
    """How many times longer this machine takes for a fixed piece of work than the one of the record."""
    return measure() / float(_recorded()["calibration"])


def measure() -> float:
    """Seconds for the piece of work by which machines are compared.

    The smallest of three tries, on the clock of this thread, so that other programs matter little.
    """
    from rankloop import environments, rankers, simulation

    tries = []
    for _ in range(4):  # the first may compile
        pair = (
            rankers.RTop1F(n_items=20, horizon=_ROUNDS),
            environments.FixedItems(environments.users.noisy_halves(n_items=20), measure="dcg"),
        )
        begun = time.thread_time()
        simulation.play(*pair, rounds=_ROUNDS, seed=1, points=10, progress=False)
        tries.append(time.thread_time() - begun)
    return min(tries[1:])


@cache
def _recorded() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return record
