"""The answer about one list: what it was drawn from, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class StoryRow:
    """One event in the history of a decision.

    Parameters
    ----------
    seq : int
        The row of the log.
    at : int
        When it was written, in milliseconds since 1970.
    kind : str
        The kind of event.
    event_id : str
        The ID of the event.
    values : list of float, optional
        The reported numbers, where there are some.
    outcome : str, optional
        What became of it.
    """

    seq: int
    at: int
    kind: str
    event_id: str
    values: list[float] | None = None
    outcome: str | None = None


@dataclass(frozen=True)
class DecisionAnswer:
    """The history of one list: what it was drawn from, and what became of it.

    Parameters
    ----------
    decision_id : str
        The ID of the decision.
    items : list of str
        The items that were to be shown, best first.
    candidates : list of str or None
        The items that it was drawn from, where the request named them.
    propensities : list of float or None
        The probability of each item at its position, where it is known.
    explored : bool
        Whether the list explored.
    model_seq : int
        The row of the log up to which the ranker had learnt.
    seq : int
        The row of the decision in the log.
    at : int
        When it was made, in milliseconds since 1970.
    deadline : int
        Until when feedback is waited for, in milliseconds since 1970.
    key : str
        The key of the random numbers behind it.
    generation : int
        How often the ranker's items had changed by then.
    context : object
        What the request said beside it.
    activated : bool
        Whether the list was reported as shown.
    answered : bool
        Whether there was feedback.
    expired : bool
        Whether the deadline passed without any.
    rows : list of StoryRow
        All events about it, in order.
    pinned : dict of str to str, optional
        The items that the request had pinned, by position.
    shown_by : str, optional
        "ranker", or "baseline" where the application's own list was shown.
    guard_rail : str, optional
        "greedy" where the exploration cap let the best list of the moment be shown; "moved" or "groups" where a bound
        on displacements moved items into reach, or let the ranker order groups of neighbours; empty otherwise.
    context_erased : bool, optional
        Whether the context was erased, with the key of its subject.
    """

    decision_id: str
    items: list[str]
    candidates: list[str] | None
    propensities: list[float] | None
    explored: bool
    model_seq: int
    seq: int
    at: int
    deadline: int
    key: str
    generation: int
    context: Any
    activated: bool
    answered: bool
    expired: bool
    rows: list[StoryRow]
    pinned: dict[str, str] = field(default_factory=dict)
    shown_by: str = "ranker"
    guard_rail: str = ""
    context_erased: bool = False
