"""ClickMix: clicks of users of whom nothing is known.

Memories of several lengths lie side by side, each read in three ways. A reading is weighed by how well it foretold the
clicks on whatever was shown, so nothing is explored to choose among them. Arrays are by memory, position and item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import number, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.kernels import click_draws, hybrid, lists
from rankloop.kernels.call_checks import within
from rankloop.kernels.click_draws import MOST, beta, draw_list, fit_turn, normal, place_items, weigh_item
from rankloop.kernels.jit import apart, hot
from rankloop.kernels.lists import assign, best_list, in_order
from rankloop.kernels.random import below, uniform
from rankloop.kernels.sorting import by_falling_score
from rankloop.ranges import Between, OneOf, Range, Whole
from rankloop.rankers.click_ranker import ClickRanker, are_chances, check_counts, same_positions
from rankloop.rankers.ftrl_pbm import FTRLPBM, FTRLPBMParams, FTRLPBMState, learn_hybrid, rank_in_full

BY_POSITION, BY_CELL, TO_CLICK = range(3)  # the readings
_MEMORIES = (16_000, 4_000, 1_000, 300)  # beside the longest
_LEAN = 50.0  # how much likelier the longest memory is at first than each of the others
_LEAN_READING = 0.02  # how much less likely the other readings are than the position-based one
_SHARE = 1e-5  # of the weights that is given back to the first ones in a round
_LOOKS = 1.0  # second looks: c of c / sqrt t
_IN_FULL, _CERTAIN = (
    0.25,
    4.0,
)  # share of lists drawn with the variance of what is believed; the others', divided
_CHANGED = 0.1  # of the weight: where the longest memory has less, users are said to have changed
_CELL_CLICKS = 3.0  # of the position-based fit, in what is known of a cell beforehand
_STEPS = 50  # in which a memory forgets, over its length
_INSURANCE = 5.0
_MOST_INSURED, _WARY = 0.2, 0.9  # shares of the insurance: at first, and where its lists get more clicks
_DUEL = 400.0  # lists of the insurance over which the two are compared
_SURE = 3.0  # standard deviations
_CELLS_A_ROUND = 500  # of tables larger than that a fit takes its turn more seldom
_LEAST = 1e-290  # chance of what was seen below which the weights begin anew
_NUMBERS = 8  # of the key, before those of a draw


class ClickMixParams(NamedTuple):
    """What is forgotten when, and how lists are shared out."""

    step: Ints  # by memory: rounds between two steps of forgetting; 0 where nothing is forgotten
    kept: Floats  # by memory: what is left of a count after a step
    first: Floats  # memories x readings: the first weights
    insurance: float  # c of min(.2, c / sqrt t), from the first change on
    learning: FTRLPBMParams  # of the insurance
    every: int  # rounds between two turns of fitting


class ClickMixState(NamedTuple):
    """Counts and fits by memory, weights, and the insurance's own state."""

    t: Ints  # rounds with feedback
    S: Floats  # clicks
    N: Floats  # displays
    theta: Floats  # by memory and item: fitted attractions
    kappa: Floats  # by memory and position: fitted examinations, the largest 1
    mean: Floats  # by memory: of the attractions
    clicks: Floats  # by memory and item: clicks, at any position
    reads: Floats  # ... and how often it was read, by users who read on after a click as often as was seen
    after: Floats  # memories x 2: clicks below the first one, and how many there were to be
    mean_read: Floats  # by memory: of clicks by reads
    weight: Floats  # memories x readings
    changed: Ints  # whether users were seen to change, from where on the insurance draws lists
    duel: Floats  # the mixture, the insurance: lists, clicks, squares of clicks
    rounds: Ints  # of the insurance, and so on: see `FTRLPBMState`
    L_hat: Floats
    u: Floats
    v: Floats
    x: Floats
    rows: Floats
    seen: Floats
    lost: Floats
    fallbacks: Ints


class ClickMixScratch(NamedTuple):
    """What is in it means nothing between calls."""

    draw: click_draws.DrawScratch
    gains: Floats
    assigning: lists.AssignmentScratch
    insurance: Any


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Draw who draws the list. Exploring: the insurance, or a second look. The ticket has the insurance's chances."""
    chances = memo[0]
    for j in range(len(items)):
        chances[j] = 0.0
    root = np.sqrt(state.t[0] + 1.0)
    if params.insurance > 0.0 and state.changed[0] > 0:
        share = _WARY if is_behind(state.duel) else min(_MOST_INSURED, params.insurance / root)
        if uniform(key, 0) < share:
            _rank_insured(params, state, key, scratch, items, chances)
            return True
    left, memory, reading = uniform(key, 1), 0, BY_POSITION
    for h in range(state.weight.shape[0]):
        for r in range(3):
            if left >= 0.0:
                memory, reading = h, r
            left -= state.weight[h, r]
    certainty = 1.0 if uniform(key, 5) < _IN_FULL else _CERTAIN
    if reading == BY_POSITION:
        _rank_by_position(state, memory, certainty, key, scratch, items)
    elif reading == BY_CELL:
        _rank_by_cell(state, memory, certainty, key, scratch, items)
    else:
        _rank_to_click(state, memory, certainty, key, scratch, items)
    if uniform(key, 2) >= _LOOKS / root:
        return False
    return _look_again(state.kappa[memory], state.theta.shape[1], key, items)


@hot
def _look_again(kappa: Any, n: int, key: Any, items: Any) -> bool:
    """Put an item that was left out where the list loses least: the position that is examined least."""
    m, place = len(items), 0
    if n == m:
        return False
    for j in range(m):
        if kappa[j] <= kappa[place]:
            place = j
    left = below(key, 3, n - m)
    for i in range(n):
        listed = False
        for j in range(m):
            listed |= items[j] == i
        if listed:
            continue
        if left == 0:
            items[place] = i
            return True
        left -= 1
    return False


@hot
def is_behind(duel: Any) -> Any:
    """Whether the insurance's lists get more clicks than the mixture's, beyond doubt."""
    lists, others = duel[1, 0], duel[0, 0]
    if lists < 30.0 or others < 30.0:
        return False
    mean, mean_others = duel[1, 1] / lists, duel[0, 1] / others
    spread = duel[1, 2] / lists - mean * mean
    spread_others = duel[0, 2] / others - mean_others * mean_others
    variance = max(spread, 0.0) / lists + max(spread_others, 0.0) / others
    return mean - mean_others > _SURE * np.sqrt(variance)


@hot
def insured(state: Any) -> Any:
    """The state of the insurance."""
    return FTRLPBMState(
        state.rounds,
        state.L_hat,
        state.u,
        state.v,
        state.x,
        state.rows,
        state.seen,
        state.lost,
        state.fallbacks,
    )


@apart
def _rank_insured(params: Any, state: Any, key: Any, scratch: Any, items: Any, chances: Any) -> None:
    rank_in_full(params.learning, insured(state), None, key, scratch.insurance, items, chances, ())


@apart
def _rank_by_position(state: Any, h: int, certainty: float, key: Any, scratch: Any, items: Any) -> None:
    draw_list(
        state.S[h],
        state.N[h],
        state.theta[h],
        state.kappa[h],
        state.mean[h],
        True,
        certainty,
        key,
        _NUMBERS,
        scratch.draw,
        items,
    )


@apart
def _rank_by_cell(state: Any, h: int, certainty: float, key: Any, scratch: Any, items: Any) -> None:
    """Each item at each position by itself, a few clicks of the fit assumed beforehand."""
    m, n = scratch.gains.shape
    for j in range(m):
        for i in range(n):
            known = state.N[h, j, i] + _CELL_CLICKS / min(state.theta[h, i] * state.kappa[h, j], MOST)
            p = min((state.S[h, j, i] + _CELL_CLICKS) / known, 1.0)
            z = normal(uniform(key, _NUMBERS + i * m + j))
            scratch.gains[j, i] = p + np.sqrt(p * (1.0 - p) / (certainty * known)) * z
    assign(scratch.gains, items, scratch.assigning)


@apart
def _rank_to_click(state: Any, h: int, certainty: float, key: Any, scratch: Any, items: Any) -> None:
    """By attractions, which are clicks by reads, from the top."""
    theta = scratch.draw.theta
    n = len(theta)
    for i in range(n):
        clicks = state.clicks[h, i] + 1.0
        misses = max(state.reads[h, i] - state.clicks[h, i], 0.0) + 1.0 / state.mean_read[h] - 1.0
        theta[i] = beta(certainty * clicks, certainty * misses, key, _NUMBERS + 4 * i)
    by_falling_score(theta, n, scratch.draw.by_item, scratch.draw.sorting)
    for j in range(len(items)):
        items[j] = scratch.draw.by_item[j]


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Weigh the readings by what they foretold, count, forget, and fit. A position with item -1 was not drawn here."""
    if params.insurance > 0.0:
        _compare(params, state, scratch, items, memo[0], clicks)
    total = 0.0
    for h in range(state.weight.shape[0]):
        total += foretell(state, h, items, clicks)
    for h in range(state.weight.shape[0]):
        for r in range(3):
            weight = state.weight[h, r] / total if total > _LEAST else params.first[h, r]
            state.weight[h, r] = (1.0 - _SHARE) * weight + _SHARE * params.first[h, r]
    longest = 0.0
    for r in range(3):
        longest += state.weight[0, r]
    if longest < _CHANGED:
        state.changed[0] = 1
    state.t[0] += 1
    _forget(params, state)
    if state.t[0] % params.every == 0:
        _fit(state, state.t[0] // params.every % state.weight.shape[0], scratch)


@hot
def foretell(state: Any, h: int, items: Any, clicks: Any) -> Any:
    """Multiply the weights of a memory by the chance that each reading gave to the clicks; count; return their sum."""
    by_position, by_cell, to_click = 1.0, 1.0, 1.0
    S, N, kappa, mean = state.S[h], state.N[h], state.kappa[h], state.mean[h]
    goes_on = min((state.after[h, 0] + 0.1) / (state.after[h, 1] + 0.2), 1.0)
    clicked = False
    for j in range(len(items)):
        i = items[j]
        if i < 0:
            continue
        hit = clicks[j] > 0.0
        state.theta[h, i] = weigh_item(S, N, state.theta[h, i], kappa, mean, i)
        p = min(state.theta[h, i] * kappa[j], MOST)
        by_position *= p if hit else 1.0 - p
        p = min((S[j, i] + _CELL_CLICKS) / (N[j, i] + _CELL_CLICKS / p), MOST)
        by_cell *= p if hit else 1.0 - p
        p = min((state.clicks[h, i] + 1.0) / (state.reads[h, i] + 1.0 / state.mean_read[h]), MOST)
        if clicked:
            state.after[h, 0] += clicks[j]
            state.after[h, 1] += p
            state.reads[h, i] += goes_on
            p *= goes_on
        else:
            state.reads[h, i] += 1.0
        to_click *= p if hit else 1.0 - p
        clicked |= hit
    for j in range(len(items)):
        i = items[j]
        if i >= 0:
            N[j, i] += 1.0
            S[j, i] += clicks[j]
            state.clicks[h, i] += clicks[j]
    weight = state.weight
    weight[h, BY_POSITION] *= by_position
    weight[h, BY_CELL] *= by_cell
    weight[h, TO_CLICK] *= to_click
    return weight[h, BY_POSITION] + weight[h, BY_CELL] + weight[h, TO_CLICK]


@apart
def _compare(params: Any, state: Any, scratch: Any, items: Any, chances: Any, clicks: Any) -> None:
    """Count clicks for whoever drew the list; the insurance learns from its own lists."""
    who = 1 if chances[0] > 0.0 else 0
    total = 0.0
    for j in range(len(items)):
        total += clicks[j]
    state.duel[who, 0] += 1.0
    state.duel[who, 1] += total
    state.duel[who, 2] += total * total
    if who == 0:
        return
    for one in range(2):
        for k in range(3):
            state.duel[one, k] *= 1.0 - 1.0 / _DUEL
    learn_hybrid(params.learning, insured(state), None, scratch.insurance, items, chances, (), clicks)


@apart
def _forget(params: Any, state: Any) -> None:
    """In steps, which are cheaper than a little in every round."""
    n_memories, m, n = state.S.shape
    for h in range(n_memories):
        if params.step[h] == 0 or state.t[0] % params.step[h] != 0:
            continue
        kept = params.kept[h]
        for j in range(m):
            for i in range(n):
                state.S[h, j, i] *= kept
                state.N[h, j, i] *= kept
        for i in range(n):
            state.clicks[h, i] *= kept
            state.reads[h, i] *= kept
        state.after[h, 0] *= kept
        state.after[h, 1] *= kept


@apart
def _fit(state: Any, h: int, scratch: Any) -> None:
    n = state.theta.shape[1]
    state.mean[h] = fit_turn(
        state.S[h], state.N[h], state.theta[h], state.kappa[h], state.mean[h], True, scratch.draw
    )
    total, prior = 0.5, 1.0 / state.mean_read[h]
    for i in range(n):
        total += min((state.clicks[h, i] + 1.0) / (state.reads[h, i] + prior), 1.0)
    state.mean_read[h] = min(total / (n + 1.0), 0.5)


class ClickMix(ClickRanker):
    """Clicks of users of whom nothing is known: whether they change, how positions count, when feedback comes.

    Memories of several lengths are kept side by side. Each is read as clicks of the position-based model, item by item
    at each position, and as clicks of users who read from the top and may leave at a click. A reading is likelier the
    better it foretold the clicks so far; one is drawn for each list, and the list from what it believes, independently
    of the last one. A falling share of the lists has an item that was left out, for a second look. Once users were seen
    to change, somebody may have misled it, and another share follows FTRL-PBM.

    Parameters
    ----------
    n_items : int
        How many items there are.
    n_positions : int, optional
        How many of them are shown; None shows all.
    memory : int, optional
        The longest memory, in rounds; None remembers everything.
    insurance : float, optional
        In round t FTRL-PBM draws min(0.2, `insurance` / sqrt t) of the lists, and 0.9 where its lists get more clicks
        beyond doubt. None is 5, from the round on in which the longest memory has less than a tenth of the weight; a
        number is from the first round on, for users of whom some may be an attacker; 0 does without it.

    Notation
    --------
    theta, kappa: attractions and examinations fitted to each memory, state.theta and state.kappa.

    Departures
    ----------
    It is no algorithm of the literature. The weights are those of the fixed share (Herbster and Warmuth), the lists
    Thompson samples of the position-based model, three in four with a quarter of the variance, the insurance FTRL-PBM
    with the hybrid regulariser.

    References
    ----------
    M. Herbster and M. K. Warmuth, Tracking the best expert, Machine Learning 32, 1998.
    P. Lagrée, C. Vernade and O. Cappé, Multiple-play bandits in the position-based model, NeurIPS 2016.
    J. Zimmert, H. Luo and C.-Y. Wei, Beating stochastic and adversarial semi-bandits optimally and simultaneously,
    ICML 2019.

    Examples
    --------
    >>> ranker = ClickMix(n_items=5, n_positions=2)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(300):
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, shown.items == 3)
    >>> bool((ranker.current() == 3).any())
    True
    """

    algorithm_version = 2
    summary = "Observes clicks, remembers them for short and for long, and trusts what foretells them best."
    kernels = RankerKernels(rank, learn)

    def __init__(
        self,
        *,
        n_items: int,
        n_positions: int | None = None,
        memory: int | None = None,
        insurance: float | None = None,
    ) -> None:
        n, m = self.read_size(n_items, n_positions)
        longest = None if memory is None else whole("memory", memory, at_least=2)
        share = _INSURANCE if insurance is None else number("insurance", insurance, at_least=0, below=1e6)
        shorter = [length for length in _MEMORIES if longest is None or length < longest]
        steps = [max(1, length // _STEPS) for length in ([] if longest is None else [longest]) + shorter]
        lengths = ([] if longest is None else [longest]) + shorter
        kept = [_kept(length, step) for length, step in zip(lengths, steps, strict=True)]
        k = len(shorter) + 1
        first = np.ones((k, 3))
        first[0] *= _LEAN
        first[:, 1:] *= _LEAN_READING
        insurance_state = FTRLPBM(
            n_items=n if share else 1, n_positions=m if share else 1, regulariser="hybrid", estimator="mean"
        )
        own: Any = insurance_state.state
        self.params = ClickMixParams(
            step=np.array([0] * (k - len(steps)) + steps, np.int64),
            kept=np.array([1.0] * (k - len(steps)) + kept),
            first=first / ((_LEAN + k - 1) * (1 + 2 * _LEAN_READING)),
            insurance=share,
            learning=insurance_state.params,
            every=max(1, n * m // _CELLS_A_ROUND),
        )
        self.state = ClickMixState(
            t=np.zeros(1, np.int64),
            S=np.zeros((k, m, n)),
            N=np.zeros((k, m, n)),
            theta=np.full((k, n), 0.5),
            kappa=np.full((k, m), 0.5),
            mean=np.full(k, 0.5),
            clicks=np.zeros((k, n)),
            reads=np.zeros((k, n)),
            after=np.zeros((k, 2)),
            mean_read=np.full(k, 0.5),
            weight=self.params.first.copy(),
            changed=np.full(1, insurance is not None, np.int64),
            duel=np.zeros((2, 3)),
            rounds=own.t,
            **{name: getattr(own, name) for name in FTRLPBMState._fields if name != "t"},
        )

    def tunable(self) -> Mapping[str, Range]:
        return {"memory": OneOf(None, Whole(1_000, 1_000_000)), "insurance": OneOf(None, Between(0.1, 10.0))}

    def scratch(self, n: int) -> ClickMixScratch:
        k, m = self.n_items, self.n_positions
        of_insurance = (
            (hybrid.new_scratch(k, m), lists.sampling_scratch(m))
            if self.params.insurance
            else (hybrid.new_scratch(1, 1), lists.sampling_scratch(1))
        )
        return ClickMixScratch(
            click_draws.scratch(k, m), np.empty((m, k)), lists.assignment_scratch(m, k), of_insurance
        )

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(n),)

    def check_ticket(self, ranking: Ranking) -> None:
        chances = ranking.memo[0]
        least = 1e-100 if chances[0] > 0.0 else 0.0
        if not within(chances, least, 1.0 + 1e-9 if least else 0.0):
            raise ValueError(f"ranking.memo must hold probabilities, or zeros, got {chances}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_counts(saved["S"], saved["N"])
        check_counts(saved["clicks"], np.asarray(saved["clicks"]) + np.asarray(saved["reads"]))
        for name in ("theta", "kappa", "mean", "mean_read"):
            if not ((saved[name] > 0) & (saved[name] <= 1)).all():
                raise ValueError(f"saved state {name!r} must be probabilities, got {saved[name]}")
        for name in ("after", "duel"):
            if not (np.asarray(saved[name]) >= 0).all():
                raise ValueError(f"saved state {name!r} must not be negative, got {saved[name]}")
        if int(saved["changed"][0]) not in (0, 1):
            raise ValueError(f"saved state 'changed' must be 0 or 1, got {saved['changed']}")
        weight = np.asarray(saved["weight"])
        if not ((weight > 0).all() and abs(weight.sum() - 1) < 1e-6):
            raise ValueError(f"saved state 'weight' must be positive and sum to 1, got {weight}")
        if not are_chances(saved["x"], saved["rows"]) or int(saved["rounds"][0]) < 1:
            raise ValueError(
                "saved state 'x' must be probabilities: columns that sum to 1, rows to at most 1, as 'rows' says"
            )
        if not ((saved["lost"] >= 0) & (np.asarray(saved["lost"]) <= saved["seen"])).all():
            raise ValueError("saved state 'lost' must lie between 0 and 'seen'")

    def part_arguments(self, n_items: int, positions: Ints) -> dict[str, Any]:
        # Of a list from some items the insurance would not know its chances.
        return super().part_arguments(n_items, positions) | {"insurance": 0.0}

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        """Of a new item nothing is known but how attractive items are; the insurance begins anew."""
        there = same_positions(positions, self.n_positions, old.n_positions)
        state, before = self.state, old.state
        known, number = origin >= 0, np.maximum(origin, 0)
        for name in ("S", "N"):
            getattr(state, name)[:] = np.where(known, getattr(before, name)[:, there][:, :, number], 0.0)
        for name in ("clicks", "reads"):
            getattr(state, name)[:] = np.where(known, getattr(before, name)[:, number], 0.0)
        state.theta[:] = np.where(known, before.theta[:, number], before.mean[:, None])
        state.kappa[:] = before.kappa[:, there]
        for name in ("t", "mean", "after", "mean_read", "weight", "changed"):
            getattr(state, name)[...] = getattr(before, name)

    def learn_among(self, ranking: Ranking, feedback: ArrayLike, items: Ints, positions: Ints) -> None:
        self.check_takes_candidates()
        n = min(len(ranking.items), len(positions))
        self._count_placed(positions[:n], ranking.items[:n], self.feedback.check(feedback, n))

    def learn_shown(self, items: Ints, feedback: Any) -> bool:
        """Learns: its counts are of whatever was shown."""
        every = np.arange(self.n_positions)
        self._count_placed(every, items, self.feedback.check(feedback, self.n_positions))
        return True

    def _count_placed(self, positions: Ints, items: Ints, clicks: Floats) -> None:
        shown, revealed = np.full(self.n_positions, -1), np.zeros(self.n_positions)
        shown[positions], revealed[positions] = items, clicks
        nobody = (np.zeros(self.n_positions),)
        self.kernels.learn(
            self.params,
            self.state,
            None,
            self.scratch(self.n_positions),
            shown,
            np.empty(0),
            nobody,
            revealed,
        )

    def translated_memo(self, ranking: Ranking, before: Ints) -> Memo:
        return (np.zeros(self.n_positions),)  # the insurance that drew it has begun anew

    def current(self, context: Any = None) -> Ints:
        """The best list according to the reading that foretold clicks best."""
        self.read_context(context)
        state = self.state
        h, reading = divmod(int(np.argmax(state.weight)), 3)
        items = np.empty(self.n_positions, np.int64)
        if reading == BY_POSITION:
            place_items(state.theta[h], state.kappa[h], self.scratch(self.n_positions).draw, items)
            return items
        if reading == TO_CLICK:
            theta = (state.clicks[h] + 1.0) / (state.reads[h] + 1.0 / state.mean_read[h])
            place_items(
                theta, -np.arange(float(self.n_positions)), self.scratch(self.n_positions).draw, items
            )
            return items
        gains = (state.S[h] + _CELL_CLICKS) / (
            state.N[h] + _CELL_CLICKS / (state.kappa[h][:, None] * state.theta[h])
        )
        best_list(gains, items)
        return in_order(gains, items)

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        n, m, k = n_items, n_positions or n_items, len(_MEMORIES) + 1
        counts = 8 * (2 * k * m * n + 3 * k * n + m * n + 4 * n) + click_draws.scratch_bytes(n, m)
        if parameters.get("insurance") == 0:
            return counts
        return counts + 32 * m * n + hybrid.scratch_bytes(n, m) + lists.sampling_scratch_bytes(m)


def _kept(length: int, steps: int) -> float:
    """What is left after so many rounds, the same on any machine."""
    kept = 1.0
    for _ in range(steps):
        kept *= 1.0 - 1.0 / length
    return kept
