"""The rankers whose rounds are timed with 10 to 100,000 items, and users for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.pbm import people_for
from benchmarks.speed import made_for
from rankloop import data, environments, rankers, simulation
from rankloop.base import Environment, Ranker
from rankloop.feedback import CascadeModel

POSITIONS = 10  # five where there are ten items
HORIZON = 1_000_000  # of rankers that have to know one
FEATURES = 46  # of a document, as in MQ2008
ITEM_FEATURES = 10  # of an item of a catalogue
LOOKS = 100  # at each item and position, before the clock starts, for rankers that count them
BEGINNING = 1_000  # rounds, of rankers that are slower there
SETTLED = 5_000  # rounds after which FTRLPBM is timed
MANY = 100_000

_DOCUMENTS = 200_000  # in all lists of one length together, and at least four lists


@dataclass(frozen=True, slots=True)
class Entry:
    """A ranker for any number of items, who uses it, and how its round should grow with that number."""

    make: Callable[[int], Ranker]
    users: str
    theory: str
    up_to: int = MANY  # items; beyond, a round or a state is too large to be of use
    whole_run: int = 0  # rounds from the beginning that are timed as one; 0: slices of a run that goes on


def shown(n: int) -> int:
    """How many of `n` items a list has."""
    return min(POSITIONS, n // 2)


def _size(n: int) -> dict[str, Any]:
    return {"n_items": n, "n_positions": shown(n)}


def _attraction(n: int) -> np.ndarray:
    return np.linspace(0.95, 0.05, n)


def _lists(n: int) -> data.Dataset:
    n_queries = max(4, min(1_000, _DOCUMENTS // n))
    lists = data.synthetic_letor(n_queries=n_queries, n_features=FEATURES, seed=1, list_length=(n, n))
    return lists.with_dtype("float32")


USERS: dict[str, Callable[[int], Environment]] = {
    "clicks": lambda n: people_for(n, shown(n)),
    "first click": lambda n: environments.ClickUsers(CascadeModel(_attraction(n)), n_positions=shown(n)),
    "relevance": lambda n: environments.FixedItems(environments.users.noisy_halves(n_items=n), measure="dcg"),
    "labels": lambda n: environments.QueryStream(_lists(n), measure="ndcg@10"),
    "clicked lists": lambda n: environments.ClickedQueries(_lists(n), clicks="perfect"),
}


def _settled(n: int) -> rankers.FTRLPBM:
    ranker = rankers.FTRLPBM(**_size(n))
    people = people_for(n, shown(n))
    simulation.play(ranker, people, rounds=SETTLED, seed=1, points=1, fused=True, progress=False)
    return ranker


def _counted(ranker: Any, chances: np.ndarray, *, clicks: str) -> Any:
    # As if every item had been looked at often: nobody can wait until 100,000 have been.
    ranker.state.N[:] = LOOKS
    getattr(ranker.state, clicks)[:] = np.random.default_rng(1).binomial(LOOKS, chances)
    ranker.state.t[0] = LOOKS * ranker.n_items
    return ranker


def _counted_by_position(ranker: Any) -> Any:
    return _counted(ranker, people_for(ranker.n_items, ranker.n_positions).clicks[0], clicks="S")


def _known(n: int) -> np.ndarray:
    return 1 / np.arange(1, shown(n) + 1)


def _features(n: int) -> np.ndarray:
    return np.random.default_rng(n).dirichlet(np.full(ITEM_FEATURES, 0.3), size=n)


def entries(*, quick: bool) -> dict[str, Entry]:
    """The rows of the table; a quick look at TopRank is shorter."""
    long = HORIZON // (5 if quick else 1)
    return {
        "FTRLPBM, first 1,000": Entry(
            lambda n: rankers.FTRLPBM(**_size(n)), "clicks", "n", whole_run=BEGINNING
        ),
        "FTRLPBM, after 5,000": Entry(_settled, "clicks", "n"),
        f"TopRank, first {long:,}": Entry(
            lambda n: rankers.TopRank(horizon=HORIZON, **_size(n)),
            "clicks",
            "n",
            up_to=10_000,
            whole_run=long,
        ),
        "RankedExp3": Entry(lambda n: rankers.RankedExp3(horizon=HORIZON, **_size(n)), "clicks", "n"),
        "PBMPIE, known": Entry(
            lambda n: _counted_by_position(
                rankers.PBMPIE(horizon=HORIZON, examination=_known(n), **_size(n))
            ),
            "clicks",
            "n log n",
        ),
        "PBMTS": Entry(lambda n: _counted_by_position(rankers.PBMTS(**_size(n))), "clicks", "n"),
        "LinTSPBM, d = 10": Entry(
            lambda n: rankers.LinTSPBM(features=_features(n), n_positions=shown(n)), "clicks", "n log n"
        ),
        "CascadeKLUCB": Entry(
            lambda n: _counted(rankers.CascadeKLUCB(**_size(n)), _attraction(n), clicks="W"),
            "first click",
            "n log n",
        ),
        "RTop1F": Entry(lambda n: made_for(rankers.RTop1F, n)(), "relevance", "n log n"),
        "TopFTRL, first 1,000": Entry(
            lambda n: rankers.TopFTRL(n_items=n), "relevance", "n²", up_to=1_000, whole_run=BEGINNING
        ),
        "RTopKF, d = 46": Entry(lambda n: rankers.RTopKF(n_features=FEATURES), "labels", "n"),
        "PDGD, d = 46": Entry(
            lambda n: rankers.PDGD(n_features=FEATURES, n_positions=shown(n)), "clicked lists", "n"
        ),
    }
