"""What users reveal of a shown order, as a function of the order and their relevance vector: feedback of ranking games.

Each model has a name from which `read` makes it again, so that a saved verdict can say what it is about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

from rankloop.arguments import whole
from rankloop.games.exact import fraction

Vector = tuple[int, ...]
Reveal = Callable[[Vector, Vector], Any]


@dataclass(frozen=True)
class SignalModel:
    """A named feedback model.

    Parameters
    ----------
    name : str
        What `read` makes the same model from; of a function of your own, its name.
    reveal : callable
        From an order (items by position) and a relevance vector, the signal: any symbol, or a dict of symbols and
        their chances.
    positions : int, optional
        How many items the orders must have at least.
    k : int, optional
        How many top labels are seen, where that is the model; otherwise 0.
    """

    name: str
    reveal: Reveal
    positions: int = 1
    k: int = 0

    def __call__(self, order: tuple[int, ...], relevance: tuple[int, ...]) -> Any:
        """The signal for one order and one relevance vector."""
        return self.reveal(order, relevance)


def top(k: int) -> SignalModel:
    """The relevance of the first `k` items."""
    n = whole("k", k, at_least=1)
    return SignalModel(f"top {n}", partial(_top, n), n, n)


def first_click() -> SignalModel:
    """The position of the first relevant item, or none: users read from the top and stop at the first click.

    Examples
    --------
    >>> first_click()((2, 0, 1), (1, 0, 0))
    1
    """
    return SignalModel("first click", _first_click)


def position(j: int) -> SignalModel:
    """The relevance of the item at position `j`, counted from 1."""
    n = whole("j", j, at_least=1)
    return SignalModel(f"position {n}", partial(_position, n), n)


def preference(first: int = 1, second: int = 2) -> SignalModel:
    """Which of the items at positions `first` and `second`, counted from 1, is better, or that they are equal."""
    i, j = whole("first", first, at_least=1), whole("second", second, at_least=1)
    if i == j:
        raise ValueError(f"second must be another position than first={first}")
    return SignalModel(f"preference {i} {j}", partial(_preference, i, j), max(i, j))


def noisy_clicks(k: int = 1, relevant: Any = "4/5", other: Any = "1/5") -> SignalModel:
    """Clicks on the first k items, each by itself and with a chance: one for relevant items, one for others.

    Parameters
    ----------
    k : int, optional
        How many items may be clicked, from the top.
    relevant : object, optional
        The chance that an item with relevance above 0 is clicked: a fraction, text such as "4/5", or a float.
    other : object, optional
        The chance that any other item is.

    Examples
    --------
    >>> noisy_clicks()((1, 0), (0, 1))
    {(1,): Fraction(4, 5), (0,): Fraction(1, 5)}
    """
    n, hit, miss = whole("k", k, at_least=1), fraction(relevant), fraction(other)
    for name, chance in (("relevant", hit), ("other", miss)):
        if not 0 <= chance <= 1:
            raise ValueError(f"{name} must be a chance from 0 to 1, got {chance}")
    return SignalModel(f"noisy clicks {n} {hit} {miss}", partial(_noisy_clicks, n, hit, miss), n)


def _top(n: int, order: Vector, r: Vector) -> Vector:
    return tuple(r[item] for item in order[:n])


def _first_click(order: Vector, r: Vector) -> int | str:
    return next((place for place, item in enumerate(order) if r[item]), "none")


def _position(n: int, order: Vector, r: Vector) -> int:
    return r[order[n - 1]]


def _preference(i: int, j: int, order: Vector, r: Vector) -> int:
    one, other = r[order[i - 1]], r[order[j - 1]]
    return (one > other) - (one < other)


def _noisy_clicks(n: int, hit: Fraction, miss: Fraction, order: Vector, r: Vector) -> dict[Vector, Fraction]:
    chances: dict[Vector, Fraction] = {}
    for clicks in product((1, 0), repeat=n):
        p = Fraction(1)
        for item, click in zip(order[:n], clicks, strict=True):
            p *= (hit if r[item] else miss) if click else 1 - (hit if r[item] else miss)
        chances[clicks] = p
    return chances


_MAKERS: dict[str, Callable[..., SignalModel]] = {
    "top": top,
    "first click": first_click,
    "position": position,
    "preference": preference,
    "noisy clicks": noisy_clicks,
}


def read(feedback: Any) -> SignalModel:
    """A model from its name, from a function of an order and a relevance vector, or as it is.

    Parameters
    ----------
    feedback : str, SignalModel or callable
        A name such as "top 2", "first click", "position 3", "preference 1 2" or "noisy clicks 1 4/5 1/5", or a
        function.

    Examples
    --------
    >>> read("position 3").name, read("noisy clicks").name
    ('position 3', 'noisy clicks 1 4/5 1/5')
    """
    if isinstance(feedback, SignalModel):
        return feedback
    if isinstance(feedback, str):
        for name, make in _MAKERS.items():
            words = feedback.removeprefix(name).split()
            if feedback == name or feedback.startswith(f"{name} "):
                try:
                    return make(*(int(word) if word.isdigit() else word for word in words))
                except TypeError:
                    raise ValueError(f"feedback {name!r} has other numbers than {words}") from None
        raise ValueError(f"feedback must be one of {', '.join(_MAKERS)}, with its numbers, got {feedback!r}")
    if callable(feedback):
        return SignalModel(getattr(feedback, "__name__", "feedback"), feedback)
    raise ValueError(
        f"feedback must be a name or a function of an order and a relevance vector, got {feedback!r}"
    )
