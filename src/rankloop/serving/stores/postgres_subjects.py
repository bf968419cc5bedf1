"""Keys of data subjects in the PostgreSQL store."""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from rankloop.serving.stores.subjects import SubjectKey, Subjects

Result = TypeVar("Result")


class PostgresSubjects(Subjects):
    """The part of a store in PostgreSQL that is about data subjects."""

    @abc.abstractmethod
    async def _do(self, work: Callable[[Any], Awaitable[Result]]) -> Result:
        """Run `work` with a connection."""

    async def subject_key(self, subject: str) -> SubjectKey | None:
        sql = "SELECT id, key FROM subject_key WHERE subject = $1 ORDER BY at DESC, id LIMIT 1"
        found = await self._do(lambda one: one.fetchrow(sql, subject))
        return None if found is None else SubjectKey(*found)

    async def find_subject_key(self, key_id: str) -> SubjectKey | None:
        sql = "SELECT id, key FROM subject_key WHERE id = $1"
        found = await self._do(lambda one: one.fetchrow(sql, key_id))
        return None if found is None else SubjectKey(*found)

    async def write_subject_key(self, subject: str, key: SubjectKey, *, at: int) -> None:
        sql = "INSERT INTO subject_key (id, subject, key, at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
        await self._do(lambda one: one.execute(sql, key.key_id, subject, key.key, at))

    async def erase_subject(self, subject: str, *, at: int) -> int:
        sql = "UPDATE subject_key SET subject = NULL, key = NULL, erased = $2 WHERE subject = $1 RETURNING id"
        found = await self._do(lambda one: one.fetch(sql, subject, at))
        # The old rows are in the table until they are cleared away.
        await self._do(lambda one: one.execute("VACUUM subject_key"))
        return len(found)

    async def erased_keys(self) -> set[str]:
        sql = "SELECT id FROM subject_key WHERE erased IS NOT NULL"
        return {row["id"] for row in await self._do(lambda one: one.fetch(sql))}
