"""A game of each class, its verdicts by both routes, and verdicts that were changed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from rankloop.games import Refused, classify, ranking_game, verify


def changed(verdict: Any, **parts: Any) -> Any:
    """The same verdict with another witness."""
    return dataclasses.replace(verdict, witness=dataclasses.replace(verdict.witness, **parts))


def refused(game: Any, verdict: Any, match: str | None = None) -> None:
    """The verdict is refused, in words that match."""
    with pytest.raises(Refused, match=match):
        verify(game, verdict)


GAMES = {
    "easy": ranking_game(measure="precision@2", n_items=3, k=1),
    "hard": ranking_game(measure="sum_loss", n_items=3, k=1),
    "hopeless": ranking_game(measure="ndcg", n_items=3, k=1),
    "trivial": ranking_game(measure="precision@3", n_items=3, k=1),
}
CELLS = {name: classify(game, route="cells") for name, game in GAMES.items()}
SWAPS = {name: classify(game, route="structure") for name, game in GAMES.items()}
