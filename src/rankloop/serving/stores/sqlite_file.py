"""The file of an SQLite store: who owns it, its tables and their format, how rows get in, and how it stays small.

The functions here work on a connection, within whatever transaction it is in; the threads and the transactions are
`SQLiteStore`'s.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import msgspec

from rankloop.serving.clock import next_time
from rankloop.serving.failpoints import reach
from rankloop.serving.log.digests import SIZE, beginning, content, link
from rankloop.serving.log.records import KINDS, NUMBER_OF_KIND, Entry, Kind, Row
from rankloop.serving.stores import contract
from rankloop.serving.stores.segments import MANY, ClosedHistory, Segment, in_order, rows_there

_OPEN_SECONDS = 5.0  # that opening waits for another process
_LEAST_FREE = 4_000_000  # bytes on the disk
# SQLite's WAL-reset bug: since WAL was introduced in 3.7.0, two connections that write and checkpoint at once could
# corrupt the file, rarely. Fixed in 3.51.3, and in 3.50.7 and 3.44.6 for those series.
_FIXED = (3, 51, 3)
_FIXED_IN_SERIES = {(3, 50): 7, (3, 44): 6}


def check_version(version: str) -> None:
    """`StoreError` where this version of SQLite is known to corrupt files that are written as ours is.

    >>> check_version("3.54.1"), check_version("3.50.7"), check_version("3.44.6")
    (None, None, None)
    >>> check_version("3.51.2")
    Traceback (most recent call last):
    ...
    rankloop.serving.stores.contract.StoreError: SQLite 3.51.2 can corrupt ...
    """
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    least = _FIXED_IN_SERIES.get((major, minor))
    if (major, minor, patch) >= _FIXED or (least is not None and patch >= least):
        return
    raise contract.StoreError(
        f"SQLite {version} can corrupt a file that is written while rows are moved within it (the WAL-reset bug, "
        "fixed in 3.51.3, 3.50.7 and 3.44.6): install a newer apsw"
    )


def make_private(path: Path) -> None:
    """The file is there, and only its owner may read and write it; SQLite gives its companions the same rights."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").chmod(0o600)


def connect(path: Path, vfs: str | None, *, read_only: bool) -> apsw.Connection:
    """A connection: WAL, and durable with every commit."""
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if read_only else apsw.SQLITE_OPEN_CREATE)
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
    connection.set_busy_timeout(round(1000 * _OPEN_SECONDS))
    if read_only:
        connection.execute("PRAGMA query_only = ON")
        return connection
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a new file; another one stays as it is
    ((mode,),) = connection.execute("PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise ValueError(f"{path} cannot be written in WAL mode, SQLite offers {mode!r}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def begin(writer: apsw.Connection, path: Path) -> None:
    """Take the write lock, in a thread; where another process holds it, wait as long as the connection is set to."""
    try:
        writer.execute("BEGIN IMMEDIATE")
    except apsw.BusyError:
        raise contract.StoreError(f"another process holds the write lock of {path}") from None


def take_lease(writer: apsw.Connection, holder: str, *, at: float) -> int:
    """Within a transaction: the epoch of the holder, a larger one where another had it before."""
    found = list(writer.execute("SELECT holder, epoch FROM lease"))
    held_by, epoch = found[0] if found else ("", 0)
    if holder != held_by:
        epoch += 1
    writer.execute("INSERT OR REPLACE INTO lease VALUES (1, ?, ?, ?)", (holder, epoch, at))
    return int(epoch)


@contextlib.contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """What a reader meets, as an error of a store."""
    try:
        yield
    except apsw.BusyError:
        raise contract.StoreError(f"another process has locked {path}") from None


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """What a writer meets, as an error of a store."""
    try:
        yield
    except apsw.FullError as error:
        raise contract.Full(f"no room to write to {path}: {error}") from error
    except (apsw.IOError, apsw.CorruptError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise contract.Broken(f"could not write to {path}: {error}") from error


def has_room(folder: Path) -> bool:
    """Whether the disk has room for more than a few rows."""
    with contextlib.suppress(OSError):
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize >= _LEAST_FREE
    return True


# One process owns the folder, and a second one is told who does.


class OwnerLock:
    """The file `owner.lock` in a folder; the system lets go of it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = -1

    def take(self) -> None:
        self._file = os.open(self._folder / "owner.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._file, 32, 0).decode(errors="replace").strip()
            self.release()
            raise contract.Owned(
                f"{self._folder} is served by another process already (process ID {owner or 'unknown'}): "
                "stop it, choose another folder, or share a PostgreSQL database"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


# The newest acknowledged row of each ranker, in a file of its own: it proves the loss of rows that were cut off. A mark
# is written after its commit, without waiting for the disk. It may be older than the log, and newer only where the log
# has lost its end.

_SLOT = 64
_MARK = struct.Struct(">q16s")


class Marks:
    """A file with a slot for each ranker, by its number in the store."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._seen = b""  # the whole file, where it is only looked at

    def open(self, *, read_only: bool) -> None:
        """Open the file, and make it where there is none. Who only looks sees it as it is now, from then on."""
        if not read_only:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            return
        for _ in range(3):  # a mark that is being written looks like a damaged one
            with contextlib.suppress(FileNotFoundError):
                self._seen = self._path.read_bytes()
            with contextlib.suppress(ValueError):
                self.all()
                return

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def write(self, heads: dict[int, contract.Head]) -> None:
        """Keep these. A full or failing disk is no reason to fail: what they prove is durable already."""
        with contextlib.suppress(OSError):
            for number, head in heads.items():
                mark = _MARK.pack(head.seq, head.link)
                os.pwrite(self._file, mark + _check(number, mark), _SLOT * number)

    def forget(self, number: int) -> None:
        os.pwrite(self._file, bytes(_SLOT), _SLOT * number)

    def all(self) -> dict[int, contract.Head]:
        size = len(self._seen) if self._file < 0 else os.fstat(self._file).st_size
        found = {number: self.read(number) for number in range(1, -(-size // _SLOT))}
        return {number: mark for number, mark in found.items() if mark is not None}

    def read(self, number: int) -> contract.Head | None:
        """The mark of a ranker; None where there is none, ValueError where it is damaged."""
        first, size = _SLOT * number, _MARK.size + SIZE
        slot = self._seen[first : first + size] if self._file < 0 else os.pread(self._file, size, first)
        if not any(slot):
            return None
        mark, check = slot[: _MARK.size], slot[_MARK.size :]
        if check != _check(number, mark):
            raise ValueError("the mark of its newest acknowledged row is damaged")
        return contract.Head(*_MARK.unpack(mark))


def _check(number: int, mark: bytes) -> bytes:
    return hashlib.blake2b(number.to_bytes(8, "big") + mark, digest_size=SIZE).digest()


# Tables, their format, and how an older file is brought forward.


FORMAT = 3
SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS ranker (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
-- id: ranker << 40 | seq, so that the table itself is in order of seq; topic: ranker << 5 | kind
CREATE TABLE IF NOT EXISTS log (
    id INTEGER PRIMARY KEY, topic INTEGER NOT NULL, at INTEGER NOT NULL, event TEXT NOT NULL,
    decision TEXT, digest BLOB NOT NULL, body BLOB NOT NULL, link BLOB NOT NULL DEFAULT x'');
CREATE UNIQUE INDEX IF NOT EXISTS log_event ON log (topic, event);
CREATE INDEX IF NOT EXISTS log_decision ON log (decision) WHERE decision IS NOT NULL;
CREATE TABLE IF NOT EXISTS snapshot (
    ranker INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, epoch INTEGER NOT NULL, code TEXT NOT NULL,
    config TEXT NOT NULL, hash TEXT NOT NULL, state BLOB NOT NULL, link BLOB NOT NULL DEFAULT x'',
    seal BLOB NOT NULL DEFAULT x'', PRIMARY KEY (ranker, seq));
CREATE TABLE IF NOT EXISTS api_key (
    id TEXT PRIMARY KEY, role TEXT NOT NULL, digest BLOB NOT NULL, at INTEGER NOT NULL, note TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS lease (
    one INTEGER PRIMARY KEY CHECK (one = 1), holder TEXT NOT NULL, epoch INTEGER NOT NULL, until REAL NOT NULL);
-- entry: a segment of the manifest, as JSON. gap: links of rows that are only in a segment, while the next row is here
CREATE TABLE IF NOT EXISTS segment (
    ranker INTEGER NOT NULL, last INTEGER NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (ranker, last)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gap (id INTEGER PRIMARY KEY, link BLOB NOT NULL);
-- keys of data subjects; of one that was destroyed only its name in the log is left
CREATE TABLE IF NOT EXISTS subject_key (
    id TEXT PRIMARY KEY, subject TEXT, key BLOB, at INTEGER NOT NULL, erased INTEGER);
CREATE INDEX IF NOT EXISTS subject_of_key ON subject_key (subject);
"""
SEQ_BITS = 40
SEQ = (1 << SEQ_BITS) - 1
KIND_BITS = 5
_BEFORE = (
    f"CASE WHEN log.id & {SEQ} > 1 THEN coalesce((SELECT old.link FROM log AS old WHERE old.id = log.id - 1), "
    "(SELECT gap.link FROM gap WHERE gap.id = log.id - 1)) END"
)
# The kind of a row, and a number that no kind has where it is filed under another ranker.
COLUMNS = f"id, at, topic - (id >> {SEQ_BITS} << {KIND_BITS}), event, body, digest, decision, link, {_BEFORE}"
_AS_BYTES = COLUMNS.replace("event", "CAST(event AS BLOB)").replace("decision", "CAST(decision AS BLOB)")
_BY_EVENT = "SELECT 1 FROM log INDEXED BY log_event WHERE topic = ? AND event = ? AND id = ?"
_BY_LIST = "SELECT 1 FROM log INDEXED BY log_decision WHERE decision = ? AND id = ?"


def prepare(connection: apsw.Connection, path: Path) -> None:
    """Make the tables; ValueError where the file has those of another format."""
    check_format(connection, path)
    with connection:  # all or nothing
        for statement in SCHEMA.split(";\n"):
            connection.execute(statement)
        timeline = secrets.token_hex(8)
        connection.execute("INSERT OR IGNORE INTO meta VALUES ('timeline', ?)", (timeline,))
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def check_format(connection: apsw.Connection, path: Path) -> None:
    """ValueError where a file has another format than this code; 0 has one that is new."""
    ((found,),) = connection.execute("PRAGMA user_version")
    if found > FORMAT:
        raise ValueError(f"{path} was written in format {found} by a newer version of rankloop")
    if 0 < found < FORMAT:
        raise ValueError(
            f"{path} is in format {found}: start the service of rankloop 0.2 on it once, then this one"
        )


def timeline_of(connection: apsw.Connection) -> str:
    """The identity of the store; empty in a file that is not one yet."""
    for (value,) in connection.execute("SELECT value FROM meta WHERE name = 'timeline'"):
        return str(value)
    return ""


def read_log(
    connection: apsw.Connection, which: str, values: tuple[Any, ...], first: bytes = b""
) -> list[Row]:
    """Rows of the log. What is damaged comes back as a row whose digest differs, or as `Damaged`.

    first: the link before row 1.
    """
    try:
        try:
            found = list(connection.execute(f"SELECT {COLUMNS} FROM log WHERE {which}", values))
        except UnicodeDecodeError:
            found = [
                (*row[:3], as_text(row[3]), *row[4:6], as_text(row[6]), *row[7:])
                for row in connection.execute(f"SELECT {_AS_BYTES} FROM log WHERE {which}", values)
            ]
    except apsw.Error as error:
        raise contract.Damaged(f"the log cannot be read: {error}") from error
    return [_row(row, first) for row in found]


def as_text(value: Any) -> Any:
    """Text that was read as bytes, because it may be damaged."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _row(found: tuple[Any, ...], first: bytes) -> Row:
    number, at, kind, event_id, body, digest, decision, link, before = found
    seq = number & SEQ
    if (
        type(at) is int
        and type(kind) is int
        and 0 <= kind < len(KINDS)
        and type(event_id) is str
        and type(body) is bytes
        and type(digest) is bytes
        and type(link) is bytes
        and (decision is None or type(decision) is str)
    ):
        before = first if before is None else before
        return Row(seq, at, KINDS[kind], event_id, body, digest, decision, link, before)
    return Row(seq, 0, "conflict", "", b"", b"", None, b"\0", b"")  # no row has such a link


def filed(connection: apsw.Connection, number: int, rows: list[Row]) -> set[int]:
    """Those of these rows that the indexes lead to, by their own IDs and by those of the lists they are about."""
    found = set()
    try:
        for row in rows:
            place, topic = number << SEQ_BITS | row.seq, number << KIND_BITS | NUMBER_OF_KIND[row.kind]
            by_event = connection.execute(_BY_EVENT, (topic, row.event_id, place)).fetchone()
            if by_event and (
                row.decision is None or connection.execute(_BY_LIST, (row.decision, place)).fetchone()
            ):
                found.add(row.seq)
    except apsw.Error as error:
        raise contract.Damaged(f"an index cannot be read: {error}") from error
    return found


def oddities(connection: apsw.Connection) -> list[str]:
    """What is wrong with the file itself: damaged pages, and rows that belong to no ranker."""
    problems: list[str] = []
    try:
        checked = [str(text) for (text,) in connection.execute("PRAGMA integrity_check(20)")]
        problems += [f"SQLite finds: {text}" for text in checked if text != "ok"]
        for what, sql in (
            (
                "rows of no ranker",
                f"SELECT count(*) FROM log WHERE id >> {SEQ_BITS} NOT IN (SELECT id FROM ranker)",
            ),
            (
                "rows filed under another ranker",
                f"SELECT count(*) FROM log WHERE topic >> {KIND_BITS} <> id >> {SEQ_BITS}",
            ),
            (
                "snapshots of no ranker",
                "SELECT count(*) FROM snapshot WHERE ranker NOT IN (SELECT id FROM ranker)",
            ),
        ):
            ((count,),) = connection.execute(sql)
            if count:
                problems.append(f"there are {what}: {count}")
    except apsw.Error as error:
        problems.append(f"the file cannot be read: {error}")
    return problems


# How rows are numbered, stamped, linked and inserted; and what is known without the disk.


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

    def head(self, ranker: str) -> contract.Head:
        seq, _, newest = self.newest.get(ranker, (0, 0, b""))
        return contract.Head(seq, newest)

    def time(self, ranker: str, at: int) -> int:
        last = self.newest.get(ranker, (0, 0, b""))[1]
        time, self.ahead[ranker] = next_time(at, last=last, ahead=self.ahead.get(ranker, 0))
        return time

    def rename(self, old: str, new: str) -> None:
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

    def insert(self, entries: list[Entry]) -> list[contract.Appended]:
        self._writer.execute("SAVEPOINT batch")
        try:
            return self._insert_all(entries)
        except apsw.ConstraintError:
            # Something is there already: go back, without letting go of the lock, and find out what, one by one.
            self._writer.execute("ROLLBACK TO batch")
            self._ids, self._newest, self._ahead = {}, {}, {}
            return [self._insert_one(entry) for entry in entries]

    def keep(self) -> dict[int, contract.Head]:
        """It was committed; the newest row of each ranker in it, by number."""
        if self._ids:
            self._known.ids = self._known.ids | self._ids
        self._known.newest.update(self._newest)
        self._known.ahead.update(self._ahead)
        return {
            self._known.ids[name]: contract.Head(seq, link) for name, (seq, _, link) in self._newest.items()
        }

    def _insert_one(self, entry: Entry) -> contract.Appended:
        number = self._ids.get(entry.ranker) or self._known.ids.get(entry.ranker)
        there = None
        if number is not None:
            first = beginning(self._timeline, entry.ranker)
            there = find(self._writer, number, entry.kind, entry.event_id, first=first)
        return self._insert_all([entry])[0] if there is None else contract.Appended(there, False)

    def _insert_all(self, entries: list[Entry]) -> list[contract.Appended]:
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
            appended.append(contract.Appended(row, True))
            before = linked
            self._newest[name], self._ahead[name] = (seq, time, linked), ahead
        self._execute(values, len(entries))
        return appended

    def _number(self, entry: Entry) -> int:
        number = self._ids.get(entry.ranker) or self._known.ids.get(entry.ranker)
        if number:
            return number
        if number == 0:
            raise contract.Damaged(f"the number of the ranker {entry.ranker!r} is damaged")
        if entry.kind != "config":
            raise contract.Missing(f"there is no ranker {entry.ranker!r}")
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


# Segments: their manifest, the rows that leave the live log, and the space that they leave.


PAGES = 2_000  # given back in one transaction
_MANY = ", ".join(str(NUMBER_OF_KIND[kind]) for kind in MANY)


def listed_segments(connection: apsw.Connection, number: int, *, after: int = 0) -> list[Segment]:
    """The segments of a ranker that end after row `after`."""
    sql = "SELECT entry FROM segment WHERE ranker = ? AND last > ? ORDER BY last"
    found = connection.execute(sql, (number, after))
    return [msgspec.json.decode(entry, type=Segment) for (entry,) in found]


def add_segment(writer: apsw.Connection, number: int, segment: Segment, links: dict[int, bytes]) -> None:
    """Within a transaction: take a segment into the manifest."""
    before = listed_segments(writer, number)
    base = number << SEQ_BITS
    if segment.first != (before[-1].last if before else 0) + 1:
        raise contract.Diverged(f"another process has moved row {segment.first} to a segment already")
    found = list(writer.execute("SELECT link FROM log WHERE id = ?", (base | segment.last,)))
    newer = list(writer.execute("SELECT 1 FROM log WHERE id = ?", (base | segment.last + 1,)))
    if found != [(bytes.fromhex(segment.link),)] or not newer:
        raise contract.Diverged(
            f"row {segment.last} is another one than in segment {segment.file}, or the newest"
        )
    writer.execute(
        "INSERT INTO segment (ranker, last, entry) VALUES (?, ?, ?)",
        (number, segment.last, msgspec.json.encode(segment).decode()),
    )
    writer.executemany(
        "INSERT OR REPLACE INTO gap (id, link) VALUES (?, ?)",
        [(base | seq, link) for seq, link in links.items()],
    )


def clear_rows(writer: apsw.Connection, number: int, *, through: int, keep: list[int], limit: int) -> bool:
    """Within a transaction: delete some of the rows up to `through` that are many; whether there may be more."""
    base = number << SEQ_BITS
    which = f"topic & {(1 << KIND_BITS) - 1} IN ({_MANY}) AND id NOT IN ({', '.join(str(base | seq) for seq in keep)})"
    first = f"SELECT id FROM log WHERE id > ? AND id <= ? AND {which} ORDER BY id LIMIT 1"
    for (found,) in list(writer.execute(first, (base, base | through))):
        end = min(found + limit - 1, base | through)
        writer.execute(f"DELETE FROM log WHERE id BETWEEN ? AND ? AND {which}", (found, end))
        return True
    return False


def give_back(writer: apsw.Connection) -> bool:
    """Within a transaction: give some free pages back to the file system; whether there may be more."""
    ((before,),) = writer.execute("PRAGMA freelist_count")
    for _ in writer.execute(f"PRAGMA incremental_vacuum({PAGES})"):
        pass
    ((left,),) = writer.execute("PRAGMA freelist_count")
    return bool(0 < left < before)


def insert_new(
    batch: Batch, entries: list[Entry], histories: dict[str, ClosedHistory]
) -> list[contract.Appended]:
    """Insert what is neither in the live log nor in a segment, and find what is."""
    there = rows_there(entries, histories)
    rest = [entry for i, entry in enumerate(entries) if i not in there]
    return in_order(entries, there, batch.insert(rest) if rest else [])


# Moving rows from SQLite's write-ahead log into the database itself, beside the writing, so that it stays small.


EVERY = 64  # commits
MOVE_BYTES = 8_000_000
RESTART_BYTES = 64_000_000
_PATIENCE = 1_000  # milliseconds that it waits for readers


class Checkpoints:
    """To be told of every commit. `failed` tells why nothing more may be written, once it is so."""

    def __init__(self, path: Path, vfs: str | None, *, busy_seconds: float) -> None:
        self._path = path
        self._busy = round(1000 * busy_seconds)  # that the connection is set to otherwise
        self._vfs = vfs
        self._commits = 0
        self._restart_at = RESTART_BYTES
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self.failed: str | None = None

    def stop(self) -> None:
        self._thread.shutdown()

    def after_commit(self, writer: apsw.Connection) -> None:
        """Move something if it is time, in the thread that writes; nothing else writes meanwhile."""
        self._commits += 1
        if self._commits % EVERY:
            return
        with contextlib.suppress(OSError):
            size = Path(f"{self._path}-wal").stat().st_size
            if size > self._restart_at:
                # Under steady writing it never empties by itself. Little is left to move by now, so this is short.
                self._restart(writer)
                # A long reader, such as `rankloop verify`, keeps it from that, and is not waited for every time.
                left = Path(f"{self._path}-wal").stat().st_size
                self._restart_at = max(RESTART_BYTES, 2 * left)
            elif size > MOVE_BYTES:
                self._thread.submit(self._move)

    def _restart(self, writer: apsw.Connection) -> None:
        with self._noticing():
            writer.set_busy_timeout(_PATIENCE)
            try:
                writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                writer.set_busy_timeout(self._busy)

    def _move(self) -> None:
        # Passive: copies what it can without blocking anyone.
        with self._noticing():
            connection = apsw.Connection(str(self._path), vfs=self._vfs)
            connection.execute("SELECT count(*) FROM lease")  # only then does it know that there is a log
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            connection.close()

    @contextlib.contextmanager
    def _noticing(self) -> Iterator[None]:
        """A busy or full disk is for another time; one that fails while rows are moved is not to be trusted again."""
        try:
            yield
        except (apsw.IOError, apsw.CorruptError) as error:
            self.failed = f"could not move rows within {self._path}: {error}"
        except apsw.Error:
            pass
