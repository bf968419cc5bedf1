"""Learnability: finite partial-monitoring games, their classes, and proofs that can be checked.

>>> game = ranking_game(measure="dcg", n_items=3, k=1)
>>> classify(game).class_
'hard'
>>> verify(game, classify(game, route="cells"))
True
>>> print(explain(classify(game))[-1])
Use: rankers.TopFTRL(n_items=3, measure='dcg', k=1).
"""

from __future__ import annotations

from rankloop.extras import require

require("scipy", extra="scipy", for_="rankloop.games")

from rankloop.games import signal_models, zoo
from rankloop.games.classify import classify
from rankloop.games.explain import explain
from rankloop.games.game import Game, NearTieWarning
from rankloop.games.play import GameWorld, Player, near_wall
from rankloop.games.ranking_game import RankingGame, ranking_game
from rankloop.games.verdict import RATES, CellWitness, SwapWitness, Term, Undecided, Verdict, Worlds
from rankloop.games.verify import Refused, verify

__all__ = [
    "RATES",
    "CellWitness",
    "Game",
    "GameWorld",
    "NearTieWarning",
    "Player",
    "RankingGame",
    "Refused",
    "SwapWitness",
    "Term",
    "Undecided",
    "Verdict",
    "Worlds",
    "classify",
    "explain",
    "near_wall",
    "ranking_game",
    "signal_models",
    "verify",
    "zoo",
]
