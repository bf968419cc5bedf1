"""The store in one SQLite file: WAL, synchronous=FULL, one process that owns it.

Rows are inserted on the event loop, which takes microseconds; the commit waits for the disk in a thread, and
meanwhile the loop goes on answering. Reads have a connection of their own and never wait for a commit.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from rankloop.serving.failpoints import reach
from rankloop.serving.log.digests import archived_name, beginning, content, link
from rankloop.serving.log.records import NUMBER_OF_KIND, Entry, Kind, Row
from rankloop.serving.log_clock import next_time
from rankloop.serving.stores import sqlite_file, sqlite_snapshots
from rankloop.serving.stores.commit_thread import CommitThread
from rankloop.serving.stores.contract import (
    Appended,
    Broken,
    Damaged,
    Fenced,
    Head,
    Missing,
    Snapshot,
    Store,
    StoredKey,
    StoreError,
)
from rankloop.serving.stores.due import Due
from rankloop.serving.stores.marks import Marks
from rankloop.serving.stores.owner_lock import OwnerLock
from rankloop.serving.stores.sqlite_checkpoint import Checkpoints
from rankloop.serving.stores.sqlite_due import DUE, read_due
from rankloop.serving.stores.sqlite_schema import (
    KIND_BITS,
    SEQ,
    SEQ_BITS,
    check_format,
    oddities,
    prepare,
    read_log,
    timeline_of,
)


class SQLiteStore(Store):
    """One file `rankloop.db` in a folder.

    read_only: for a second process that only looks; it needs no ownership.
    own: False for a second process that only writes keys, beside a running service.
    vfs: the name of an SQLite file system; the tests have one whose disk fails.
    busy_seconds: how long a write waits for another process that holds the file's write lock.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        read_only: bool = False,
        own: bool = True,
        vfs: str | None = None,
        busy_seconds: float = 5.0,
    ) -> None:
        self.folder = Path(folder)
        self.read_only = read_only
        self._wants_own = own
        self._vfs = vfs
        self._busy_seconds = busy_seconds
        self._ids: dict[str, int] = {}
        self._last: dict[str, tuple[int, int, bytes]] = {}  # of each ranker the newest seq, time and link
        self._ahead: dict[str, int] = {}  # how far each log's clock is ahead of the given one
        self._marks = Marks(self.folder / "acknowledged")
        self._disk = CommitThread()
        self._checkpoints = Checkpoints(self.path, vfs)
        self._writing = asyncio.Lock()
        self._lock = OwnerLock(self.folder)
        self._is_open = False
        self.n_commits = 0

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / "rankloop.db"

    async def open(self) -> None:
        sqlite_file.check_version(apsw.sqlite_lib_version())
        if self.read_only:
            if not self.path.exists():
                raise Missing(f"there is no store in {self.folder}")
        else:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                if self._wants_own:
                    self._lock.take()
                sqlite_file.make_private(self.path)
            except OSError as error:
                raise StoreError(f"cannot write to the folder {self.folder}: {error.strerror}") from None
        try:
            self._connect()
        except BaseException:
            self._lock.release()
            raise
        self._is_open = True

    def _connect(self) -> None:
        try:
            self._reader = sqlite_file.connect(self.path, self._vfs, read_only=self.read_only)
            self._writer = (
                self._reader if self.read_only else sqlite_file.connect(self.path, self._vfs, read_only=False)
            )
            if self.read_only:
                ((found,),) = self._rows(self._reader, "PRAGMA user_version")
                check_format(int(found), self.path, may_migrate=False)
            else:
                prepare(self._writer, self.path, may_migrate=self._wants_own)
            self.timeline = timeline_of(self._reader)
            for ranker_id, name in self._rows(self._reader, "SELECT id, name FROM ranker ORDER BY id"):
                # A number that no ranker can have is damage: it has no rows then, and is quarantined.
                self._ids[name] = ranker_id if 0 < ranker_id < 1 << 63 - SEQ_BITS else 0
                self._last[name] = self._newest(name)
        except apsw.NotADBError:
            raise ValueError(f"{self.path} is not an SQLite file") from None
        except (apsw.CorruptError, apsw.SQLError, UnicodeDecodeError) as error:
            raise Damaged(f"{self.path} is damaged: {error}") from None
        if self.read_only or self._wants_own:
            self._marks.open(read_only=self.read_only)
        # From here on nothing on the event loop waits for another process.
        self._reader.set_busy_timeout(0)
        self._writer.set_busy_timeout(0)

    async def close(self) -> None:
        if not self._is_open:
            return
        async with self._writing:
            self._is_open = False
            if self._disk.stop():  # otherwise the disk hangs, and closing would hang as well
                self._checkpoints.stop()
                for connection in {self._writer, self._reader}:
                    with contextlib.suppress(apsw.Error):
                        connection.close()
            self._marks.close()
            self._lock.release()

    async def rankers(self) -> list[str]:
        return [name for name in self._ids if "~" not in name]

    async def archived(self) -> list[str]:
        return [name for name in self._ids if "~" in name]

    async def archive(self, ranker: str, *, at: int) -> str:
        if ranker not in self._ids:
            raise Missing(f"there is no ranker {ranker!r}")
        name, sql = archived_name(ranker, at), "UPDATE ranker SET name = ? WHERE id = ?"
        await self._write(lambda: self._writer.execute(sql, (name, self._ids[ranker])))
        self._ids[name], self._last[name] = self._ids.pop(ranker), self._last.pop(ranker)
        self._ahead[name] = self._ahead.pop(ranker, 0)
        return name

    async def append(self, entries: list[Entry], *, at: int, epoch: int | None = None) -> list[Appended]:
        for entry in entries:
            if entry.kind != "config" and entry.ranker not in self._ids:
                raise Missing(f"there is no ranker {entry.ranker!r}")
        async with self._writing:
            before = dict(self._last)
            known = dict(self._ids)
            try:
                done: list[Appended] = await self._transaction(
                    lambda: self._insert(entries, at, epoch), then=lambda: self._mark(entries)
                )
                return done
            except BaseException:
                self._last, self._ids = before, known
                raise

    async def _write(self, work: Callable[[], Any]) -> Any:
        async with self._writing:
            return await self._transaction(work)

    async def _transaction(self, work: Callable[[], Any], then: Callable[[], None] | None = None) -> Any:
        """Run `work` in one transaction; the wait for the disk happens in a thread, and `then` after it."""
        writer = self._writer

        def commit() -> None:
            writer.execute("COMMIT")
            if then is not None:
                then()

        if self._checkpoints.failed is not None:
            raise Broken(self._checkpoints.failed)
        try:
            with sqlite_file.write_errors(self.path):
                await sqlite_file.begin(writer, self._disk, self.path, seconds=self._busy_seconds)
                done = work()
                reach("before-commit")
                await self._disk.run(commit)
                reach("after-commit")
        except asyncio.CancelledError:
            raise  # the thread has the connection: it commits, or finds that it cannot
        except BaseException:
            self._roll_back()
            raise
        self.n_commits += 1
        await self._checkpoints.after_commit(writer)
        return done

    def _mark(self, entries: list[Entry]) -> None:
        heads = {}
        for name in {entry.ranker for entry in entries}:
            seq, _, newest = self._last[name]
            heads[self._ids[name]] = Head(seq, newest)
        self._marks.write(heads)

    def _roll_back(self) -> None:
        with contextlib.suppress(apsw.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _insert(self, entries: list[Entry], at: int, epoch: int | None) -> list[Appended]:
        before, known = self._last, dict(self._ids)
        if epoch is not None:
            self._check_epoch(epoch)
        self._writer.execute("SAVEPOINT batch")
        try:
            return self._insert_all(entries, at)
        except apsw.ConstraintError:
            # Something is there already: go back, without letting go of the lock, and find out what, one by one.
            self._writer.execute("ROLLBACK TO batch")
            self._last, self._ids = before, known
            return [self._insert_one(entry, at) for entry in entries]

    def _insert_one(self, entry: Entry, at: int) -> Appended:
        there = self._find(self._writer, entry.ranker, entry.kind, entry.event_id)
        return self._insert_all([entry], at)[0] if there is None else Appended(there, False)

    def _insert_all(self, entries: list[Entry], at: int) -> list[Appended]:
        for entry in entries:
            if entry.kind == "config" and entry.ranker not in self._ids:
                self._writer.execute("INSERT INTO ranker (name) VALUES (?)", (entry.ranker,))
                self._ids[entry.ranker] = self._writer.last_insert_rowid()
                self._last = self._last | {entry.ranker: (0, 0, beginning(self.timeline, entry.ranker))}
        last = dict(self._last)
        values, appended = [], []
        for entry in entries:
            name, kind = entry.ranker, entry.kind
            seq, time, before = last[name]
            seq += 1
            time, self._ahead[name] = next_time(at, last=time, ahead=self._ahead.get(name, 0))
            linked = link(before, seq, time, content(entry))
            last[name] = (seq, time, linked)
            row = Row(
                seq, time, kind, entry.event_id, entry.body, entry.digest, entry.decision, linked, before
            )
            ranker = self._ids[name]
            values.append(
                (
                    ranker << SEQ_BITS | seq,
                    ranker << KIND_BITS | NUMBER_OF_KIND[kind],
                    time,
                    entry.event_id,
                    entry.decision,
                    entry.digest,
                    entry.body,
                    linked,
                )
            )
            appended.append(Appended(row, True))
        sql = "INSERT INTO log (id, topic, at, event, decision, digest, body, link) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        half = len(values) // 2
        self._writer.executemany(sql, values[:half])
        reach("mid-batch")
        self._writer.executemany(sql, values[half:])
        self._last = last
        return appended

    def _rows(self, connection: apsw.Connection, sql: str, values: Any = ()) -> list[Any]:
        with sqlite_file.read_errors(self.path):
            return list(connection.execute(sql, values))

    def _log(
        self, connection: apsw.Connection, ranker: str, which: str, values: tuple[Any, ...]
    ) -> list[Row]:
        with sqlite_file.read_errors(self.path):
            return read_log(connection, which, values, beginning(self.timeline, ranker))

    def _newest(self, ranker: str) -> tuple[int, int, bytes]:
        base = self._ids[ranker] << SEQ_BITS
        sql = "SELECT id, at, link FROM log WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1"
        for number, at, newest in self._rows(self._reader, sql, (base, base | SEQ)):
            return number & SEQ, at, newest
        return 0, 0, beginning(self.timeline, ranker)

    def _find(self, connection: apsw.Connection, ranker: str, kind: Kind, event_id: str) -> Row | None:
        if ranker not in self._ids:
            return None
        topic = self._ids[ranker] << KIND_BITS | NUMBER_OF_KIND[kind]
        found = self._log(connection, ranker, "topic = ? AND event = ?", (topic, event_id))
        return found[0] if found else None

    async def read(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        if ranker not in self._ids:
            return []
        base = self._ids[ranker] << SEQ_BITS
        which = "id > ? AND id <= ? ORDER BY id LIMIT ?"
        return self._log(self._reader, ranker, which, (base + after, base | SEQ, limit))

    async def find(self, ranker: str, kind: Kind, event_id: str) -> Row | None:
        return self._find(self._reader, ranker, kind, event_id)

    async def stories(self, ranker: str, decisions: list[str]) -> dict[str, list[Row]]:
        told: dict[str, list[Row]] = {}
        base = self._ids.get(ranker, -1) << SEQ_BITS
        for decision in decisions:
            first = self._find(self._reader, ranker, "decision", decision)
            told[decision] = []
            if first is None:
                continue
            # A range of ids: the index has them, so that rows of other rankers about the same id are not read.
            which = "decision = ? AND id BETWEEN ? AND ?"
            rest = self._log(self._reader, ranker, which, (decision, base, base | SEQ))
            told[decision] = sorted([first, *rest], key=lambda row: row.seq)
        return told

    async def time(self, ranker: str, *, at: int) -> int:
        last = self._last.get(ranker, (0, 0, b""))[1]
        time, self._ahead[ranker] = next_time(at, last=last, ahead=self._ahead.get(ranker, 0))
        return time

    async def due(self, ranker: str, *, after: int, before: int, allowed: int, limit: int) -> Due:
        base = self._ids.get(ranker, -1) << SEQ_BITS
        topics = [
            base >> SEQ_BITS - KIND_BITS | NUMBER_OF_KIND[kind] for kind in ("decision", "feedback", "expire")
        ]
        values = (*topics, base, base | SEQ, base + after, before, allowed, limit)
        return read_due(self._rows(self._reader, DUE, values), after=after, before=before)

    def complaint(self) -> str | None:
        return None if sqlite_file.has_room(self.folder) else f"no room to write to {self.path}"

    async def last_seq(self, ranker: str) -> int:
        return (await self.head(ranker)).seq

    async def head(self, ranker: str) -> Head:
        seq, _, newest = self._last.get(ranker, (0, 0, b""))
        return Head(seq, newest)

    async def acknowledged(self, ranker: str) -> Head | None:
        return self._marks.read(self._ids[ranker]) if ranker in self._ids else None

    async def problems(self) -> list[str]:
        return oddities(self._reader)

    def _check_epoch(self, epoch: int) -> None:
        found = self._rows(self._writer, "SELECT epoch FROM lease")
        if not found or found[0][0] != epoch:
            raise Fenced(f"epoch {epoch} is over")

    async def write_snapshot(self, ranker: str, snapshot: Snapshot, *, keep: int) -> None:
        number = self._ids[ranker]

        def work() -> None:
            self._check_epoch(snapshot.epoch)
            sqlite_snapshots.write(self._writer, number, ranker, snapshot, keep=keep)

        await self._write(work)
        reach("after-snapshot")

    async def snapshots(self, ranker: str) -> list[Snapshot]:
        return sqlite_snapshots.listed(self._reader, self._ids.get(ranker))

    async def read_snapshot(self, ranker: str, seq: int) -> Snapshot | None:
        return sqlite_snapshots.read(self._reader, self._ids.get(ranker), seq)

    async def write_key(self, key: StoredKey) -> None:
        sql = "INSERT OR REPLACE INTO api_key VALUES (?, ?, ?, ?, ?)"
        values = (key.key_id, key.role, key.digest, key.at, key.note)
        await self._write(lambda: self._writer.execute(sql, values))

    async def delete_key(self, key_id: str) -> bool:
        sql = "DELETE FROM api_key WHERE id = ? RETURNING id"
        return bool(await self._write(lambda: list(self._writer.execute(sql, (key_id,)))))

    async def keys(self) -> list[StoredKey]:
        sql = "SELECT id, role, digest, at, note FROM api_key ORDER BY at, id"
        return [StoredKey(*found) for found in self._rows(self._reader, sql)]

    async def take_lease(self, holder: str, *, seconds: float, now: float) -> int | None:
        epoch: int | None = await self._write(
            lambda: sqlite_file.take_lease(self._writer, holder, seconds=seconds, now=now)
        )
        return epoch
