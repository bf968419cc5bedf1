"""`python -m benchmarks.cuda`: every pair of ranker and environment on the GPU, beside the CPU of the same machine.

First the bytes: values, totals, regrets, the share of exploration and the whole state of ranker and environment after
short runs must be those of `play`. Then rounds per second of many runs at once, and of one run on one core.
What it said on an H200 is in `benchmarks/cuda-h200.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from rankloop import environments, feedback, rankers, simulation
from rankloop.environments import users
from rankloop.simulation import cuda
from rankloop.simulation.play import begin
from rankloop.simulation.trace import code_fingerprint

HORIZON = 1_000_000
BYTES_RUNS, BYTES_ROUNDS = 16, 2_000
SEEDS = 64  # of the timed runs, over and over
CC = (9, 0)
Pair = tuple[Callable[[], Any], Callable[[], Any]]


def _halves(n_items: int = 10, measure: str = "dcg") -> Any:
    return environments.FixedItems(users.noisy_halves(n_items=n_items), measure=measure)


def _listed() -> Any:
    rng = np.random.default_rng(7)
    return environments.FixedItems(
        users.listed(rng.integers(0, 2, (50, 10)), weights=rng.random(50)), measure="dcg"
    )


def _pairs() -> dict[str, Pair]:
    clicks, named = partial(environments.named, "gap-0.03"), environments.named
    ten, shown, known = {"n_items": 10}, {"n_items": 10, "n_positions": 5}, {"horizon": HORIZON}
    dcg = {**ten, "measure": "dcg"}
    one = partial(rankers.RTop1F, **dcg, **known)
    top = partial(rankers.TopRank, **shown, **known)
    cascade = feedback.CascadeModel(np.linspace(0.5, 0.05, 10))
    pairs: dict[str, Pair] = {
        "RTop1F": (one, _halves),
        "FTPL": (partial(rankers.FTPL, **dcg, **known), _halves),
        "PEGE": (partial(rankers.PEGE, **dcg), _halves),
        "TopFTRL": (partial(rankers.TopFTRL, **dcg), _halves),
        "SemiBanditFTRL": (partial(rankers.SemiBanditFTRL, **ten), _halves),
        "PrecisionFTRL": (
            partial(rankers.PrecisionFTRL, **ten, measure="precision@3"),
            partial(_halves, measure="precision@3"),
        ),
        "FeedExp3": (partial(rankers.FeedExp3, n_items=3), partial(_halves, 3)),
        "Fixed": (partial(rankers.Fixed, order=range(10)), _halves),
        "Uniform": (partial(rankers.Uniform, **shown), clicks),
        "TopRank": (top, clicks),
        "FTRLPBM": (partial(rankers.FTRLPBM, **shown), clicks),
        "ClickMix": (partial(rankers.ClickMix, **shown), clicks),
        "PBMTS": (partial(rankers.PBMTS, **shown), clicks),
        "PBMPIE": (partial(rankers.PBMPIE, **shown, **known), clicks),
        "GRAB": (partial(rankers.GRAB, **shown), clicks),
        "MW": (partial(rankers.MW, **shown, **known), clicks),
        "RankedExp3": (partial(rankers.RankedExp3, **shown, **known), clicks),
        "CascadeKLUCB": (partial(rankers.CascadeKLUCB, **shown), partial(named, "cascade")),
        "CascadeRobustUCB": (partial(rankers.CascadeRobustUCB, **shown), partial(named, "cascade")),
        "RTop1F, 50 items": (
            partial(rankers.RTop1F, n_items=50, measure="dcg", horizon=HORIZON),
            partial(_halves, 50),
        ),
        "TopFTRL, 30 items": (partial(rankers.TopFTRL, n_items=30, measure="dcg"), partial(_halves, 30)),
        "RTop1F, switching": (one, partial(named, "switching")),
        "RTop1F, listed": (one, _listed),
        "RTop1F, tabled": (
            partial(rankers.RTop1F, n_items=5, measure="pairwise_loss", horizon=HORIZON),
            partial(_halves, 5, "pairwise_loss"),
        ),
        "Uniform, adversary-ndcg": (partial(rankers.Uniform, n_items=3), partial(named, "adversary-ndcg")),
        "TopRank, promoted": (
            top,
            partial(environments.Promoted, cascade, item=9, share=0.2, n_positions=5),
        ),
        "TopRank, attacked": (
            top,
            partial(environments.Attacked, cascade, item=9, victims=(0, 1, 2), budget=200, n_positions=5),
        ),
    }
    worlds = (
        "periodic-1 corrupted drifting lower-bound cascade dependent-click user-browsing dynamic-bayesian"
    )
    for world in (*worlds.split(), "click-chain", "trust-bias", "cascade-periodic"):
        name = f"gap-0.03-{world}" if world in worlds.split()[:3] else world
        pairs[f"TopRank, {world}"] = top, partial(named, name)
    return pairs


PAIRS = _pairs()


def started(name: str, seed: int, rounds: int, points: int, *, fused: bool = False) -> Any:
    """A run of a pair."""
    ranker, environment = PAIRS[name]
    return begin(ranker(), environment(), rounds, seed, points, fused)


def compile_pair(name: str) -> dict[str, Any]:
    """The code of a pair, for any GPU of capability 9.0; no GPU is needed."""
    begun = time.perf_counter()
    code, _ = cuda.Program(started(name, 0, 1, 1)).ptx(CC)
    return {"pair": name, "compiling_s": time.perf_counter() - begun, "ptx_kB": len(code) // 1000}


def check_bytes(name: str, runs: int = BYTES_RUNS, rounds: int = BYTES_ROUNDS) -> dict[str, Any]:
    """Whether the GPU leaves the bytes of the CPU."""
    begun = time.perf_counter()
    many = [started(name, seed, rounds, 20) for seed in range(runs)]
    for _ in cuda.played(many):
        pass
    differing = set()
    for seed, run in enumerate(many):
        ranker, environment = (make() for make in PAIRS[name])
        expected, got = simulation.play(ranker, environment, rounds=rounds, seed=seed, points=20), run.trace()
        for column in ("value", "total", "regret", "explored"):
            if getattr(expected, column).tobytes() != getattr(got, column).tobytes():
                differing.add(column)
        for what, mine, theirs in (
            ("ranker", ranker.state, run.ranker.state),
            ("environment", environment.state, run.environment.state),
        ):
            for field, one, other in zip(mine._fields, mine, theirs, strict=True):
                if any(
                    a.tobytes() != b.tobytes()
                    for a, b in zip(cuda.leaves(one), cuda.leaves(other), strict=True)
                ):
                    differing.add(f"{what}.{field}")
    return {"pair": name, "differing": sorted(differing), "bytes_s": time.perf_counter() - begun}


def _repeat(batch: cuda.Batch, times: int) -> None:
    """The same runs so many times side by side."""
    for name in ("rows", "words", "counters", "sums", "value", "total", "explored"):
        setattr(batch, name, np.concatenate([getattr(batch, name)] * times, axis=-1))
    for part in (batch.state, batch.kept):
        part[:] = [np.concatenate([array] * times, axis=-1) for array in part]


def time_pair(name: str, runs: int, seconds: float) -> dict[str, Any]:
    """Rounds per second, of many runs on the GPU and of one on a core of this machine."""
    device = cuda.Device()
    rounds, played, spent = 256, 0, 0.0
    while True:  # longer and longer, until it is long enough
        few = [started(name, seed, rounds, 1) for seed in range(min(SEEDS, runs))]
        batch = cuda.Batch(cuda.Program(few[0]), few)
        _repeat(batch, runs // len(few))
        told: list[int] = []
        begun = time.perf_counter()
        device.play(batch.program, batch, told.append)
        spent, played = time.perf_counter() - begun, sum(told)
        if spent > seconds or rounds >= HORIZON:
            break
        rounds = min(HORIZON, int(rounds * min(16.0, 1.5 * seconds / spent)))
    row = {"pair": name, "runs": runs, "rounds": rounds, "gpu_rounds_per_s": played / spent}
    function = device.loaded(batch.program)
    row |= {
        "registers": device.asks(function, "NUM_REGS"),
        "local_bytes": device.asks(function, "LOCAL_SIZE_BYTES"),
    }
    run = started(name, 0, HORIZON, 1, fused=True)
    run.advance(256)
    begun, before = time.perf_counter(), run.t
    for _ in run.pieces():
        if time.perf_counter() - begun > 0.5:
            break
    return row | {"core_rounds_per_s": (run.t - before) / (time.perf_counter() - begun)}


def time_call(name: str, runs: int, rounds: int) -> dict[str, Any]:
    """Seconds of whole calls of `play_many`, on the GPU and on all cores of the same machine."""

    def pair() -> tuple[Any, Any]:
        ranker, environment = PAIRS[name]
        return ranker(), environment()

    row: dict[str, Any] = {"pair": name, "call_runs": runs, "call_rounds": rounds}
    traces = {}
    for executor in ("cuda", "threads"):
        begun = time.perf_counter()
        traces[executor] = simulation.play_many(
            pair, rounds=rounds, seeds=range(runs), points=10, executor=executor, progress=False
        )
        row[f"{executor}_s"] = time.perf_counter() - begun
    row["same"] = all(
        one.regret.tobytes() == other.regret.tobytes() for one, other in zip(*traces.values(), strict=True)
    )
    return row


def main() -> None:
    """Compile, compare and time; print a table, and write the rows to a file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda", description=__doc__)
    parser.add_argument("pairs", nargs="*", metavar="PAIR", help="of those that --list shows; all by default")
    parser.add_argument("--list", action="store_true", help="print the names of the pairs")
    parser.add_argument(
        "--compile", action="store_true", help="only compile, for capability 9.0: needs no GPU"
    )
    parser.add_argument("--runs", type=int, default=33_792, help="so many runs at once")
    parser.add_argument("--seconds", type=float, default=1.0, help="of the timed run of each pair")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that compile and compare")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    asked = parser.parse_args()
    names = asked.pairs or list(PAIRS)
    if asked.list:
        print("\n".join(PAIRS))
        return
    rows: dict[str, dict[str, Any]] = {name: {"pair": name} for name in names}
    about = {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "code": code_fingerprint(),
    }
    for package in ("numpy", "numba", "numba-cuda", "cuda-bindings"):
        with suppress(PackageNotFoundError):
            about[package] = version(package)
    if not asked.compile:
        asks = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        about["card"] = subprocess.run(asks, capture_output=True, text=True, check=True).stdout.strip()
        about["cores"] = str(os.cpu_count())

    def keep(name: str, get: Callable[[], dict[str, Any]]) -> None:
        try:
            rows[name] |= get()
        except Exception as error:  # one pair that fails says so, and the others go on
            rows[name]["error"] = f"{type(error).__name__}: {str(error)[-600:]}"
        print(json.dumps(rows[name]), flush=True)
        if asked.json is not None:
            asked.json.write_text(json.dumps({"about": about, "rows": list(rows.values())}, indent=1) + "\n")

    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        step = compile_pair if asked.compile else check_bytes
        futures = {name: pool.submit(step, name) for name in names}
        for name, future in futures.items():
            keep(name, future.result)
    if not asked.compile:
        for name in names:
            keep(name, partial(time_pair, name, asked.runs, asked.seconds))
        for name in ("RTop1F", "PBMTS", "FTRLPBM"):
            if name in names:
                keep(name, partial(time_call, name, 4_096, 20_000))


if __name__ == "__main__":
    main()
