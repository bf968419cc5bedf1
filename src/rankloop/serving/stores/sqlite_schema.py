"""Tables of the SQLite store, their format, and how an older file is brought forward."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec

from rankloop.serving.log.digests import beginning, link_of, seal
from rankloop.serving.log.records import KINDS, Row
from rankloop.serving.stores.contract import Damaged, Snapshot

FORMAT = 3  # 2: rows are linked, snapshots are sealed; 3: rows may be in segments
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
"""
# entry: a segment of the manifest, as JSON. gap: links of rows that are only in a segment, while the next row is here.
# subject_key: keys of data subjects; of one that was destroyed only its name in the log is left.
SEGMENTS = """
CREATE TABLE IF NOT EXISTS segment (
    ranker INTEGER NOT NULL, last INTEGER NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (ranker, last)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gap (id INTEGER PRIMARY KEY, link BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS subject_key (
    id TEXT PRIMARY KEY, subject TEXT, key BLOB, at INTEGER NOT NULL, erased INTEGER);
"""
SEQ_BITS = 40
SEQ = (1 << SEQ_BITS) - 1
KIND_BITS = 5
_PAGE = 1_000
_BEFORE = (
    f"CASE WHEN log.id & {SEQ} > 1 THEN coalesce((SELECT old.link FROM log AS old WHERE old.id = log.id - 1), "
    "(SELECT gap.link FROM gap WHERE gap.id = log.id - 1)) END"
)
SUBJECTS = "CREATE INDEX IF NOT EXISTS subject_of_key ON subject_key (subject);\n"
COLUMNS = f"id, at, topic & 31, event, body, digest, decision, link, {_BEFORE}"
_AS_BYTES = COLUMNS.replace("event", "CAST(event AS BLOB)").replace("decision", "CAST(decision AS BLOB)")
_SNAPSHOT = "seq, at, epoch, code, config, hash, state, link, seal"


def prepare(connection: apsw.Connection, path: Path, *, may_migrate: bool) -> None:
    """Make the tables, or bring those of an older format forward; ValueError where that cannot be done."""
    (found,) = next(iter(connection.execute("PRAGMA user_version")))
    check_format(int(found), path, may_migrate=may_migrate)
    if found == 2 and not may_migrate:
        return
    with connection:  # all or nothing
        for statement in (SCHEMA + SEGMENTS + SUBJECTS).split(";\n"):
            connection.execute(statement)
        timeline = secrets.token_hex(8)
        connection.execute("INSERT OR IGNORE INTO meta VALUES ('timeline', ?)", (timeline,))
        if found == 1:
            _link_all(connection)
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def check_format(found: int, path: Path, *, may_migrate: bool) -> None:
    """ValueError where a file of this format cannot be used."""
    if found > FORMAT:
        raise ValueError(
            f"{path} was written in format {found} by a newer version of rankloop; this one reads {FORMAT} at most"
        )
    if found == 1 and not may_migrate:
        raise ValueError(
            f"{path} is in format 1, without digests: start the service on it once, or run `rankloop upgrade`"
        )


def read_old(connection: apsw.Connection) -> None:
    """Read a file of format 2, for this connection, as one that has no segments; the file stays as it is."""
    ((found,),) = connection.execute("PRAGMA user_version")
    if found == 2:
        ((only,),) = connection.execute("PRAGMA query_only")
        connection.execute("PRAGMA query_only = OFF")
        for statement in SEGMENTS.split(";\n"):
            connection.execute(statement.replace("CREATE TABLE", "CREATE TEMP TABLE"))
        connection.execute(f"PRAGMA query_only = {only}")


def origins_of(connection: apsw.Connection) -> dict[int, str]:
    """The identity of the store in which a log began, by the number of its ranker, where that is another one."""
    found = connection.execute("SELECT name, value FROM meta WHERE name LIKE 'origin/%'")
    return {int(name.partition("/")[2]): value for name, value in found}


def timeline_of(connection: apsw.Connection) -> str:
    """The identity of the store; empty in a file that is not one yet."""
    for (value,) in connection.execute("SELECT value FROM meta WHERE name = 'timeline'"):
        return str(value)
    return ""


def _link_all(connection: apsw.Connection) -> None:
    """Link rows and seal snapshots that were written before there were digests, as they are now."""
    for table, column in (("log", "link"), ("snapshot", "link"), ("snapshot", "seal")):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} BLOB NOT NULL DEFAULT x''")
    timeline = timeline_of(connection)
    for number, name in list(connection.execute("SELECT id, name FROM ranker")):
        links = {0: beginning(timeline, name)}
        for page in _pages(connection, number):
            for row in page:
                links[row.seq] = link_of(row, links[row.seq - 1])
            connection.executemany(
                "UPDATE log SET link = ? WHERE id = ?",
                [(links[row.seq], number << SEQ_BITS | row.seq) for row in page],
            )
        for (seq,) in list(connection.execute("SELECT seq FROM snapshot WHERE ranker = ?", (number,))):
            (told,) = connection.execute(
                f"SELECT {_SNAPSHOT} FROM snapshot WHERE ranker = ? AND seq = ?", (number, seq)
            )
            snapshot = msgspec.structs.replace(Snapshot(*told), link=links.get(seq, b""))
            connection.execute(
                "UPDATE snapshot SET link = ?, seal = ? WHERE ranker = ? AND seq = ?",
                (snapshot.link, seal(name, snapshot), number, seq),
            )


def _pages(connection: apsw.Connection, number: int) -> Iterator[list[Row]]:
    after, last = number << SEQ_BITS, number << SEQ_BITS | SEQ
    while page := read_log(connection, "id > ? AND id <= ? ORDER BY id LIMIT ?", (after, last, _PAGE)):
        yield page
        after = number << SEQ_BITS | page[-1].seq


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
        raise Damaged(f"the log cannot be read: {error}") from error
    return [_row(row, first) for row in found]


def as_text(value: Any) -> Any:
    """Text that was read as bytes, because it may be damaged."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _row(found: tuple[Any, ...], first: bytes) -> Row:
    number, at, kind, event_id, body, digest, decision, link, before = found
    seq = number & SEQ
    if (
        type(at) is int
        and type(event_id) is str
        and type(body) is bytes
        and type(digest) is bytes
        and type(link) is bytes
        and (decision is None or type(decision) is str)
        and kind < len(KINDS)
    ):
        before = first if before is None else before
        return Row(seq, at, KINDS[kind], event_id, body, digest, decision, link, before)
    return Row(seq, 0, "conflict", "", b"", b"", None, b"\0", b"")  # no row has such a link


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
