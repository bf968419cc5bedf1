"""Feedback from a Redis stream, sent to a service: acknowledged to Redis once the service has it on disk.

A consumer that dies leaves what it had read pending. It reads that again when it comes back under the same name, and
others take it over after a while. So nothing is lost; what is sent twice counts once, by its IDs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from rankloop.extras import require
from rankloop.serving.feeding import Fed, Sender, send_bodies

BATCH = 500
FIELD = "feedback"
_BLOCK_SECONDS = 1.0
_STALE_SECONDS = 60.0  # after which the entries of a consumer that is gone are taken over


class StreamPlace(NamedTuple):
    """A stream of Redis, and who reads it: the group, and the name of one consumer in it."""

    stream: str
    group: str
    consumer: str


class Consumer:
    """Sends the entries of one stream to one ranker.

    Each entry has a field `feedback`, a JSON object as `POST .../feedback` takes it. What the service refuses goes to
    the stream `STREAM:refused`, with the reason, and is acknowledged.
    """

    def __init__(
        self,
        client: Sender,
        ranker: str,
        redis: Any,
        place: StreamPlace,
        *,
        tell: Callable[[str], object] = lambda problem: None,
        stale_seconds: float = _STALE_SECONDS,
    ) -> None:
        self._client = client
        self._ranker = ranker
        self._redis = redis
        self._place = place
        self._tell = tell
        self._stale = round(1000 * stale_seconds)

    def begin(self) -> None:
        """Make the group, at the first entry of the stream, where it is not there."""
        from redis.exceptions import ResponseError

        try:
            self._redis.xgroup_create(self._place.stream, self._place.group, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    def send_new(self) -> Fed:
        """Send what this consumer had read and not acknowledged, what others left behind, and what is new."""
        self.begin()
        taken = refused = 0
        for read in (self._own, self._left_behind, lambda: self._new(block=None)):
            while entries := read():
                fed = self._send(entries)
                taken, refused = taken + fed.taken, refused + fed.refused
        return Fed(taken, refused)

    def follow(self, *, stop: Callable[[], bool] = lambda: False) -> Fed:
        """Send what is there and whatever comes, until `stop`."""
        taken, refused = self.send_new()
        while not stop():
            entries = self._new(block=round(1000 * _BLOCK_SECONDS)) or self._left_behind()
            if entries:
                fed = self._send(entries)
                taken, refused = taken + fed.taken, refused + fed.refused
        return Fed(taken, refused)

    def _own(self) -> list[tuple[Any, Any]]:
        return self._read("0", None)

    def _new(self, *, block: int | None) -> list[tuple[Any, Any]]:
        return self._read(">", block)

    def _read(self, after: str, block: int | None) -> list[tuple[Any, Any]]:
        place = self._place
        found = self._redis.xreadgroup(
            place.group, place.consumer, {place.stream: after}, count=BATCH, block=block
        )
        if not found:
            return []
        # By stream: a list of pairs, or with newer clients a mapping to lists of pages.
        entries: list[Any] = next(iter(found.values()))[0] if isinstance(found, dict) else found[0][1]
        return [(entry, fields) for entry, fields in entries if self._is_there(entry, fields)]

    def _is_there(self, entry: Any, fields: Any) -> bool:
        """Whether an entry was not deleted meanwhile; such a one is acknowledged, as nothing of it is left."""
        if fields:
            return True
        self._redis.xack(self._place.stream, self._place.group, entry)
        return False

    def _left_behind(self) -> list[tuple[Any, Any]]:
        place = self._place
        found = self._redis.xautoclaim(
            place.stream, place.group, place.consumer, min_idle_time=self._stale, count=BATCH
        )
        return [(entry, fields) for entry, fields in found[1] if fields]

    def _send(self, entries: list[tuple[Any, Any]]) -> Fed:
        reasons: dict[Any, str] = {}
        bodies = []
        for entry, fields in entries:
            try:
                bodies.append((entry, _body(fields)))
            except ValueError as error:
                reasons[entry] = str(error)
        taken = send_bodies(self._client, self._ranker, bodies, reasons.__setitem__)
        place = self._place
        for entry, reason in reasons.items():
            self._tell(f"entry {_text(entry)} of {place.stream} is left out: {reason}")
            fields = dict(next(there for one, there in entries if one == entry))
            self._redis.xadd(f"{place.stream}:refused", {**fields, "entry": entry, "reason": reason})
        self._redis.xack(place.stream, place.group, *(entry for entry, _ in entries))
        return Fed(taken, len(reasons))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _body(fields: dict[Any, Any]) -> dict[str, Any]:
    told = {_text(name): value for name, value in fields.items()}.get(FIELD)
    if told is None:
        raise ValueError(f"it has no field {FIELD}")
    body = json.loads(told)
    if not isinstance(body, dict):
        raise ValueError("it is not a JSON object")
    return body


def connect(url: str) -> Any:
    """A connection to a server of Redis."""
    require("redis", extra="redis", for_="reading a stream of Redis")
    import redis

    return redis.Redis.from_url(url)
