"""What a warm start is made of: a long history in parts, a state from a file, and a state from a simulation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop import base, environments, simulation
from rankloop.base import Environment, Ranker
from rankloop.feedback import ClickLog
from rankloop.serving.adapters.registry import build
from rankloop.serving.importing import SavedArray, SavedRanker
from rankloop.serving.log import records
from rankloop.serving.log.fold import Fold

MOST_LISTS = 10_000  # in a part
_MOST_CELLS = 200_000  # names and numbers in a part: a few megabytes


class Part(NamedTuple):
    """Some lists of a history: which part of it they are, from 1, and whether they are the last."""

    lists: list[dict[str, Any]]
    number: int
    last: bool


def parts(lists: Iterable[dict[str, Any]], *, most_lists: int = MOST_LISTS) -> Iterator[Part]:
    """A history in parts, each small enough for one request.

    Examples
    --------
    >>> [(len(part.lists), part.number, part.last) for part in parts([{"items": ["a"]}] * 3, most_lists=2)]
    [(2, 1, False), (1, 2, True)]
    """
    held: list[dict[str, Any]] = []
    number, cells = 1, 0
    for one in lists:
        if len(held) >= most_lists or (held and cells >= _MOST_CELLS):
            yield Part(held, number, False)
            held, number, cells = [], number + 1, 0
        held.append(one)
        cells += len(one["items"]) * (3 + len(one.get("features", [[]])[0]))
    if held:
        yield Part(held, number, True)


def digest_of_files(files: Iterable[Path], *options: object) -> str:
    """What an import of these files is called: the same content read in the same way has the same name."""
    digest = hashlib.blake2b(repr(options).encode(), digest_size=16)
    for file in files:
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "blake2b").digest())
    return digest.hexdigest()


def saved_state(fold: Fold, path: Path) -> SavedRanker:
    """The state in a file that `Ranker.save` wrote, for a served ranker with the same algorithm and parameters."""
    saved = base.read_state(path)
    base.check_origin(saved, fold.ranker)
    arrays = {name: value for name, value in saved.items() if name != base.ORIGIN}
    rounds = int(arrays["t"].max()) if "t" in arrays else 1
    return _state(arrays, fold, max(rounds, 1))


def simulated_state(
    fold: Fold, log: ClickLog, *, rounds: int, seed: int, progress: bool | None = None
) -> SavedRanker:
    """The state of the ranker after a simulation with users fitted to a click log.

    A position-based model is fitted to the log. A ranker of clicks plays against it; for one of relevance each item is
    relevant with the probability of a click where it is examined. An item that is not in the log is as attractive as
    the mean of those that are.
    """
    if not fold.has_items:
        raise ValueError(
            f"{fold.config.algorithm} takes its items with each request: a simulation needs a ranker with items"
        )
    from rankloop import logs

    found = logs.fit_pbm(log)
    attraction = _attraction(fold.items, found)
    ranker = build(fold.config, n_items=len(fold.items))
    world = _world(ranker, attraction, found.examination)
    simulation.play(ranker, world, rounds=rounds, seed=seed, progress=progress)
    return _state(ranker.state_arrays(), fold, rounds)


def _attraction(items: list[str], found: Any) -> NDArray[np.float64]:
    place = {name: i for i, name in enumerate(items)}
    total, shown = np.zeros(len(items)), np.zeros(len(items))
    for (_, item), value, times in zip(found.items, found.attraction, found.shown, strict=True):
        if item in place:
            total[place[item]] += value * times
            shown[place[item]] += times
    known = shown > 0
    if not known.any():
        raise ValueError(f"no item of the ranker is in the log: {items[0]!r}, for example, is not")
    mean = total / np.maximum(shown, 1.0)
    return np.where(known, mean, mean[known].mean())


def _world(ranker: Ranker, attraction: NDArray[np.float64], examination: NDArray[np.float64]) -> Environment:
    if ranker.feedback.kind != "clicks":
        return environments.FixedItems(environments.users.bernoulli(attraction))
    needed = ranker.n_positions or len(attraction)
    if len(examination) < needed:
        raise ValueError(
            f"the ranker shows {needed} positions, and the log has {len(examination)}: create it with fewer"
        )
    return environments.PositionBased(attraction=attraction, examination=examination[:needed])


def _state(arrays: Any, fold: Fold, rounds: int) -> SavedRanker:
    packed = {name: records.pack(np.asarray(value)) for name, value in arrays.items()}
    saved = {name: SavedArray(*msgspec.structs.astuple(one)) for name, one in packed.items()}
    return SavedRanker(saved, rounds, fold.items)
