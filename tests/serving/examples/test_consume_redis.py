"""A stream of Redis as a source of feedback: nothing is lost, and nothing is learnt twice, whenever a consumer dies."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from examples import consume_redis
from examples.consume_redis import Consumer
from rankloop.serving.admission import RequestError
from rankloop.serving.api import FeedbackRequest
from rankloop.serving.client import RankloopError
from rankloop.serving.engine import Engine
from tests.serving.memory_store import MemoryStore
from tests.serving.service import Clock, adds_up, create, rank

PROGRAM = shutil.which("redis-server")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs the program redis-server")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[redis.Redis]:
    socket = tmp_path / "redis.sock"
    arguments = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen([PROGRAM or "", *arguments], stdout=subprocess.DEVNULL)
    try:
        connection = redis.Redis(unix_socket_path=str(socket))
        for _ in range(1_000):
            try:
                connection.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.02)
        yield connection
        connection.close()
    finally:
        process.kill()
        process.wait()


class Died(BaseException):
    """Stands for the end of a process: nobody catches it, and nothing is tidied up."""


class Service:
    """A service without HTTP. A consumer may be made to die before, or right after, the feedback is durable."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.engine = Engine(MemoryStore(), housekeeping=False, clock=Clock())
        self.calls = 0
        self.dies: str | None = None

    def run(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(coroutine)

    def feedback_many(self, name: str, many: Any) -> Any:
        self.calls += 1
        if self.dies == "before":
            raise Died
        try:
            answers = self.run(self.engine.feedback(name, msgspec.convert(many, list[FeedbackRequest])))
        except msgspec.ValidationError as error:
            raise RankloopError(422, "invalid", str(error), None) from None
        except RequestError as error:
            raise RankloopError(error.status, error.code, error.message, error.field) from None
        if self.dies == "after":
            raise Died
        return answers

    def close(self) -> None:
        self.run(self.engine.close())
        self._loop.close()


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    made.run(made.engine.open())
    made.run(create(made.engine, algorithm="FTRLPBM", parameters={"n_positions": 2}))
    yield made
    made.close()


def publish(server: redis.Redis, service: Service, first: int, n: int) -> None:
    for i in range(first, first + n):
        service.run(rank(service.engine, f"d{i}"))
        server.xadd("clicks", {"feedback": json.dumps({"decision_id": f"d{i}", "clicks": [i % 2, 0]})})


def learnt(service: Service) -> int:
    return service.engine.rankers["unwind"].fold.counts.learnt


def pending(server: redis.Redis) -> int:
    told: Any = server.xpending("clicks", "rankloop")
    return int(told["pending"])


def consume(server: redis.Redis, service: Any, name: str = "one") -> tuple[int, int]:
    consumer = Consumer(service, "unwind", server, "clicks", "rankloop", name)
    consumer.send_new()
    return consumer.taken, consumer.refused


def test_a_consumer_that_dies_loses_nothing_and_nothing_is_learnt_twice(
    server: redis.Redis, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(server, service, 0, 20)
    service.dies = "before"
    with pytest.raises(Died):
        consume(server, service)
    assert (learnt(service), pending(server)) == (0, 20)
    service.dies = "after"
    with pytest.raises(Died):
        consume(server, service)  # reads again what it had read
    assert (learnt(service), pending(server)) == (20, 20)
    service.dies = None
    assert consume(server, service) == (20, 0)
    assert (learnt(service), pending(server)) == (20, 0)

    publish(server, service, 20, 20)
    service.dies = "before"
    with pytest.raises(Died):
        consume(server, service, "gone")
    service.dies = None
    assert consume(server, service) == (0, 0)  # it may come back
    assert pending(server) == 20
    monkeypatch.setattr(consume_redis, "STALE", 0)
    assert consume(server, service) == (20, 0)
    assert (learnt(service), pending(server)) == (40, 0)
    service.run(adds_up(service.engine))


def test_what_is_refused_is_kept_apart_with_the_reason(server: redis.Redis, service: Service) -> None:
    publish(server, service, 0, 3)
    server.xadd("clicks", {"feedback": "{"})
    server.xadd("clicks", {"other": "field"})
    server.xadd("clicks", {"feedback": json.dumps({"decision_id": "d0", "clicks": [1, 0, 1, 0]})})
    assert consume(server, service) == (3, 3)
    kept: Any = server.xrange("clicks:refused")
    assert [fields[b"reason"].decode()[:20] for _, fields in kept] == [
        "Expecting property n",
        "it has no field feed",
        "clicks must have 2 v",
    ]
    assert pending(server) == 0
    assert learnt(service) == 3


def test_it_goes_on_with_what_comes(server: redis.Redis, service: Service) -> None:
    consumer = Consumer(service, "unwind", server, "clicks", "rankloop", "one")  # type: ignore[arg-type]
    publish(server, service, 0, 2)
    consumer.send_new()
    publish(server, service, 2, 2)
    service.dies = "after"
    with pytest.raises(Died):
        consumer.follow()
    assert learnt(service) == 4
