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

from rankloop.arguments import one_of
from rankloop.games import signal_models, zoo
from rankloop.games.classify_cells import classify_cells
from rankloop.games.classify_ranking import classify_ranking
from rankloop.games.explain import explain
from rankloop.games.game import Game
from rankloop.games.game_world import GameWorld
from rankloop.games.near_ties import NearTieWarning
from rankloop.games.player import Player
from rankloop.games.ranking_game import RankingGame, ranking_game
from rankloop.games.swaps import SwapWitness, Term, Undecided
from rankloop.games.verdict import RATES, CellWitness, Verdict, Worlds
from rankloop.games.verify_cells import Refused, verify_cells
from rankloop.games.verify_swaps import verify_swaps

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
    "ranking_game",
    "signal_models",
    "verify",
    "zoo",
]


def classify(game: Game, *, route: str = "auto", jobs: int | None = None) -> Verdict:
    """How hard `game` is: trivial, easy (T^(1/2)), hard (T^(2/3)) or hopeless (T), with a witness.

    Parameters
    ----------
    game : Game
        Matrices of your own, one of the zoo, or `ranking_game(...)`.
    route : str, optional
        "cells" goes through all actions and outcomes; "structure" knows ranking measures and takes any number
        of items; "auto" takes the second where it can.
    jobs : int, optional
        Processes to share the work of many pairs of actions; by default one for each core where it pays.

    Returns
    -------
    Verdict
        The class of the game, how regret grows, and the proof.

    Examples
    --------
    >>> classify(Game([[0, 1], [1, 0]], [["?", "?"], ["?", "?"]]))
    <verdict: hopeless, regret of order T>
    """
    one_of("route", route, ("auto", "cells", "structure"))
    if isinstance(game, RankingGame) and (route == "structure" or (route == "auto" and game.is_known)):
        return classify_ranking(game)
    if route == "structure":
        raise ValueError("route 'structure' needs a ranking game")
    return classify_cells(game, jobs=jobs)


def verify(game: Game, verdict: Verdict) -> bool:
    """True if the witness of `verdict` proves its class for `game`; otherwise `Refused`, which says what is wrong.

    Parameters
    ----------
    game : Game
        The game.
    verdict : Verdict
        What `classify` said of it.

    Returns
    -------
    bool
        Always True; a proof that does not hold raises `Refused`.
    """
    told = (verdict.measure, verdict.n_items, verdict.k, verdict.max_grade, verdict.feedback)
    if isinstance(game, RankingGame):
        if told != (game.measure, game.n_items, game.k or None, game.max_grade, game.feedback):
            seen = verdict.feedback or f"top {verdict.k}"
            raise Refused(f"the verdict is about {verdict.measure}, {verdict.n_items} items, {seen}")
    elif told != (None, None, None, 1, None):
        raise Refused("the verdict is about a ranking, and the game is none")
    try:
        if verdict.route == "structure":
            if verdict.feedback is not None:
                raise Refused(f"feedback {verdict.feedback!r} has no known structure")
            verify_swaps(game, verdict)
        elif verdict.route == "cells":
            verify_cells(game, verdict)
        else:
            raise Refused(f"route {verdict.route!r} is not known")
    except (TypeError, KeyError, IndexError, AttributeError) as problem:
        # A part of the wrong kind: what cannot be read proves nothing.
        raise Refused(f"the witness is malformed: {problem}") from problem
    return True
