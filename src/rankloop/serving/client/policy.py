"""The policy of a ranker, as the service tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Policy:
    """How long the service waits for feedback, and what it does with late feedback.

    Parameters
    ----------
    deadline_seconds : float
        How long feedback on a list is waited for.
    parking_seconds : float
        How long feedback is kept whose decision is not known yet.
    late : {"ignore", "learn"}
        What is done with feedback after the deadline.
    degraded : bool, optional
        Whether lists are shown while the store cannot be written to.
    answers : {"first", "last", "sum", "union"}, optional
        Which of several answers to one list counts.
    apprentice : bool, optional
        Whether requests with a baseline get the baseline until the ranker is promoted.
    holdout : float, optional
        The share of requests with a baseline that always get it.
    silence : {"ignore", "zero"}, optional
        Whether no answer to a list that was seen means a relevance of 0. It means no click in any case.
    exploration_cap : float, optional
        The largest share of lists that may explore.
    displacement : int, optional
        How many positions an item may stand from its place in the baseline, at most; 0 for any number.
    """

    deadline_seconds: float
    parking_seconds: float
    late: Literal["ignore", "learn"]
    degraded: bool = False
    answers: Literal["first", "last", "sum", "union"] = "first"
    apprentice: bool = False
    holdout: float = 0.0
    silence: Literal["ignore", "zero"] = "ignore"
    exploration_cap: float = 1.0
    displacement: int = 0
