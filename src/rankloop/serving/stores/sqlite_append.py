"""How rows are numbered, stamped, linked and inserted in the SQLite store; and what is known without the disk."""

from __future__ import annotations

from typing import Any

import apsw

from rankloop.serving.failpoints import reach
from rankloop.serving.log.digests import beginning, content, link
from rankloop.serving.log.records import NUMBER_OF_KIND, Entry, Kind, Row
from rankloop.serving.log_clock import next_time
from rankloop.serving.stores.contract import Appended, Damaged, Head, Missing
from rankloop.serving.stores.sqlite_schema import KIND_BITS, SEQ, SEQ_BITS, read_log

_ROW = "(?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT = "INSERT INTO log (id, topic, at, event, decision, digest, body, link) VALUES "
# By rows: few statements, since each gives up the interpreter and waits for it. The same text every time, whose hash
# finds the prepared statement.
_STATEMENTS = {size: _INSERT + ", ".join([_ROW] * size) for size in (64, 32, 16, 8, 4, 2, 1)}


class Known:
    """The number of each ranker, its newest row and its clock. The thread that writes changes it, with each commit."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.newest: dict[str, tuple[int, int, bytes]] = {}  # seq, time and link
        self.ahead: dict[str, int] = {}  # how far each log's clock is ahead of the given one

    def head(self, ranker: str) -> Head:
        """The newest row of a ranker."""
        seq, _, newest = self.newest.get(ranker, (0, 0, b""))
        return Head(seq, newest)

    def time(self, ranker: str, at: int) -> int:
        """The time that a row would get now."""
        last = self.newest.get(ranker, (0, 0, b""))[1]
        time, self.ahead[ranker] = next_time(at, last=last, ahead=self.ahead.get(ranker, 0))
        return time

    def rename(self, old: str, new: str) -> None:
        """A ranker has another name."""
        ids = dict(self.ids)  # anew, and not in place: others may be going through it
        ids[new] = ids.pop(old)
        self.ids = ids
        self.newest[new] = self.newest.pop(old)
        self.ahead[new] = self.ahead.pop(old, 0)


class Batch:
    """Rows of one transaction. What it numbers counts once it is kept."""

    def __init__(self, writer: apsw.Connection, known: Known, *, timeline: str, at: int) -> None:
        self._writer = writer
        self._known = known
        self._timeline = timeline
        self._at = at
        self._ids: dict[str, int] = {}
        self._newest: dict[str, tuple[int, int, bytes]] = {}
        self._ahead: dict[str, int] = {}

    def insert(self, entries: list[Entry]) -> list[Appended]:
        """Insert what is not there yet, and find what is."""
        self._writer.execute("SAVEPOINT batch")
        try:
            return self._insert_all(entries)
        except apsw.ConstraintError:
            # Something is there already: go back, without letting go of the lock, and find out what, one by one.
            self._writer.execute("ROLLBACK TO batch")
            self._ids, self._newest, self._ahead = {}, {}, {}
            return [self._insert_one(entry) for entry in entries]

    def keep(self) -> dict[int, Head]:
        """It was committed; the newest row of each ranker in it, by number."""
        if self._ids:
            self._known.ids = self._known.ids | self._ids
        self._known.newest.update(self._newest)
        self._known.ahead.update(self._ahead)
        return {self._known.ids[name]: Head(seq, link) for name, (seq, _, link) in self._newest.items()}

    def _insert_one(self, entry: Entry) -> Appended:
        number = self._ids.get(entry.ranker) or self._known.ids.get(entry.ranker)
        there = None
        if number is not None:
            first = beginning(self._timeline, entry.ranker)
            there = find(self._writer, number, entry.kind, entry.event_id, first=first)
        return self._insert_all([entry])[0] if there is None else Appended(there, False)

    def _insert_all(self, entries: list[Entry]) -> list[Appended]:
        values: list[Any] = []
        appended = []
        name = None
        for entry in entries:
            if entry.ranker != name:  # what follows is looked up once for rows of one ranker in a row
                name = entry.ranker
                ranker = self._number(entry)
                seq, time, before = self._newest.get(name) or self._known.newest[name]
                ahead = self._ahead.get(name, self._known.ahead.get(name, 0))
            kind, event_id, body = entry.kind, entry.event_id, entry.body
            digest, decision = entry.digest, entry.decision
            seq += 1
            time, ahead = next_time(self._at, last=time, ahead=ahead)
            linked = link(before, seq, time, content(entry))
            topic = ranker << KIND_BITS | NUMBER_OF_KIND[kind]
            values += (ranker << SEQ_BITS | seq, topic, time, event_id, decision, digest, body, linked)
            row = Row(seq, time, kind, event_id, body, digest, decision, linked, before)
            appended.append(Appended(row, True))
            before = linked
            self._newest[name], self._ahead[name] = (seq, time, linked), ahead
        self._execute(values, len(entries))
        return appended

    def _number(self, entry: Entry) -> int:
        number = self._ids.get(entry.ranker) or self._known.ids.get(entry.ranker)
        if number:
            return number
        if number == 0:
            raise Damaged(f"the number of the ranker {entry.ranker!r} is damaged")
        if entry.kind != "config":
            raise Missing(f"there is no ranker {entry.ranker!r}")
        self._writer.execute("INSERT INTO ranker (name) VALUES (?)", (entry.ranker,))
        number = self._ids[entry.ranker] = self._writer.last_insert_rowid()
        self._newest[entry.ranker] = (0, 0, beginning(self._timeline, entry.ranker))
        return number

    def _execute(self, values: list[Any], n: int) -> None:
        first, width = 0, len(values) // n
        for size, statement in _STATEMENTS.items():
            while n - first >= size:
                part = values[first * width : (first + size) * width]
                if first + size == n:
                    reach("mid-batch")
                self._writer.execute(statement, part)
                first += size


def find(connection: apsw.Connection, number: int, kind: Kind, event_id: str, *, first: bytes) -> Row | None:
    """The row of this kind and id of the ranker of this number; `first` is the link before its row 1."""
    topic = number << KIND_BITS | NUMBER_OF_KIND[kind]
    found = read_log(connection, "topic = ? AND event = ?", (topic, event_id), first)
    return found[0] if found else None


def newest(connection: apsw.Connection, number: int, *, first: bytes) -> tuple[int, int, bytes]:
    """The number, time and link of the newest row of a ranker."""
    base = number << SEQ_BITS
    sql = "SELECT id, at, link FROM log WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1"
    for found, at, linked in connection.execute(sql, (base, base | SEQ)):
        return found & SEQ, at, linked
    return 0, 0, first
