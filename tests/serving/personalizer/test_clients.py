"""Microsoft's own clients against a running service, as their quickstarts use them, and the door over HTTP."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from azure.ai.personalizer import PersonalizerClient as PreviewClient
from azure.cognitiveservices.personalizer import PersonalizerClient
from azure.cognitiveservices.personalizer.models import ErrorResponseException, RankableAction, RankRequest
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError
from msrest.authentication import CognitiveServicesCredentials

from rankloop.serving.auth import make_key
from rankloop.serving.http.app import App
from tests.serving.process import Service
from tests.serving.service import create, running

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
POLICY = {"deadline_seconds": 600.0, "silence": "zero"}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service("--memory") as running:
        client = running.client()
        for name in ("personalizer", "dinner"):
            client.create(
                name,
                algorithm="RTopKF",
                parameters={"n_features": 64, "k": 1, "max_grade": 1},
                policy=POLICY,
                seed=5,
            )
        yield running


@pytest.mark.parametrize("name", ["personalizer", "dinner"])
def test_the_quickstart_of_the_last_release(service: Service, name: str) -> None:
    endpoint = service.url if name == "personalizer" else f"{service.url}/v1/rankers/{name}"
    client = PersonalizerClient(endpoint, CognitiveServicesCredentials("any key"))
    actions = [RankableAction(**one) for one in ACTIONS]
    before = service.client().ranker(name).rounds
    for value in (1.0, 0.0, 0.5):
        event = str(uuid.UUID(int=round(value * 10)))
        told = client.rank(
            RankRequest(actions=actions, context_features=CONTEXT, excluded_actions=["juice"], event_id=event)
        )
        assert told.event_id == event
        assert told.reward_action_id in {"pasta", "ice cream", "salad"}
        assert [one.id for one in told.ranking][2] == "juice"
        client.events.reward(event_id=event, value=value)
    deferred = client.rank(RankRequest(actions=actions, defer_activation=True))
    client.events.activate(event_id=deferred.event_id)
    assert service.client().ranker(name).rounds == before + 3


def test_mistakes_reach_the_client_in_its_own_form(service: Service) -> None:
    client = PersonalizerClient(service.url, CognitiveServicesCredentials("any key"))
    with pytest.raises(ErrorResponseException, match="Expected `array` of length >= 1") as caught:
        client.rank(RankRequest(actions=[]))
    assert caught.value.error.error.code == "BadRequest"
    elsewhere = PersonalizerClient(f"{service.url}/v1/rankers/nobody", CognitiveServicesCredentials("key"))
    with pytest.raises(ErrorResponseException) as caught:
        elsewhere.rank(RankRequest(actions=[RankableAction(**ACTIONS[0])]))
    assert caught.value.error.error.code == "ResourceNotFound"


def test_the_quickstart_of_the_preview_with_slots(service: Service) -> None:
    client: Any = PreviewClient(service.url, AzureKeyCredential("any key"))
    told = client.rank({"actions": ACTIONS, "contextFeatures": CONTEXT, "eventId": "preview"})
    assert told["rewardActionId"] in {one["id"] for one in ACTIONS}
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


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("rank", b"{", 400),
        ("rank", b'{"actions": [{"id": ""}]}', 400),
        ("rank", b'{"actions": [{"id": "a"}, {"id": "a"}]}', 400),
        ("rank", b'{"actions": [{"id": "a"}], "excludedActions": ["a"]}', 400),
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
    ],
)
def test_what_makes_no_sense_is_refused(service: Service, path: str, content: bytes, status: int) -> None:
    for version in ("v1.0/", "v1.1-preview.1/", ""):
        told = httpx.post(f"{service.url}/personalizer/{version}{path}", content=content)
        assert told.status_code == status, told.text
        assert told.json()["error"]["code"] in {"BadRequest", "ResourceNotFound"}
        assert told.json()["error"]["message"]


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
            await create(engine, "dinner", algorithm="RTopKF", parameters={"n_features": 64, "k": 1})
            key = await make_key(engine.store, role=role or "admin", at=1, rankers=rankers)
            app = App(engine)
            await app.access.refresh(engine.store)
            sent = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=sent, base_url="http://service") as client:
                told = await client.post(
                    "/v1/rankers/dinner/personalizer/v1.0/rank",
                    json={"actions": ACTIONS},
                    headers={"Ocp-Apim-Subscription-Key": key if role else key[:-1]},
                )
            return told.status_code

    assert asyncio.run(go()) == status
