"""Short runs of rankers and environments, which the checks compare."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.base import Environment, Ranker, Ranking


def story(ranker: Ranker, *, rounds: int, seed: int) -> list[Ranking]:
    """Rounds of a ranker with feedback drawn at random."""
    rng, users = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    rankings = []
    for _ in range(rounds):
        rankings.append(ranker.rank(ranker.example_context(users), rng=rng))
        ranker.learn(rankings[-1], answer(ranker, rankings[-1], users))
    return rankings


def rank_once(ranker: Ranker, *, seed: int) -> Ranking:
    """One ranking of an example request."""
    return ranker.rank(ranker.example_context(np.random.default_rng(seed)), rng=np.random.default_rng(seed))


def answer(ranker: Ranker, ranking: Ranking, rng: np.random.Generator) -> NDArray[np.float64]:
    """Feedback on a ranking, drawn at random."""
    return rng.integers(0, 2, ranker.feedback.length(len(ranking.items))).astype(np.float64)


def users(environment: Environment, *, seed: int) -> NDArray[np.float64]:
    """All that fifty users reveal of their best rankings, and what those are worth."""
    rng = np.random.default_rng(seed)
    seen = []
    for _ in range(50):
        ranking = environment.best(environment.arrive(rng=rng))
        seen.append(np.append(environment.respond(ranking, rng=rng), environment.value(ranking)))
    return np.concatenate(seen)


# Not compared: kernels, arguments, and what `rankloop.compiled` keeps to make calls quick.
_NOT_HELD = {"kernels", "_given", "_prepared"}


def everything(thing: Any) -> bytes:
    """Whatever a ranker or an environment holds, as bytes to compare."""
    kept = {name: value for name, value in vars(thing).items() if name not in _NOT_HELD}
    return pickle.dumps(kept)


def arrays_through_a_file(arrays: dict[str, Any]) -> dict[str, Any]:
    """Named arrays, written to a file and read again."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return {name: loaded[name] for name in loaded.files}


def through_a_file(ranking: Ranking) -> Ranking:
    """A ticket, written to a file and read again."""
    return Ranking.load(arrays_through_a_file(ranking.save()))


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether named arrays are equal, bit by bit."""
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name], equal_nan=np.asarray(one[name]).dtype.kind == "f")
        for name in one
    )
