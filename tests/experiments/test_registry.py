from __future__ import annotations

import subprocess
import sys

import pytest

from rankloop import experiments


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"top1-2015-fig1, top1-2015-fig2.*got 'fig1'"):
        experiments.get("fig1")


def test_listing_names_imports_no_heavy_library() -> None:
    code = (
        "import sys; from rankloop import experiments; experiments.names(); "
        "print([m for m in ('numba', 'matplotlib', 'polars', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", experiments.names())
def test_every_experiment_is_described_and_has_jobs(name: str) -> None:
    experiment = experiments.get(name)
    assert experiment.name == name
    assert experiment.title
    assert experiment.paper
    assert experiment.caption
    for quick in (True, False):
        jobs = experiment.jobs(quick=quick)
        identities = {job.identity(experiment=name, version=experiment.version) for job in jobs}
        assert len(identities) == len(jobs) > 0
