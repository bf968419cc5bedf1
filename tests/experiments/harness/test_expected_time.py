"""How long an experiment will take is recorded of each."""

from __future__ import annotations

from rankloop import experiments
from rankloop.experiments.harness import expected_time
from tests.experiments.toy import Toy


def test_the_time_of_every_experiment_is_recorded() -> None:
    for name in experiments.names():
        experiment = experiments.get(name)
        if experiment.missing() is None:
            jobs = experiment.jobs(quick=False)
            work = expected_time.expected(experiment, jobs, jobs, slowness=1.0)
            assert work is not None, f"python -m benchmarks.reproduce_times {name}"
            half = expected_time.expected(experiment, jobs, jobs[::2], slowness=2.0)
            assert half is not None
            assert 0 < half.seconds < 2 * work.seconds
    assert expected_time.expected(Toy(), Toy().jobs(quick=True), [], slowness=1.0) is None
