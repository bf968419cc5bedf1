"""How another ranker would have done on a log, estimated from the rounds on which the two agree.

Feedback in the log counts where the other ranker shows the same item at the same position, divided by the probability
with which the log's own ranker showed it there. The other ranker learns from the rounds in which all that was observed
is also about its own list. On a log of random lists that is unbiased for its value with as much
feedback (Li et al. 2011). Where the log prefers some lists, the other ranker learns more about those than it would by
itself, and one that counts missing feedback as none is then misled: read the estimate with the number of matches.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from rankloop.base import Ranker, Ranking
from rankloop.serving.adapters.registry import build, has_items
from rankloop.serving.log.candidate_lists import is_chosen
from rankloop.serving.log.export import Answered, answered_lists
from rankloop.serving.log.randomness import Draws, key_of
from rankloop.serving.log.records import DEFAULTS, Config, unpack
from rankloop.serving.log.snapshots import config_fold
from rankloop.serving.log.stored_features import candidate_names, features_of
from rankloop.serving.stores.contract import Store


class Replay(msgspec.Struct):
    """Mean value of the logged lists, and of those of the other ranker, with a 95% confidence interval."""

    ranker: str
    other: str
    rounds: int
    matches: int
    logged: float
    value: float | None
    low: float | None
    high: float | None


async def replay(
    store: Store, ranker: str, *, other: str, parameters: dict[str, Any] | None = None
) -> Replay:
    """Play `other` on the log of `ranker`; ValueError where it does not take what is in the log."""
    first = await config_fold(store, ranker)
    own_items = has_items(other)
    if own_items != first.has_items:
        raise ValueError(f"{other} and {first.config.algorithm} do not take the same requests")
    names = list(first.config.items or [])
    given = parameters or {}
    if not own_items:
        given = {"n_features": first.ranker.n_features} | given
    config = Config(other, first.config.seed, names if own_items else None, given, defaults=DEFAULTS)
    player = build(config, n_items=len(names))
    if player.feedback.kind != first.ranker.feedback.kind:
        raise ValueError(
            f"{other} learns from {player.feedback.kind}, the log of {ranker!r} has {first.ranker.feedback.kind}"
        )
    draws = Draws()
    pay, weights, logged, matches = [], [], [], 0
    async for one in answered_lists(store, ranker):
        if one.decision.choice is not None or not is_chosen(one.decision):
            continue  # another ranker would have had other items to choose from, or the list was a baseline
        if own_items and not set(one.shown) <= set(names):
            continue  # from after a change of items
        features = features_of(one.stored, one.decision)
        mine = player.rank(features, rng=draws.generator(key_of(config.seed, f"replay {one.row.event_id}")))
        known = names if own_items else (candidate_names(one.stored, one.decision) or [])
        place = {name: i for i, name in enumerate(known)}
        theirs = np.array([place[name] for name in one.shown[: len(one.values)]], np.int64)
        shared = min(len(theirs), len(mine.items))
        agree = mine.items[:shared] == theirs[:shared]
        logged.append(float(one.values.sum()))
        chances = _chances(first.ranker, one, shared)
        if chances is None:
            pay.append(0.0)
            weights.append(0.0)
            continue
        weight = np.where(agree, 1.0 / chances, 0.0)
        pay.append(float((weight * one.values[:shared]).sum()))
        weights.append(float(weight.mean()) if shared else 0.0)
        if agree.all():
            matches += 1
            needed = player.feedback.length(len(mine.items))
            if needed <= len(one.values):
                player.learn(mine, one.values[:needed])
    return _summary(ranker, other, np.array(pay), np.array(weights), np.array(logged), matches)


def _chances(logged: Ranker, one: Answered, n: int) -> Any:
    """The probability of each shown (item, position); None where this round says nothing."""
    if one.decision.propensities is not None:
        return np.frombuffer(one.decision.propensities, "<f8")[:n]
    ranking = Ranking(
        np.frombuffer(one.decision.shown, "<i4").astype(np.int64),
        None,
        tuple(unpack(part) for part in one.decision.memo),
        one.decision.explored,
    )
    chance = logged.exploration_chance(ranking)
    # Only the rounds that explored count then.
    return None if not chance else np.full(n, chance)


def _summary(ranker: str, other: str, pay: Any, weights: Any, logged: Any, matches: int) -> Replay:
    n = len(pay)
    if weights.sum() == 0 if n else True:
        return Replay(ranker, other, n, matches, float(logged.mean()) if n else math.nan, None, None, None)
    # Self-normalised: the weights average to 1 only in the long run.
    value = float(pay.sum() / weights.sum())
    spread = float(np.sqrt(np.square(pay - value * weights).sum())) / float(weights.sum())
    reach = 1.96 * spread
    return Replay(ranker, other, n, matches, float(logged.mean()), value, value - reach, value + reach)
