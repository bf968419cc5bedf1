"""Feedback from a file of JSON lines that something else appends to, sent to a service.

    python examples/feed_file.py clicks.jsonl --to front --follow

A line is what `POST .../feedback` takes: {"decision_id": "7f", "clicks": [0, 1]}. How far it came is kept in FILE.sent,
written once the service has acknowledged, so that a crash repeats lines and loses none; repeated lines count once, by
their IDs. A line that is refused is told and left out. The file may get another name and begin anew, as logs do.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from rankloop import Client
from rankloop.serving.client import RankloopError

BATCH = 500
PAUSE = (
    0.5  # seconds between two looks at a file that has nothing new, and before a busy service is asked again
)


class Place(NamedTuple):
    """How far a file was sent: the number of the file in its file system, bytes, and lines."""

    inode: int = 0
    offset: int = 0
    line: int = 0


class Feed:
    """Sends the lines of one file to one ranker."""

    def __init__(self, client: Client, ranker: str, path: Path) -> None:
        self._client, self._ranker, self._path = client, ranker, path
        self._kept = Path(f"{path}.sent")
        self.taken = self.refused = 0
        self.place = Place()
        if self._kept.exists():
            *place, to = self._kept.read_text().split() or [""]
            if len(place) != 3 or not all(one.isdecimal() for one in place):
                raise ValueError(
                    f"{self._kept} does not say how far {path} was sent: delete it to begin anew"
                )
            if to != ranker:
                raise ValueError(f"{path} was sent to {to!r}: delete {self._kept} to send all to {ranker!r}")
            self.place = Place(*map(int, place))

    def send_new(self) -> None:
        """Send what is there and was not sent yet, whole lines only."""
        while True:
            lines, place = self._next_lines()
            if not lines:
                return
            self._send(self._read(lines))
            part = Path(f"{self._kept}.part")
            part.write_text(" ".join(map(str, (*place, self._ranker))))
            part.replace(self._kept)
            self.place = place

    def _next_lines(self) -> tuple[list[tuple[int, bytes]], Place]:
        """The next lines and the place after them; first those of a file that has another name by now."""
        if not self._path.exists():
            return [], self.place
        now = self._path.stat()
        if now.st_ino == self.place.inode and now.st_size >= self.place.offset:
            return read_lines(self._path, self.place)
        for other in self._path.parent.iterdir():
            if other.is_file() and other != self._path and other.stat().st_ino == self.place.inode:
                lines, place = read_lines(other, self.place)
                if lines:
                    return lines, place
        return read_lines(self._path, Place(now.st_ino))

    def _read(self, lines: list[tuple[int, bytes]]) -> list[tuple[int, Any]]:
        bodies = []
        for number, line in lines:
            try:
                body = json.loads(line)
                if not isinstance(body, dict):
                    raise ValueError("it is no JSON object")
                bodies.append((number, body))
            except ValueError as error:
                self._leave_out(number, str(error))
        return bodies

    def _leave_out(self, number: int, reason: str) -> None:
        self.refused += 1
        print(f"line {number} of {self._path} is left out: {reason}", file=sys.stderr)

    def _send(self, bodies: list[tuple[int, Any]]) -> None:
        """Send them together, or in halves where something is refused, until the service has all of them."""
        while bodies:
            try:
                answers = self._client.feedback_many(self._ranker, [body for _, body in bodies])
            except RankloopError as error:
                if error.status not in (400, 413, 422) and error.field != "decision_id":
                    raise
                if len(bodies) == 1:
                    self._leave_out(bodies[0][0], error.message)
                else:
                    middle = len(bodies) // 2
                    self._send(bodies[:middle])
                    self._send(bodies[middle:])
                return
            # What the service was too busy for is not written: it is sent again.
            busy = [one for one, answer in zip(bodies, answers, strict=True) if answer.status == "busy"]
            self.taken += len(bodies) - len(busy)
            bodies = busy
            if busy:
                time.sleep(PAUSE)


def read_lines(path: Path, place: Place) -> tuple[list[tuple[int, bytes]], Place]:
    lines: list[tuple[int, bytes]] = []
    with path.open("rb") as file:
        file.seek(place.offset)
        for line in file:
            if not line.endswith(b"\n") or len(lines) == BATCH:
                break  # whoever writes it has not finished the line
            place = Place(place.inode, place.offset + len(line), place.line + 1)
            lines.append((place.line, line))
    return lines, place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path)
    parser.add_argument("--to", required=True, metavar="RANKER")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--key", default=os.environ.get("RANKLOOP_KEY"), help="an API key of a writer")
    parser.add_argument("--follow", action="store_true", help="go on with whatever is appended, until Ctrl-C")
    options = parser.parse_args()
    if not options.follow and not options.file.exists():
        parser.error(f"there is no file {options.file}")
    retries = (
        1_000 if options.follow else 5
    )  # the client waits longer and longer, or as long as it is told to
    with Client(options.url, key=options.key, retries=retries) as client:
        try:
            feed = Feed(client, options.to, options.file)
            feed.send_new()
            while options.follow:
                time.sleep(PAUSE)
                feed.send_new()
        except (ValueError, RankloopError) as error:
            sys.exit(f"stopped, and goes on from there when it is started again: {error}")
        print(f"{feed.taken:,} lines taken, {feed.refused:,} left out; line {feed.place.line:,} was the last")


if __name__ == "__main__":
    main()
