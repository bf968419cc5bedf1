"""A Ray cluster of two nodes on this machine, one of which is killed in the middle: nothing is lost, nothing twice."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from rankloop import cli, experiments, simulation
from rankloop.experiments.harness.reproduce import run_jobs
from rankloop.simulation.executors import Dispatch, RayCluster
from tests.experiments.harness.test_reproduce import Sent
from tests.experiments.toy import Toy
from tests.simulation.test_play import clicked_pair, same

ray = pytest.importorskip("ray")

PATIENCE = 240.0  # seconds; a busy machine starts a worker in many


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")  # no worker is ended because this machine is full
        patch.setenv("RAY_health_check_period_ms", "500")  # of five that fail; a slow answer has ten seconds
        patch.delenv("RAY_ADDRESS", raising=False)
        # Ray listens on the address that other machines see, unless it believes to be on a laptop.
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        patch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
        folder = Path(tempfile.mkdtemp(prefix="rl-", dir="/tmp"))  # short: sockets lie in it
        (folder / "ray").mkdir()
        patch.setenv("RAY_TMPDIR", str(folder))  # of whatever is not told of `temp_dir`
        from ray.cluster_utils import Cluster

        small = {
            "num_cpus": 1,
            "object_store_memory": 80 * 2**20,
            "include_dashboard": False,
            "temp_dir": str(folder / "ray"),
        }
        started = Cluster(initialize_head=True, head_node_args=small)
        try:
            yield started, started.add_node(**small)
        finally:
            ray.shutdown()
            started.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


class Gated(NamedTuple):
    """A run that waits for what the test wants to happen."""

    seed: int
    folder: Path
    doomed: str


def _play_gated(job: Gated) -> Any:
    here = ray.get_runtime_context().get_node_id() == job.doomed
    first = job.folder / ("first-there" if here else "first-here")
    hanging, killed = job.folder / "hanging", job.folder / "killed"
    if not first.exists():
        first.touch()  # the first job of each node ends at once
    elif here:
        hanging.touch()  # the second one never does on the node that will be killed
        time.sleep(PATIENCE)
    else:
        until = time.monotonic() + PATIENCE
        while not killed.exists() and time.monotonic() < until:
            time.sleep(0.02)
    return simulation.play(*clicked_pair(), rounds=300, seed=job.seed, points=30)


def test_a_node_that_is_killed_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    machines, node = cluster
    seeds = list(range(10))
    wanted = simulation.play_many(clicked_pair, rounds=300, seeds=seeds, points=30)
    with RayCluster(machines.address) as executor:
        assert executor.workers == 2
        found: list[tuple[int, Any]] = []
        jobs = [Gated(seed, tmp_path, node.node_id) for seed in seeds]
        work = Dispatch(
            _play_gated,
            jobs,
            names=[f"seed {seed}" for seed in seeds],
            executor=executor,
            workers=executor.workers,
        )
        until = time.monotonic() + PATIENCE

        def glance() -> None:
            assert time.monotonic() < until
            if (tmp_path / "hanging").exists() and not (tmp_path / "killed").exists():
                machines.remove_node(node, allow_graceful=False)
                (tmp_path / "killed").touch()

        work.run(lambda place, result, seconds: found.append((place, result)), glance)
        assert (tmp_path / "killed").exists()
        assert sorted(place for place, _ in found) == seeds  # each once
        assert all(same(wanted[place], trace) for place, trace in found)


def test_what_is_left_of_the_cluster_runs_experiments(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = cluster[0].address
    here = run_jobs(Toy(), out=tmp_path / "here")
    with RayCluster(address) as executor:
        there = run_jobs(Sent(), out=tmp_path / "there", executor=executor)
    assert there.results.equals(here.results)
    monkeypatch.setattr(experiments, "_KNOWN", {"toy": f"{Sent.__module__}:{Sent.__name__}"})
    told = ["reproduce", "toy", "--executor", "ray", "--address", address, "--out", str(tmp_path / "cli")]
    result = CliRunner().invoke(cli.app, told)
    assert result.exit_code == 0, result.output
    assert "toy: 2 of 2 claims hold (6 jobs," in result.stdout
    assert "--address is of --executor ray" in CliRunner().invoke(cli.app, [*told[:2], *told[4:]]).stderr


def test_another_address_is_refused(cluster: Any) -> None:
    with (
        RayCluster(cluster[0].address),
        pytest.raises(ValueError, match=r"address must be .*got '10.0.0.9:1'"),
    ):
        RayCluster("10.0.0.9:1")


def test_the_results_of_many_runs_come_back(cluster: Any) -> None:
    os.environ["RAY_ADDRESS"] = cluster[0].address
    try:
        found = simulation.play_many(clicked_pair, rounds=300, seeds=[3, 1], executor="ray")
    finally:
        del os.environ["RAY_ADDRESS"]
    assert all(map(same, found, simulation.play_many(clicked_pair, rounds=300, seeds=[3, 1])))
    assert not ray.is_initialized()
