"""Feedback from a file of JSON lines that something else appends to, sent to a service.

How far it has come is kept in a file of its own, written after the service has acknowledged, so that a crash repeats
lines and loses none; repeated lines count once, by their IDs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from rankloop.extras import write_whole
from rankloop.serving.client.errors import RankloopError

Label = TypeVar("Label")
_BATCH = 500
_PAUSE = 0.5  # seconds between two looks at a file that has nothing new


class Sender(Protocol):
    """What of a client is used."""

    def feedback_many(self, name: str, many: Any) -> Any:
        """Report feedback on several lists."""


class Place(NamedTuple):
    """How far a file was sent: the number of the file in its file system, bytes, and lines."""

    inode: int = 0
    offset: int = 0
    line: int = 0


class Fed(NamedTuple):
    """What came of it: lines that the service took, and lines that it refused."""

    taken: int
    refused: int


class Feed:
    """Sends the lines of one file to one ranker."""

    def __init__(
        self, client: Sender, ranker: str, path: Path, *, tell: Callable[[str], object] = lambda problem: None
    ) -> None:
        self._client = client
        self._ranker = ranker
        self._path = path
        self._tell = tell
        self._kept = path.with_name(f"{path.name}.sent")
        self.place = self._read_place()

    def _read_place(self) -> Place:
        try:
            # Files of an older version do not name the ranker.
            *place, ranker = (*self._kept.read_text().split(), self._ranker)[:4]
            found = Place(*map(int, place))
        except FileNotFoundError:
            return Place()
        except (ValueError, TypeError):
            raise ValueError(
                f"{self._kept} does not say how far {self._path} was sent: delete it to begin anew"
            ) from None
        if ranker != self._ranker:
            raise ValueError(
                f"{self._kept} says how far {self._path} was sent to {ranker!r}: "
                f"delete it to send all to {self._ranker!r}"
            )
        return found

    def send_new(self) -> Fed:
        """Send what is there and was not sent yet, whole lines only."""
        taken = refused = 0
        while True:
            lines, place = self._read_lines()
            if not lines:
                return Fed(taken, refused)
            good = send_bodies(self._client, self._ranker, self._decoded(lines), self._left_out)
            taken, refused = taken + good, refused + len(lines) - good
            told = " ".join(map(str, (*place, self._ranker)))
            write_whole(self._kept, lambda part, told=told: part.write_text(told))  # type: ignore[misc]
            self.place = place

    def follow(self, *, stop: Callable[[], bool] = lambda: False) -> Fed:
        """Send what is there and whatever comes, until `stop`."""
        taken = refused = 0
        while True:
            fed = self.send_new()
            taken, refused = taken + fed.taken, refused + fed.refused
            if stop():
                return Fed(taken, refused)
            time.sleep(_PAUSE)

    def _read_lines(self) -> tuple[list[tuple[int, bytes]], Place]:
        """The next whole lines, and the place after them; first those of a file that has another name by now."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return [], self.place
        if found.st_ino == self.place.inode and found.st_size >= self.place.offset:
            return _lines(self._path, self.place)
        renamed = self._renamed()
        if renamed is not None:
            lines, place = _lines(renamed, self.place)
            if lines:
                return lines, place
        return _lines(self._path, Place(found.st_ino))

    def _renamed(self) -> Path | None:
        for other in self._path.parent.iterdir():
            if other != self._path and other.is_file() and other.stat().st_ino == self.place.inode:
                return other
        return None

    def _left_out(self, number: int, reason: str) -> None:
        self._tell(f"line {number} of {self._path} is left out: {reason}")

    def _decoded(self, lines: list[tuple[int, bytes]]) -> list[tuple[int, Any]]:
        found = []
        for number, line in lines:
            try:
                body = json.loads(line)
                if not isinstance(body, dict):
                    raise ValueError("it is not a JSON object")
                found.append((number, body))
            except ValueError as error:
                self._left_out(number, str(error))
        return found


def send_bodies(
    client: Sender, ranker: str, bodies: list[tuple[Label, Any]], refused: Callable[[Label, str], object]
) -> int:
    """Send feedback together, or in halves where something of it is refused, until the service has all of it."""
    if not bodies:
        return 0
    try:
        answers = client.feedback_many(ranker, [body for _, body in bodies])
    except RankloopError as error:
        if error.status not in (400, 413, 422):
            raise
        if len(bodies) == 1:
            refused(bodies[0][0], error.message)
            return 0
        middle = len(bodies) // 2
        first = send_bodies(client, ranker, bodies[:middle], refused)
        return first + send_bodies(client, ranker, bodies[middle:], refused)
    # What the service was too busy for is not written: it is sent again until it is.
    busy = [one for one, answer in zip(bodies, answers, strict=True) if answer.status == "busy"]
    if busy:
        time.sleep(_PAUSE)
    return len(bodies) - len(busy) + send_bodies(client, ranker, busy, refused)


def _lines(path: Path, place: Place) -> tuple[list[tuple[int, bytes]], Place]:
    lines: list[tuple[int, bytes]] = []
    with path.open("rb") as file:
        file.seek(place.offset)
        for line in file:
            if not line.endswith(b"\n") or len(lines) == _BATCH:
                break  # whoever writes it has not finished the line
            place = Place(place.inode, place.offset + len(line), place.line + 1)
            lines.append((place.line, line))
    return lines, place
