"""Player: learns any finite game that can be learnt, by exploration by optimisation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import CompiledRanker, RankerKernels
from rankloop.feedback import Signal
from rankloop.games.arrays import coordinates, game_arrays, spread
from rankloop.games.classify_cells import classify_cells
from rankloop.games.game import Game
from rankloop.games.ranking_game import RankingGame, ranking_game
from rankloop.games.verdict import Verdict
from rankloop.games.zoo import apple_tasting
from rankloop.kernels.elementary import log
from rankloop.kernels.rankers import player as kernels

_LARGEST_ESTIMATE = 1e12


class Player(CompiledRanker):
    """Learns a finite game: regret of order sqrt(T) where it is easy, T^(2/3) where it is hard, 0 where it is trivial.

    Exponential weights over the actions that are best somewhere, from estimates that use every signal of every action.
    How much to explore, and with which actions, is chosen in each round so that a bound on the regret of the round is
    small; the learning rate follows the sum of these bounds. So it need not be told the class of the game, nor the
    number of rounds.

    Parameters
    ----------
    game : Game
        The game; of a ranking game at most 4 items. A hopeless one is refused.
    verdict : Verdict, optional
        What `classify(game, route="cells")` said of it, where that is known already.

    Notation
    --------
    q_t, p_t: weights and chances, eta_t: the learning rate, y_hat: state.estimate, Lambda_t: the bound of a round.

    Departures
    ----------
    Of the estimation functions only those are searched that are best for given chances, for the sum of squares over
    signals; chances are p = (1 - sum w) q + w with sum w about 1/2 at most, which costs about a factor of 2. The convex
    programme is not solved to the end in each round: two steps of a local search are made from the last solution.
    Every action is explored with at least eta / (2 k).

    References
    ----------
    T. Lattimore and C. Szepesvari, Exploration by optimisation in partial monitoring, COLT 2020.

    Examples
    --------
    >>> from rankloop import games
    >>> game = games.ranking_game(measure="err", n_items=3, k=2)
    >>> player = games.Player(game)
    >>> shown = player.rank(rng=np.random.default_rng(1))
    >>> player.learn(shown, player.signal(shown, (1, 0)))  # the relevance of the first two
    >>> games.Player(games.zoo.blind_pennies())
    Traceback (most recent call last):
    ...
    ValueError: the game is hopeless: regret grows linearly for every learner, so none can play it
    """

    n_items: int
    n_positions: int
    summary = (
        "Observes the signals of a finite game, and keeps a weight for each action that is best somewhere."
    )
    unservable = "it learns a game, and a service has items"
    kernels = RankerKernels(kernels.rank, kernels.learn)

    def __init__(self, game: Game, *, verdict: Verdict | None = None) -> None:
        arrays = game_arrays(game)
        found = classify_cells(game) if verdict is None else verdict
        if found.route != "cells" or (found.n_actions, found.n_outcomes) != game.whole.shape:
            raise ValueError(f"verdict must be of classify(game, route='cells') for this game, got {found!r}")
        if found.class_ == "hopeless":
            raise ValueError(
                "the game is hopeless: regret grows linearly for every learner, so none can play it"
            )
        self.game, self.verdict = game, found
        k = game.n_actions
        same = [next(i for i in range(k) if (game.whole[i] == game.whole[a]).all()) for a in range(k)]
        member = np.array([found.pareto.index(i) if i in found.pareto else -1 for i in same])
        alike = np.array([np.count_nonzero(member == b) for b in member])
        self.n_items = game.n_items if isinstance(game, RankingGame) else k
        self.n_positions = arrays.orders.shape[1]
        self.feedback = Signal()
        n = len(found.pareto)
        trivial = n == 1
        c, target = (
            (np.zeros((len(arrays.chance), 1)), np.zeros((1, 1)))
            if trivial
            else coordinates(game, found.pareto)
        )
        self.scale = float(game.unit * spread(game.whole))
        scaled = [[(int(v) - int(game.whole.min())) / spread(game.whole) for v in row] for row in game.whole]
        self.params = kernels.PlayerParams(
            arrays.orders,
            np.array(scaled),
            arrays.first,
            np.repeat(np.arange(k), np.diff(arrays.first)),
            arrays.chance,
            c,
            target,
            member.astype(np.int64),
            np.where(member >= 0, 1 / alike, 0.0),
            0.0 if trivial else float(log(float(n))),
        )
        self.state = kernels.PlayerState(
            np.zeros(1, np.int64),
            np.zeros(n),
            np.full(k, 0.25 / k),
            np.zeros(k),
            np.zeros((len(arrays.chance), n)),
            np.zeros(2),
        )
        kernels.plan(self.params, self.state, self.scratch(self.n_positions))

    def scratch(self, n: int) -> Any:
        k, d = self.params.loss.shape
        return kernels.room(k, d, self.params.c.shape[1], len(self.params.target))

    def blank_memo(self, n: int) -> Memo:
        most = int(np.diff(self.params.first).max())
        return np.empty(1, np.int64), np.empty((most, len(self.params.target)))

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        return np.empty(n)

    def signal(self, ranking: Ranking, symbol: Any) -> NDArray[np.float64]:
        """The feedback that stands for `symbol`, one of the game's signals for the action that was played.

        Parameters
        ----------
        ranking : Ranking
            What was shown.
        symbol : object
            What came back: of the top k, a tuple of labels.

        Returns
        -------
        ndarray of float
            For `learn`.
        """
        known = self.game.observations.symbols[int(ranking.memo[0][0])]
        if symbol not in known:
            raise ValueError(f"symbol must be one of {known}, got {symbol!r}")
        return np.array([float(known.index(symbol))])

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        given = self.feedback.check(feedback, len(ranking.items))
        self.check_ticket(ranking)
        n = len(self.game.observations.symbols[int(ranking.memo[0][0])])
        if given[0] not in range(n):
            raise ValueError(f"feedback must be the number of one of {n} signals, got {given}")
        super().learn(ranking, given)

    def check_ticket(self, ranking: Ranking) -> None:
        if len(ranking.memo) != 2 or np.shape(ranking.memo[0]) != (1,):
            raise ValueError(f"ranking.memo must hold an action and its estimates, got {ranking.memo!r}")
        action = int(ranking.memo[0][0])
        if not 0 <= action < len(self.params.orders) or (
            self.params.orders[action].tolist() != ranking.items.tolist()
        ):
            raise ValueError(f"ranking.memo must hold the number of the action that was shown, got {action}")
        if not (np.abs(ranking.memo[1]) <= _LARGEST_ESTIMATE).all():
            raise ValueError(f"ranking.memo must hold estimates, got {ranking.memo[1]}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        p, w = np.asarray(saved["p"]), np.asarray(saved["w"])
        if saved["t"][0] < 0 or (saved["total"] < 0).any():
            raise ValueError("saved state 't' and 'total' must not be negative")
        if (p < 0).any() or abs(p.sum() - 1) > 1e-9 or (w <= 0).any() or w.sum() > 1:
            raise ValueError("saved state 'p' and 'w' must be chances, of 1 and of at most 1 in all")

    def current(self, context: Any = None) -> NDArray[np.int64]:
        self.read_context(context)
        best = self.verdict.pareto[int(np.argmin(self.state.L_hat))]
        return self.params.orders[best].copy()  # type: ignore[no-any-return]

    def regret_bound(self) -> float:
        """Log n / eta plus the sum of the bounds of all rounds so far: its expectation bounds the expected regret.

        Nothing is assumed about the outcomes, and nothing about how well the search for exploration went.

        Returns
        -------
        float
            The bound, in units of the loss.
        """
        if len(self.state.L_hat) == 1:
            return 0.0
        return self.scale * float(
            self.params.log_n / kernels.rate(self.params, self.state) + self.state.total[1]
        )

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(ranking_game(measure="dcg", n_items=3, k=1))
        yield cls(ranking_game(measure="precision@1", n_items=3, feedback="noisy clicks 1 3/4 1/4"))
        yield cls(apple_tasting())
