"""Who takes part in the suite, what they played, and whether a submission is what it says.

Rankers play in all worlds that suit them; what has ended is kept, and the same call goes on from there. A submission is
every run as Parquet, with what made it in the metadata.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from rankloop import rankers
from rankloop.arguments import whole
from rankloop.base import Ranker, Ranking, import_path, plain
from rankloop.extras import local_folder, write_whole
from rankloop.rankers.registry import find
from rankloop.simulation.by_name import Setting, check_settings, make_ranker, read_settings
from rankloop.simulation.executors import Executor
from rankloop.simulation.play import Run, begin, check_match
from rankloop.simulation.runs import Job, Kept, Plays, finish, run_jobs
from rankloop.simulation.trace import Trace, code_fingerprint, machine, versions
from rankloop.suite.report import share_of_way
from rankloop.suite.worlds import VERSION, WORLDS, World

MOST_BYTES = 1 << 30  # of one ranker

_REFERENCES = {
    "BestInHindsight": "it knows the users",
    "Fixed": "it shows a given order",
    "Uniform": "it is the zero of every score",
}

# With its defaults PMED solves about a hundred optimisation problems in a run of 20,000 rounds, seven seconds.
_QUICKER: dict[str, dict[str, Setting]] = {"PMED": {"growth": 2, "every": 100}}
_MOST_ITEMS = {"PMED": 50}  # one solve with 100 items takes minutes

KEY = "rankloop-suite"
SCHEMA = {
    "ranker": pl.String,
    "world": pl.String,
    "capability": pl.String,
    "setting": pl.String,
    "seed": pl.Int64,
    "rounds": pl.Int64,
    "value": pl.Float64,
    "random": pl.Float64,
    "best": pl.Float64,
    "score": pl.Float64,
    "not_applicable": pl.String,
}
QUICK_SEEDS, FULL_SEEDS = 3, 20
_CLOSE = 1e-9


class NotApplicable(ValueError):
    """A ranker cannot play in a world; the message says why."""


@dataclass(frozen=True)
class Entry:
    """A ranker that takes part.

    Parameters
    ----------
    name : str
        A registered ranker, or `package.module:Class`.
    settings : dict, optional
        Arguments that replace the defaults and what the world offers.
    """

    name: str
    settings: dict[str, Setting] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Self:
        """An entry as the command line takes it: a `text` such as `FTRLPBM,estimator=mean`, all of it known.

        Examples
        --------
        >>> Entry.read("FTRLPBM,regulariser=hybrid").settings
        {'regulariser': 'hybrid'}
        """
        name, *arguments = text.split(",")
        settings = read_settings(arguments, option=f"RANKER {name}")
        check_settings(name, settings)
        if name in _REFERENCES:
            raise ValueError(f"{name} takes no part in the suite: {_REFERENCES[name]}")
        return cls(name, settings)

    @property
    def label(self) -> str:
        """How it is named in results: as it was given."""
        told = {key: "none" if value is None else value for key, value in self.settings.items()}
        return ",".join([self.name, *(f"{key}={value}" for key, value in told.items())])

    @property
    def code(self) -> str:
        """A hash of the file that has the class; of the package's own rankers, the package's hash covers it."""
        kind = find(self.name)
        if kind.__module__.startswith("rankloop."):
            return ""
        return hashlib.sha256(Path(inspect.getfile(kind)).read_bytes()).hexdigest()[:16]

    @property
    def path(self) -> str:
        """Where the class is found."""
        return import_path(find(self.name))

    def make(self, world: World, *, rounds: int) -> Ranker:
        """A fresh ranker for so many `rounds` in a `world`; NotApplicable where it cannot play there."""
        kind = find(self.name)
        environment = world.users(rounds, named=kind.takes_queries)
        accepted = inspect.signature(kind).parameters
        takes_features = world.features is not None and "features" in accepted
        needs_features = "n_features" in accepted and "n_items" not in accepted
        if needs_features and not takes_features and environment.n_features is None:
            raise NotApplicable("it ranks items by features, and these have none")
        if environment.n_items is None and "n_items" in accepted:
            raise NotApplicable("it ranks the same items each time, and these users bring lists of their own")
        size = {
            "n_items": environment.n_items or environment.n_positions,
            "n_positions": environment.n_positions if environment.n_shown is None else environment.n_shown,
            "n_features": environment.n_features
            or (0 if world.features is None else world.features.shape[1]),
        }
        if self.name in _MOST_ITEMS and size["n_items"] > _MOST_ITEMS[self.name]:
            raise NotApplicable(f"it would take too long with {size['n_items']:,} items")
        needed = kind.bytes_for(**size)
        if needed > MOST_BYTES:
            raise NotApplicable(
                f"with {size['n_items']:,} items it needs about {needed / 1e9:.1f} GB of memory"
            )
        try:
            ranker = make_ranker(
                self.name,
                environment=environment,
                rounds=rounds,
                settings=self.settings,
                also={"features": world.features} if takes_features else None,
                option="",
            )
            check_match(ranker, environment, rounds)
        except ValueError as error:
            raise NotApplicable(str(error)) from None
        return Delayed(ranker, delay=world.delay) if world.delay else ranker

    def described(self) -> dict[str, Any]:
        """What a submission says of it: name, class, arguments and, for a class of one's own, a hash of its file."""
        return {"name": self.name, "path": self.path, "settings": plain(self.settings), "code": self.code}


def every_entry() -> list[Entry]:
    """All rankers of the package but the references, with their default arguments where these are not too slow."""
    return [Entry(name, _QUICKER.get(name, {})) for name in rankers.__all__ if name not in _REFERENCES]


class Delayed(Ranker):
    """A ranker whose feedback waits until `delay` rounds have passed. What still waits at the end is never learnt.

    The queue is not part of `state`, so a delayed ranker is for simulations only.
    """

    def __init__(self, ranker: Ranker, *, delay: int) -> None:
        self.inner = ranker
        self.delay = delay
        self.waiting: deque[tuple[Ranking, NDArray[Any]]] = deque()
        self.feedback, self.state = ranker.feedback, ranker.state
        self.n_positions, self.n_items, self.n_features = (
            ranker.n_positions,
            ranker.n_items,
            ranker.n_features,
        )
        self.max_grade = ranker.max_grade

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        return self.inner.rank(context, rng=rng)

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        self.waiting.append((ranking, np.array(feedback)))
        if len(self.waiting) > self.delay:
            self.inner.learn(*self.waiting.popleft())

    def current(self, context: Any = None) -> NDArray[np.int64]:
        return self.inner.current(context)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(rankers.Uniform(n_items=3), delay=2)


@dataclass(frozen=True, eq=False)
class Submission:
    """The results of some rankers.

    Parameters
    ----------
    results : polars.DataFrame
        A row for every run; one without a value for every world that a ranker cannot play in.
    provenance : dict
        What made it: the version of the suite, quick or full, seeds, rankers and their arguments, hashes of the worlds,
        versions of the software and a hash of its code.
    """

    results: pl.DataFrame
    provenance: dict[str, Any]

    def write(self, path: Path) -> None:
        """Write the file `path`, whole or not at all."""
        metadata = {KEY: json.dumps(self.provenance, sort_keys=True)}
        write_whole(path, lambda part: self.results.write_parquet(part, metadata=metadata))


def read_submission(path: str | Path) -> Submission:
    """The submission in the Parquet file `path`, not yet verified; ValueError where it is none."""
    try:
        results = pl.read_parquet(path)
        provenance = json.loads(pl.read_parquet_metadata(path)[KEY])
    except (pl.exceptions.PolarsError, KeyError, ValueError):
        raise ValueError(f"file must be one that `rankloop suite run` wrote, got {path}") from None
    if results.schema != pl.Schema(SCHEMA):
        raise ValueError(f"{path}: rows must have the columns {', '.join(SCHEMA)}, got {results.columns}")
    return Submission(results, provenance)


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

    `workers`, `executor` and `progress` are as for `simulation.play_many`. ValueError where a ranker is given twice, or
    can play in none of the worlds.

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
    """
    labels = [entry.label for entry in entries]
    if not entries or len(set(labels)) < len(labels):
        raise ValueError(f"entries must be at least one ranker, and none twice, got {labels}")
    count = whole("seeds", (FULL_SEEDS if full else QUICK_SEEDS) if seeds is None else seeds, at_least=1)
    kept = Kept(None if folder is None else local_folder(folder) / "runs")
    hashes = {world.name: world.fingerprint(full=full) for world in worlds}
    parts, refusals = _parts(entries, worlds, count, full=full)
    for entry in entries:
        if not any(part.entry == entry for part in parts):
            reasons = {reason for (label, _), reason in refusals.items() if label == entry.label}
            raise ValueError(f"{entry.label} can play in none of the worlds: {'; '.join(sorted(reasons))}")
    jobs = [_job(part, hashes[part.world.name]) for part in parts]
    finished = run_jobs(
        Plays(_begin, _frame_of),
        jobs,
        kept=kept,
        executor=executor,
        workers=workers,
        progress=progress,
        label="suite",
    )
    rows = {part.key: each.rows for part, each in zip(parts, finished, strict=True)}
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
    return Submission(_frame(entries, worlds, rows, refusals, full=full), provenance)


class _Part(NamedTuple):
    """All seeds of one ranker in one world; the reference of random lists has no entry."""

    entry: Entry | None
    world: World
    rounds: int
    seeds: int

    @property
    def key(self) -> tuple[str, str]:
        return "" if self.entry is None else self.entry.label, self.world.name


def _parts(
    entries: Sequence[Entry], worlds: Sequence[World], count: int, *, full: bool
) -> tuple[list[_Part], dict[tuple[str, str], str]]:
    parts, refusals = [], {}
    for world in worlds:
        rounds = world.rounds(full=full)
        fitting: list[Entry | None] = [None]
        for entry in entries:
            try:
                entry.make(world, rounds=rounds)
                fitting.append(entry)
            except NotApplicable as reason:
                refusals[entry.label, world.name] = str(reason)
        parts += [_Part(one, world, rounds, count) for one in fitting] if len(fitting) > 1 else []
    return parts, refusals


def _job(part: _Part, world_hash: str) -> Job:
    described = {} if part.entry is None else part.entry.described()
    text = json.dumps([described, world_hash, part.seeds], sort_keys=True)
    return Job(
        f"{part.key[0] or 'random lists'} in {part.world.name}",
        hashlib.sha256(text.encode()).hexdigest()[:16],
        part,
        float(part.rounds * part.seeds),
    )


def _begin(part: _Part) -> list[Run]:
    return [_started(part.entry, part.world, part.rounds, seed) for seed in range(part.seeds)]


def _frame_of(part: _Part, traces: list[Trace]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "value": [trace.mean_value for trace in traces],
            "best": [part.world.best(trace) for trace in traces],
        }
    )


def _started(entry: Entry | None, world: World, rounds: int, seed: int) -> Run:
    ranker = _uniform(world, rounds) if entry is None else entry.make(world, rounds=rounds)
    return begin(ranker, world.users(rounds, named=ranker.takes_queries), rounds, seed, 1, None)


class Played(NamedTuple):
    """A run: the mean value of a round, and that of the best in hindsight."""

    value: float
    best: float


def _play(entry: Entry | None, world: World, rounds: int, seed: int) -> Played:
    trace = finish(_started(entry, world, rounds, seed))
    return Played(trace.mean_value, world.best(trace))


def _uniform(world: World, rounds: int) -> Ranker:
    """The ranker that shows every list equally often, the zero of the score."""
    environment = world.make(rounds)
    if environment.n_features is not None:
        return rankers.Uniform()
    return rankers.Uniform(n_items=environment.n_items, n_positions=environment.n_positions)


def _frame(
    entries: Sequence[Entry],
    worlds: Sequence[World],
    played: dict[tuple[str, str], pl.DataFrame],
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
            pairs = zip(played[entry.label, world.name].rows(), played["", world.name]["value"], strict=True)
            for seed, ((value, best), random) in enumerate(pairs):
                share = float(share_of_way(value, random, best))
                numbers = {"value": value, "random": random, "best": best, "score": share}
                rows.append(about | {"seed": seed} | numbers)
    return pl.DataFrame(rows, schema=SCHEMA)


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
    """Check the submission in `path` for all `worlds`, and play `sample` of its runs again, chosen by `seed`."""
    sample = whole("sample", sample, at_least=1)
    submission = read_submission(path)
    provenance = submission.provenance
    if provenance.get("suite") != VERSION:
        problem = f"it is of version {provenance.get('suite')} of the suite, this is version {VERSION}"
        return Verification((problem,), (), ())
    full = provenance.get("version") == "full"
    unknown = set(submission.results["world"]) - {world.name for world in worlds}
    if unknown or set(submission.results["ranker"]) != set(provenance["rankers"]):
        problem = f"it has rows of worlds or rankers that are not in the suite: {sorted(unknown)}"
        return Verification((problem,), (), ())
    problems = [*_hashes(provenance, worlds, full=full), *_rows(submission, worlds, full=full)]
    remarks = []
    if provenance.get("code") != code_fingerprint():
        remarks.append("it was made by other code of rankloop, so rankers may have changed since")
    entries = {label: Entry(one["name"], one["settings"]) for label, one in provenance["rankers"].items()}
    for label, entry in entries.items():
        if entry.code != provenance["rankers"][label]["code"]:
            remarks.append(f"the file of {entry.path} is another one here")
    if problems:
        return Verification(tuple(problems), tuple(remarks), ())
    by_name = {world.name: world for world in worlds}
    problems += _wrong_refusals(submission, entries, by_name, full=full)
    played = submission.results.filter(pl.col("value").is_not_null())
    count = min(sample, played.height)
    chosen = np.random.default_rng(seed).choice(played.height, count, replace=False)
    replays = tuple(_replay(entries, by_name, played.row(int(place), named=True)) for place in sorted(chosen))
    problems += [
        f"{one.ranker} in {one.world}, seed {one.seed}: {one.told!r} in the file, {one.found!r} when played again"
        for one in replays
        if not one.agrees
    ]
    return Verification(tuple(problems), tuple(remarks), replays)


def _hashes(provenance: dict[str, Any], worlds: Sequence[World], *, full: bool) -> list[str]:
    problems = []
    for world in worlds:
        stored = provenance["worlds"].get(world.name)
        if stored is None:
            problems.append(f"it leaves out the world {world.name}")
        elif stored != world.fingerprint(full=full):
            problems.append(f"the world {world.name} is another one there")
    return problems


def _rows(submission: Submission, worlds: Sequence[World], *, full: bool) -> list[str]:
    provenance, rows = submission.provenance, submission.results
    problems = []
    for label in provenance["rankers"]:
        for world in worlds:
            part = rows.filter((pl.col("ranker") == label) & (pl.col("world") == world.name))
            seeds = sorted(part["seed"].drop_nulls().to_list())
            refused = part.height == 1 and part["not_applicable"][0] is not None
            if not refused and seeds != list(range(provenance["seeds"])):
                problems.append(
                    f"{label} in {world.name} must have the seeds 0 to {provenance['seeds'] - 1}, or a reason"
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


def _wrong_refusals(
    submission: Submission, entries: dict[str, Entry], by_name: dict[str, World], *, full: bool
) -> list[str]:
    problems = []
    for row in submission.results.filter(pl.col("not_applicable").is_not_null()).iter_rows(named=True):
        world = by_name[row["world"]]
        try:
            entries[row["ranker"]].make(world, rounds=world.rounds(full=full))
        except NotApplicable:
            continue
        problems.append(f"{row['ranker']} can play in {row['world']}, and the file says that it cannot")
    return problems


def _replay(entries: dict[str, Entry], by_name: dict[str, World], row: dict[str, Any]) -> Replay:
    world, rounds = by_name[row["world"]], row["rounds"]
    own = _play(entries[row["ranker"]], world, rounds, row["seed"])
    random = _play(None, world, rounds, row["seed"])
    pairs = ((own.value, row["value"]), (random.value, row["random"]), (own.best, row["best"]))
    agrees = all(math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE) for one, other in pairs)
    return Replay(row["ranker"], row["world"], row["seed"], row["value"], own.value, agrees)
