"""`rank` and `learn` called with something else: one sentence, for every ranker, instead of a traceback from inside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rankloop.ranking import Ranking, generator


def with_sentences(kind: type) -> None:
    """Let the methods `rank` and `learn` that a class defines check their arguments first.

    Parameters
    ----------
    kind : type
        A ranker. Signatures and docstrings stay as they are.
    """
    for name, checked in (("rank", _rank), ("learn", _learn)):
        method = vars(kind).get(name)
        if method is not None and not getattr(method, "__isabstractmethod__", False):
            setattr(kind, name, checked(method))


def _rank(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def rank(self: Any, *args: Any, rng: Any = None, **kwargs: Any) -> Any:
        return method(self, *args, rng=generator(rng), **kwargs)

    return rank


def _learn(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def learn(self: Any, ranking: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(ranking, Ranking):
            raise ValueError(f"ranking must be a Ranking that rank() returned, got {ranking!r}")
        return method(self, ranking, *args, **kwargs)

    return learn
