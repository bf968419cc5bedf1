"""The regret that was measured, read from the file that `docs/tables/make.py advice` writes."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True)
class World:
    """Users that every candidate was played with.

    Parameters
    ----------
    name : str
        A few words.
    feedback : str
        The feedback that they give.
    features : bool
        Whether they bring documents with features.
    users : str
        "stay" or "change".
    measure : str
        The measure that they are served by.
    n_items : int
        The number of items.
    rounds : int
        How many of them came.
    runs : int
        How many runs the means are taken over.
    better : str
        "less" where the number is regret, "more" where it is a value.
    unit : str
        What the number is.
    results : dict
        By the label of a candidate: the mean and its standard error.
    """

    name: str
    feedback: str
    features: bool
    users: str
    measure: str
    n_items: int
    rounds: int
    runs: int
    better: str
    unit: str
    results: dict[str, tuple[float, float]]

    def share(self, label: str) -> float:
        """What a candidate loses, as a share of what a random order loses.

        Parameters
        ----------
        label : str
            The label of the candidate.

        Returns
        -------
        float
            The share; infinite if the candidate was not played.
        """
        if label not in self.results:
            return float("inf")
        found, random = self.results[label][0], self.results["Uniform"][0]
        return found / random if self.better == "less" else (1.0 - found) / (1.0 - random)


@functools.cache
def worlds() -> tuple[World, ...]:
    """All of them."""
    told = json.loads(resources.files("rankloop.advice").joinpath("measured.json").read_text())
    return tuple(
        World(**{**one, "results": {label: tuple(pair) for label, pair in one["results"].items()}})
        for one in told
    )
