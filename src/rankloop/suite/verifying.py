"""Whether a submission is what it says: its hashes and sums checked, and a sample of its runs played again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rankloop.arguments import whole
from rankloop.base import Ranker
from rankloop.simulation import play
from rankloop.simulation.code_version import code_fingerprint
from rankloop.suite.entry import Entry, NotApplicable
from rankloop.suite.running import Played, uniform
from rankloop.suite.submission import Submission, read_submission
from rankloop.suite.world import World
from rankloop.suite.worlds import VERSION, WORLDS

_CLOSE = 1e-9


class Replay(NamedTuple):
    """A run that was played again.

    Parameters
    ----------
    ranker : str
        Whose it is.
    world : str
        Where it was played.
    seed : int
        Its seed.
    told : float
        The mean value of a round that the submission has.
    found : float
        The one that was found.
    agrees : bool
        Whether they, and those of random lists and the best in hindsight, are the same.
    """

    ranker: str
    world: str
    seed: int
    told: float
    found: float
    agrees: bool


@dataclass(frozen=True)
class Verification:
    """The answer of `verify`.

    Parameters
    ----------
    problems : tuple of str
        What is wrong, in sentences; none where the submission is what it says.
    remarks : tuple of str
        What does not make it wrong, such as another version of the code.
    replays : tuple of Replay
        The runs that were played again.
    """

    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    replays: tuple[Replay, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(
    path: str | Path, *, sample: int = 10, seed: int = 0, worlds: Sequence[World] = WORLDS
) -> Verification:
    """Check a submission, and play a sample of its runs again.

    Parameters
    ----------
    path : str or Path
        The file.
    sample : int, optional
        How many runs are played again; all of them where there are no more.
    seed : int, optional
        Chooses them.
    worlds : sequence of World, optional
        The worlds that it must have; those of the suite by default.

    Returns
    -------
    Verification
        What was found.
    """
    sample = whole("sample", sample, at_least=1)
    given = read_submission(path)
    told = given.provenance
    if told.get("suite") != VERSION:
        problem = f"it is of version {told.get('suite')} of the suite, this is version {VERSION}"
        return Verification((problem,), (), ())
    full = told.get("version") == "full"
    unknown = set(given.results["world"]) - {world.name for world in worlds}
    if unknown or set(given.results["ranker"]) != set(told["rankers"]):
        problem = f"it has rows of worlds or rankers that are not in the suite: {sorted(unknown)}"
        return Verification((problem,), (), ())
    problems = [*_hashes(told, worlds, full=full), *_rows(given, worlds, full=full)]
    remarks = []
    if told.get("code") != code_fingerprint():
        remarks.append("it was made by other code of rankloop, so rankers may have changed since")
    entries = {label: Entry(one["name"], one["settings"]) for label, one in told["rankers"].items()}
    for label, entry in entries.items():
        if entry.code != told["rankers"][label]["code"]:
            remarks.append(f"the file of {entry.path} is another one here")
    if problems:
        return Verification(tuple(problems), tuple(remarks), ())
    by_name = {world.name: world for world in worlds}
    problems += _refusals(given, entries, by_name, full=full)
    played = given.results.filter(pl.col("value").is_not_null())
    count = min(sample, played.height)
    chosen = np.random.default_rng(seed).choice(played.height, count, replace=False)
    replays = tuple(_replay(entries, by_name, played.row(int(place), named=True)) for place in sorted(chosen))
    problems += [
        f"{one.ranker} in {one.world}, seed {one.seed}: {one.told!r} in the file, {one.found!r} when played again"
        for one in replays
        if not one.agrees
    ]
    return Verification(tuple(problems), tuple(remarks), replays)


def _hashes(told: dict[str, Any], worlds: Sequence[World], *, full: bool) -> list[str]:
    problems = []
    for world in worlds:
        stored = told["worlds"].get(world.name)
        if stored is None:
            problems.append(f"it leaves out the world {world.name}")
        elif stored != world.fingerprint(full=full):
            problems.append(f"the world {world.name} is another one there")
    return problems


def _rows(given: Submission, worlds: Sequence[World], *, full: bool) -> list[str]:
    told, rows = given.provenance, given.results
    problems = []
    for label in told["rankers"]:
        for world in worlds:
            part = rows.filter((pl.col("ranker") == label) & (pl.col("world") == world.name))
            seeds = sorted(part["seed"].drop_nulls().to_list())
            refused = part.height == 1 and part["not_applicable"][0] is not None
            if not refused and seeds != list(range(told["seeds"])):
                problems.append(
                    f"{label} in {world.name} must have the seeds 0 to {told['seeds'] - 1}, or a reason"
                )
            if (part["rounds"] != world.rounds(full=full)).any():
                problems.append(f"{label} in {world.name} has another number of rounds")
    played = rows.filter(pl.col("value").is_not_null())
    share = (pl.col("value") - pl.col("random")) / (pl.col("best") - pl.col("random"))
    wrong = played.filter(((share - pl.col("score")).abs() <= _CLOSE).not_().fill_null(value=True))
    return problems + [
        f"{row['ranker']} in {row['world']}, seed {row['seed']}: its score does not follow"
        for row in wrong.iter_rows(named=True)
    ]


def _refusals(
    given: Submission, entries: dict[str, Entry], by_name: dict[str, World], *, full: bool
) -> list[str]:
    problems = []
    for row in given.results.filter(pl.col("not_applicable").is_not_null()).iter_rows(named=True):
        world = by_name[row["world"]]
        try:
            entries[row["ranker"]].make(world, rounds=world.rounds(full=full))
        except NotApplicable:
            continue
        problems.append(f"{row['ranker']} can play in {row['world']}, and the file says that it cannot")
    return problems


def _replay(entries: dict[str, Entry], by_name: dict[str, World], row: dict[str, Any]) -> Replay:
    world, rounds = by_name[row["world"]], row["rounds"]
    own = _play(entries[row["ranker"]].make(world, rounds=rounds), world, rounds, row["seed"])
    random = _play(uniform(world, rounds), world, rounds, row["seed"])
    pairs = ((own.value, row["value"]), (random.value, row["random"]), (own.best, row["best"]))
    agrees = all(math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE) for one, other in pairs)
    return Replay(row["ranker"], row["world"], row["seed"], row["value"], own.value, agrees)


def _play(ranker: Ranker, world: World, rounds: int, seed: int) -> Played:
    trace = play(ranker, world.make(rounds), rounds=rounds, seed=seed, points=1, progress=False)
    return Played(trace.mean_value, world.best(trace))
