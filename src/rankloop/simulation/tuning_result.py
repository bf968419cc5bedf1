"""The result of a search for arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rankloop.base import Ranker
from rankloop.ranges import Range

FINAL = -1  # the rung of the evaluation


class TunedRun(NamedTuple):
    """One run of a search.

    Parameters
    ----------
    setting : int
        Which of `Tuning.tried` played.
    rung : int
        The rung of the search, from 0; -1 for the evaluation.
    seed : int
        The seed of the run.
    value : float
        Mean value of a round.
    regret : float
        Regret after the last round; NaN where it is not known.
    explored : float
        Share of the rounds that explored.
    """

    setting: int
    rung: int
    seed: int
    value: float
    regret: float
    explored: float


@dataclass(frozen=True, eq=False)
class Tuning:
    """The result of a search.

    Parameters
    ----------
    ranker : Ranker
        The ranker as it was given.
    measure : str
        The measure of the rankings.
    is_loss : bool
        Whether a smaller value is better.
    rounds : int
        Rounds of every run.
    held_out : bool
        Whether the evaluation was in an environment of its own; otherwise in the same one, with fresh seeds.
    ranges : mapping of str to Range
        What was searched.
    tried : tuple of dict
        The settings: arguments that replace those of `ranker`. The first is empty, the ranker as it was given.
    chosen : int
        The number of the best setting.
    runs : tuple of TunedRun
        Every run, rung by rung, the evaluation last.
    """

    ranker: Ranker
    measure: str
    is_loss: bool
    rounds: int
    held_out: bool
    ranges: Mapping[str, Range]
    tried: tuple[dict[str, Any], ...]
    chosen: int
    runs: tuple[TunedRun, ...]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that were found; empty where the given ones were the best."""
        return dict(self.tried[self.chosen])

    def best(self) -> Ranker:
        """A fresh ranker with the arguments that were found.

        Returns
        -------
        Ranker
            In its initial state.
        """
        return with_arguments(self.ranker, self.tried[self.chosen])

    def values(self, setting: int, *, final: bool = False) -> list[float]:
        """The mean values of a setting's runs.

        Parameters
        ----------
        setting : int
            Its number in `tried`.
        final : bool, optional
            Those of the evaluation, instead of those of the search.

        Returns
        -------
        list of float
            One for each run, by seed.
        """
        return [run.value for run in self.runs if run.setting == setting and (run.rung == FINAL) == final]

    @property
    def gain(self) -> tuple[float, float]:
        """By how much the setting that was found is better in the evaluation, and the standard error of that.

        Runs with the same seed are compared. Positive is better, for losses and gains alike.
        """
        pairs = zip(self.values(self.chosen, final=True), self.values(0, final=True), strict=True)
        sign = -1.0 if self.is_loss else 1.0
        differences = [sign * (tuned - given) for tuned, given in pairs]
        found = mean(differences)
        squares = math.fsum((each - found) ** 2 for each in differences)
        return found, math.sqrt(squares / (len(differences) - 1) / len(differences))

    def __str__(self) -> str:
        count = len(self.values(0, final=True))
        where = "held-out queries or users" if self.held_out else "fresh seeds"
        given = mean(self.values(0, final=True))
        told = f"{self.measure} of {type(self.ranker).__name__} as given: {given:.4f} ({count} runs, {where})"
        if self.chosen == 0:
            return f"{told}\nof {len(self.tried)} settings none was better"
        gain, error = self.gain
        found = ", ".join(f"{name}={value!r}" for name, value in self.tried[self.chosen].items())
        verdict = f"better by {gain:.4f}, standard error {error:.4f}"
        if gain < 2.0 * error:
            verdict += ": no clear gain, keep what was given"
        level = mean(self.values(self.chosen, final=True))
        return f"{told}\nwith {found}: {level:.4f}, {verdict}"


def with_arguments(ranker: Ranker, setting: Mapping[str, Any]) -> Ranker:
    """A fresh ranker like `ranker`, but with the arguments of `setting`."""
    return type(ranker)(**{**ranker.get_params(), **setting}) if setting else ranker.clone()


def mean(values: list[float]) -> float:
    """The mean of some numbers, whatever their order."""
    return math.fsum(values) / len(values)
