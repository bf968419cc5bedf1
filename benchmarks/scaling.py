"""What a second core brings to threads, processes and Ray, what a start costs, and what a job costs beside its work.

python -m benchmarks.scaling [threads processes ray] [--seconds 4] [--workers 2]

Every figure is taken with one worker and with all of them in turn. Where other programs run meanwhile, wall time says
little: the last column tells the speed-up that the CPU time of the jobs allows on free cores, that is workers times
CPU time alone over CPU time together.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from rankloop import environments, rankers, simulation
from rankloop.simulation.executors import Dispatch, Processes, RayCluster

LONG_JOBS = 6
SHORT_JOBS = 400


class Piece(NamedTuple):
    seed: int
    rounds: int


def work(piece: Piece) -> tuple[float, float]:
    """Play one run; its regret, and the CPU time that it took."""
    begun = time.thread_time()
    pair = rankers.FTRLPBM(n_items=10, n_positions=5), environments.named("gap-0.03")
    trace = simulation.play(*pair, rounds=piece.rounds, seed=piece.seed, points=10, progress=False)
    return trace.total_regret, time.thread_time() - begun


@contextmanager
def started(kind: str, workers: int) -> Iterator[Any]:
    if kind == "threads":
        with ThreadPoolExecutor(workers) as pool:
            yield pool
    elif kind == "processes":
        with Processes(workers) as processes:
            yield processes
    else:
        with RayCluster(workers=workers) as cluster:
            yield cluster


def run(executor: Any, workers: int, pieces: list[Piece]) -> tuple[float, float, list[float]]:
    """Wall time, CPU time of the jobs, and their results in order."""
    found: dict[int, tuple[float, float]] = {}
    begun = time.perf_counter()
    Dispatch(
        work,
        pieces,
        names=[f"seed {piece.seed}" for piece in pieces],
        executor=executor,
        workers=workers,
    ).run(lambda place, result, seconds: found.update({place: result}))
    wall = time.perf_counter() - begun
    results = [found[place] for place in range(len(pieces))]
    return wall, sum(cpu for _, cpu in results), [regret for regret, _ in results]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["threads", "processes", "ray"])
    parser.add_argument("--seconds", type=float, default=4.0, help="of CPU time in a long job")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    work(Piece(1, 2_000))  # compiles
    pace = work(Piece(1, 200_000))[1] / 200_000
    rounds = max(1, int(given.seconds / pace))
    long = [Piece(seed, rounds) for seed in range(LONG_JOBS)]
    short = [Piece(seed, 100) for seed in range(SHORT_JOBS)]
    print(f"{LONG_JOBS} jobs of {rounds:,} rounds; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(
        f"{'executor':<10} {'start s':>8} {'wall 1':>8} {f'wall {given.workers}':>8} {'speed-up':>9} "
        f"{'job cost ms':>12} {'cpu 1':>7} {f'cpu {given.workers}':>7} {'on free cores':>14}"
    )
    expected: list[float] | None = None
    for kind in given.kinds:
        walls, cpus = [], []
        for workers in (1, given.workers):
            begun = time.perf_counter()
            with started(kind, workers) as executor:
                # A first piece on each worker: processes begin, libraries are imported, code is read.
                run(executor, workers, [Piece(1, 100)] * (2 * workers))
                start = time.perf_counter() - begun
                wall, cpu, results = run(executor, workers, long)
                small, small_cpu, _ = run(executor, workers, short)
            expected = expected or results
            if results != expected:
                raise SystemExit(f"{kind} with {workers} workers gives other results")
            walls.append(wall)
            cpus.append(cpu)
        each = 1_000 * max(0.0, small * given.workers - small_cpu) / SHORT_JOBS
        print(
            f"{kind:<10} {start:>8.1f} {walls[0]:>8.1f} {walls[1]:>8.1f} {walls[0] / walls[1]:>8.2f}x {each:>12.2f} "
            f"{cpus[0]:>7.1f} {cpus[1]:>7.1f} {given.workers * cpus[0] / cpus[1]:>13.2f}x",
            flush=True,
        )
    print(f"load afterwards {os.getloadavg()[0]:.1f}; the results of all are the same")


if __name__ == "__main__":
    main()
