"""Guard rails: at most a share of lists explores, and no item stands far from its place in the application's own list.

Exploration cap c: a coin that follows from the decision's key, and from nothing else, says whether a list may explore.
With chance c the ranker draws it, and learns from it with the propensities of that draw. Otherwise its best list of the
moment is shown, from which only rankers learn that can learn from any list. Since the coin knows nothing of the draw,
what is learnt stays unbiased.

Displacement d: places are counted from the top over the positions that are not pinned, and items that the baseline does
not have, or has more than d places below the list's end, are not shown. There are three ways to keep the bound:

- moved: a ranker that can learn from any list draws one of all items, of which items are then moved into reach.
- tiles: a ranker of clicks orders groups of d + 1 neighbours of the baseline, each as a request of its own with these
  candidates. Where the first group ends is drawn from the key, so that no two neighbours are always kept apart.
- top: any other ranker orders the first d + 1 items of the baseline. The others stay; see
  `rankloop.serving.rank_request`.

In the last two the ranker draws from what is in reach alone, so its propensities are exact given the groups.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.base import Memo, Ranker, Ranking
from rankloop.servable import Servable
from rankloop.serving.log import candidate_lists, records
from rankloop.serving.log.candidate_lists import Drawn, Free
from rankloop.serving.log.randomness import coin
from rankloop.serving.log.records import Choice, Decision, Policy, Rails, Trial

if TYPE_CHECKING:
    from rankloop.serving.log.fold import Fold

_INT = np.dtype("<i4")
_FLOAT = np.dtype("<f8")
Whole = NDArray[np.int64]
_NONE = np.empty(0, np.int64)


def bound_of(policy: Policy) -> int:
    """The largest displacement; 0 where there is no bound."""
    return policy.displacement if isinstance(policy.displacement, int) else 0


def cap_of(policy: Policy) -> float:
    """The largest share of lists that may explore."""
    return policy.exploration_cap if isinstance(policy.exploration_cap, float) else 1.0


def way_of(ranker: Ranker, *, has_items: bool, whole: bool) -> Literal["moved", "tiles", "top"]:
    """How this ranker keeps a bound on displacements; `whole`: nothing is pinned, and all items are candidates."""
    if whole and has_items and type(ranker).learn_shown is not Servable.learn_shown:
        return "moved"
    if has_items and ranker.feedback.kind == "clicks" and not ranker.stops_at_click:
        return "tiles"
    return "top"


def check_rails(policy: Policy, ranker: Ranker, *, has_items: bool) -> None:
    """ValueError where this ranker has no way to keep the guard rails of a policy."""
    why = ranker.no_candidates if has_items else ""
    if bound_of(policy) and why and way_of(ranker, has_items=has_items, whole=True) != "moved":
        raise ValueError(f"{type(ranker).__name__} cannot keep policy.displacement: {why}")


def reach_of(decision: Decision) -> Whole | None:
    """Items below the end of the baseline's list that a decision could have shown; None without a bound."""
    if decision.rails is None:
        return None
    return np.frombuffer(decision.rails.reach, _INT).astype(np.int64)


def rail_of(decision: Decision) -> Literal["", "greedy", "moved", "groups"]:
    """Which guard rail had a part in what a list shows; none where the baseline was shown."""
    rails = decision.rails
    if rails is None or (decision.trial is not None and decision.trial.would):
        return ""
    return "greedy" if rails.greedy else "moved" if rails.own else "groups" if rails.tiles else ""


def is_greedy(policy: Policy, key: bytes) -> bool:
    """Whether the decision with this key shows the best list of the moment, because of the exploration cap."""
    cap = cap_of(policy)
    return cap < 1.0 and coin(key, b"exploration") >= cap


def draw_for(
    fold: Fold,
    features: NDArray[np.float32] | None,
    free: Free | None,
    baseline: Whole | None,
    key: bytes,
    rng: np.random.Generator,
    reach: Whole | None = None,
) -> Drawn:
    """A list from the present state: the ranker's, or the baseline."""
    drawn = draw_within(fold, features, free, baseline, reach, key, rng)
    if baseline is None:
        return drawn
    positions = np.arange(len(drawn.shown)) if free is None else free.positions
    packed = baseline.astype(_INT).tobytes()
    if not candidate_lists.shows_baseline(fold, key) or not len(positions):
        return drawn._replace(trial=Trial(packed))
    would = drawn.shown[positions].astype(_INT).tobytes()
    shown = drawn.shown.copy()
    shown[positions] = baseline
    choice = drawn.choice
    if choice is not None:
        choice = msgspec.structs.replace(choice, rest=b"", rest_chances=b"")
    rails = drawn.rails
    if rails is not None:
        rails = Rails(rails.greedy, rails.reach, rails.tiles)
    return Drawn(shown, np.ones(len(shown)), (), False, None, choice, Trial(packed, would), rails)


def draw_within(
    fold: Fold,
    features: NDArray[np.float32] | None,
    free: Free | None,
    baseline: Whole | None,
    reach: Whole | None,
    key: bytes,
    rng: np.random.Generator,
) -> Drawn:
    """A list of the ranker from the present state, within the guard rails of its policy."""
    policy = fold.config.policy
    greedy, bound = is_greedy(policy, key), bound_of(policy)
    way = way_of(fold.ranker, has_items=fold.has_items, whole=free is None) if bound else "top"
    if baseline is None or way == "top" or not len(baseline):
        return _greedy(fold, features, free) if greedy else candidate_lists.draw(fold, features, free, rng)
    places = np.concatenate([baseline, _NONE if reach is None else reach])
    if greedy:
        return _greedy_within(fold, free, places, len(baseline), bound)
    if way == "moved":
        return _moved(candidate_lists.draw(fold, features, free, rng), places, bound)
    return _tiled(fold, free, places, len(baseline), bound, key, rng)


def _greedy(fold: Fold, features: NDArray[np.float32] | None, free: Free | None) -> Drawn:
    """The best list of the moment."""
    rails, ranker = Rails(greedy=True), fold.ranker
    if free is None:
        order = ranker.current(features)
        shown = fold.active[order] if fold.has_items else order
        return Drawn(shown, np.ones(len(shown)), (), False, rails=rails)
    if not len(free.positions):
        order = _NONE
    elif free.among is None:
        order = ranker.current(features)
    else:
        order = fold.active[ranker.current_among(fold.places(free.among), free.positions)]
    return _fixed(order[: len(free.positions)], free, rails)


def _greedy_within(fold: Fold, free: Free | None, places: Whole, n_free: int, bound: int) -> Drawn:
    """The best list of the moment, its items moved into reach."""
    own = fold.active[fold.ranker.current_among(fold.places(places), np.arange(n_free))]
    shown = within_reach(own, places, n_free=n_free, bound=bound)
    rails = Rails(True, places[n_free:].astype(_INT).tobytes())
    if free is None:
        return Drawn(shown, np.ones(n_free), (), False, rails=rails)
    return _fixed(shown, free, rails)


def _fixed(order: Whole, free: Free, rails: Rails) -> Drawn:
    shown = np.empty(len(order) + len(free.pinned), np.int64)
    shown[free.positions] = order
    for position, number in free.pinned.items():
        shown[position] = number
    among = b"" if free.among is None else free.among.astype(_INT).tobytes()
    choice = Choice(among, free.positions.astype(_INT).tobytes())
    return Drawn(shown, np.ones(len(shown)), (), False, None, choice, None, rails)


def within_reach(order: Whole, places: Whole, *, n_free: int, bound: int) -> Whole:
    """The items of an order, each moved into reach of its place: from the top, the first that may stand there.

    An item that can stand no lower comes before all others. Since no two items reach equally far down, there is never
    more than one of those, and always one that may stand at a position.

    Examples
    --------
    >>> within_reach(np.array([4, 3, 2, 1, 0]), np.arange(5), n_free=5, bound=1)
    array([1, 0, 3, 2, 4])
    """
    preference = {item: i for i, item in enumerate(order.tolist())}
    listed = places.tolist()
    waiting: list[tuple[int, int]] = []
    shown: list[int] = []
    there: set[int] = set()
    entered = 0
    for position in range(n_free):
        while entered < len(listed) and entered <= position + bound:
            heapq.heappush(waiting, (preference.get(listed[entered], len(preference) + entered), entered))
            entered += 1
        last = position - bound
        if last >= 0 and last not in there:
            place = last
        else:
            place = heapq.heappop(waiting)[1]
            while place in there:
                place = heapq.heappop(waiting)[1]
        there.add(place)
        shown.append(listed[place])
    return np.array(shown, np.int64)


def _moved(drawn: Drawn, places: Whole, bound: int) -> Drawn:
    n_free = len(drawn.shown)
    shown = within_reach(drawn.shown, places, n_free=n_free, bound=bound)
    reach = places[n_free:].astype(_INT).tobytes()
    if np.array_equal(shown, drawn.shown):
        return drawn._replace(rails=Rails(False, reach)) if reach else drawn
    rails = Rails(False, reach, own=drawn.shown.astype(_INT).tobytes())
    return Drawn(shown, None, (), drawn.explored, rails=rails)


class _Tile(NamedTuple):
    """A group of neighbours: where it begins among the free positions, how many it fills, and the candidates."""

    first: int
    length: int
    items: Whole


def _tiles(lengths: list[int], places: Whole, bound: int) -> Iterator[_Tile]:
    first = 0
    for i, length in enumerate(lengths):
        # Items from below the end of the list may come up into the last group.
        n_items = bound + 1 if i == len(lengths) - 1 else length
        yield _Tile(first, length, places[first : first + n_items])
        first += length


def tile_lengths(n_free: int, *, bound: int, first: int) -> list[int]:
    """How many positions each group has: `first` (where it is not 0), then bound + 1 each, then what is left.

    Examples
    --------
    >>> tile_lengths(7, bound=2, first=1)
    [1, 3, 3]
    """
    lengths = [min(first, n_free)] if first else []
    left = n_free - sum(lengths)
    while left:
        lengths.append(min(bound + 1, left))
        left -= lengths[-1]
    return lengths


def _tiled(
    fold: Fold,
    free: Free | None,
    places: Whole,
    n_free: int,
    bound: int,
    key: bytes,
    rng: np.random.Generator,
) -> Drawn:
    positions = np.arange(n_free) if free is None else free.positions
    lengths = tile_lengths(n_free, bound=bound, first=int(coin(key, b"tiles") * (bound + 1)))
    order, chances = np.empty(n_free, np.int64), np.ones(n_free)
    memo: Memo = ()
    explored, known = False, True
    for tile in _tiles(lengths, places, bound):
        here = slice(tile.first, tile.first + tile.length)
        if len(tile.items) == 1:
            order[here] = tile.items
            continue
        found: Ranking = fold.ranker.rank_among(fold.places(tile.items), positions[here], rng=rng)
        order[here] = fold.active[found.items[: tile.length]]
        if found.propensities is None:
            known = False
        else:
            chances[here] = found.propensities[: tile.length]
        memo += found.memo
        explored = explored or found.explored
    pinned = {} if free is None else free.pinned
    rails = Rails(False, places[n_free:].astype(_INT).tobytes(), np.array(lengths, _INT).tobytes())
    candidates = places[: n_free - lengths[-1] + bound + 1]
    fixed = _fixed(order, Free(candidates, positions, pinned), rails)
    by_position = np.ones(len(fixed.shown))
    by_position[positions] = chances
    return fixed._replace(propensities=by_position if known else None, memo=memo, explored=explored)


def learn(fold: Fold, decision: Decision, values: NDArray[np.float64]) -> tuple[bool, Ranking | None]:
    """Let the ranker learn from a list, group by group where guard rails divided it; else as `choices.learn`."""
    rails, choice = decision.rails, decision.choice
    if rails is None or choice is None or not rails.tiles or not candidate_lists.is_chosen(decision):
        return candidate_lists.learn(fold, decision, values)
    shown = np.frombuffer(decision.shown, _INT).astype(np.int64)
    checked = fold.ranker.feedback.check(values, len(shown))
    positions = np.frombuffer(choice.positions, _INT).astype(np.int64)
    places = np.frombuffer(choice.among, _INT).astype(np.int64)
    lengths = np.frombuffer(rails.tiles, _INT).tolist()
    # The bound may have been changed since. The last group has all candidates that no other group has.
    tiles = [one for one in _tiles(lengths, places, len(places)) if len(one.items) > 1]
    memo = tuple(records.unpack(part) for part in decision.memo)
    n_memo = len(memo) // max(1, len(tiles))
    learnt = False
    for i, tile in enumerate(tiles):
        here = positions[tile.first : tile.first + tile.length]
        among = fold.places(tile.items)
        if (among < 0).any():  # retired meanwhile
            continue
        chances = None
        if decision.propensities is not None:
            chances = np.frombuffer(decision.propensities, _FLOAT)[here].astype(np.float64)
        ranking = Ranking(
            fold.places(shown[here]), chances, memo[i * n_memo : (i + 1) * n_memo], decision.explored
        )
        fold.ranker.learn_among(ranking, checked[here], among, here)
        learnt = True
    return learnt, None
