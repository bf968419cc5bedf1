"""What is known before a ranker is chosen."""

from __future__ import annotations

from dataclasses import dataclass

from rankloop import measures
from rankloop.arguments import one_of, shares, whole

FEEDBACK = {
    "top": "the relevance of the top items",
    "clicks": "clicks",
    "labels": "the relevance of every item",
}
USERS = {
    "stay": "come from one population",
    "change": "change",
    "unknown": "may or may not change",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is known.

    Parameters
    ----------
    feedback : str
        "top" (the relevance of the first k items shown), "clicks", or "labels" (the relevance of every item).
    n_items : int, optional
        The number of items.
    n_positions : int, optional
        The number of positions that are shown, for clicks; half of the items, up to ten, where it is left out.
    k : int, optional
        How many items, from the top, reveal their relevance.
    features : bool, optional
        Whether each request brings its own documents with features, as a search engine does.
    n_features : int, optional
        How many features a document has.
    users : str, optional
        "stay" (one population), "change" or "unknown".
    measure : str, optional
        The measure that matters.
    per_day : int, optional
        How many users come a day.
    examination : tuple of float, optional
        The probability that each position is looked at, where it is known.
    replicas : bool, optional
        Whether several processes serve the same ranker.
    """

    feedback: str
    n_items: int = 10
    n_positions: int | None = None
    k: int = 1
    features: bool = False
    n_features: int = 20
    users: str = "unknown"
    measure: str = "dcg"
    per_day: int | None = None
    examination: tuple[float, ...] | None = None
    replicas: bool = False

    def __post_init__(self) -> None:
        one_of("feedback", self.feedback, FEEDBACK)
        one_of("users", self.users, USERS)
        for name in ("n_items", "n_features"):
            whole(name, getattr(self, name), at_least=1)
        whole("k", self.k, at_least=1, at_most=None if self.features else self.n_items)
        if self.per_day is not None:
            whole("per_day", self.per_day, at_least=1)
        if self.n_positions is not None:
            whole("n_positions", self.n_positions, at_least=1, at_most=self.n_items)
        if self.examination is not None and len(self.examination) != self.positions:
            raise ValueError(
                f"examination must have {self.positions} probabilities, one for each position, "
                f"got {len(self.examination)}"
            )
        if self.examination is not None:
            shares("examination", self.examination)
        measures.get(self.measure)

    @property
    def positions(self) -> int:
        """The number of positions that are shown."""
        return self.n_positions or max(1, min(10, self.n_items // 2))
