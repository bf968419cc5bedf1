"""The door for clients of Azure Personalizer: Microsoft's own ones as their quickstarts use them, and every call."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from azure.ai.personalizer import PersonalizerClient as PreviewClient
from azure.cognitiveservices.personalizer import PersonalizerClient
from azure.cognitiveservices.personalizer.models import ErrorResponseException, RankableAction, RankRequest
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError
from msrest.authentication import CognitiveServicesCredentials

from examples import personalizer_door
from examples.personalizer_door import make_app, read_features, to_rows
from rankloop.serving.auth import make_key
from rankloop.serving.client import RankloopError
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.log.verify import verify
from tests.serving.process import Service, free_port
from tests.serving.service import Clock, create, running

NAME = "personalizer"
TASTES = [
    {"id": f"a{i}", "features": [{"taste": taste}]} for i, taste in enumerate(["salty", "sweet", "sour"])
]
SLOTS = [{"id": "main", "features": [{"size": "large"}], "baselineAction": "a2"}, {"id": "side"}]
PARAMETERS = {"n_features": 64, "k": 1, "max_grade": 1}
ACTIONS = [
    {
        "id": "pasta",
        "features": [{"taste": "salty", "spiceLevel": "medium"}, {"nutritionLevel": 5, "cuisine": "italian"}],
    },
    {"id": "ice cream", "features": [{"taste": "sweet", "spiceLevel": "none"}, {"nutritionalLevel": 2}]},
    {"id": "juice", "features": [{"taste": "sweet", "spiceLevel": "none"}, {"drink": True}]},
    {"id": "salad", "features": [{"taste": "salty", "spiceLevel": "low"}, {"nutritionLevel": 8}]},
]
CONTEXT = [{"time": "morning"}, {"taste": "sweet"}]


class Caller:
    """Calls the door to an engine, and gives back the JSON of the answer."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        app = make_app("http://127.0.0.1", httpx.ASGITransport(App(engine)))
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://door")

    async def __call__(self, path: str, status: int = 201, **body: Any) -> Any:
        answer = await self._http.post(f"/personalizer/v1.0/{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def rank(self, **body: Any) -> Any:
        return await self("rank", **({"actions": TASTES} | body))

    async def slots(self, **body: Any) -> Any:
        return await self("multislot/rank", **({"actions": TASTES, "slots": SLOTS} | body))

    async def reward(self, event: str, value: float, status: int = 204) -> Any:
        return await self(f"events/{event}/reward", status, value=value)

    async def state(self, decision: str) -> Any:
        return await self.engine.rankers[NAME].decision_state(decision)

    @property
    def rounds(self) -> int:
        return self.engine.rankers[NAME].fold.rounds


@contextlib.asynccontextmanager
async def door(clock: Clock | None = None, **settings: Any) -> AsyncIterator[Caller]:
    wanted = {"algorithm": "RTopKF", "parameters": PARAMETERS, "policy": {"silence": "zero"}} | settings
    async with running(clock=clock or Clock()) as engine:
        await create(engine, NAME, **wanted)
        yield Caller(engine)
        assert (await verify(engine.store, NAME)).holds


def test_every_action_is_ranked_and_excluded_ones_stay() -> None:
    async def go() -> None:
        async with door() as call:
            for i in range(20):
                answer = await call.rank(eventId=f"e{i}", excludedActions=["a1"])
                assert answer["eventId"] == f"e{i}"
                assert answer["ranking"][1] == {"id": "a1", "probability": 0.0}
                assert sorted(one["id"] for one in answer["ranking"]) == ["a0", "a1", "a2"]
                assert answer["rewardActionId"] == answer["ranking"][0]["id"]
                assert 0 < answer["ranking"][0]["probability"] <= 1
            # The same event again has the same answer.
            assert await call.rank(eventId="e") == await call.rank(eventId="e")
            assert await call.slots(eventId="s") == await call.slots(eventId="s")

    asyncio.run(go())


def test_long_ids_are_kept_apart() -> None:
    async def go() -> None:
        async with door() as call:
            for length in (120, 121, 256):
                for last in "ab":
                    event = "e" * (length - 1) + last
                    assert (await call.rank(eventId=event))["eventId"] == event
                    await call.reward(event, 1.0)
            assert call.rounds == 6

    asyncio.run(go())


@pytest.mark.parametrize(
    ("deferred", "silence", "learnt"), [(False, "zero", 1), (True, "zero", 0), (False, None, 0)]
)
def test_no_reward_is_a_reward_of_zero_once_it_was_shown(
    deferred: bool, silence: str | None, learnt: int
) -> None:
    async def go() -> None:
        clock = Clock()
        policy = {"deadline_seconds": 10.0} | ({} if silence is None else {"silence": silence})
        async with door(clock, policy=policy) as call:
            await call.rank(eventId="e", deferActivation=deferred)
            clock.seconds += 60
            await call.engine.housekeeping.expire(call.engine.rankers[NAME])
            assert call.rounds == learnt

    asyncio.run(go())


def test_a_deferred_event_is_activated_later() -> None:
    async def go() -> None:
        async with door() as call:
            await call.rank(eventId="e", deferActivation=True)
            assert not (await call.state("e")).activated
            await call("events/e/activate", 204)
            assert (await call.state("e")).activated
            await call("events/other/activate", 404)

    asyncio.run(go())


def test_the_first_reward_counts_or_their_sum() -> None:
    async def go() -> None:
        async with door() as call:
            await call.rank(eventId="e")
            for value in (1.0, 0.0, -1.0):
                await call.reward("e", value)
            assert call.rounds == 1
        async with door(policy={"deadline_seconds": 10.0, "answers": "sum", "silence": "zero"}) as call:
            await call.rank(eventId="e")
            for _ in range(2):
                await call.reward("e", 0.25)
            state = await call.state("e")
            assert [np.frombuffer(values, "<f8").tolist() for values, _ in state.heard] == [[0.5]]
            assert state.n_heard == 2

    asyncio.run(go())


def test_slots_get_different_actions_and_their_own_rewards() -> None:
    async def go() -> None:
        async with door() as call:
            exclude = [{"id": "main", "excludedActions": ["a0"]}, {"id": "side"}, {"id": "foot"}]
            for i in range(20):
                if i % 2:
                    answer = await call.slots(eventId=f"e{i}")
                else:
                    # a0 may not stand in the first slot, so it stands in one of the others
                    answer = await call.slots(slots=exclude, eventId=f"e{i}", deferActivation=True)
                    assert answer["slots"][0]["rewardActionId"] != "a0"
                    await call(f"multislot/events/e{i}/activate", 204)
                chosen = [one["rewardActionId"] for one in answer["slots"]]
                assert len(set(chosen)) == len(chosen)
            rewards = [{"slotId": "side", "value": 1}, {"slotId": "main", "value": 0.5}]
            await call("multislot/events/e0/reward", 204, reward=rewards)
            states = [await call.state(f"e0#{i}") for i in range(3)]
            assert [one.answer is not None for one in states] == [True, True, False]
            assert all(one.activated for one in states)
            wrong = [{"slotId": "top", "value": 1}]
            assert "no slot 'top'" in str(await call("multislot/events/e0/reward", 400, reward=wrong))
            assert "no event 'e99' with slots" in str(await call("multislot/events/e99/activate", 404))
            await call.rank(eventId="f#0")  # the ID that the first slot of f would have
            assert "no event 'f' with slots" in str(
                await call("multislot/events/f/reward", 404, reward=rewards)
            )

    asyncio.run(go())


def test_an_apprentice_shows_the_first_action_or_the_slots_own() -> None:
    async def go() -> None:
        async with door(policy={"apprentice": True}) as call:
            for i in range(10):
                answer = await call.rank(eventId=f"e{i}")
                assert [one["id"] for one in answer["ranking"]] == ["a0", "a1", "a2"]
            slots = (await call.slots(eventId="s"))["slots"]
            assert [one["rewardActionId"] for one in slots] == ["a2", "a0"]

    asyncio.run(go())


def test_rankers_that_do_not_suit_are_refused() -> None:
    async def go() -> None:
        for change in (
            {"algorithm": "RTop1F", "items": ["a0", "a1"], "parameters": {}},
            {"parameters": PARAMETERS | {"k": 2}},
        ):
            async with door(**{"policy": {}} | change) as call:
                refused = await call("rank", 400, actions=TASTES)
                assert "cannot answer for Personalizer" in refused["error"]["message"]
        async with door(parameters=PARAMETERS | {"examination": 1.0}, policy={}) as call:
            await call.rank(eventId="e")
            assert "value must be 0 or 1" in str(await call.reward("e", 0.5, 400))
            await call.reward("e", 1.0)

    asyncio.run(go())


def test_it_learns_whom_to_show_what() -> None:
    """Salty in the evening, sweet in the morning. Without products with the context it could be right half the time."""

    async def go() -> float:
        rng, right = np.random.default_rng(3), 0
        async with door(parameters=PARAMETERS | {"n_features": 256}) as call:
            for i in range(1_200):
                hour, liked = (("evening", "a0"), ("morning", "a1"))[rng.integers(2)]
                answer = await call.rank(eventId=f"e{i}", contextFeatures=[{"hour": hour}])
                good = answer["rewardActionId"] == liked
                await call.reward(f"e{i}", float(good))
                right += good and i >= 900
        return right / 300

    assert asyncio.run(go()) > 0.75


@pytest.mark.parametrize(
    ("role", "rankers", "status"),
    [
        ("writer", ["dinner"], 201),
        ("admin", [], 201),
        ("reader", [], 403),
        ("writer", ["lunch"], 403),
        (None, [], 401),
    ],
)
def test_the_key_of_the_subscription_is_a_key_of_the_service(
    role: str | None, rankers: list[str], status: int
) -> None:
    async def go() -> int:
        async with running() as engine:
            await create(engine, "dinner", algorithm="RTopKF", parameters=PARAMETERS)
            key = await make_key(engine.store, role=role or "admin", at=1, rankers=rankers)
            app = App(engine)
            await app.access.refresh(engine.store)
            sent = httpx.ASGITransport(make_app("http://service", httpx.ASGITransport(app)))
            async with httpx.AsyncClient(transport=sent, base_url="http://door") as client:
                answer = await client.post(
                    "/v1/rankers/dinner/personalizer/v1.0/rank",
                    json={"actions": ACTIONS},
                    headers={"Ocp-Apim-Subscription-Key": key if role else key[:-1]},
                )
            return answer.status_code

    assert asyncio.run(go()) == status


# Features


def test_names_and_values() -> None:
    for features, expected in (
        (None, []),
        ([], []),
        ([{}], []),
        ([{"a": None}], []),
        ([{"taste": "salty", "price": 3.5}], [("taste=salty", 1.0), ("price", 3.5)]),
        ([{"a": True, "b": False}], [("a=true", 1.0), ("b=false", 1.0)]),
        ([{"a": {"b": {"c": "x"}}}], [("a.b.c=x", 1.0)]),
        ([{"a": [1.5, -2]}], [("a[0]", 1.5), ("a[1]", -2.0)]),
        ([{"a": [{"b": 1}, {"c": "y"}]}], [("a.b", 1.0), ("a.c=y", 1.0)]),
        ([{"_a": 1, "b": {"_c": 2}}], []),
        (["new"], [("=new", 1.0)]),
    ):
        assert read_features(features, "features") == expected
    for number in (1e31, -1e31, 10**400):
        with pytest.raises(RankloopError, match=r"price must be at most 1e\+30") as caught:
            read_features([{"price": number}], "actions")
        assert caught.value.field == "actions"


def test_a_feature_counts_alone_and_with_each_of_the_context() -> None:
    rows = to_rows([[("a", 3.0)]], [("c", 2.0), ("d", 0.5)], 4_096)
    worth = np.sort(np.abs(rows[rows != 0].astype(float)))
    np.testing.assert_allclose(worth / worth[1], [0.5, 1.0, 2.0], rtol=1e-6)
    rows = to_rows([[("a", 1.0)], [("b", 1.0)]], [("c", 1.0)], 4_096)
    assert not (rows[0] * rows[1]).any()  # nothing in common, so nothing of the context alone
    one, other = to_rows([[("a", 1.0)]], [("b", 1.0)], 4_096), to_rows([[("b", 1.0)]], [("a", 1.0)], 4_096)
    assert not (one * other).any()  # the order within a pair counts
    rows = to_rows([[("a", 1e30), ("b", 1e30)], [("a", 1e-30)], []], [("c", 1e30)], 256)
    np.testing.assert_allclose((rows.astype(float) ** 2).sum(axis=1), [1.0, 1.0, 0.0], rtol=1e-6)
    with pytest.raises(RankloopError, match="1,000,000 products of features, got 2,002,000"):
        to_rows([[("a", 1.0)] * 1_000] * 2, [("c", 1.0)] * 1_000, 8)


def test_columns_are_used_evenly_and_signs_cancel() -> None:
    """A hash that used few columns, or one sign, would fail: 4,000 names over 64 columns, within five deviations."""
    rows = to_rows([[(f"name={i}", 1.0)] for i in range(4_000)], [], 64)
    used = np.abs(rows).sum(axis=0)
    assert np.abs(used - 62.5).max() < 5 * 62.5**0.5
    assert abs(rows.sum()) < 5 * 4_000**0.5


# Microsoft's clients, against a door and a service in processes of their own


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service("--memory") as started:
        policy = {"deadline_seconds": 600.0, "silence": "zero"}
        for name in (NAME, "dinner"):
            started.client().create(name, algorithm="RTopKF", parameters=PARAMETERS, policy=policy, seed=5)
        yield started


@pytest.fixture(scope="module")
def url(service: Service) -> Iterator[str]:
    port = str(free_port())
    program = [sys.executable, personalizer_door.__file__, "--url", service.url, "--port", port]
    process = subprocess.Popen(program)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(1_000):
            with contextlib.suppress(httpx.ConnectError):
                httpx.get(address)
                break
            time.sleep(0.02)
        yield address
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("name", [NAME, "dinner"])
def test_the_quickstart_of_the_last_release(service: Service, url: str, name: str) -> None:
    endpoint = url if name == NAME else f"{url}/v1/rankers/{name}"
    client = PersonalizerClient(endpoint, CognitiveServicesCredentials("any key"))
    actions = [RankableAction(**one) for one in ACTIONS]
    before = service.client().ranker(name).rounds
    for value in (1.0, 0.0, 0.5):
        event = str(uuid.UUID(int=round(value * 10)))
        answer = client.rank(
            RankRequest(actions=actions, context_features=CONTEXT, excluded_actions=["juice"], event_id=event)
        )
        assert answer.event_id == event
        assert answer.reward_action_id in {"pasta", "ice cream", "salad"}
        assert [one.id for one in answer.ranking][2] == "juice"
        client.events.reward(event_id=event, value=value)
    deferred = client.rank(RankRequest(actions=actions, defer_activation=True))
    client.events.activate(event_id=deferred.event_id)
    assert service.client().ranker(name).rounds == before + 3


def test_mistakes_reach_the_client_in_its_own_form(url: str) -> None:
    client = PersonalizerClient(url, CognitiveServicesCredentials("any key"))
    with pytest.raises(ErrorResponseException, match="Expected `array` of length >= 1") as caught:
        client.rank(RankRequest(actions=[]))
    assert caught.value.error.error.code == "BadRequest"
    elsewhere = PersonalizerClient(f"{url}/v1/rankers/nobody", CognitiveServicesCredentials("key"))
    with pytest.raises(ErrorResponseException) as caught:
        elsewhere.rank(RankRequest(actions=[RankableAction(**ACTIONS[0])]))
    assert caught.value.error.error.code == "ResourceNotFound"


def test_the_quickstart_of_the_preview_with_slots(url: str) -> None:
    client: Any = PreviewClient(url, AzureKeyCredential("any key"))
    answer = client.rank({"actions": ACTIONS, "contextFeatures": CONTEXT, "eventId": "preview"})
    assert answer["rewardActionId"] in {one["id"] for one in ACTIONS}
    client.reward("preview", {"value": 1.0})
    slots = [
        {
            "id": "main",
            "features": [{"size": "large"}],
            "excludedActions": ["juice"],
            "baselineAction": "pasta",
        },
        {"id": "side", "features": [{"size": "small"}], "baselineAction": "salad"},
    ]
    for deferred in (False, True):
        event = f"slots-{deferred}"
        answer = client.rank_multi_slot(
            {"actions": ACTIONS, "slots": slots, "eventId": event, "deferActivation": deferred}
        )
        chosen = [one["rewardActionId"] for one in answer["slots"]]
        assert [one["id"] for one in answer["slots"]] == ["main", "side"]
        assert len(set(chosen)) == 2
        assert chosen[0] != "juice"
        client.activate_multi_slot(event)
        client.reward_multi_slot(event, {"reward": [{"slotId": "side", "value": 1.0}]})
    with pytest.raises(HttpResponseError) as caught:
        client.reward_multi_slot("slots-True", {"reward": [{"slotId": "top", "value": 1.0}]})
    assert caught.value.status_code == 400


def test_what_makes_no_sense_is_refused(url: str) -> None:
    for path, content, status in (
        ("rank", b"{", 400),
        ("rank", b'{"actions": [{"id": ""}]}', 400),
        ("rank", b'{"actions": [{"id": "a"}, {"id": "a"}]}', 400),
        ("rank", b'{"actions": [{"id": "a"}], "excludedActions": ["a"]}', 400),
        ("rank", b" " * 2_000_001, 413),
        ("events/e/reward", b'{"value": 2}', 400),
        ("events/e/reward", b'{"value": "much"}', 400),
        (f"events/{'e' * 257}/activate", b"", 400),
        ("events/nobody/activate", b"", 404),
        ("events//activate", b"", 400),
        ("events/e/rank", b"", 404),
        ("reward", b'{"value": 1}', 404),
        ("configurations/service", b"", 404),
        ("multislot/rank", b'{"actions": [{"id": "a"}], "slots": [{"id": "s"}, {"id": "t"}]}', 400),
        (
            "multislot/rank",
            b'{"actions": [{"id": "a"}, {"id": "b"}], "slots": [{"id": "s"}, {"id": "s"}]}',
            400,
        ),
    ):
        for version in ("v1.0/", "v1.1-preview.1/", ""):
            answer = httpx.post(f"{url}/personalizer/{version}{path}", content=content)
            assert answer.status_code == status, (path, answer.text)
            assert answer.json()["error"]["code"] in {"BadRequest", "ResourceNotFound"}
            assert answer.json()["error"]["message"]
