"""Keys of data subjects in the SQLite store. What is destroyed is overwritten in the file."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable
from typing import TypeVar

import apsw

from rankloop.serving.stores.subjects import SubjectKey, Subjects

Result = TypeVar("Result")


class SQLiteSubjects(Subjects):
    """The part of an SQLite store that is about data subjects."""

    _reader: apsw.Connection
    _writer: apsw.Connection

    @abc.abstractmethod
    async def _read(self, call: Callable[[], Result], *, rows: int = 1) -> Result:
        """Run `call` in the thread that reads."""

    @abc.abstractmethod
    async def _write(self, work: Callable[[], Result], then: Callable[[], None] = lambda: None) -> Result:
        """Run `work` in one transaction, and `then` after it, in the thread that writes."""

    async def subject_key(self, subject: str) -> SubjectKey | None:
        sql = "SELECT id, key FROM subject_key WHERE subject = ? ORDER BY at DESC, id LIMIT 1"
        return await self._read(lambda: self._one(sql, subject))

    async def find_subject_key(self, key_id: str) -> SubjectKey | None:
        sql = "SELECT id, key FROM subject_key WHERE id = ?"
        return await self._read(lambda: self._one(sql, key_id))

    def _one(self, sql: str, value: str) -> SubjectKey | None:
        for row in self._reader.execute(sql, (value,)):
            return SubjectKey(*row)
        return None

    async def write_subject_key(self, subject: str, key: SubjectKey, *, at: int) -> None:
        sql = "INSERT INTO subject_key (id, subject, key, at) VALUES (?, ?, ?, ?)"
        await self._write(lambda: self._writer.execute(sql, (key.key_id, subject, key.key, at)))

    async def erase_subject(self, subject: str, *, at: int) -> int:
        sql = "UPDATE subject_key SET subject = NULL, key = NULL, erased = ? WHERE subject = ?"

        def work() -> int:
            self._writer.execute("PRAGMA secure_delete = ON")
            self._writer.execute(sql, (at, subject))
            return self._writer.changes()

        return await self._write(work, then=self._empty_wal)

    def _empty_wal(self) -> None:
        """Older pages with the key are in the write-ahead log until it is emptied; a reader may keep it for a while."""
        with contextlib.suppress(apsw.Error):
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    async def erased_keys(self) -> set[str]:
        sql = "SELECT id FROM subject_key WHERE erased IS NOT NULL"
        return await self._read(lambda: {key_id for (key_id,) in self._reader.execute(sql)})
