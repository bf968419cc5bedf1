"""The store in one SQLite file: WAL, synchronous=FULL, one process that owns it.

Everything that may wait for the disk happens in two threads, one that writes and one that reads, each with a connection
of its own: the event loop goes on answering whatever the disk does, and reads never wait for a commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import apsw
import msgspec

from rankloop.serving.failpoints import reach
from rankloop.serving.log.digests import archived_name, beginning, link_of, sealed
from rankloop.serving.log.records import NUMBER_OF_KIND, Entry, Kind, Row
from rankloop.serving.stores import contract, sqlite_file
from rankloop.serving.stores.contract import Store
from rankloop.serving.stores.segments import ClosedHistory, Segment, folder_name
from rankloop.serving.stores.sqlite_file import KIND_BITS, SEQ, SEQ_BITS

Result = TypeVar("Result")
_log = logging.getLogger("rankloop.serving")
_SECONDS_A_ROW = 0.03  # rows can be large, and a page of thousands of them takes its time
_SNAPSHOT_SECONDS = 60.0
_ROWS = "id > ? AND id <= ? ORDER BY id LIMIT ?"
_TEXTS = ("code", "config", "hash")  # of a snapshot
_NEWEST_KEY = "SELECT id, key FROM subject_key WHERE subject = ? ORDER BY at DESC, id LIMIT 1"
# The search for lists that nobody answered in time: by index, without reading what was shown.
# 1, 2, 3: topics of decisions, feedback, expiries; 4, 5: the ids of the ranker's rows; 6: the last that was searched;
# 7: lists from before this time; 8: milliseconds in which an answer is in time; 9: how many rows.
_DUE = """
SELECT id - ?4, topic = ?1, at, event,
    CASE WHEN topic = ?1 AND at < ?7 THEN NOT EXISTS (
        SELECT 1 FROM log WHERE decision = one.event AND id > one.id AND id <= ?5
        AND (topic = ?2 AND at <= one.at + ?8 OR topic = ?3)) END,
    CASE WHEN topic = ?1 AND at < ?7 THEN EXISTS (
        SELECT 1 FROM log WHERE decision = one.event AND id BETWEEN ?4 AND ?5 AND topic = ?2) END
FROM log AS one WHERE id > ?6 AND id <= ?5 ORDER BY id LIMIT ?9
"""


# A thread that waits for the disk while the event loop goes on: a leaner `run_in_executor`, for one caller.
_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class DiskThread:
    """Runs one call after the other, off the event loop."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._current: asyncio.Future[Any] | None = None  # of the call that is under way
        # The call that somebody did not want to wait for longer.
        self._waited_for: asyncio.Future[Any] | None = None

    @property
    def stuck(self) -> bool:
        """Whether the call that is under way has lasted longer than somebody would wait."""
        current = self._current
        return current is not None and current is self._waited_for

    async def run(self, call: Callable[[], Result], *, seconds: float | None = None) -> Result:
        """Wait until `call` is done, and return what it returns; what it raises is raised here."""
        if seconds is not None and self.stuck:
            raise _late(seconds)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, self._give_up, future, seconds)
        self._jobs.put((loop, future, call))
        try:
            return await future
        finally:
            if timer is not None:
                timer.cancel()

    def _give_up(self, future: asyncio.Future[Any], seconds: float) -> None:
        if not future.done():
            future.set_exception(_late(seconds))
        # Only then: a call that begins from here on finds that nobody waits for it.
        self._waited_for = self._current

    def stop(self, seconds: float = 10.0) -> bool:
        """Finish what was begun; whether that was possible within `seconds`, on a disk that may hang."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(seconds)
            if self._thread.is_alive():
                return False
            self._thread = None
        return True

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, call = job
            self._current = future
            if future.done():  # nobody waits for it any more
                self._current = None
                continue
            error: BaseException | None = None
            result = None
            try:
                result = call()
            except BaseException as caught:
                error = caught
            self._current = None
            try:
                loop.call_soon_threadsafe(_finish, future, result, error)
            except RuntimeError:
                return  # the loop was closed while the disk hung: nobody is there to be told


def _finish(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _late(seconds: float) -> contract.StoreError:
    return contract.StoreError(f"the disk did not answer within {seconds:g} s")


class SQLiteStore(Store):
    """One file `rankloop.db` in a folder.

    read_only: for a second process that only looks, at the store as it is when it is opened; it needs no ownership.
    own: False for a second process that only writes keys, beside a running service.
    vfs: the name of an SQLite file system; the tests have one whose disk fails.
    busy_seconds: how long a write waits for another process that holds the file's write lock.
    disk_seconds: how long a call waits for the disk; twice as long where it writes, longer where it reads many rows.
    segments: the folder of closed history; "segments" beside the file where none is given.
    accept_loss: whether to go on without rows that were acknowledged and are not there; otherwise that is `SetBack`.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        read_only: bool = False,
        own: bool = True,
        vfs: str | None = None,
        busy_seconds: float = 5.0,
        disk_seconds: float = 5.0,
        segments: Path | None = None,
        accept_loss: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self.segment_folder = self.folder / "segments" if segments is None else segments
        self.read_only = read_only
        self._wants_own = own
        self._accepts_loss = accept_loss
        self._vfs = vfs
        self._busy_seconds = busy_seconds
        self._disk_seconds = disk_seconds
        self._known = sqlite_file.Known()
        self._closed: dict[str, ClosedHistory] = {}
        self._marks = sqlite_file.Marks(self.folder / "acknowledged")
        self._writes = DiskThread("write")
        self._reads = DiskThread("read")
        self._checkpoints = sqlite_file.Checkpoints(self.path, vfs, busy_seconds=busy_seconds)
        self._lock = sqlite_file.OwnerLock(self.folder)
        self._is_open = False
        self._has_room = True
        self.n_commits = 0

    @property
    def path(self) -> Path:
        return self.folder / "rankloop.db"

    async def open(self) -> None:
        sqlite_file.check_version(apsw.sqlite_lib_version())
        if self.read_only:
            if not self.path.exists():
                raise contract.Missing(f"there is no store in {self.folder}")
        else:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                if self._wants_own:
                    self._lock.take()
                sqlite_file.make_private(self.path)
            except OSError as error:
                raise contract.StoreError(
                    f"cannot write to the folder {self.folder}: {error.strerror}"
                ) from None
        try:
            await self._reads.run(self._connect)
        except BaseException:
            self._reads.stop()
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
                with sqlite_file.read_errors(self.path):
                    sqlite_file.check_format(self._reader, self.path)
            else:
                sqlite_file.prepare(self._writer, self.path)
            if self.read_only or self._wants_own:
                self._marks.open(read_only=self.read_only)
            if self.read_only:
                # From here on the service may write what it will. The marks were read before, so none is newer.
                self._reader.execute("BEGIN")
            self.timeline = sqlite_file.timeline_of(self._reader)
            for ranker_id, name in self._rows(self._reader, "SELECT id, name FROM ranker ORDER BY id"):
                # A number that no ranker can have is damage: it has no rows then, and is quarantined.
                number = ranker_id if 0 < ranker_id < 1 << 63 - SEQ_BITS else 0
                self._known.ids[name] = number
                with sqlite_file.read_errors(self.path):
                    self._known.newest[name] = sqlite_file.newest(
                        self._reader, number, first=beginning(self.timeline, name)
                    )
                    self._closed_part(name)
        except apsw.NotADBError:
            raise ValueError(f"{self.path} is not an SQLite file") from None
        except (apsw.CorruptError, apsw.SQLError, UnicodeDecodeError) as error:
            raise contract.Damaged(f"{self.path} is damaged: {error}") from None
        if self._wants_own and not self.read_only:
            self._face_loss()
        self._reader.set_busy_timeout(0)
        if not self.read_only:
            self._writer.set_busy_timeout(round(1000 * self._busy_seconds))

    def _losses(self) -> dict[int, str]:
        """What was acknowledged and is not there, by the number of the ranker; a sentence each."""
        lost = {}
        names = {number: name for name, number in self._known.ids.items()}
        for number, mark in self._marks.all().items():
            name = names.get(number)
            last = 0 if name is None else self._known.newest[name][0]
            if name is None:
                lost[number] = f"a ranker with {mark.seq:,} rows, the {number}. that was made"
            elif mark.seq > last:
                lost[number] = f"rows {last + 1} to {mark.seq} of {name!r}"
            else:
                there = self._log(name, "id = ?", (number << SEQ_BITS | mark.seq,))
                # A row that is damaged is another matter: its ranker is quarantined.
                if (
                    there
                    and there[0].link != mark.link
                    and link_of(there[0], there[0].before) == there[0].link
                ):
                    lost[number] = f"row {mark.seq} of {name!r}, where another one is now"
        return lost

    def _face_loss(self) -> None:
        try:
            lost = self._losses()
        except ValueError as error:
            _log.warning("%s: %s", self.path, error)
            return
        if lost and not self._accepts_loss:
            for connection in {self._reader, self._writer}:
                connection.close()
            raise contract.SetBack(
                f"{self.path} has acknowledged more than it holds; not there: {'; '.join(lost.values())}. It was put "
                "back to an earlier moment, or the disk has lost its end. Put the newer file back, or give up what "
                f"is not there: rankloop accept-loss --data {self.folder}"
            )
        today = datetime.now(UTC).date()
        with self._writer:
            for what in lost.values():
                sentence = f"{what}: acknowledged, lost, and given up on {today}"
                self._writer.execute(
                    "INSERT INTO meta SELECT 'lost/' || (1 + count(*)), ? FROM meta WHERE name LIKE 'lost/%'",
                    (sentence,),
                )
        heads = {number: self._known.head(name) for name, number in self._known.ids.items() if number in lost}
        self._marks.write(heads)
        for number in lost.keys() - heads.keys():
            self._marks.forget(number)

    async def given_up(self) -> list[str]:
        sql = "SELECT value FROM meta WHERE name LIKE 'lost/%' ORDER BY name"
        return await self._read(lambda: [str(what) for (what,) in self._rows(self._reader, sql)])

    async def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        # Otherwise the disk hangs, and closing would hang as well.
        if self._writes.stop() and self._reads.stop():
            self._checkpoints.stop()
            for connection in {self._writer, self._reader}:
                with contextlib.suppress(apsw.Error):
                    connection.close()
        self._marks.close()
        self._lock.release()

    async def rankers(self) -> list[str]:
        return [name for name in self._known.ids if "~" not in name]

    async def archived(self) -> list[str]:
        return [name for name in self._known.ids if "~" in name]

    async def archive(self, ranker: str, *, at: int) -> str:
        name, sql = archived_name(ranker, at), "UPDATE ranker SET name = ? WHERE id = ?"

        def work() -> None:
            if ranker not in self._known.ids:
                raise contract.Missing(f"there is no ranker {ranker!r}")
            self._writer.execute(sql, (name, self._known.ids[ranker]))

        def rename() -> None:
            if ranker in self._closed:
                self._closed[name] = self._closed.pop(ranker)
            self._known.rename(ranker, name)

        await self._write(work, then=rename)
        return name

    async def append(
        self, entries: list[Entry], *, at: int, epoch: int | None = None
    ) -> list[contract.Appended]:
        batch = sqlite_file.Batch(self._writer, self._known, timeline=self.timeline, at=at)

        def work() -> list[contract.Appended]:
            if epoch is not None:
                self._check_epoch(epoch)
            return sqlite_file.insert_new(batch, entries, self._closed)

        # Who waits for it sets an end to the wait; it may be written yet.
        return await self._transaction(work, then=lambda: self._marks.write(batch.keep()))

    async def _write(self, work: Callable[[], Result], then: Callable[[], None] = lambda: None) -> Result:
        return await self._transaction(work, then=then, seconds=2 * self._disk_seconds)

    async def _transaction(
        self, work: Callable[[], Result], *, then: Callable[[], None], seconds: float | None = None
    ) -> Result:
        """Run `work` in one transaction, and `then` after it, in the thread that writes."""
        if self._checkpoints.failed is not None:
            raise contract.Broken(self._checkpoints.failed)
        return await self._writes.run(lambda: self._commit(work, then), seconds=seconds)

    def _commit(self, work: Callable[[], Result], then: Callable[[], None]) -> Result:
        try:
            with sqlite_file.write_errors(self.path):
                sqlite_file.begin(self._writer, self.path)
                done = work()
                reach("before-commit")
                self._writer.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(apsw.Error):
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
            raise
        then()
        reach("after-commit")
        self.n_commits += 1
        self._checkpoints.after_commit(self._writer)
        return done

    async def _read(self, call: Callable[[], Result], *, rows: int = 1) -> Result:
        """Run `call` in the thread that reads."""
        seconds = max(self._disk_seconds, rows * _SECONDS_A_ROW)
        return await self._reads.run(call, seconds=seconds)

    def _rows(self, connection: apsw.Connection, sql: str, values: Any = ()) -> list[Any]:
        with sqlite_file.read_errors(self.path):
            return list(connection.execute(sql, values))

    def _log(self, ranker: str, which: str, values: tuple[Any, ...]) -> list[Row]:
        with sqlite_file.read_errors(self.path):
            return sqlite_file.read_log(self._reader, which, values, beginning(self.timeline, ranker))

    def _find(self, ranker: str, kind: Kind, event_id: str) -> Row | None:
        number = self._known.ids.get(ranker)
        if number is None:
            return None
        first = beginning(self.timeline, ranker)
        with sqlite_file.read_errors(self.path):
            row = sqlite_file.find(self._reader, number, kind, event_id, first=first)
        return self._closed_part(ranker).find(kind, event_id) if row is None else row

    async def read(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        if ranker not in self._known.ids:
            return []
        return await self._read(lambda: self._page(ranker, after, limit), rows=limit)

    async def find(self, ranker: str, kind: Kind, event_id: str) -> Row | None:
        return await self._read(lambda: self._find(ranker, kind, event_id))

    async def rows_of(self, ranker: str, kind: Kind) -> list[Row]:
        topic = self._known.ids.get(ranker, -1) << KIND_BITS | NUMBER_OF_KIND[kind]
        return await self._read(lambda: self._log(ranker, "topic = ? ORDER BY id", (topic,)))

    async def stories(self, ranker: str, decisions: list[str]) -> dict[str, list[Row]]:
        return await self._read(
            lambda: {decision: self._story(ranker, decision) for decision in decisions}, rows=len(decisions)
        )

    def _story(self, ranker: str, decision: str) -> list[Row]:
        first = self._find(ranker, "decision", decision)
        if first is None:
            return []
        base = self._known.ids[ranker] << SEQ_BITS
        # A range of ids: the index has them, so that rows of other rankers about the same id are not read.
        which = "decision = ? AND id BETWEEN ? AND ?"
        rest = self._log(ranker, which, (decision, base, base | SEQ))
        closed = self._closed_part(ranker)
        old = closed.story(decision) if first.seq <= closed.through else []
        return sorted({row.seq: row for row in [first, *old, *rest]}.values(), key=lambda row: row.seq)

    async def time(self, ranker: str, *, at: int) -> int:
        return self._known.time(ranker, at)

    async def due(self, ranker: str, *, after: int, before: int, allowed: int, limit: int) -> contract.Due:
        base = self._known.ids.get(ranker, -1) << SEQ_BITS
        topics = [
            base >> SEQ_BITS - KIND_BITS | NUMBER_OF_KIND[kind] for kind in ("decision", "feedback", "expire")
        ]
        values = (*topics, base, base | SEQ, base + after, before, allowed, limit)
        return contract.due_of(
            await self._read(lambda: self._rows(self._reader, _DUE, values), rows=limit),
            after=after,
            before=before,
        )

    async def look(self) -> None:
        self._has_room = await self._read(lambda: sqlite_file.has_room(self.folder))

    def complaint(self) -> str | None:
        if self._reads.stuck or self._writes.stuck:
            return "the disk does not answer"
        return None if self._has_room else f"no room to write to {self.path}"

    async def head(self, ranker: str) -> contract.Head:
        return self._known.head(ranker)

    async def acknowledged(self, ranker: str) -> contract.Head | None:
        number = self._known.ids.get(ranker)
        return None if number is None else await self._read(lambda: self._marks.read(number))

    async def problems(self) -> list[str]:
        return await self._reads.run(lambda: [*sqlite_file.oddities(self._reader), *self._vanished()])

    def _vanished(self) -> list[str]:
        """Rankers that have a mark and nothing else."""
        with contextlib.suppress(ValueError):  # a damaged mark is told of with its ranker
            known = set(self._known.ids.values())
            return [f"not there: {what}" for number, what in self._losses().items() if number not in known]
        return []

    async def unfiled(self, ranker: str, rows: list[Row]) -> list[int]:
        number = self._known.ids[ranker]

        def look() -> list[int]:
            closed = self._closed_part(ranker)
            live = [row for row in rows if row.seq > closed.through]
            there = sqlite_file.filed(self._reader, number, live)
            old = closed.unfiled(row for row in rows if row.seq <= closed.through)
            return [*old, *(row.seq for row in live if row.seq not in there)]

        return await self._read(look, rows=len(rows))

    def _check_epoch(self, epoch: int) -> None:
        found = self._rows(self._writer, "SELECT epoch FROM lease")
        if not found or found[0][0] != epoch:
            raise contract.Fenced(f"epoch {epoch} is over")

    async def write_snapshot(self, ranker: str, snapshot: contract.Snapshot, *, keep: int) -> None:
        number = self._known.ids[ranker]

        def work() -> None:
            self._check_epoch(snapshot.epoch)
            _write_snapshot(self._writer, number, ranker, snapshot, keep=keep)

        await self._transaction(work, then=lambda: None, seconds=_SNAPSHOT_SECONDS)
        reach("after-snapshot")

    async def snapshots(self, ranker: str) -> list[contract.Snapshot]:
        number = self._known.ids.get(ranker)
        return await self._read(lambda: _snapshots(self._reader, "x''", "ranker = ? ORDER BY seq", (number,)))

    async def read_snapshot(self, ranker: str, seq: int) -> contract.Snapshot | None:
        return await self._reads.run(lambda: self._snapshot(ranker, seq), seconds=_SNAPSHOT_SECONDS)

    async def write_key(self, key: contract.StoredKey) -> None:
        sql = "INSERT OR REPLACE INTO api_key VALUES (?, ?, ?, ?, ?)"
        await self._write(lambda: self._writer.execute(sql, msgspec.structs.astuple(key)))

    async def delete_key(self, key_id: str) -> bool:
        sql = "DELETE FROM api_key WHERE id = ? RETURNING id"
        return bool(await self._write(lambda: list(self._writer.execute(sql, (key_id,)))))

    async def keys(self) -> list[contract.StoredKey]:
        sql = "SELECT id, role, digest, at, note FROM api_key ORDER BY at, id"
        return [
            contract.StoredKey(*found) for found in await self._read(lambda: self._rows(self._reader, sql))
        ]

    async def take_leases(
        self, holder: str, rankers: Collection[str], *, seconds: float, now: float, at_once: bool = False
    ) -> dict[str, int]:
        # One process has the file, and with it all rankers: they have one lease.
        epoch = await self._write(lambda: sqlite_file.take_lease(self._writer, holder, at=now))
        return dict.fromkeys(rankers, epoch)

    # Closed history

    def _closed_part(self, ranker: str, *, again: bool = False) -> ClosedHistory:
        """What is in segments. Who only reads looks again: another process may have moved rows meanwhile."""
        number = self._known.ids[ranker]
        closed = self._closed.get(ranker)
        if closed is None:
            first = list(self._reader.execute("SELECT link FROM log WHERE id = ?", (number << SEQ_BITS | 1,)))
            folder = self.segment_folder / folder_name(ranker, first[0][0] if first else b"")
            closed = self._closed[ranker] = ClosedHistory(folder, may_write=not self.read_only)
        elif not self.read_only and not again:
            return closed
        with sqlite_file.read_errors(self.path):
            closed.add(sqlite_file.listed_segments(self._reader, number, after=closed.through))
        return closed

    def _page(self, ranker: str, after: int, limit: int) -> list[Row]:
        base = self._known.ids[ranker] << SEQ_BITS

        def live(after: int, limit: int) -> list[Row]:
            return self._log(ranker, _ROWS, (base + after, base | SEQ, limit))

        rows = live(after, limit)
        gap = bool(rows) and rows[-1].seq != after + len(rows)
        return self._closed_part(ranker, again=gap).page(rows, after=after, limit=limit, rest=live)

    def _snapshot(self, ranker: str, seq: int) -> contract.Snapshot | None:
        number = self._known.ids.get(ranker)
        found = _snapshots(self._reader, "state", "ranker = ? AND seq = ?", (number, seq))
        if found or number is None:
            return found[0] if found else None
        return self._closed_part(ranker).snapshot(seq)

    async def history(self, ranker: str) -> ClosedHistory:
        if ranker not in self._known.ids:
            raise contract.Missing(f"there is no ranker {ranker!r}")
        return await self._read(lambda: self._closed_part(ranker))

    async def add_segment(self, ranker: str, segment: Segment, *, links: dict[int, bytes]) -> None:
        number = self._known.ids[ranker]
        await self._write(
            lambda: sqlite_file.add_segment(self._writer, number, segment, links),
            then=lambda: self._closed[ranker].add([segment]),
        )

    async def clear(self, ranker: str, *, keep: list[int], limit: int) -> bool:
        number, through = self._known.ids[ranker], self._closed[ranker].through
        return await self._write(
            lambda: sqlite_file.clear_rows(self._writer, number, through=through, keep=keep, limit=limit)
        )

    async def left_over(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        through = (await self.history(ranker)).through
        base = self._known.ids[ranker] << SEQ_BITS
        values = (base + after, base | through, limit)
        return await self._read(lambda: self._log(ranker, _ROWS, values), rows=limit)

    async def give_space_back(self) -> None:
        while await self._write(lambda: sqlite_file.give_back(self._writer)):
            pass

    # Keys of data subjects: what is destroyed is overwritten in the file

    async def subject_key(self, subject: str) -> contract.SubjectKey | None:
        return await self._read(lambda: self._one(_NEWEST_KEY, subject))

    async def find_subject_key(self, key_id: str) -> contract.SubjectKey | None:
        sql = "SELECT id, key FROM subject_key WHERE id = ?"
        return await self._read(lambda: self._one(sql, key_id))

    def _one(self, sql: str, value: str) -> contract.SubjectKey | None:
        for row in self._reader.execute(sql, (value,)):
            return contract.SubjectKey(*row)
        return None

    async def write_subject_key(
        self, subject: str, key: contract.SubjectKey, *, at: int
    ) -> contract.SubjectKey:
        sql = "INSERT INTO subject_key (id, subject, key, at) VALUES (?, ?, ?, ?)"

        def work() -> contract.SubjectKey:
            present = list(self._writer.execute(_NEWEST_KEY, (subject,)))
            if not present:
                self._writer.execute(sql, (key.key_id, subject, key.key, at))
            return contract.SubjectKey(*present[0]) if present else key

        return await self._write(work)

    async def erase_subject(self, subject: str, *, at: int) -> int:
        sql = "UPDATE subject_key SET subject = NULL, key = NULL, erased = ? WHERE subject = ?"

        def work() -> int:
            self._writer.execute("PRAGMA secure_delete = ON")
            self._writer.execute(sql, (at, subject))
            n_keys: int = self._writer.changes()
            # Pages that were split when the table grew have copies of rows. All are given back, which zeroes them.
            rows = list(self._writer.execute("SELECT id, subject, key, at, erased FROM subject_key"))
            self._writer.execute("DELETE FROM subject_key")
            self._writer.executemany("INSERT INTO subject_key VALUES (?, ?, ?, ?, ?)", rows)
            return n_keys

        return await self._write(work, then=self._empty_wal)

    def _empty_wal(self) -> None:
        """Older pages with the key are in the write-ahead log until it is emptied, which a reader may prevent."""
        try:
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            raise contract.StoreError(
                f"the keys are destroyed, but older pages with them are still in {self.path}-wal, since somebody "
                f"reads from there ({error}): erase again once they are done"
            ) from error

    async def erased_keys(self) -> set[str]:
        sql = "SELECT id FROM subject_key WHERE erased IS NOT NULL"
        return await self._read(lambda: {key_id for (key_id,) in self._reader.execute(sql)})


class MemoryStore(SQLiteStore):
    """A store in a folder of its own that is gone when it is closed: for trials and tests."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.gettempdir(), f"rankloop-{secrets.token_hex(8)}"))

    async def close(self) -> None:
        await super().close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _write_snapshot(
    writer: apsw.Connection, number: int, ranker: str, snapshot: contract.Snapshot, *, keep: int
) -> None:
    """Within a transaction: keep it with the newest `keep` - 1 others; `Diverged` where it is not of this log."""
    row = number << SEQ_BITS | snapshot.seq
    if list(writer.execute("SELECT link FROM log WHERE id = ?", (row,))) != [(snapshot.link,)]:
        raise contract.Diverged(f"the log of {ranker!r} has no such row {snapshot.seq}")
    writer.execute(
        "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (number, *msgspec.structs.astuple(sealed(ranker, snapshot))),
    )
    reach("during-snapshot")
    writer.execute(
        "DELETE FROM snapshot WHERE ranker = ?1 AND seq NOT IN "
        "(SELECT seq FROM snapshot WHERE ranker = ?1 ORDER BY seq DESC LIMIT ?2)",
        (number, keep),
    )


def _snapshots(
    reader: apsw.Connection, state: str, which: str, values: tuple[Any, ...]
) -> list[contract.Snapshot]:
    """Snapshots, with what is named `state` for their states. A damaged one has a seal that does not fit."""
    sql = f"SELECT seq, at, epoch, code, config, hash, {state}, link, seal FROM snapshot WHERE {which}"
    try:
        try:
            found = list(reader.execute(sql, values))
        except UnicodeDecodeError:
            for column in _TEXTS:
                sql = sql.replace(f" {column},", f" CAST({column} AS BLOB),")
            found = [
                (*row[:3], *map(sqlite_file.as_text, row[3:6]), *row[6:])
                for row in reader.execute(sql, values)
            ]
    except apsw.Error as error:
        raise contract.Damaged(f"snapshots cannot be read: {error}") from error
    return [_snapshot(row) for row in found]


def _snapshot(found: tuple[Any, ...]) -> contract.Snapshot:
    kinds = (int, int, int, str, str, str, bytes, bytes, bytes)
    if all(type(value) is kind for value, kind in zip(found, kinds, strict=True)):
        return contract.Snapshot(*found)
    return contract.Snapshot(found[0], 0, 0, "", "", "", b"", b"", b"\0")  # no snapshot has such a seal
