"""How long each experiment takes: plays a sample of its jobs, and records what `rankloop reproduce --list` tells.

python -m benchmarks.reproduce_times [NAME...]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import event

from rankloop import experiments
from rankloop.experiments import runs
from rankloop.experiments.experiment import Experiment, Job
from rankloop.experiments.harness import expected_time
from rankloop.extras import write_whole

DRAWS = 8
LONGEST = 90.0  # seconds for the sample of one experiment, but at least three jobs


class Compiling(event.Listener):
    """Whether anything was compiled: that is done once, and belongs to no job."""

    def __init__(self) -> None:
        self.met = False

    def on_start(self, event: Any) -> None:
        self.met = True

    def on_end(self, event: Any) -> None:
        return


def _seconds(experiment: Experiment, job: Job) -> float:
    begun = time.process_time()  # of all threads: some jobs have several
    experiment.run(job)
    return time.process_time() - begun


def drawn(jobs: Sequence[Job], count: int, *, seed: int) -> list[Job]:
    """`count` jobs in random order, each drawn with a chance proportional to its cost, evenly along the list."""
    rng = np.random.default_rng(seed)
    sums = np.cumsum([job.cost for job in jobs])
    at = (np.arange(count) + rng.random()) / count * sums[-1]
    chosen = [jobs[place] for place in np.searchsorted(sums, at, side="right")]
    return [chosen[place] for place in rng.permutation(count)]


def sampled(experiment: Experiment, compiling: Compiling) -> dict[str, float]:
    jobs = experiment.jobs(quick=False)
    paces: list[float] = []
    spent = 0.0
    runs.forget()  # what another experiment has played counts for this one, too
    for job in drawn(jobs, DRAWS, seed=1):
        compiling.met = False
        seconds = _seconds(experiment, job)
        if compiling.met:
            seconds = min(seconds, _seconds(experiment, job))
        paces.append(seconds / job.cost)
        spent += seconds
        if spent > LONGEST and len(paces) >= 3:
            break
    total = sum(job.cost for job in jobs)
    error = total * np.std(paces, ddof=1) / np.sqrt(len(paces))
    return {
        "jobs": len(jobs),
        "sampled": len(paces),
        "seconds": round(total * float(np.mean(paces)), 1),
        "error": round(float(error), 1),
    }


def main() -> None:
    compiling = Compiling()
    register: Any = event.register
    register("numba:compile", compiling)
    try:
        record = json.loads(expected_time.RECORDED.read_text(encoding="utf-8"))
    except OSError:
        record = {"calibration": round(expected_time.measure(), 4), "experiments": {}}
    now = expected_time.measure() / record["calibration"]
    print(f"calibration: {now:.2f} times the record's", flush=True)
    for name in sys.argv[1:] or experiments.names():
        experiment = experiments.get(name)
        if experiment.missing() is None:
            found = sampled(experiment, compiling)
            slowness = expected_time.measure() / record["calibration"]
            for part in ("seconds", "error"):
                found[part] = round(found[part] / slowness, 1)
            record["experiments"][name] = found
            told = ", ".join(f"{key} {value:,}" for key, value in found.items())
            print(f"{name}: {told}, slowness {slowness:.2f}", flush=True)
            text = json.dumps(record, indent=2) + "\n"
            write_whole(
                expected_time.RECORDED,
                lambda part, text=text: part.write_text(text, encoding="utf-8"),  # type: ignore[misc]
            )


if __name__ == "__main__":
    main()
