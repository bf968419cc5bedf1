"""What is revealed of a list: the relevance of its top, all of it, clicks, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankloop.arguments import whole
from rankloop.base import Feedback


@dataclass(frozen=True)
class TopK(Feedback):
    """The relevance of the first k items, or of all where the list is shorter.

    Parameters
    ----------
    k : int, optional
        How many positions, from the top.

    Examples
    --------
    >>> TopK(2).length(10)
    2
    """

    k: int = 1
    kind: ClassVar[str] = "relevance"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, at_least=1))

    def length(self, n_positions: int) -> int:
        return min(self.k, n_positions)


@dataclass(frozen=True)
class FullRelevance(Feedback):
    """The relevance of every shown item, by position."""

    kind: ClassVar[str] = "relevance"

    def length(self, n_positions: int) -> int:
        return n_positions


@dataclass(frozen=True)
class Clicks(Feedback):
    """A click (1) or none (0) for every shown position."""

    kind: ClassVar[str] = "clicks"

    def length(self, n_positions: int) -> int:
        return n_positions


@dataclass(frozen=True)
class TopClicks(Clicks):
    """A click (1) or none (0) for each of the first k positions, or for all where the list is shorter.

    Where requests bring lists of their own, a ranking orders every candidate, and users see its first k.

    Parameters
    ----------
    k : int, optional
        How many positions users see, from the top.

    Examples
    --------
    >>> TopClicks(10).length(3), TopClicks(10).length(120)
    (3, 10)
    """

    k: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, at_least=1))

    def length(self, n_positions: int) -> int:
        return min(self.k, n_positions)


@dataclass(frozen=True)
class Signal(Feedback):
    """The number of the signal that an action of a finite game revealed."""

    kind: ClassVar[str] = "signal"

    def length(self, n_positions: int) -> int:
        return 1


@dataclass(frozen=True)
class Nothing(Feedback):
    """Nothing is revealed."""

    kind: ClassVar[str] = "nothing"

    def length(self, n_positions: int) -> int:
        return 0
