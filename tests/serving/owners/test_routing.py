"""Three replicas in one process, which reach each other as they would over a network."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.limits import Limits
from rankloop.serving.log.verify import verify
from rankloop.serving.owners.front import Front
from rankloop.serving.owners.hop import Answer, NoAnswer, NotSent, Way
from rankloop.serving.owners.routing import Router
from tests.serving.service import ITEMS, Clock, play
from tests.serving.shared_store import SharedStore

NAMES = [f"r{i}" for i in range(6)]
ADDRESSES = {"a": "http://127.0.0.1:8001", "b": "http://127.0.0.1:8002", "c": "http://127.0.0.1:8003"}
PLACES = {address: name for name, address in ADDRESSES.items()}


class Network(Way):
    """Requests reach the application at their address; some addresses are down, some lose the answer."""

    def __init__(self) -> None:
        self.clients: dict[str, httpx.AsyncClient] = {}
        self.down: set[str] = set()
        self.mute: set[str] = set()

    async def send(self, address: str, request: bytes) -> Answer:
        name = PLACES[address]
        if name in self.down:
            raise NotSent("down")
        head, _, body = request.partition(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        method, path, _ = first.split(" ")
        headers = dict(line.split(": ", 1) for line in rest)
        told = await self.clients[name].request(method, path, content=body, headers=headers)
        if name in self.mute:
            raise NoAnswer("mute")
        return Answer(told.status_code, {n.lower(): v for n, v in told.headers.raw}, told.content)

    async def stream(self, address: str, request: bytes) -> AsyncIterator[Answer | bytes]:
        answer = await self.send(address, request)
        yield answer

    async def close(self) -> None:
        return


class Cluster:
    """Replicas on one store."""

    def __init__(self, *, forward: bool = True) -> None:
        self.clock = Clock()
        self.store = SharedStore()
        self.network = Network()
        self.engines: dict[str, Engine] = {}
        self.clients = self.network.clients
        self._forward = forward

    async def start(self, name: str) -> None:
        engine = Engine(self.store, clock=self.clock, housekeeping=False, address=ADDRESSES[name])
        assert engine.ownership is not None
        await engine.open()
        router = Router(engine.ownership, limits=Limits(), forward=self._forward, way=self.network)
        self.engines[name] = engine
        transport = httpx.ASGITransport(Front(App(engine), router))
        self.clients[name] = httpx.AsyncClient(transport=transport, base_url=ADDRESSES[name])

    async def tick(self) -> None:
        """Everybody announces itself, and follows."""
        for _ in range(2):
            for name, engine in self.engines.items():
                if name not in self.network.down:
                    await engine.housekeeping.tick()
        for name, engine in self.engines.items():
            if name not in self.network.down:
                await engine.housekeeping.take_in_news()

    def owner(self, ranker: str, at: str) -> str:
        ownership = self.engines[at].ownership
        assert ownership is not None
        return PLACES[ownership.owner(ranker).address]

    async def post(self, at: str, path: str, body: Any) -> httpx.Response:
        return await self.clients[at].post(f"/v1/rankers{path}", json=body)


@contextlib.asynccontextmanager
async def cluster(*, forward: bool = True) -> AsyncIterator[Cluster]:
    made = Cluster(forward=forward)
    for name in "abc":
        await made.start(name)
    await made.tick()
    for name in NAMES:
        policy = {"deadline_seconds": 20}
        wanted = {"name": name, "algorithm": "RTop1F", "items": ITEMS, "seed": 3, "policy": policy}
        told = await made.post("a", "", wanted)
        assert told.status_code == 201, told.text
    made.clock.seconds += 11.0  # what a made while creating is adopted no longer
    await made.tick()
    yield made
    for engine in made.engines.values():
        await engine.close()


def test_owner_and_standby_fold_and_anybody_can_be_asked() -> None:
    async def story() -> None:
        async with cluster() as made:
            folded = [name for engine in made.engines.values() for name in engine.rankers]
            assert sorted(folded) == sorted(2 * NAMES)
            for i, name in enumerate(2 * NAMES):
                at = "abc"[i % 3]
                told = await made.post(at, f"/{name}/rank", {"decision_id": f"d{i}"})
                assert told.status_code == 200, told.text
                owner = made.owner(name, at)
                assert told.headers.get("x-rankloop-owner") == (None if owner == at else ADDRESSES[owner])
                again = await made.post("bca"[i % 3], f"/{name}/rank", {"decision_id": f"d{i}"})
                assert (again.json()["duplicate"], again.json()["items"]) == (True, told.json()["items"])
                body = {"decision_id": f"d{i}", "relevance": [1.0]}
                assert (await made.post("cab"[i % 3], f"/{name}/feedback", body)).json()["learnt"]
            assert sorted(name for engine in made.engines.values() for name in engine.rankers) == sorted(
                folded
            )
            for name in NAMES:
                assert (await verify(made.store, name)).holds

    play(story)


def test_all_rankers_are_listed_by_everybody() -> None:
    async def story() -> None:
        async with cluster() as made:
            for client in made.clients.values():
                found = (await client.get("/v1/rankers")).json()
                assert sorted(one["name"] for one in found["rankers"]) == NAMES
                assert sorted((await client.get("/v1/sparks")).json()["sparks"]) == NAMES
                assert (await client.get("/v1/rankers/r3")).json()["name"] == "r3"
                assert (await client.get("/v1/rankers/none")).status_code == 404

    play(story)


@pytest.mark.parametrize("how", ["down", "mute"])
def test_when_the_owner_does_not_answer_the_standby_does(how: str) -> None:
    async def story() -> None:
        async with cluster() as made:
            owner = made.owner("r0", "a")
            getattr(made.network, how).add(owner)
            asked = next(name for name in "abc" if name != owner)
            for i in range(6):
                told = await made.post(asked, "/r0/rank", {"decision_id": f"d{i}"})
                assert told.status_code == 200, told.text
                body = {"decision_id": f"d{i}", "relevance": [1.0]}
                told = await made.post(asked, "/r0/feedback", body)
                assert told.status_code == 200, told.text
            verdict = await verify(made.store, "r0")
            assert verdict.holds, verdict.problems
            rows = await made.store.read("r0", after=0, limit=100)
            assert [row.kind for row in rows].count("decision") == 6
            assert [row.kind for row in rows].count("feedback") == 6

    play(story)


def test_what_may_have_been_done_is_not_done_again() -> None:
    async def story() -> None:
        async with cluster() as made:
            owner = made.owner("r0", "a")
            made.network.mute.add(owner)
            asked = next(name for name in "abc" if name != owner)
            told = await made.post(asked, "/r0/items", {"add": ["sing"], "retire": []})
            assert told.status_code == 503
            assert "did not answer: try again" in told.json()["error"]["message"]
            rows = await made.store.read("r0", after=0, limit=100)
            assert [row.kind for row in rows].count("items") == 1

    play(story)


def test_a_replica_that_is_gone_loses_its_rankers_and_gets_them_back() -> None:
    async def story() -> None:
        async with cluster() as made:
            before = {name: made.owner(name, "a") for name in NAMES}
            gone = before["r0"]
            here = next(name for name in "abc" if name != gone)
            made.network.down.add(gone)
            made.clock.seconds += 6.0  # past its lease
            await made.tick()
            for name in NAMES:
                assert made.owner(name, here) != gone
                if before[name] != gone:
                    assert made.owner(name, here) == before[name]
            # It comes back, and before it has announced itself again it writes nothing.
            stale = made.engines[gone].housekeeping
            with contextlib.suppress(Exception):
                await stale.snapshot(made.engines[gone].rankers["r0"])
            assert await made.store.snapshots("r0") == []
            made.network.down.clear()
            await made.tick()
            made.clock.seconds += 1.0
            await made.tick()
            assert {name: made.owner(name, here) for name in NAMES} == before

    play(story)


def test_redirects() -> None:
    async def story() -> None:
        async with cluster(forward=False) as made:
            owner = made.owner("r0", "a")
            asked = next(name for name in "abc" if name != owner)
            told = await made.post(asked, "/r0/rank", {})
            assert told.status_code == 307
            assert told.headers["location"] == f"{ADDRESSES[owner]}/v1/rankers/r0/rank"
            assert (await made.post(owner, "/r0/rank", {})).status_code == 200

    play(story)


def test_only_the_owner_expires_lists() -> None:
    async def story() -> None:
        async with cluster() as made:
            owner = made.owner("r0", "a")
            await made.post(owner, "/r0/rank", {"decision_id": "d"})
            await made.post(owner, "/r0/activate", {"decision_id": "d"})
            made.clock.seconds += 30.0
            standby = next(
                name for name, engine in made.engines.items() if name != owner and "r0" in engine.rankers
            )
            for engine in made.engines.values():
                await engine.housekeeping.hold_lease()
            for engine in made.engines.values():
                await engine.housekeeping.hold_lease()
            await made.engines[standby].housekeeping.tick()
            kinds = [row.kind for row in await made.store.read("r0", after=0, limit=100)]
            assert "expire" not in kinds
            for _ in range(3):
                await made.engines[owner].housekeeping.tick()
            kinds = [row.kind for row in await made.store.read("r0", after=0, limit=100)]
            assert kinds.count("expire") == 1

    play(story)
