"""Personalizer's calls as calls of the engine: one action or several slots, activation, reward.

An event is a decision, and each slot of an event one of its own: slots are filled one after the other, each from the
actions that are left, with the features of the slot beside those of the context.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import msgspec

from rankloop.serving.engine import Engine
from rankloop.serving.errors import Busy, NotFound, RequestError
from rankloop.serving.ids import new_id
from rankloop.serving.personalizer import messages as m
from rankloop.serving.personalizer.named_features import Named, read_features, to_rows
from rankloop.serving.schemas import ActivateRequest, FeedbackRequest, Matrix, RankAnswer, RankRequest
from rankloop.serving.served_ranker import ServedRanker

_LONGEST = 120  # of an ID in the log, with room for the number of a slot
_MANY = 1 << 20


class _Note(msgspec.Struct):
    """What is kept with the first slot of an event."""

    slots: list[str]


async def choose(engine: Engine, name: str, body: m.RankBody) -> m.RankReply:
    """Choose an action."""
    served = await _find(engine, name)
    event_id = body.event_id or new_id()
    excluded = set(body.excluded_actions or ())
    asked = _read(body)
    answer = await _rank(
        engine, served, asked, _short(event_id), excluded, asked.context, baseline=None, note=None
    )
    if not body.defer_activation:
        await _activate(engine, name, answer)
    order, chosen = iter(answer.items), answer.items[0]
    chance = answer.propensities[0] if answer.propensities else None
    ranking = []
    for action in body.actions:
        if action.id in excluded:
            ranking.append(m.RankedAction(action.id, 0.0))
        else:
            item = next(order)
            ranking.append(m.RankedAction(item, chance if item == chosen else None))
    return m.RankReply(ranking, event_id, chosen)


async def choose_for_slots(engine: Engine, name: str, body: m.SlotsBody) -> m.SlotsReply:
    """Choose an action for each slot."""
    served = await _find(engine, name)
    ids = [slot.id for slot in body.slots]
    if len(set(ids)) != len(ids):
        raise RequestError("slots must not repeat an id", field="slots")
    if len(body.actions) < len(ids):
        raise RequestError(
            f"there must be an action for each of the {len(ids)} slots, got {len(body.actions)}",
            field="actions",
        )
    asked = _read(body)
    event_id = body.event_id or new_id()
    taken: set[str] = set()
    answers: list[RankAnswer] = []
    for i, slot in enumerate(body.slots):
        excluded = taken | set(slot.excluded_actions or ())
        answer = await _rank(
            engine,
            served,
            asked,
            _of_slot(event_id, i),
            excluded,
            asked.context + read_features([{"slot": slot.features or []}], field="slots"),
            baseline=slot.baseline_action,
            note=None if i else {"slots": ids},
        )
        answers.append(answer)
        taken.add(answer.items[0])
    if not body.defer_activation:
        for answer in answers:
            await _activate(engine, name, answer)
    chosen = [m.SlotReply(one, answer.items[0]) for one, answer in zip(ids, answers, strict=True)]
    return m.SlotsReply(chosen, event_id)


async def activate(engine: Engine, name: str, event_id: str) -> None:
    """The chosen action was shown."""
    await _find(engine, name)
    await engine.activate(name, ActivateRequest(_short(event_id)))


async def activate_slots(engine: Engine, name: str, event_id: str) -> None:
    """The chosen actions were shown."""
    served = await _find(engine, name)
    for i in range(len(await _slots(served, event_id))):
        await engine.activate(name, ActivateRequest(_of_slot(event_id, i)))


async def reward(engine: Engine, name: str, event_id: str, body: m.RewardBody) -> None:
    """What the chosen action was worth."""
    served = await _find(engine, name)
    await _learn(engine, served, [_feedback(served, _short(event_id), body.value)])


async def reward_slots(engine: Engine, name: str, event_id: str, body: m.SlotRewardsBody) -> None:
    """What the actions in some slots were worth."""
    served = await _find(engine, name)
    slots = await _slots(served, event_id)
    requests = []
    for one in body.reward:
        if one.slot_id not in slots:
            raise RequestError(f"event {event_id!r} has no slot {one.slot_id!r}", field="slotId")
        requests.append(_feedback(served, _of_slot(event_id, slots.index(one.slot_id)), one.value))
    await _learn(engine, served, requests)


async def _find(engine: Engine, name: str) -> ServedRanker:
    served = await engine.find(name)
    ranker = served.fold.ranker
    if served.fold.has_items or not ranker.n_features or ranker.feedback.length(_MANY) != 1:
        raise RequestError(
            f"ranker {name!r} ({served.fold.config.algorithm}) cannot answer for Personalizer: that needs one with "
            "features that learns from the first item alone, such as RTopKF with k = 1"
        )
    return served


class _Asked(NamedTuple):
    """A request as it was read: the IDs of the actions, the features of each, and those of the context."""

    ids: list[str]
    actions: list[Named]
    context: Named


def _read(body: m.RankBody | m.SlotsBody) -> _Asked:
    return _Asked(
        [one.id for one in body.actions],
        [read_features(one.features, field="actions") or [(f"id={one.id}", 1.0)] for one in body.actions],
        read_features(body.context_features, field="contextFeatures"),
    )


async def _rank(
    engine: Engine,
    served: ServedRanker,
    asked: _Asked,
    decision_id: str,
    excluded: set[str],
    context: Named,
    *,
    baseline: str | None,
    note: Any,
) -> RankAnswer:
    n_features = served.fold.ranker.n_features
    assert n_features is not None
    rows = to_rows(asked.actions, context, n_features=n_features)
    ids = asked.ids
    own = None
    if served.fold.config.policy.apprentice or served.fold.config.policy.holdout:
        own = [one for one in ids if one != baseline]
        own = own if baseline is None else [baseline, *own]
    request = RankRequest(
        decision_id,
        ids,
        Matrix(rows.shape, rows.astype("<f4").tobytes()),
        note,
        [one for one in ids if one in excluded],
        baseline=own,
    )
    return await engine.rank(served.name, request)


async def _activate(engine: Engine, name: str, answer: RankAnswer) -> None:
    if not answer.degraded:
        await engine.activate(name, ActivateRequest(answer.decision_id))


def _feedback(served: ServedRanker, decision_id: str, value: float) -> FeedbackRequest:
    """The reward as feedback; a negative one counts as 0."""
    given = [max(0.0, value)]
    event_id = new_id() if served.fold.config.policy.answers == "sum" else None
    if served.fold.ranker.feedback.kind != "clicks":
        return FeedbackRequest(decision_id, event_id, relevance=given)
    if given[0] not in (0.0, 1.0):
        raise RequestError(
            f"value must be 0 or 1 for {served.fold.config.algorithm}, which learns from clicks, got {value}",
            field="value",
        )
    return FeedbackRequest(decision_id, event_id, clicks=given)


async def _learn(engine: Engine, served: ServedRanker, requests: list[FeedbackRequest]) -> None:
    answers = await engine.feedback(served.name, requests)
    if any(one.status == "busy" for one in answers):
        raise Busy("too many rewards wait for their event")


async def _slots(served: ServedRanker, event_id: str) -> list[str]:
    state = await served.decision_state(_of_slot(event_id, 0))
    try:
        return msgspec.convert(None if state is None else state.decision.context, _Note).slots
    except msgspec.ValidationError:  # no such list, or one that somebody else gave this ID
        raise NotFound(f"there is no event {event_id!r} with slots", field="eventId") from None


def _short(event_id: str) -> str:
    """An ID that fits into the log: as it is, or its beginning and a digest."""
    if len(event_id) <= _LONGEST:
        return event_id
    digest = hashlib.blake2b(event_id.encode(), digest_size=16).hexdigest()
    return f"{event_id[: _LONGEST - 33]}~{digest}"


def _of_slot(event_id: str, i: int) -> str:
    return f"{_short(event_id)}#{i}"
