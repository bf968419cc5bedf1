"""Plays rankers in all worlds of the suite that suit them, keeps what has ended, and goes on from there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from rankloop.arguments import whole
from rankloop.base import Ranker
from rankloop.rankers import Uniform
from rankloop.simulation import play_many
from rankloop.simulation.bar import Bar
from rankloop.simulation.code_version import code_fingerprint
from rankloop.simulation.executors import Executor
from rankloop.simulation.provenance import machine, versions
from rankloop.suite.entry import Entry, NotApplicable
from rankloop.suite.scores import share_of_way
from rankloop.suite.submission import SCHEMA, Submission
from rankloop.suite.world import World
from rankloop.suite.worlds import VERSION, WORLDS
from rankloop.whole_file import sweep, write_whole

QUICK_SEEDS, FULL_SEEDS = 3, 20
_AT_ONCE = 12  # runs between two writes


class Played(NamedTuple):
    """A run: the mean value of a round, and that of the best in hindsight."""

    value: float
    best: float


class _Job(NamedTuple):
    """All seeds of one ranker in one world; the reference of random lists has no entry."""

    entry: Entry | None
    world: World
    rounds: int
    file: Path | None

    def make(self) -> Ranker:
        if self.entry is not None:
            return self.entry.make(self.world, rounds=self.rounds)
        return uniform(self.world, self.rounds)


def uniform(world: World, rounds: int) -> Ranker:
    """The ranker that shows every list equally often, the zero of the score."""
    people = world.make(rounds)
    if people.n_features is not None:
        return Uniform()
    return Uniform(n_items=people.n_items, n_positions=people.n_positions)


def run(
    entries: Sequence[Entry],
    *,
    full: bool = False,
    seeds: int | None = None,
    worlds: Sequence[World] = WORLDS,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    executor: str | Executor = "threads",
    progress: bool | None = None,
) -> Submission:
    """Play every ranker in every world that suits it.

    Parameters
    ----------
    entries : sequence of Entry
        Who takes part.
    full : bool, optional
        The full version, with longer runs and more seeds; otherwise the quick one.
    seeds : int, optional
        How many runs each ranker has in each world, with the seeds from 0 on; 3 in the quick version and 20 in the
        full one by default.
    worlds : sequence of World, optional
        The whole suite by default. A submission with fewer worlds can be looked at, but does not verify.
    folder : str or os.PathLike, optional
        Keeps the runs that have ended; the same call goes on from there.
    workers : int, optional
        How many runs play at once; None takes one for each core.
    executor : str or Executor, optional
        Where runs play, as for `rankloop.simulation.play_many`. It does not change the results.
    progress : bool, optional
        A bar on the terminal; None shows one where there is a terminal.

    Returns
    -------
    Submission
        Every run, and what made it.

    Raises
    ------
    ValueError
        Where a ranker is given twice, or can play in none of the worlds.
    """
    labels = [entry.label for entry in entries]
    if not entries or len(set(labels)) < len(labels):
        raise ValueError(f"entries must be at least one ranker, and none twice, got {labels}")
    count = whole("seeds", (FULL_SEEDS if full else QUICK_SEEDS) if seeds is None else seeds, at_least=1)
    kept = None if folder is None else Path(folder) / "runs"
    if kept is not None:
        sweep(kept)
    hashes = {world.name: world.fingerprint(full=full) for world in worlds}
    jobs, refusals = _jobs(entries, worlds, hashes, count, full=full, kept=kept)
    for entry in entries:
        if not any(job.entry == entry for job in jobs):
            reasons = {reason for (label, _), reason in refusals.items() if label == entry.label}
            raise ValueError(f"{entry.label} can play in none of the worlds: {'; '.join(sorted(reasons))}")
    found = _play_all(jobs, count, workers=workers, executor=executor, progress=progress)
    provenance = {
        "suite": VERSION,
        "version": "full" if full else "quick",
        "seeds": count,
        "rankers": {entry.label: entry.described() for entry in entries},
        "worlds": hashes,
        "versions": versions(),
        "machine": machine(),
        "code": code_fingerprint(),
    }
    return Submission(_frame(entries, worlds, found, refusals, full=full), provenance)


def _jobs(
    entries: Sequence[Entry],
    worlds: Sequence[World],
    hashes: dict[str, str],
    count: int,
    *,
    full: bool,
    kept: Path | None,
) -> tuple[list[_Job], dict[tuple[str, str], str]]:
    jobs, refusals = [], {}
    for world in worlds:
        rounds = world.rounds(full=full)
        fitting: list[Entry | None] = [None]
        for entry in entries:
            try:
                entry.make(world, rounds=rounds)
                fitting.append(entry)
            except NotApplicable as reason:
                refusals[entry.label, world.name] = str(reason)
        for one in fitting if len(fitting) > 1 else []:
            described = {} if one is None else one.described()
            told = [described, hashes[world.name], count, code_fingerprint()]
            name = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
            jobs.append(_Job(one, world, rounds, None if kept is None else kept / f"{name}.json"))
    return jobs, refusals


def _play_all(
    jobs: list[_Job], count: int, *, workers: int | None, executor: str | Executor, progress: bool | None
) -> dict[tuple[str, str], list[Played]]:
    found: dict[tuple[str, str], list[Played]] = {}
    todo: list[_Job] = []
    for job in jobs:
        stored = _stored(job)
        if stored is None:
            todo.append(job)
        else:
            found[_key(job)] = stored
    with Bar(max(1, sum(job.rounds * count for job in todo)), wanted=progress) as bar:
        done = 0
        for group in _groups(todo, max(1, _AT_ONCE // count)):
            for job, runs in zip(group, _play(group, count, workers, executor), strict=True):
                found[_key(job)] = runs
                _keep(job, runs)
                done += job.rounds * count
            bar.show(done)
    return found


def _groups(todo: list[_Job], size: int) -> list[list[_Job]]:
    """Jobs of one world, a few at a time."""
    groups: list[list[_Job]] = []
    for job in todo:
        if groups and groups[-1][0].world is job.world and len(groups[-1]) < size:
            groups[-1].append(job)
        else:
            groups.append([job])
    return groups


def _play(group: list[_Job], count: int, workers: int | None, executor: str | Executor) -> list[list[Played]]:
    world, rounds = group[0].world, group[0].rounds
    pairs = [(job.make(), world.make(rounds)) for job in group for _ in range(count)]
    traces = play_many(
        pairs,
        rounds=rounds,
        seeds=[seed for _ in group for seed in range(count)],
        points=1,
        progress=False,
        workers=workers,
        executor=executor,
    )
    played = [Played(trace.mean_value, world.best(trace)) for trace in traces]
    return [played[i * count : (i + 1) * count] for i in range(len(group))]


def _key(job: _Job) -> tuple[str, str]:
    return ("" if job.entry is None else job.entry.label, job.world.name)


def _stored(job: _Job) -> list[Played] | None:
    if job.file is None:
        return None
    try:
        return [Played(*run) for run in json.loads(job.file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return None


def _keep(job: _Job, runs: list[Played]) -> None:
    if job.file is not None:
        text = json.dumps(runs)
        write: Callable[[Path], object] = lambda part: part.write_text(text, encoding="utf-8")  # noqa: E731
        write_whole(job.file, write)


def _frame(
    entries: Sequence[Entry],
    worlds: Sequence[World],
    found: dict[tuple[str, str], list[Played]],
    refusals: dict[tuple[str, str], str],
    *,
    full: bool,
) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for entry in entries:
        for world in worlds:
            about = {
                "ranker": entry.label,
                "world": world.name,
                "capability": world.capability,
                "setting": world.setting,
                "rounds": world.rounds(full=full),
            }
            reason = refusals.get((entry.label, world.name))
            if reason is not None:
                rows.append(about | {"not_applicable": reason})
                continue
            pairs = zip(found[entry.label, world.name], found["", world.name], strict=True)
            for seed, (own, random) in enumerate(pairs):
                share = float(share_of_way(own.value, random.value, own.best))
                told = {"value": own.value, "random": random.value, "best": own.best, "score": share}
                rows.append(about | {"seed": seed} | told)
    return pl.DataFrame(rows, schema=SCHEMA)
