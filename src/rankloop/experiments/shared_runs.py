"""Runs that several experiments look at: played once in a process, for whoever asks first.

Table 1 of the 2022 paper has the runs of its figures, and FTRL-PBM plays the same million rounds in four experiments.
"""

from __future__ import annotations

import pickle

from rankloop.base import Environment, Ranker, import_path
from rankloop.simulation import Trace, play

_played: dict[bytes, Trace] = {}


def play_once(ranker: Ranker, environment: Environment, *, rounds: int, seed: int, points: int) -> Trace:
    """What `play` gives for a fresh ranker in a fresh environment; both stay fresh where it is known already.

    Who plays and where is told by the arguments of both constructors, of rankers of this package: others may depend on
    more than these, and play each time. A trace is shared, so nobody may write to it.
    """

    def played() -> Trace:
        return play(ranker, environment, rounds=rounds, seed=seed, points=points, progress=False)

    if not import_path(type(ranker)).startswith("rankloop."):
        return played()
    told = [(import_path(type(one)), one.get_params()) for one in (ranker, environment)]
    key = pickle.dumps((told, rounds, seed, points))
    if key not in _played:
        _played[key] = played()
    return _played[key]


def forget() -> None:
    """Play everything again from now on, as a new process would."""
    _played.clear()
