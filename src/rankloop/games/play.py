"""Finite games that are played: a learner for any that can be learnt, worlds for it, and the kernels of both.

The learner explores by optimisation, with exponential weights. With p the chances of the actions, M = sum of p_a c c^T
over all signals c of action a, and t_b what action b loses beyond a base, both in the coordinates of what can be seen,
c^T M^-1 t_b is an unbiased estimate of that loss, the one with the least variance summed over signals. The chances are
p = (1 - sum w) q + w: exponential weights q, and exploration w, which is improved in every round by trying other values
in the bound on this round's regret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers, whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import CompiledEnvironment, CompiledRanker, EnvironmentKernels, RankerKernels
from rankloop.feedback import Signal
from rankloop.games.classify import classify_cells
from rankloop.games.exact import RowSpace, Whole
from rankloop.games.game import Game
from rankloop.games.ranking_game import RankingGame, ranking_game
from rankloop.games.verdict import CellWitness, Verdict
from rankloop.games.zoo import apple_tasting
from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import apart, hot
from rankloop.kernels.random import uniform

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_ACTIONS, _MOST_OUTCOMES, _MOST_SIGNALS = 64, 256, 2_048
_LARGEST_ESTIMATE = 1e12
_LEAST = 0.5  # of exploration, times the learning rate: no estimate is much larger than its inverse
_MOST = 0.5  # of exploration in all
_PIVOT = 1e-14
_EAGER, _EVERY = 512, 4  # rounds in which other exploration is tried: the first ones, then one of four


class GameArrays(NamedTuple):
    """What is shown for each action, what it loses, and the chance of each of its signals."""

    orders: Ints
    loss: Floats  # [action, outcome]
    first: Ints  # of each action, its first row; and the number of rows
    chance: Floats  # [row, outcome]


def game_arrays(game: Game) -> GameArrays:
    """The arrays; a ValueError where the game is too large to be played."""
    if isinstance(game, RankingGame) and game.n_items > 4:
        raise ValueError(
            f"a ranking game of n_items={game.n_items} is too large to be played: at most 4 items, 24 orders"
        )
    seen = game.observations
    first = np.cumsum([0, *(len(symbols) for symbols in seen.symbols)])
    if game.n_actions > _MOST_ACTIONS or game.n_outcomes > _MOST_OUTCOMES or first[-1] > _MOST_SIGNALS:
        raise ValueError(
            f"a game of {game.n_actions} actions, {game.n_outcomes} outcomes and {first[-1]} signals is too large to "
            f"be played: at most {_MOST_ACTIONS}, {_MOST_OUTCOMES} and {_MOST_SIGNALS}"
        )
    orders = game.orders if isinstance(game, RankingGame) else [(a,) for a in range(game.n_actions)]
    chance = np.array([[int(entry) / seen.scale for entry in row] for row in stacked(game)])
    return GameArrays(np.array(orders, dtype=np.int64), game.loss, first.astype(np.int64), chance)


def stacked(game: Game) -> Ints:
    """The signal matrices of all actions, one above the other, times the scale of the observations."""
    return np.concatenate([game.observations.matrix(a) for a in range(game.n_actions)])


def coordinates(game: Game, choices: tuple[int, ...]) -> tuple[Floats, Floats]:
    """All signals, and what each choice loses beyond the first, in coordinates of what can be seen.

    Losses are in units of their range. The game must be globally observable.
    """
    rows = stacked(game)
    space = RowSpace(rows)
    c = [_rounded(space.coefficients(row), Fraction(1)) for row in rows.astype(object)]
    unit = Fraction(game.observations.scale, spread(game.whole))
    targets = [_rounded(space.coefficients(game.difference(b, choices[0])), unit) for b in choices]
    return np.array(c), np.array(targets)


def spread(losses: Whole) -> int:
    """The largest loss less the smallest, in units; 1 where all are equal."""
    return int(losses.max() - losses.min()) or 1


def _rounded(values: list[Fraction] | None, unit: Fraction) -> list[float]:
    assert values is not None, "a difference of losses that cannot be seen"
    return [float(value * unit) for value in values]


class PlayerParams(NamedTuple):
    """The game: a row for each signal of each action."""

    orders: Ints  # of each action, what is shown
    loss: Floats  # [action, outcome], from 0 to 1
    first: Ints  # of each action, its first row; and the number of rows
    owner: Ints  # of each row, its action
    chance: Floats  # [row, outcome]: of the signal
    c: Floats  # [row, coordinate]: the same in coordinates
    target: Floats  # [choice, coordinate]: what choice b loses beyond choice 0
    member: Ints  # of each action, the choice with the same losses, or -1
    share: Floats  # of each such action: of its choice's chance
    log_n: float  # of the number of choices


class PlayerState(NamedTuple):
    """What was learnt, and the plan for the next round."""

    t: Ints  # rounds learnt
    L_hat: Floats  # of each choice: summed estimates of what it loses beyond choice 0
    w: Floats  # of each action: exploration
    p: Floats  # of each action: its chance
    estimate: Floats  # [row, choice]: what to add where this signal comes
    total: Floats  # the summed bounds over their learning rates; and the summed bounds


class Scratch(NamedTuple):
    """Memory to work in; never state."""

    M: Floats  # its Cholesky factor
    H: Floats  # M^-1 t_b
    q: Floats
    q_loss: Floats
    bound: Floats
    w: Floats


@hot
def _factor(params: Any, state: Any, scratch: Any) -> None:
    M, c = scratch.M, params.c
    r = M.shape[0]
    for a in range(r):
        for b in range(a + 1):
            M[a, b] = 0.0
    for row in range(c.shape[0]):
        for a in range(r):
            weighed = state.p[params.owner[row]] * c[row, a]
            if weighed != 0.0:
                for b in range(a + 1):
                    M[a, b] += weighed * c[row, b]
    for a in range(r):
        for b in range(a + 1):
            left = M[a, b]
            for i in range(b):
                left -= M[a, i] * M[b, i]
            M[a, b] = np.sqrt(max(left, _PIVOT)) if a == b else left / M[b, b]


@hot
def _solve(params: Any, scratch: Any) -> None:
    M, H = scratch.M, scratch.H
    r = M.shape[0]
    for choice in range(H.shape[0]):
        for a in range(r):
            left = params.target[choice, a]
            for i in range(a):
                left -= M[a, i] * H[choice, i]
            H[choice, a] = left / M[a, a]
        for a in range(r - 1, -1, -1):
            left = H[choice, a]
            for i in range(a + 1, r):
                left -= M[i, a] * H[choice, i]
            H[choice, a] = left / M[a, a]


@apart
def evaluate(params: Any, state: Any, w: Any, eta: float, scratch: Any) -> float:
    """The chances that go with exploration `w`, the estimates, and the bound on this round's regret.

    The bound is the largest, over outcomes, of what p loses beyond q plus the expected price of the estimates,
    (log sum q exp(-eta y) + eta sum q y) / eta, which is exact for exponential weights.
    """
    n_actions, n_outcomes = params.loss.shape
    n_choices = len(state.L_hat)
    spent = 0.0
    for a in range(n_actions):
        spent += w[a]
    for a in range(n_actions):
        state.p[a] = w[a]
        if params.member[a] >= 0:
            state.p[a] += (1.0 - spent) * scratch.q[params.member[a]] * params.share[a]
    _factor(params, state, scratch)
    _solve(params, scratch)
    for x in range(n_outcomes):
        scratch.bound[x] = -scratch.q_loss[x]
        for a in range(n_actions):
            scratch.bound[x] += state.p[a] * params.loss[a, x]
    for row in range(len(params.owner)):
        least, mean = 0.0, 0.0
        for b in range(n_choices):
            y = 0.0
            for i in range(scratch.M.shape[0]):
                y += params.c[row, i] * scratch.H[b, i]
            state.estimate[row, b] = y
            mean += scratch.q[b] * y
            least = y if b == 0 else min(least, y)
        weighed = 0.0
        for b in range(n_choices):
            weighed += scratch.q[b] * exp(-eta * (state.estimate[row, b] - least))
        price = log(max(weighed, 1e-300)) / eta - least + mean
        for x in range(n_outcomes):
            scratch.bound[x] += state.p[params.owner[row]] * price * params.chance[row, x]
    worst = scratch.bound[0]
    for x in range(1, n_outcomes):
        worst = max(worst, scratch.bound[x])
    return float(worst)


@hot
def rate(params: Any, state: Any) -> float:
    """The learning rate: sqrt(log n / summed bounds over rates), at most 1."""
    return float(min(1.0, np.sqrt(params.log_n / max(state.total[0], 1e-9))))


@apart
def plan(params: Any, state: Any, scratch: Any) -> None:
    """Weights, exploration, chances and estimates of the next round; its bound is added to the sums."""
    n_actions, n_outcomes = params.loss.shape
    n_choices = len(state.L_hat)
    if n_choices == 1:  # nothing to learn
        for a in range(n_actions):
            state.p[a] = params.share[a] if params.member[a] == 0 else 0.0
        return
    eta = rate(params, state)
    least, total = state.L_hat[0], 0.0
    for b in range(1, n_choices):
        least = min(least, state.L_hat[b])
    for b in range(n_choices):
        scratch.q[b] = exp(-eta * (state.L_hat[b] - least))
        total += scratch.q[b]
    for b in range(n_choices):
        scratch.q[b] /= total
    for x in range(n_outcomes):
        scratch.q_loss[x] = 0.0
        for a in range(n_actions):
            if params.member[a] >= 0:
                scratch.q_loss[x] += scratch.q[params.member[a]] * params.share[a] * params.loss[a, x]
    least = _LEAST * eta / n_actions
    for a in range(n_actions):
        state.w[a] = max(least, state.w[a])
    bound = evaluate(params, state, state.w, eta, scratch)
    t, planned = state.t[0], True
    tries, t = (2, t) if t < _EAGER else (2 if t % _EVERY == 0 else 0, t // _EVERY)
    for attempt in range(tries):
        # All exploration less or more; then that of one action, each in its turn.
        turn, spent = t // 2 % n_actions, 0.0
        for a in range(n_actions):
            factor = 1.0
            if attempt == 0:
                factor = 0.8 if t % 2 == 0 else 1.25
            elif a == turn:
                factor = 0.6 if t % 2 == 0 else 1.6
            scratch.w[a] = max(least, factor * state.w[a])
            spent += scratch.w[a]
        for a in range(n_actions):
            scratch.w[a] *= min(1.0, _MOST / spent)
        other = evaluate(params, state, scratch.w, eta, scratch)
        planned = other < bound
        if planned:
            bound = other
            for a in range(n_actions):
                state.w[a] = scratch.w[a]
    if not planned:
        evaluate(params, state, state.w, eta, scratch)
    state.total[0] += max(bound, 0.0) / eta
    state.total[1] += max(bound, 0.0)


@hot
def draw_action(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Draw an action; the memo keeps its number and the estimates that go with each of its signals."""
    mark = uniform(key, 0)
    chosen = -1
    for a in range(len(state.p)):
        if state.p[a] > 0.0:
            chosen = a
            mark -= state.p[a]
            if mark < 0.0:
                break
    best = 0
    for b in range(1, len(state.L_hat)):
        if state.L_hat[b] < state.L_hat[best]:
            best = b
    for position in range(len(items)):
        items[position] = params.orders[chosen, position]
    for position in range(len(items)):
        propensities[position] = 0.0
        for a in range(len(state.p)):
            if params.orders[a, position] == items[position]:
                propensities[position] += state.p[a]
        propensities[position] = min(1.0, propensities[position])
    memo[0][0] = chosen
    for symbol in range(memo[1].shape[0]):
        row = params.first[chosen] + symbol
        for b in range(memo[1].shape[1]):
            memo[1][symbol, b] = state.estimate[row, b] if row < params.first[chosen + 1] else 0.0
    return bool(params.member[chosen] != best)


@hot
def add_estimates(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """Add the estimates of the signal that came, and plan the next round."""
    for b in range(len(state.L_hat)):
        state.L_hat[b] += memo[1][int(feedback[0]), b]
    state.t[0] += 1
    plan(params, state, scratch)


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
    kernels = RankerKernels(draw_action, add_estimates)

    def __init__(self, game: Game, *, verdict: Verdict | None = None) -> None:
        arrays = game_arrays(game)
        verdict = classify_cells(game) if verdict is None else verdict
        if verdict.route != "cells" or (verdict.n_actions, verdict.n_outcomes) != game.whole.shape:
            raise ValueError(
                f"verdict must be of classify(game, route='cells') for this game, got {verdict!r}"
            )
        if verdict.class_ == "hopeless":
            raise ValueError(
                "the game is hopeless: regret grows linearly for every learner, so none can play it"
            )
        self.game, self.verdict = game, verdict
        k, pareto = game.n_actions, verdict.pareto
        same = [next(i for i in range(k) if (game.whole[i] == game.whole[a]).all()) for a in range(k)]
        member = np.array([pareto.index(i) if i in pareto else -1 for i in same])
        alike = np.array([np.count_nonzero(member == b) for b in member])
        self.n_items = game.n_items if isinstance(game, RankingGame) else k
        self.n_positions = arrays.orders.shape[1]
        self.feedback = Signal()
        n = len(pareto)
        c, target = np.zeros((len(arrays.chance), 1)), np.zeros((1, 1))
        if n > 1:
            c, target = coordinates(game, pareto)
        self.scale = float(game.unit * spread(game.whole))
        scaled = [[(int(v) - int(game.whole.min())) / spread(game.whole) for v in row] for row in game.whole]
        self.params = PlayerParams(
            orders=arrays.orders,
            loss=np.array(scaled),
            first=arrays.first,
            owner=np.repeat(np.arange(k), np.diff(arrays.first)),
            chance=arrays.chance,
            c=c,
            target=target,
            member=member.astype(np.int64),
            share=np.where(member >= 0, 1 / alike, 0.0),
            log_n=float(log(float(n))) if n > 1 else 0.0,
        )
        self.state = PlayerState(
            t=np.zeros(1, np.int64),
            L_hat=np.zeros(n),
            w=np.full(k, 0.25 / k),
            p=np.zeros(k),
            estimate=np.zeros((len(arrays.chance), n)),
            total=np.zeros(2),
        )
        plan(self.params, self.state, self.scratch(self.n_positions))

    def scratch(self, n: int) -> Any:
        k, d = self.params.loss.shape
        n, r = self.params.target.shape
        return Scratch(np.empty((r, r)), np.empty((n, r)), np.empty(n), np.empty(d), np.empty(d), np.empty(k))

    def blank_memo(self, n: int) -> Memo:
        most = int(np.diff(self.params.first).max())
        return np.empty(1, np.int64), np.empty((most, len(self.params.target)))

    def blank_propensities(self, n: int) -> Floats:
        return np.empty(n)

    def signal(self, ranking: Ranking, symbol: Any) -> Floats:
        """The feedback for `symbol`, a signal of the action in `ranking`; of the top k, a tuple of labels."""
        known = self.game.observations.symbols[int(ranking.memo[0][0])]
        if symbol not in known:
            raise ValueError(f"symbol must be one of {known}, got {symbol!r}")
        return np.array([float(known.index(symbol))])

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        signal = self.feedback.check(feedback, len(ranking.items))
        self.check_ticket(ranking)
        n = len(self.game.observations.symbols[int(ranking.memo[0][0])])
        if signal[0] not in range(n):
            raise ValueError(f"feedback must be the number of one of {n} signals, got {signal}")
        super().learn(ranking, signal)

    def check_ticket(self, ranking: Ranking) -> None:
        if len(ranking.memo) != 2 or np.shape(ranking.memo[0]) != (1,):
            raise ValueError(f"ranking.memo must hold an action and its estimates, got {ranking.memo!r}")
        action, orders = int(ranking.memo[0][0]), self.params.orders
        if not 0 <= action < len(orders) or orders[action].tolist() != ranking.items.tolist():
            raise ValueError(f"ranking.memo must hold the number of the action that was shown, got {action}")
        if not (np.abs(ranking.memo[1]) <= _LARGEST_ESTIMATE).all():
            raise ValueError(f"ranking.memo must hold estimates, got {ranking.memo[1]}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        p, w = np.asarray(saved["p"]), np.asarray(saved["w"])
        if saved["t"][0] < 0 or (saved["total"] < 0).any():
            raise ValueError("saved state 't' and 'total' must not be negative")
        if (p < 0).any() or abs(p.sum() - 1) > 1e-9 or (w <= 0).any() or w.sum() > 1:
            raise ValueError("saved state 'p' and 'w' must be chances, of 1 and of at most 1 in all")

    def current(self, context: Any = None) -> Ints:
        self.read_context(context)
        best = self.verdict.pareto[int(np.argmin(self.state.L_hat))]
        return self.params.orders[best].copy()  # type: ignore[no-any-return]

    def regret_bound(self) -> float:
        """Log n / eta plus the summed bounds of all rounds so far, in units of the loss.

        Its expectation bounds the expected regret; a single run may reach several times its own. Nothing is assumed
        about the outcomes, and nothing about how well the search for exploration went.
        """
        if len(self.state.L_hat) == 1:
            return 0.0
        return self.scale * float(self.params.log_n / rate(self.params, self.state) + self.state.total[1])

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(ranking_game(measure="dcg", n_items=3, k=1))
        yield cls(ranking_game(measure="precision@1", n_items=3, feedback="noisy clicks 1 3/4 1/4"))
        yield cls(apple_tasting())


class GameParams(NamedTuple):
    """The game, and where outcomes come from."""

    loss: Floats  # [action, outcome]
    first: Ints  # of each action, its first row of `chance`; and the number of rows
    chance: Floats  # [row, outcome]: of each signal
    listed: Ints  # the outcomes in turn; empty where they are drawn
    phases: Floats  # [phase, outcome]: cumulated chances
    period: int  # rounds of a phase


class GameState(NamedTuple):
    """The present outcome, and what each action would have lost so far."""

    t: Ints
    outcome: Ints
    totals: Floats


@hot
def action_of(items: Any) -> Any:
    """The number of an action: the only item; of an order, its place among all orders sorted by the items' ranks."""
    n = len(items)
    if n == 1:
        return items[0]
    number = 0
    for i in range(n):
        place = 0
        while items[place] != i:
            place += 1
        earlier = 0  # items after i, in number, that stand before it
        for p in range(place):
            earlier += items[p] > i
        number = number * (n - i) + earlier
    return number


@hot
def next_outcome(params: Any, state: Any, key: Any) -> None:
    """The next outcome."""
    t = state.t[0]
    if len(params.listed) > 0:
        x = params.listed[t]
    else:
        phase = t // params.period % len(params.phases)
        mark = uniform(key, 0) * params.phases[phase, -1]
        x = 0
        while x < params.phases.shape[1] - 1 and params.phases[phase, x] <= mark:
            x += 1
    state.outcome[0] = x
    state.t[0] = t + 1
    for a in range(len(state.totals)):
        state.totals[a] += params.loss[a, x]


@hot
def show_signal(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """The number of the signal, and zeros."""
    a, mark = action_of(items), uniform(key, 0)
    for position in range(len(revealed)):
        revealed[position] = 0.0
    for row in range(params.first[a], params.first[a + 1]):
        if params.chance[row, state.outcome[0]] > 0.0:
            revealed[0] = float(row - params.first[a])
            mark -= params.chance[row, state.outcome[0]]
            if mark < 0.0:
                return


@hot
def loss_now(params: Any, state: Any, items: Any) -> Any:
    """The loss of the action in the present outcome."""
    return params.loss[action_of(items), state.outcome[0]]


@hot
def least_total(params: Any, state: Any) -> Any:
    """What the best fixed action would have lost."""
    least = state.totals[0]
    for a in range(1, len(state.totals)):
        least = min(least, state.totals[a])
    return least


class GameWorld(CompiledEnvironment):
    """Outcomes of a finite game, listed or drawn, and the signals of what is played.

    Parameters
    ----------
    game : Game
        The game; of a ranking game at most 4 items.
    outcomes : array_like, optional
        The numbers of the outcomes, one a round.
    chances : array_like, optional
        The chance of each outcome; or one row of chances for each of several worlds, which take turns.
    period : int, optional
        How many rounds each of these worlds lasts.

    Examples
    --------
    >>> from rankloop import games, simulation
    >>> game = games.zoo.apple_tasting()
    >>> world = games.GameWorld(game, chances=[0.7, 0.3])
    >>> trace = simulation.play(games.Player(game), world, rounds=1000, seed=1)
    >>> bool(trace.total_regret < 100)
    True
    """

    reveals: ClassVar[str] = "signal"
    kernels = EnvironmentKernels(next_outcome, show_signal, loss_now, least_total)
    measure = "loss"
    is_loss = True
    n_items: int

    def __init__(
        self,
        game: Game,
        *,
        outcomes: ArrayLike | None = None,
        chances: ArrayLike | None = None,
        period: int = 1_000,
    ) -> None:
        arrays = game_arrays(game)
        k, d = arrays.loss.shape
        if (outcomes is None) == (chances is None):
            raise ValueError("give either outcomes or chances")
        listed, phases = np.empty(0, np.int64), np.ones((1, 1))
        if outcomes is not None:
            codes = numbers("outcomes", outcomes)
            if codes.ndim != 1 or not len(codes) or not np.isin(codes, np.arange(d)).all():
                raise ValueError(f"outcomes must be numbers from 0 to {d - 1}, one a round, got {outcomes!r}")
            listed = codes.astype(np.int64)
        else:
            phases = _distributions(chances, d)
        self.game, self.chances = game, phases
        self.n_items = game.n_items if isinstance(game, RankingGame) else k
        self.n_positions = arrays.orders.shape[1]
        self.max_grade = int(np.diff(arrays.first).max()) - 1
        self.orders = arrays.orders
        period = whole("period", period, at_least=1)
        cumulated = np.cumsum(phases, axis=1)
        self.params = GameParams(arrays.loss, arrays.first, arrays.chance, listed, cumulated, period)
        self.state = GameState(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(k))

    @property
    def remaining(self) -> int | None:
        n = len(self.params.listed)
        return n - int(self.state.t[0]) if n else None

    def arrive(self, *, rng: np.random.Generator) -> None:
        if self.remaining == 0:
            raise ValueError("all outcomes of the list have come; restart() begins again")
        super().arrive(rng=rng)

    def start_counting(self) -> None:
        self.state.totals[:] = 0

    def best(self, context: Any = None) -> Ranking:
        """The best fixed action: over the whole list of outcomes, or in expectation over all worlds."""
        shares = self.chances.sum(axis=0)
        if len(self.params.listed):
            shares = np.bincount(self.params.listed, minlength=self.params.loss.shape[1])
        return Ranking(self.orders[int(np.argmin(self.params.loss @ shares))].copy())

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(apple_tasting(), chances=[0.4, 0.6])
        yield cls(ranking_game(measure="dcg", n_items=3, k=1), chances=np.eye(8)[[1, 6]], period=3)
        yield cls(apple_tasting(), outcomes=np.arange(200) % 2)


def _distributions(chances: Any, n_outcomes: int) -> Floats:
    rows = np.atleast_2d(numbers("chances", chances))
    if rows.ndim != 2 or rows.shape[1] != n_outcomes or not len(rows):
        raise ValueError(
            f"chances must be {n_outcomes} numbers for each world, got shape {np.shape(chances)}"
        )
    if not np.isfinite(rows).all() or (rows < 0).any() or (np.abs(rows.sum(axis=1) - 1) > 1e-9).any():
        raise ValueError(f"chances must not be negative and sum to 1 in each world, got {chances!r}")
    return rows


def near_wall(game: Game, verdict: Verdict, share: float, *, wall: int | None = 0, side: int = 0) -> Floats:
    """The chances of outcomes on the wall between two neighbours, mixed with those in which one is better by the most.

    Parameters
    ----------
    game : Game
        The game.
    verdict : Verdict
        What `classify(game, route="cells")` said of it.
    share : float
        The share of these outcomes: at 0 the two are equally good, and better than all others.
    wall : int, optional
        Which pair of neighbours, in the order of `verdict.neighbours`; None begins at the mean of all walls instead,
        where in symmetric games all actions are equally good, and takes the first pair.
    side : int, optional
        Which of the two is better, 0 or 1.

    Examples
    --------
    >>> from rankloop import games
    >>> game = games.zoo.apple_tasting()
    >>> near_wall(game, games.classify(game), 0.5).tolist()
    [0.25, 0.75]
    """
    witness = verdict.witness
    if not isinstance(witness, CellWitness) or not verdict.neighbours:
        raise ValueError(f"verdict must be about cells, and some of them neighbours, got {verdict!r}")
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, got {share!r}")
    number = whole("wall", 0 if wall is None else wall, at_least=0, at_most=len(verdict.neighbours) - 1)
    pair = verdict.neighbours[number]
    better = whole("side", side, at_least=0, at_most=1)
    lead = game.difference(pair[1 - better], pair[better])
    far = (lead == lead.max()).astype(np.float64)
    points = [witness.walls[pair]] if wall is not None else list(witness.walls.values())
    start = np.array([[x / sum(point) for x in point] for point in points]).mean(axis=0)
    return np.asarray((1 - share) * start + share * far / far.sum())
