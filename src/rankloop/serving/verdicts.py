"""Requests to a comparison of rankings, and its verdict in numbers and words; see `rankloop.serving.log.comparison`.

A request brings the order of each ranking; rankers of this service are asked for the list that they would show now.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from rankloop.feedback.anytime import Bounds, Pair
from rankloop.serving import api
from rankloop.serving import verdict_answers as answers
from rankloop.serving.admission import NotFound, RequestError
from rankloop.serving.log.comparison import Comparison
from rankloop.serving.log.fold import Fold

if TYPE_CHECKING:
    from rankloop.serving.engine import Engine


def check_compared(fold: Fold, request: api.RankRequest) -> None:
    """Refuse what only a comparison takes."""
    for field in ("rankings", "unit"):
        if getattr(request, field) is not None:
            raise RequestError(
                f"{field} is for a comparison, and this is {fold.config.algorithm}", field=field
            )


async def with_orders(
    engine: Engine, comparison: Comparison, request: api.RankRequest, decision_id: str
) -> api.RankRequest:
    """The request as the comparison reads it: the items, and the place of each in every ranking."""
    given = request.rankings or {}
    names = comparison.rankings
    for name in given:
        if name not in names:
            raise RequestError(f"rankings must be of {', '.join(names)}, got {name!r}", field="rankings")
    items = request.items if request.items is not None or not given else next(iter(given.values()))
    orders: dict[str, list[str]] = {}
    for name in names:
        order = given[name] if name in given else await _ask(engine, name, request, items, decision_id)
        items = order if items is None else items
        _check_same(name, order, items)
        orders[name] = order
    places = np.empty((len(items or ()), len(names)), np.float32)
    for column, name in enumerate(names):
        place = {item: i for i, item in enumerate(orders[name])}
        places[:, column] = [place[item] for item in items or ()]
    return msgspec.structs.replace(
        request,
        items=items,
        features=api.Matrix((len(places), len(names)), places.astype("<f4").tobytes()),
        rankings=None,
        shared=None,
    )


def _check_same(name: str, order: list[str], items: list[str]) -> None:
    if len(set(order)) != len(order) or not order:
        raise RequestError(
            f"rankings: {name!r} must have at least one item, and none twice", field="rankings"
        )
    for first, second, where in ((order, items, "has"), (items, order, "lacks")):
        other = sorted(set(first) - set(second))
        if other:
            raise RequestError(
                f"rankings must order the same items: {name!r} {where} {other[0]!r:.80}, unlike the others",
                field="rankings",
            )


async def _ask(
    engine: Engine, name: str, request: api.RankRequest, items: list[str] | None, decision_id: str
) -> list[str]:
    """The list that a ranker of this service would show now, then the items that it leaves out."""
    try:
        served = await engine.at_hand(name)
    except NotFound:
        raise RequestError(
            f"rankings must have the order of {name!r}, which is no ranker of this service", field="rankings"
        ) from None
    fold = served.fold
    if isinstance(fold.ranker, Comparison):
        raise RequestError(f"rankings must have the order of {name!r}: it is a comparison", field="rankings")
    if items is None and fold.has_items:
        items = fold.items
    asked = api.RankRequest(
        decision_id,
        items=items,
        features=None if fold.has_items else request.features,
        shared=None if fold.has_items else request.shared,
        query=request.query,
    )
    order = fold.names(served.draw(asked, decision_id, draws=engine.draws, limits=engine.limits)[1])
    there = set(order)
    return order + [item for item in items or () if item not in there]


def asked_digest(request: api.RankRequest) -> bytes:
    """Equal for requests that ask the same, whatever the rankers of this service would show meanwhile."""
    asked = msgspec.structs.asdict(request) | {"decision_id": None, "pinned": sorted(request.pinned.items())}
    return hashlib.blake2b(msgspec.msgpack.encode(asked, order="deterministic"), digest_size=16).digest()


def comparison_answer(comparison: Comparison) -> answers.ComparisonAnswer:
    """The verdict as it stands, in numbers and in a sentence."""
    names, tally = comparison.rankings, comparison.tally
    winner = tally.winner()
    found = tally.pairs()
    return answers.ComparisonAnswer(
        rankings=names,
        lists=int(tally.lists[0]),
        pairs=[_pair_answer(names, pair) for pair in found],
        winner=None if winner is None else names[winner],
        shown=comparison.shown,
        sentence=_sentence(comparison, found, winner),
    )


def _pair_answer(names: list[str], pair: Pair) -> answers.PairAnswer:
    def interval(bounds: Bounds | None, lists: int) -> answers.Interval | None:
        return None if bounds is None else answers.Interval(*bounds, lists)

    return answers.PairAnswer(
        names[pair.one],
        names[pair.other],
        pair.wins,
        pair.losses,
        interval(pair.share, pair.wins + pair.losses),
        None if pair.margin is None else answers.Lift(*pair.margin),
        None if pair.winner is None else names[pair.winner],
    )


def _sentence(comparison: Comparison, pairs: list[Pair], winner: int | None) -> str:
    names, lists = comparison.rankings, int(comparison.tally.lists[0])
    told = _verdict(names, pairs, winner, f"{lists:,} searches")
    if comparison.shown is not None:
        return f"{told}. Stopped: lists show {comparison.shown!r}."
    return f"{told}; you may stop." if winner is not None else f"{told}."


def _verdict(names: list[str], pairs: list[Pair], winner: int | None, searches: str) -> str:
    closest = min(pairs, key=lambda pair: abs(pair.share.mean - 0.5) if pair.share else 1.0)
    if closest.share is None:
        return f"Nothing is decided yet, after {searches}"
    if winner is not None:
        own = [pair for pair in pairs if winner in (pair.one, pair.other)]
        shares = [
            (pair.wins if pair.one == winner else pair.losses) / (pair.wins + pair.losses) for pair in own
        ]
        against = "" if len(pairs) == 1 else " against every other ranking"
        least = "" if len(pairs) == 1 else "at least "
        return f"{names[winner]!r} wins{against}: {least}{min(shares):.0%} of decided searches, {searches}"
    beaten = [
        f"{names[pair.winner]!r} beats {names[pair.one + pair.other - pair.winner]!r}"
        for pair in pairs
        if pair.winner is not None
    ]
    if len(pairs) > 1:
        return f"No ranking beats all others yet{''.join(f', {one}' for one in beaten)}: {searches}"
    share = closest.share
    return (
        f"Not told apart yet: {names[closest.one]!r} wins {share.mean:.0%} of decided searches "
        f"({share.low:.0%} to {share.high:.0%} with 95% probability), {searches}"
    )
