"""QueryMemory: clicks remembered by query and document, beside weights for features that stand for what is not known.

What is known of a document for a query is a Beta distribution of its attraction, the chance that a user who looks at it
clicks. Weights, or what other queries say of the document, give the mean of its prior.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import Limits, RankerKernels
from rankloop.features import QueryRows
from rankloop.feedback import TopClicks
from rankloop.kernels import sorting
from rankloop.kernels.click_draws import normal
from rankloop.kernels.descent import widen
from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.random import uniform, word
from rankloop.kernels.sorting import by_falling_score
from rankloop.kernels.vectors import dot
from rankloop.rankers.linear import (
    LinearRanker,
    WarmStart,
    check_scaled_weights,
    finite_limits,
    read_start,
)

CLICKED, PASSED = range(2)  # what a user did with a document, before reading on or not
PLACES = 8  # where a pair may lie
STRENGTHS = 8  # of the prior that are weighed: 1/2, 1, 2, ... 64 looks
_RATE, _LEVEL_RATE = 0.03, 0.3  # of AdaGrad's steps, of the weights and of their level
_FIRST = 0.3  # squares that AdaGrad is taken to have seen beforehand
_SURE = 4.0  # lists are drawn as if so many times as much were known
_BLUR = 1e-4  # what the evidence for a strength loses in a round: priors become better
_WORN = 0.01  # what neighbours lose of theirs when a pair is forgotten
_FARTHEST = 300.0  # of a prior's log odds
_LEAST = 1e-9  # chance of what was seen, for the evidence
_LEVEL = -1.0  # of the log odds at first
_ITEMS = np.uint64(0x2545F4914F6CDD1D)  # instead of a query, for what all queries say of a document


class QueryMemoryParams(NamedTuple):
    """How many documents are shown."""

    n_positions: int
    start: Floats  # the weights before anything was learnt


class QueryMemoryState(NamedTuple):
    """The weights, what is remembered, and how users read."""

    w: Floats  # weights, by feature
    t: Ints  # rounds learnt
    squares: Floats  # of the steps, by feature
    scale: Floats  # the largest difference within a list, by feature
    level: Floats  # log odds of a document as good as the mean of its list, and the squares of its steps
    pairs: Ints  # by place: the key of what is remembered there, 0 for nothing
    clicks: Floats  # by place
    looks: Floats  # by place: how often somebody is likely to have looked
    evidence: Floats  # log likelihoods of the strengths
    reads: Floats  # after a click or none x positions: how many read on, of how many


class QueryMemoryScratch(NamedTuple):
    """What is in it means nothing between calls."""

    mean: Floats  # by feature
    spread: Floats
    gradient: Floats
    odds: Floats  # by document
    hits: Floats
    misses: Floats
    place: Ints  # by position
    prior: Floats
    chance: Floats
    looked: Floats
    below: Floats
    sorting: Any


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Thompson sampling: by falling attraction, each drawn from what is known of it."""
    n = len(context.items)
    believe(state, context, scratch)
    for i in range(n):
        hit = _log_gamma(_SURE * scratch.hits[i], key, 4 * i)
        scratch.odds[i] = hit - _log_gamma(_SURE * scratch.misses[i], key, 4 * i + 2)
    by_falling_score(scratch.odds, n, items, scratch.sorting)
    write_ticket(context, items, min(params.n_positions, n), scratch.mean, memo)
    return False


@hot
def believe(state: Any, context: Any, scratch: Any) -> None:
    """`hits` and `misses`: the Beta distribution of the attraction of each document."""
    n, d = len(context.items), len(state.w)
    mean_row(context.features, n, d, scratch.mean)
    strength = likely_strength(state.evidence)
    query = np.uint64(context.query)
    level = state.level[0] - dot(scratch.mean, state.w) if d > 0 else state.level[0]
    for i in range(n):
        score = level + dot(context.features[i], state.w) if d > 0 else level
        hits, misses = strength * _share(score), strength * _share(-score)
        if d == 0:
            place = find(state.pairs, pair_key(_ITEMS, context.items[i]))
            if place >= 0:
                prior = (hits + state.clicks[place]) / (strength + state.looks[place])
                hits, misses = strength * prior, strength * (1.0 - prior)
        place = find(state.pairs, pair_key(query, context.items[i]))
        if place >= 0:
            hits += state.clicks[place]
            misses += state.looks[place] - state.clicks[place]
        scratch.hits[i] = hits
        scratch.misses[i] = misses


@hot
def mean_row(features: Any, n: int, d: int, mean: Any) -> None:
    """The mean of the documents, which scores are counted from: only differences within a list say anything."""
    for j in range(d):
        mean[j] = 0.0
    for i in range(n):
        for j in range(d):
            mean[j] += features[i, j]
    for j in range(d):
        mean[j] /= n


@hot
def write_ticket(context: Any, items: Any, m: int, mean: Any, memo: Any) -> None:
    """How many are shown, the keys of these pairs and documents, and their features."""
    header, keys, rows = memo
    header[0] = m
    query = np.uint64(context.query)
    for position in range(m):
        item = items[position]
        keys[0, position] = pair_key(query, context.items[item])
        keys[1, position] = pair_key(_ITEMS, context.items[item])
        for j in range(rows.shape[1]):
            rows[position, j] = context.features[item, j] - mean[j]


@kernel
def expect(state: Any, context: Any, scratch: Any) -> None:
    """The odds of each document's mean attraction, into `scratch.odds`."""
    believe(state, context, scratch)
    for i in range(len(context.items)):
        scratch.odds[i] = scratch.hits[i] / scratch.misses[i]


@kernel
def write_list(context: Any, items: Any, m: int, mean: Any, memo: Any) -> None:
    """The ticket of a list that somebody else chose, or of one whose features were left out."""
    mean_row(context.features, len(context.items), len(mean), mean)
    write_ticket(context, items, m, mean, memo)


@hot
def _share(score: float) -> Any:
    return 1.0 / (1.0 + exp(max(min(-score, _FARTHEST), -_FARTHEST)))


@hot
def _log_gamma(a: float, key: Any, first: int) -> Any:
    # Of a number drawn from a gamma distribution; see `click_draws`. In logarithms none is too small.
    b = a if a >= 1.0 else a + 1.0
    root = 1.0 - 1.0 / (9.0 * b) + normal(uniform(key, first)) / (3.0 * np.sqrt(b))
    drawn = log(b) + 3.0 * log(max(root, 1e-100))
    return drawn if a >= 1.0 else drawn + log(1.0 - uniform(key, first + 1)) / a


@hot
def pair_key(query: Any, item: Any) -> Any:
    """What a query and a document are remembered by: 62 bits, never 0."""
    mixed = word(word(query, 0), item)
    return np.int64(mixed >> np.uint64(1)) | 1


@hot
def find(pairs: Any, key: Any) -> Any:
    """Where a pair lies, -1 where it is not known."""
    first = (key >> 1) % (len(pairs) // PLACES) * PLACES
    for place in range(first, first + PLACES):
        if pairs[place] == key:
            return place
    return -1


@hot
def make_room(state: Any, key: Any) -> Any:
    """Where a pair lies from now on: instead of the one of its places of which least is known."""
    found = find(state.pairs, key)
    if found >= 0:
        return found
    first = (key >> 1) % (len(state.pairs) // PLACES) * PLACES
    least = first
    for place in range(first, first + PLACES):
        if state.looks[place] < state.looks[least]:
            least = place
    if state.pairs[least] != 0:
        # Otherwise what was popular once would keep its place for ever.
        for place in range(first, first + PLACES):
            state.clicks[place] *= 1.0 - _WORN
            state.looks[place] *= 1.0 - _WORN
    state.pairs[least] = key
    state.clicks[least] = 0.0
    state.looks[least] = 0.0
    return least


@hot
def likely_strength(evidence: Any) -> Any:
    """How many looks the prior counts for: the mean of the strengths, by their evidence."""
    top = evidence[0]
    for k in range(1, STRENGTHS):
        top = max(top, evidence[k])
    total = weighed = 0.0
    strength = 0.5
    for k in range(STRENGTHS):
        weight = exp(evidence[k] - top)
        total += weight
        weighed += weight * strength
        strength *= 2.0
    return weighed / total


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Say who looked where; then count, and move the prior."""
    header, keys, rows = memo
    m, d = int(header[0]), len(state.w)
    strength = likely_strength(state.evidence)
    for position in range(m):
        prior = _share(state.level[0] + dot(rows[position], state.w) if d > 0 else state.level[0])
        if d == 0:
            place = find(state.pairs, keys[1, position])
            if place >= 0:
                prior = (strength * prior + state.clicks[place]) / (strength + state.looks[place])
        place = make_room(state, keys[0, position])
        scratch.place[position] = place
        scratch.prior[position] = prior
        scratch.chance[position] = (state.clicks[place] + strength * prior) / (state.looks[place] + strength)
    say_who_looked(state.reads, clicks, m, scratch.chance, scratch.looked, scratch.below)
    count_readers(state.reads, clicks, m, scratch.looked)
    weigh_strengths(state, clicks, m, scratch)
    move_prior(params, state, clicks, m, strength, rows, scratch)
    for position in range(m):
        place, looks = scratch.place[position], 0.0
        if state.pairs[place] == keys[0, position]:  # otherwise another of the list took its place
            looks = state.looks[place]
            state.clicks[place] += clicks[position]
            state.looks[place] += scratch.looked[position]
        if d == 0:
            place, counts = make_room(state, keys[1, position]), strength / (looks + strength)
            state.clicks[place] += counts * clicks[position]
            state.looks[place] += counts * scratch.looked[position]
    state.t[0] += 1


@hot
def say_who_looked(reads: Any, clicks: Any, m: int, chance: Any, looked: Any, below: Any) -> None:
    """The probability that the user looked at each position, given all clicks: `looked`.

    Users go down the list. All above a click was seen; below the last one they may have stopped, and that nothing was
    clicked there says so the more, the more attractive it is. `below` is how likely that is from each position on, for
    somebody who looks there.
    """
    last = m - 1
    while last >= 0 and clicks[last] == 0.0:
        last -= 1
    for position in range(last + 1):
        looked[position] = 1.0
    if last == m - 1:
        return
    below[m - 1] = 1.0 - chance[m - 1]
    for position in range(m - 2, last, -1):
        on = reads[PASSED, position, 0] / reads[PASSED, position, 1]
        below[position] = (1.0 - chance[position]) * (1.0 - on + on * below[position + 1])
    looked[last + 1] = 1.0
    if last >= 0:
        on = reads[CLICKED, last, 0] / reads[CLICKED, last, 1]
        looked[last + 1] = on * below[last + 1] / (1.0 - on + on * below[last + 1])
    for position in range(last + 1, m - 1):
        on = reads[PASSED, position, 0] / reads[PASSED, position, 1]
        goes_on = on * below[position + 1]
        looked[position + 1] = looked[position] * goes_on / (1.0 - on + goes_on)


@hot
def count_readers(reads: Any, clicks: Any, m: int, looked: Any) -> None:
    """Count who read on after a click, and after none."""
    for position in range(m - 1):
        kind = CLICKED if clicks[position] == 1.0 else PASSED
        reads[kind, position, 0] += looked[position + 1]
        reads[kind, position, 1] += looked[position]


@hot
def weigh_strengths(state: Any, clicks: Any, m: int, scratch: Any) -> None:
    """How well each strength would have foretold the clicks: their sum is the likelihood of all that is remembered."""
    for k in range(STRENGTHS):
        state.evidence[k] *= 1.0 - _BLUR
    for position in range(m):
        place, prior = scratch.place[position], scratch.prior[position]
        looks = state.looks[place]
        if looks == 0.0:  # all foretell the same
            continue
        strength = 0.5
        for k in range(STRENGTHS):
            chance = (state.clicks[place] + strength * prior) / (looks + strength)
            if clicks[position] == 1.0:
                state.evidence[k] += log(max(chance, _LEAST))
            else:
                state.evidence[k] += scratch.looked[position] * log(max(1.0 - chance, _LEAST))
            strength *= 2.0


@hot
def move_prior(
    params: Any, state: Any, clicks: Any, m: int, strength: float, rows: Any, scratch: Any
) -> None:
    """A step along the gradient of the same likelihood in the prior's log odds, with AdaGrad's sizes.

    It fades as a pair becomes known, so that frequent queries count for no more than a few looks each. A factor that is
    1 for new pairs is left out, prior (1 - prior) / (chance (1 - chance)): it has no bound.
    """
    d, gradient, spread = len(state.w), scratch.gradient, scratch.spread
    total = 0.0
    for j in range(d):
        least = most = rows[0, j]
        for position in range(1, m):
            least, most = min(least, rows[position, j]), max(most, rows[position, j])
        spread[j] = most - least
        gradient[j] = 0.0
    for position in range(m):
        counts = strength / (state.looks[scratch.place[position]] + strength)
        surprise = counts * (clicks[position] - scratch.looked[position] * scratch.chance[position])
        total += surprise
        for j in range(d):
            gradient[j] += surprise * rows[position, j]
    state.level[1] += total * total
    state.level[0] += _LEVEL_RATE * total / np.sqrt(state.level[1] + _FIRST)
    widen(state.w, params.start, state.scale, spread)
    for j in range(d):
        scale = state.scale[j]
        if scale > 0.0:
            state.squares[j] += gradient[j] * gradient[j]
            state.w[j] += _RATE * gradient[j] / np.sqrt(state.squares[j] + _FIRST * scale * scale) / scale


class QueryMemory(LinearRanker):
    """Remembers which documents are clicked for which query, and ranks what it does not remember by features.

    For each query and document it counts clicks and looks: how often somebody is likely to have looked, given where the
    clicks of the list were. The attraction of a document has a prior, whose mean is a logistic function of a weighed
    sum of features, and which counts for as many looks as it deserves: both are learnt. So a frequent query is ranked
    by its own clicks, a new one by what others taught about features, and everything between by the mixture that the
    clicks so far support. Lists are Thompson samples.

    A request is `rankloop.features.query_rows(query, items, features)`.

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector. With 0 the prior of a document is its mean over all queries.
    n_positions : int, optional
        How many documents are shown, and may be clicked. A ranking orders all documents.
    n_pairs : int, optional
        How many pairs of a query and a document are remembered, at 24 bytes each. Beyond that, those of which least is
        known are forgotten first.
    warm_start : array_like or FittedRanker, optional
        The weights to begin with, such as those of `logs.fit_ranker`; 0 by default.

    Notation
    --------
    state.clicks, state.looks: by pair, found by its key in state.pairs.

    Departures
    ----------
    GENSPEC chooses for each query between a feature model and a tabular one, by bounds on their values from a log. Here
    the two are one Bayesian model that learns online, and there is nothing to choose.

    References
    ----------
    H. Oosterhuis and M. de Rijke, Robust generalization and safe query-specialization in counterfactual learning to
    rank, WWW 2021.

    Examples
    --------
    >>> from rankloop.features import query_rows
    >>> ranker = QueryMemory(n_features=2)
    >>> rng = np.random.default_rng(1)
    >>> shoes = query_rows("red shoes", ["a", "b"], np.eye(2))
    >>> for _ in range(50):
    ...     shown = ranker.rank(shoes, rng=rng)
    ...     ranker.learn(shown, shown.items == 1)  # for this query users want the second one
    >>> ranker.current(shoes)
    array([1, 0])
    """

    summary = "Observes clicks, remembers them by query, and ranks what is new by features."
    kernels = RankerKernels(rank, learn)
    params: QueryMemoryParams
    state: QueryMemoryState
    takes_queries = True

    def __init__(
        self,
        *,
        n_features: int,
        n_positions: int = 10,
        n_pairs: int = 65_536,
        warm_start: WarmStart | None = None,
    ) -> None:
        d = whole("n_features", n_features, at_least=0)
        self.n_features = d
        m = whole("n_positions", n_positions, at_least=1)
        size = -(-whole("n_pairs", n_pairs, at_least=1) // PLACES) * PLACES
        self.feedback = TopClicks(m)
        start = read_start(warm_start, d)
        self.params = QueryMemoryParams(m, start)
        self.informed = bool(start.any())
        reads = np.empty((2, m, 2))
        reads[CLICKED], reads[PASSED] = (1.0, 2.0), (9.0, 10.0)
        self.state = QueryMemoryState(
            w=start.copy(),
            t=np.zeros(1, np.int64),
            squares=np.zeros(d),
            scale=np.zeros(d),
            level=np.array([_LEVEL, 0.0]),
            pairs=np.zeros(size, np.int64),
            clicks=np.zeros(size),
            looks=np.zeros(size),
            evidence=np.zeros(STRENGTHS),
            reads=reads,
        )

    def read_context(self, context: Any) -> tuple[int, Any]:
        if not isinstance(context, QueryRows):
            raise ValueError(
                "context must be a query with its documents, rankloop.features.query_rows(query, items, features),"
                f" got {context!r:.200}"
            )
        items = np.ascontiguousarray(context.items)
        if items.dtype != np.int64 or items.ndim != 1 or not len(items):
            raise ValueError(
                f"context.items must be keys of documents, at least one, got {context.items!r:.200}"
            )
        if items.min() < 0:
            raise ValueError(f"context.items must be keys of documents, from 0, got {items.min()}")
        query = whole("context.query", context.query, at_least=0, at_most=2**63 - 1)
        if not self.n_features:
            features: Any = np.empty((len(items), 0))
        else:
            _, features = super().read_context(context.features)
            if len(features) != len(items):
                raise ValueError(
                    f"context must have a row of features for each of {len(items)} items, got {len(features)}"
                )
        return len(items), QueryRows(features, items, query)

    def scores(self, context: Any) -> Floats:
        """The odds that somebody who looks clicks, of each document, as far as is known."""
        n, request = self.read_context(context)
        scratch = self.scratch(n)
        expect(self.state, request, scratch)
        return scratch.odds

    def _written(self, context: Any, items: Ints) -> Memo:
        n, request = self.read_context(context)
        memo = self.blank_memo(n)
        write_list(request, items, len(memo[1][0]), np.empty(self.n_features), memo)
        return memo

    def short_memo(self, memo: Memo) -> Memo:
        return memo[:2]

    def whole_memo(self, memo: Memo, items: Ints, context: Callable[[], Any]) -> Memo:
        return memo if len(memo) != 2 else self._written(context(), items)

    def learn_logged(
        self, items: Ints, feedback: ArrayLike, *, propensities: Floats | None = None, features: Any = None
    ) -> None:
        """Learns: who looked where follows from the clicks, whoever chose the list. `features` is a request."""
        order = np.ascontiguousarray(items, np.int64)
        n, _ = self.read_context(features)
        if sorted(order.tolist()) != list(range(n)):
            raise ValueError(f"items must be all {n} documents of the request, once each, got {order}")
        self.learn(Ranking(order, None, self._written(features, order)), feedback)

    def ticket_limits(self, items: Ints, propensities: Floats, memo: Memo) -> list[Limits]:
        m = float(len(memo[1][0]))
        return [(f"memo must be of {m:g} items", memo[0], m, m), *finite_limits(memo[2])]

    def check_ticket(self, ranking: Ranking) -> None:
        if not (ranking.memo[1] & 1).all():
            raise ValueError(f"ranking.memo must have keys of pairs, got {ranking.memo[1]}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_scaled_weights(saved, np.inf, self.params.start)
        if not ((saved["clicks"] >= 0) & (saved["clicks"] <= saved["looks"] * (1 + 1e-9))).all():
            raise ValueError("saved state 'clicks' must be from 0 to 'looks'")
        reads = saved["reads"]
        if not ((reads[..., 0] > 0) & (reads[..., 0] <= reads[..., 1] * (1 + 1e-9))).all():
            raise ValueError("saved state 'reads' must be counts, of those that may have read on")

    def scratch(self, n: int) -> QueryMemoryScratch:
        d, m = self.n_features, self.feedback.length(n)
        by_feature, by_item = [np.empty(d) for _ in range(3)], [np.empty(n) for _ in range(3)]
        by_position = [np.empty(m) for _ in range(4)]
        return QueryMemoryScratch._make(
            [*by_feature, *by_item, np.empty(m, np.int64), *by_position, sorting.scratch(n)]
        )

    def blank_memo(self, n: int) -> Memo:
        m = self.feedback.length(n)
        return np.zeros(1), np.zeros((2, m), np.int64), np.zeros((m, self.n_features))

    def example_context(self, rng: np.random.Generator) -> Any:
        n = int(rng.integers(1, 9))
        features = rng.random((n, self.n_features)) / max(self.n_features, 1)
        return QueryRows(features, np.arange(n), int(rng.integers(3)))

    @classmethod
    def bytes_for(
        cls,
        *,
        n_items: int = 0,
        n_positions: int | None = 10,
        n_features: int = 0,
        n_pairs: int = 65_536,
        **parameters: Any,
    ) -> int:
        shown = n_positions or 10
        by_item = 32 * n_items + sorting.scratch_bytes(n_items)
        return 24 * n_pairs + by_item + 8 * (7 * n_features + shown * (n_features + 12))
