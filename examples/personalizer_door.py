"""The API of Azure Personalizer in front of a service: its clients need another address, and no other change.

    python examples/personalizer_door.py --url http://127.0.0.1:8000 --port 8001

`http://127.0.0.1:8001` as endpoint means the ranker named personalizer, `http://127.0.0.1:8001/v1/rankers/news` the one
named news; the subscription key is an API key of the service. An event is a decision, and each slot of an event one of
its own: slots are filled one after the other, each from the actions that are left.
"""

import argparse
import functools
import hashlib
import re
import time
import uuid
from typing import Annotated, Any, NoReturn

import httpx
import msgspec
import numpy as np
import uvicorn
from msgspec import Meta
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rankloop import AsyncClient
from rankloop.serving.client import RankAnswer, RankerAnswer, RankloopError

Name = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=256)]
Reward = Annotated[float, Meta(ge=-1.0, le=1.0)]
Features = list[Any] | None
Named = list[tuple[str, float]]  # features by name, with their values

LONGEST = 120  # of an ID in the log, with room for the number of a slot
LARGEST = 1e30
MOST_BYTES = 2_000_000  # of a body
MOST_PRODUCTS = 1_000_000  # features of actions times features of the context, in one request
REMEMBERED = 60.0  # seconds for which the settings of a ranker are not asked for again
STEP = np.uint64(0x9E3779B97F4A7C15)
MIXERS = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))


# Requests, as the types that check them. Fields that are not named are ignored.


class Action(msgspec.Struct, rename="camel"):
    id: Name
    features: Features = None


class Slot(msgspec.Struct, rename="camel"):
    id: Name
    features: Features = None
    excluded_actions: list[str] | None = None
    baseline_action: str | None = None


class RankBody(msgspec.Struct, rename="camel"):
    actions: Annotated[list[Action], Meta(min_length=1)]
    context_features: Features = None
    excluded_actions: list[str] | None = None
    event_id: Name | None = None
    defer_activation: bool = False


class SlotsBody(msgspec.Struct, rename="camel"):
    actions: Annotated[list[Action], Meta(min_length=1)]
    slots: Annotated[list[Slot], Meta(min_length=1, max_length=100)]
    context_features: Features = None
    event_id: Name | None = None
    defer_activation: bool = False


class RewardBody(msgspec.Struct, rename="camel"):
    value: Reward


class SlotReward(msgspec.Struct, rename="camel"):
    slot_id: Name
    value: Reward


class SlotRewardsBody(msgspec.Struct, rename="camel"):
    reward: Annotated[list[SlotReward], Meta(min_length=1)]


# Features by name, as rows of numbers of one length. A linear ranker compares the actions of one request, so what is
# the same for all of them tells nothing: every feature of an action counts alone, and with each one of the context.


def read_features(value: Any, field: str, name: str = "") -> Named:
    """A number is the value of its name; a text or a truth value is a name of its own, with the value 1.

    Lists and objects are walked through; names that begin with an underscore, and null, are left out.
    """
    if isinstance(value, dict):
        inside = ((f"{name}.{key}" if name else key, one) for key, one in value.items() if key[:1] != "_")
    elif isinstance(value, list):
        inside = ((f"{name}[{i}]" if is_number(one) else name, one) for i, one in enumerate(value))
    elif value is None:
        return []
    elif is_number(value):
        if not -LARGEST <= value <= LARGEST:
            refuse(400, f"{name} must be at most {LARGEST:g}, got {value}", field)
        return [(name, float(value))]
    else:
        return [(f"{name}={str(value).lower() if isinstance(value, bool) else value}", 1.0)]
    return [feature for key, one in inside for feature in read_features(one, field, key)]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_rows(actions: list[Named], context: Named, n_features: int) -> NDArray[np.float32]:
    """A row for each action: the sum of its features, alone and together with those of the context, of length 1.

    Names are hashed into columns, with a sign.
    """
    products = sum(len(action) for action in actions) * (1 + len(context))
    if products > MOST_PRODUCTS:
        refuse(
            413, f"there may be {MOST_PRODUCTS:,} products of features, got {products:,}", "contextFeatures"
        )
    others = np.array([0, *(hashed(name) for name, _ in context)], np.uint64)
    values = np.array([1.0, *(value for _, value in context)])
    rows = np.zeros((len(actions), n_features))
    for row, action in zip(rows, actions, strict=True):
        own = np.array([hashed(name) for name, _ in action], np.uint64)
        together = own[:, None] + others[None, :] * STEP
        for shift, factor in MIXERS:  # the last steps of SplitMix64: every bit depends on every bit
            together = (together ^ (together >> np.uint64(shift))) * factor
        together ^= together >> np.uint64(31)
        worth = np.multiply.outer(np.array([value for _, value in action]), values)
        sign = 1.0 - 2.0 * (together & np.uint64(1)).astype(np.float64)
        column = (together >> np.uint64(32)) % np.uint64(n_features)
        np.add.at(row, column.astype(np.int64).ravel(), (worth * sign).ravel())
    largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    np.divide(rows, largest, out=rows, where=largest > 0)  # first, so that no square overflows
    length = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    np.divide(rows, length, out=rows, where=length > 0)
    return rows.astype(np.float32)


@functools.lru_cache(maxsize=65_536)
def hashed(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


# The calls


def refuse(status: int, message: str, field: str | None = None) -> NoReturn:
    raise RankloopError(status, "", message, field)


class Door:
    """Personalizer's calls of one caller on one ranker, as calls of the service."""

    def __init__(self, client: AsyncClient, ranker: RankerAnswer) -> None:
        self._client, self._ranker, self._name = client, ranker, ranker.name
        settings = ranker.parameters
        if not settings.get("n_features") or settings.get("k", settings.get("n_positions")) != 1:
            refuse(
                400,
                f"ranker {ranker.name!r} ({ranker.algorithm}) cannot answer for Personalizer: that needs one with "
                "features that learns from the first item alone, such as RTopKF with k = 1",
            )

    async def rank(self, body: RankBody) -> dict[str, Any]:
        event_id, excluded = body.event_id or uuid.uuid4().hex, set(body.excluded_actions or ())
        context = read_features(body.context_features, "contextFeatures")
        answer = await self._rank(body, short(event_id), excluded, context)
        await self._show(body, [answer])
        order, chosen = iter(answer.items), answer.items[0]
        chance = answer.propensities[0] if answer.propensities else None
        ranking = []
        for action in body.actions:  # excluded ones stay where they were in the request
            item = action.id if action.id in excluded else next(order)
            known = 0.0 if item in excluded else chance if item == chosen else None
            ranking.append({"id": item, "probability": known})
        return {"ranking": ranking, "eventId": event_id, "rewardActionId": chosen}

    async def rank_slots(self, body: SlotsBody) -> dict[str, Any]:
        ids = [slot.id for slot in body.slots]
        if len(set(ids)) != len(ids):
            refuse(400, "slots must not repeat an id", "slots")
        if len(body.actions) < len(ids):
            refuse(400, f"{len(ids)} slots need as many actions, got {len(body.actions)}", "actions")
        event_id = body.event_id or uuid.uuid4().hex
        context = read_features(body.context_features, "contextFeatures")
        answers: list[RankAnswer] = []
        for i, slot in enumerate(body.slots):
            excluded = {answer.items[0] for answer in answers} | set(slot.excluded_actions or ())
            own = read_features([{"slot": slot.features or []}], "slots")
            note = None if i else {"slots": ids}  # what is kept with the first slot of an event
            answers.append(
                await self._rank(
                    body, of_slot(event_id, i), excluded, context + own, slot.baseline_action, note
                )
            )
        await self._show(body, answers)
        chosen = [{"id": one, "rewardActionId": it.items[0]} for one, it in zip(ids, answers, strict=True)]
        return {"slots": chosen, "eventId": event_id}

    async def _rank(
        self,
        body: RankBody | SlotsBody,
        decision_id: str,
        excluded: set[str],
        context: Named,
        baseline: str | None = None,
        note: Any = None,
    ) -> RankAnswer:
        ids = [action.id for action in body.actions]
        actions = [read_features(one.features, "actions") or [(f"id={one.id}", 1.0)] for one in body.actions]
        policy, own = self._ranker.policy, None
        if (
            policy.apprentice or policy.holdout
        ):  # the first action of a request, or the slot's own, is the baseline
            own = [*(one for one in ids if one == baseline), *(one for one in ids if one != baseline)]
        return await self._client.rank(
            self._name,
            decision_id=decision_id,
            items=ids,
            features=to_rows(actions, context, self._ranker.parameters["n_features"]),
            context=note,
            exclude=[one for one in ids if one in excluded],
            baseline=own,
        )

    async def _show(self, body: RankBody | SlotsBody, answers: list[RankAnswer]) -> None:
        for answer in answers:
            if not body.defer_activation and not answer.degraded:
                await self._client.activate(self._name, answer.decision_id)

    async def activate(self, event_id: str) -> None:
        await self._client.activate(self._name, short(event_id))

    async def activate_slots(self, event_id: str) -> None:
        for i in range(len(await self._slots(event_id))):
            await self._client.activate(self._name, of_slot(event_id, i))

    async def reward(self, event_id: str, body: RewardBody) -> None:
        await self._learn([(short(event_id), body.value)])

    async def reward_slots(self, event_id: str, body: SlotRewardsBody) -> None:
        slots = await self._slots(event_id)
        for one in body.reward:
            if one.slot_id not in slots:
                refuse(400, f"event {event_id!r} has no slot {one.slot_id!r}", "slotId")
        await self._learn([(of_slot(event_id, slots.index(one.slot_id)), one.value) for one in body.reward])

    async def _learn(self, rewards: list[tuple[str, float]]) -> None:
        reports = []
        for decision_id, value in rewards:
            if self._ranker.feedback == "clicks" and value not in (0.0, 1.0):
                refuse(
                    400, f"value must be 0 or 1 for a ranker that learns from clicks, got {value}", "value"
                )
            report: dict[str, Any] = {"decision_id": decision_id, self._ranker.feedback: [max(0.0, value)]}
            if self._ranker.policy.answers == "sum":  # every reward counts
                report["event_id"] = uuid.uuid4().hex
            reports.append(report)
        if any(answer.status == "busy" for answer in await self._client.feedback_many(self._name, reports)):
            refuse(429, "too many rewards wait for their event")

    async def _slots(self, event_id: str) -> list[str]:
        try:
            note = (await self._client.decision(self._name, of_slot(event_id, 0))).context
            return [str(one) for one in note["slots"]]
        except (
            RankloopError,
            TypeError,
            KeyError,
        ) as error:  # no such list, or one of somebody else's with this ID
            if isinstance(error, RankloopError) and error.status != 404:
                raise
            refuse(404, f"there is no event {event_id!r} with slots", "eventId")


def short(event_id: str) -> str:
    """An ID that fits into the log: as it is, or its beginning and a digest."""
    if len(event_id) <= LONGEST:
        return event_id
    digest = hashlib.blake2b(event_id.encode(), digest_size=16).hexdigest()
    return f"{event_id[: LONGEST - 33]}~{digest}"


def of_slot(event_id: str, i: int) -> str:
    return f"{short(event_id)}#{i}"


# HTTP

PATH = re.compile(r"^(?:v[0-9][^/]*/)?(multislot/)?(?:rank|events/(.*)/(reward|activate))$", re.DOTALL)
CALLS: dict[tuple[bool, str], tuple[Any, Any]] = {
    (False, "rank"): (Door.rank, RankBody),
    (True, "rank"): (Door.rank_slots, SlotsBody),
    (False, "reward"): (Door.reward, RewardBody),
    (True, "reward"): (Door.reward_slots, SlotRewardsBody),
    (False, "activate"): (Door.activate, None),
    (True, "activate"): (Door.activate_slots, None),
}
CODES = {404: "ResourceNotFound", 500: "InternalServerError", 503: "InternalServerError"}


def make_app(url: str, transport: httpx.AsyncBaseTransport | None = None) -> Starlette:
    """The door to the service at `url`; `transport`: another way to reach it."""
    shared = transport or httpx.AsyncHTTPTransport()
    rankers: dict[str, tuple[float, RankerAnswer]] = {}

    @functools.lru_cache(maxsize=1_000)
    def client_of(key: str | None) -> AsyncClient:
        return AsyncClient(url, key=key, transport=shared)

    async def door_of(request: Request) -> Door:
        client = client_of(request.headers.get("Ocp-Apim-Subscription-Key"))
        name = request.path_params.get("name", "personalizer")
        if name not in rankers or rankers[name][0] < time.monotonic():
            rankers[name] = (time.monotonic() + REMEMBERED, await client.ranker(name))
        return Door(client, rankers[name][1])

    async def answer(request: Request) -> Response:
        try:
            found = PATH.match(request.path_params["rest"])
            if found is None:
                refuse(404, "Personalizer has no such call here; there are rank, events and multislot")
            slots, event, what = found.groups()
            call, kind = CALLS[slots is not None, what or "rank"]
            values = [] if what is None else [msgspec.convert(event, Name)]
            if kind is not None:
                values.append(msgspec.json.decode(await _body(request) or b"{}", type=kind))
            reply = await call(await door_of(request), *values)
        except RankloopError as error:
            return _error(error.status or 503, error.message, error.field)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return _error(400, str(error))
        return Response(status_code=204) if reply is None else _json(201, reply)

    paths = ("/personalizer/{rest:path}", "/v1/rankers/{name}/personalizer/{rest:path}")
    return Starlette(routes=[Route(path, answer, methods=["POST"]) for path in paths])


async def _body(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            refuse(413, f"a body may have {MOST_BYTES:,} bytes")
    return body


def _error(status: int, message: str, field: str | None = None) -> Response:
    status = 400 if status == 422 else status
    return _json(
        status, {"error": {"code": CODES.get(status, "BadRequest"), "message": message, "target": field}}
    )


def _json(status: int, body: Any) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="where the service is")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001)
    options = parser.parse_args()
    uvicorn.run(make_app(options.url), host=options.host, port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
