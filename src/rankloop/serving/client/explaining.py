"""The call that asks why the items of a list stood where they stood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from rankloop.serving.client.answers import read
from rankloop.serving.client.calls import Call, of


@dataclass(frozen=True)
class FeaturePart:
    """What one feature adds to a score.

    Parameters
    ----------
    feature : int
        Its column, counted from 0.
    value : float
        Its value for this item.
    weight : float
        The ranker's weight of it.
    part : float
        The product of the two.
    name : str or None, optional
        Its name, where the catalogue has names of features.
    """

    feature: int
    value: float
    weight: float
    part: float
    name: str | None = None


@dataclass(frozen=True)
class ItemReason:
    """Why an item stood at its position.

    Parameters
    ----------
    item : str
        The item.
    position : int
        Its position, counted from 0.
    reason : {"pinned", "baseline", "ranker"}
        Whether the request pinned it, the baseline was shown, or the ranker chose it.
    propensity : float or None
        The probability of the item at this position, where it is known.
    place : int or None
        Its place in the order of the candidates that the ranker held best, counted from 0.
    score : float or None
        Its score, for rankers with features.
    features : list of FeaturePart
        Those that weigh most in the score.
    words : str
        The same in words.
    """

    item: str
    position: int
    reason: Literal["pinned", "baseline", "ranker"]
    propensity: float | None
    place: int | None
    score: float | None
    features: list[FeaturePart]
    words: str


@dataclass(frozen=True)
class ExplainAnswer:
    """Why each item of a list stood where it stood.

    Parameters
    ----------
    decision_id : str
        The ID of the decision.
    explored : bool
        Whether the list was shown to find something out.
    model_seq : int
        The row of the log up to which the ranker had learnt when the list was drawn.
    as_of : int
        The row that places, scores and weights are of.
    items : list of ItemReason
        A reason for each item, in the order of the list.
    context_erased : bool, optional
        Whether the context of the request was erased, with the key of its subject.
    state : {"decision", "present"}, optional
        "decision" where that is the row that the list was drawn from; "present" where the state of then is no longer
        kept, and they are of now.
    """

    decision_id: str
    explored: bool
    model_seq: int
    as_of: int
    items: list[ItemReason]
    context_erased: bool = False
    state: Literal["decision", "present"] = "present"


def explain(name: str, decision_id: str) -> Call[ExplainAnswer]:
    """Return why each item of a list stood where it stood.

    Parameters
    ----------
    name : str
        The name of the ranker.
    decision_id : str
        The ID of the decision.

    Returns
    -------
    ExplainAnswer
        A reason for each item, as data and in words.
    """
    path = f"{of(name)}/explain/{quote(decision_id, safe='')}"
    return Call("GET", path, lambda told: read(ExplainAnswer, told))
