"""Why each item of a list stood where it stood, as data and in words."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankloop.serving.api import ExplainAnswer, FeaturePart, ItemReason
from rankloop.serving.errors import NotFound
from rankloop.serving.item_counts import feature_parts
from rankloop.serving.log.candidate_lists import free_of
from rankloop.serving.log.fold import Fold, OtherHistory
from rankloop.serving.log.guard_rails import bound_of, rail_of
from rankloop.serving.log.reader import fold_through
from rankloop.serving.log.records import Decision
from rankloop.serving.log.snapshots import newest_fold
from rankloop.serving.log.stored_features import features_of
from rankloop.serving.privacy import read_context
from rankloop.serving.served_ranker import ServedRanker
from rankloop.serving.stores.contract import StoreError

_FEATURES = 3  # that weighed most
_MOST = 20_000  # rows that are folded again; by default there is a snapshot after as many
_INT = np.dtype("<i4")
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


async def explain_answer(served: ServedRanker, decision_id: str) -> ExplainAnswer:
    """Explain one list from its row and the state that it was drawn from, or the present one where that is gone."""
    state = await served.decision_state(decision_id)
    if state is None:
        raise NotFound(f"there is no decision {decision_id!r}", field="decision_id")
    decision = state.decision
    context = await read_context(served.store, decision.context, ranker=served.name, decision_id=decision_id)
    then = await state_at(served, decision.model_seq)
    fold = served.fold if then is None else then
    # What is not of the state: the policy that the list was drawn under.
    bound = bound_of(served.fold.policies.at(decision.model_seq + 1))
    return ExplainAnswer(
        decision_id,
        decision.explored,
        decision.model_seq,
        fold.applied,
        _reasons(fold, decision, bounded=bool(bound), then=then is not None),
        context.erased,
        "present" if then is None else "decision",
    )


async def state_at(served: ServedRanker, seq: int, *, most: int = _MOST) -> Fold | None:
    """What a ranker knew after row `seq`, folded again from the nearest snapshot: to look at, and not to change."""
    if served.fold.applied == seq:
        return served.fold
    async with served.looking_back:  # one at a time: it costs time and a second ranker's memory
        try:
            fold, _ = await newest_fold(served.store, served.name, through=seq)
            if not 0 <= seq - fold.applied <= most:
                return None
            await fold_through(fold, served.store, served.name, seq)
        except (StoreError, OtherHistory, ValueError):  # damaged, or of another code: `verify` says how
            return None
        return fold


def _reasons(fold: Fold, decision: Decision, *, bounded: bool, then: bool) -> list[ItemReason]:
    free, names = free_of(decision), fold.names(decision)
    numbers = np.frombuffer(decision.shown, _INT).astype(np.int64)
    pinned = {} if free is None else free.pinned
    try:
        features = features_of(fold.stored, decision)
    except ValueError:  # they were replaced long ago
        features = None
    places = _places(fold, None if free is None else free.among, features)
    weights = fold.ranker.weights_now()
    chances = None if decision.propensities is None else np.frombuffer(decision.propensities, "<f8").tolist()
    would = decision.trial is not None and bool(decision.trial.would)
    found = []
    for position, (name, number) in enumerate(zip(names, numbers.tolist(), strict=True)):
        reason: Literal["pinned", "baseline", "ranker"] = (
            "pinned" if position in pinned else "baseline" if would else "ranker"
        )
        parts: list[FeaturePart] = []
        score = None
        if features is not None and weights is not None and number < len(features):
            score, parts = _score(features[number], weights, fold.stored.feature_names)
        chance = None if chances is None else chances[position]
        place = places.get(number)
        words = " ".join(
            _fixed(reason, bounded)
            or [
                *_standing(place, len(places), then),
                *_drawing(decision, chance),
                *_weighing(parts),
            ]
        )
        found.append(ItemReason(name, position, reason, chance, place, score, parts, words))
    return found


def _places(
    fold: Fold, among: NDArray[np.int64] | None, features: NDArray[np.float32] | None
) -> dict[int, int]:
    """Of each candidate its place in the order that the ranker holds best, as far as it has one."""
    if not fold.has_items:
        order = [] if features is None else fold.ranker.current(features).tolist()
    else:
        order = fold.active[fold.ranker.current()].tolist()
    if among is not None:
        there = set(among.tolist())
        order = [number for number in order if number in there]
    return {number: place for place, number in enumerate(order)}


def _score(
    row: NDArray[np.float32], weights: NDArray[np.float64], names: list[str]
) -> tuple[float, list[FeaturePart]]:
    parts = feature_parts(row, weights, names)
    total = 0.0
    for one in parts:
        total += one.part
    most = sorted(parts, key=lambda one: -abs(one.part))[:_FEATURES]
    return total, [one for one in most if one.part != 0.0]


def _fixed(reason: str, bounded: bool) -> list[str]:
    if reason == "pinned" and bounded:
        return [
            "The request pinned it here, or the bound on displacements left it at its place in the baseline."
        ]
    if reason == "pinned":
        return ["The request pinned it here."]
    return ["The application's own list was shown."] if reason == "baseline" else []


def _standing(place: int | None, n_places: int, then: bool) -> list[str]:
    if place is None:
        return []
    if then:
        return [f"The ranker held it {_nth(place + 1)} best of {n_places}."]
    return [
        f"The ranker now holds it {_nth(place + 1)} best of {n_places}; its state when it drew the list is not kept."
    ]


def _drawing(decision: Decision, chance: float | None) -> list[str]:
    rail = rail_of(decision)
    if rail == "greedy":
        return ["The exploration cap let the best list of the moment be shown."]
    told = [] if chance is None else [f"It had a chance of {chance:.1%} of standing here."]
    told.append("The list explored." if decision.explored else "The list did not explore.")
    if rail == "moved":
        told.append("The bound on displacements moved items of the list.")
    if rail == "groups":
        told.append("The bound on displacements let the ranker order groups of neighbours of the baseline.")
    return told


def _weighing(parts: list[FeaturePart]) -> list[str]:
    if not parts:
        return []
    most = parts[0]
    called = f"Feature {most.feature}" if most.name is None else f"{most.name!r}"
    return [f"{called} weighs most: {most.value:.4g} times {most.weight:.4g} is {most.part:.4g}."]


def _nth(n: int) -> str:
    """An ordinal number.

    >>> [_nth(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 112)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '112th']
    """
    ending = "th" if n % 100 in (11, 12, 13) else _ENDINGS.get(n % 10, "th")
    return f"{n}{ending}"
