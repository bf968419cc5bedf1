"""Feedback from a stream of Redis, sent to a service: acknowledged to Redis once the service has it on disk.

    pip install redis
    python examples/consume_redis.py clicks --to front --follow

An entry has a field `feedback` with what `POST .../feedback` takes: XADD clicks * feedback '{"decision_id": ...}'. A
consumer that dies leaves what it had read pending: it reads that again when it comes back under its name, and others of
the group take it over after a minute. So nothing is lost, and what is sent twice counts once, by its IDs. What the
service refuses goes to the stream STREAM:refused, with the reason.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import redis

from rankloop import Client
from rankloop.serving.client import RankloopError

BATCH = 500
BLOCK = 1_000  # milliseconds to wait for new entries
STALE = 60_000  # milliseconds after which the entries of a consumer that is gone are taken over
PAUSE = 0.5  # seconds before a busy service is asked again

Entries = list[tuple[Any, Any]]


class Consumer:
    """Sends the entries of one stream to one ranker."""

    def __init__(self, client: Client, ranker: str, server: Any, stream: str, group: str, name: str) -> None:
        self._client, self._ranker, self._redis = client, ranker, server
        self._stream, self._group, self._name = stream, group, name
        self.taken = self.refused = 0
        try:
            server.xgroup_create(stream, group, id="0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):  # it is there already
                raise

    def send_new(self) -> None:
        """Send what this consumer had read and not acknowledged, what others left behind, and what is new."""
        sources: tuple[Callable[[], Entries], ...] = (self._own, self._left_behind, self._new)
        for read in sources:
            while entries := read():
                self._send(entries)

    def follow(self) -> None:
        """The same, then whatever comes."""
        self.send_new()
        while True:
            self._send(self._new(BLOCK) or self._left_behind())

    def _own(self) -> Entries:
        return self._read("0", None)

    def _new(self, block: int | None = None) -> Entries:
        return self._read(">", block)

    def _read(self, after: str, block: int | None) -> Entries:
        read = self._redis.xreadgroup(
            self._group, self._name, {self._stream: after}, count=BATCH, block=block
        )
        if not read:
            return []
        # By stream: a list of pairs, or with newer clients a mapping to lists of pages.
        entries: Entries = next(iter(read.values()))[0] if isinstance(read, dict) else read[0][1]
        for gone in [entry for entry, fields in entries if not fields]:  # deleted meanwhile
            self._redis.xack(self._stream, self._group, gone)
        return [(entry, fields) for entry, fields in entries if fields]

    def _left_behind(self) -> Entries:
        claimed = self._redis.xautoclaim(
            self._stream, self._group, self._name, min_idle_time=STALE, count=BATCH
        )
        return [(entry, fields) for entry, fields in claimed[1] if fields]

    def _send(self, entries: Entries) -> None:
        if not entries:
            return
        bodies: Entries = []
        for one in entries:
            try:
                bodies.append((one, body_of(one[1])))
            except ValueError as error:
                self._refuse(one, str(error))
        self._send_bodies(bodies)
        self._redis.xack(self._stream, self._group, *(entry for entry, _ in entries))

    def _send_bodies(self, bodies: Entries) -> None:
        """Send them together, or in halves where something is refused, until the service has all of them."""
        while bodies:
            try:
                answers = self._client.feedback_many(self._ranker, [body for _, body in bodies])
            except RankloopError as error:
                if error.status not in (400, 413, 422) and error.field != "decision_id":
                    raise
                if len(bodies) == 1:
                    self._refuse(bodies[0][0], error.message)
                else:
                    middle = len(bodies) // 2
                    self._send_bodies(bodies[:middle])
                    self._send_bodies(bodies[middle:])
                return
            # What the service was too busy for is not written: it is sent again.
            busy = [one for one, answer in zip(bodies, answers, strict=True) if answer.status == "busy"]
            self.taken += len(bodies) - len(busy)
            bodies = busy
            if busy:
                time.sleep(PAUSE)

    def _refuse(self, entry: tuple[Any, Any], reason: str) -> None:
        number, fields = entry
        self.refused += 1
        print(f"entry {number!r} of {self._stream} is left out: {reason}", file=sys.stderr)
        self._redis.xadd(f"{self._stream}:refused", {**fields, "entry": number, "reason": reason})


def body_of(fields: dict[Any, Any]) -> dict[str, Any]:
    text = fields.get(b"feedback")
    if text is None:
        raise ValueError("it has no field feedback")
    body = json.loads(text)
    if not isinstance(body, dict):
        raise ValueError("it is no JSON object")
    return body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("stream")
    parser.add_argument("--to", required=True, metavar="RANKER")
    parser.add_argument("--redis", default=os.environ.get("RANKLOOP_REDIS", "redis://127.0.0.1:6379/0"))
    parser.add_argument("--group", default="rankloop", help="of consumers that share the stream")
    parser.add_argument("--name", default=platform.node() or "rankloop", help="another one for each consumer")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--key", default=os.environ.get("RANKLOOP_KEY"), help="an API key of a writer")
    parser.add_argument("--follow", action="store_true", help="go on with whatever comes, until Ctrl-C")
    options = parser.parse_args()
    server = redis.Redis.from_url(options.redis)
    retries = (
        1_000 if options.follow else 5
    )  # the client waits longer and longer, or as long as it is told to
    with Client(options.url, key=options.key, retries=retries) as client:
        try:
            consumer = Consumer(client, options.to, server, options.stream, options.group, options.name)
            consumer.follow() if options.follow else consumer.send_new()
        except (RankloopError, redis.RedisError) as error:
            sys.exit(f"stopped; what was not acknowledged is read again: {error}")
        print(f"{consumer.taken:,} entries taken, {consumer.refused:,} left out")


if __name__ == "__main__":
    main()
