"""Who may use a store in PostgreSQL, and who shares it: API keys, the lease, and the replicas."""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from rankloop.serving.stores.contract import Member, Roll, StoredKey

Result = TypeVar("Result")


class PostgresAccess(abc.ABC):
    """The part of a store in PostgreSQL that is about processes and people, not about rankers."""

    _database_clock: bool

    @abc.abstractmethod
    async def _do(self, work: Callable[[Any], Awaitable[Result]]) -> Result:
        """Run `work` with a connection."""

    async def write_key(self, key: StoredKey) -> None:
        sql = (
            "INSERT INTO api_key VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO UPDATE "
            "SET role = $2, digest = $3, at = $4, note = $5"
        )
        values = (key.key_id, key.role, key.digest, key.at, key.note)
        await self._do(lambda one: one.execute(sql, *values))

    async def delete_key(self, key_id: str) -> bool:
        sql = "DELETE FROM api_key WHERE id = $1 RETURNING id"
        return await self._do(lambda one: one.fetchval(sql, key_id)) is not None

    async def keys(self) -> list[StoredKey]:
        sql = "SELECT id, role, digest, at, note FROM api_key ORDER BY at, id"
        return [StoredKey(*row) for row in await self._do(lambda one: one.fetch(sql))]

    async def take_lease(self, holder: str, *, seconds: float, now: float) -> int | None:
        sql = "SELECT take_lease($1, $2, $3)"
        time = None if self._database_clock else now
        epoch: int | None = await self._do(lambda one: one.fetchval(sql, holder, seconds, time))
        return epoch

    async def announce(self, replica: str, address: str, *, seconds: float, now: float) -> Roll:
        sql = "SELECT * FROM announce($1, $2, $3, $4)"
        time = None if self._database_clock else now
        found = await self._do(lambda one: one.fetch(sql, replica, address, seconds, time))
        return Roll(found[0]["epoch"], [Member(row["replica"], row["address"]) for row in found])

    async def members(self, *, now: float) -> list[Member]:
        sql = (
            "SELECT id, address FROM replica "
            "WHERE until >= coalesce($1, extract(epoch FROM clock_timestamp())::double precision) ORDER BY id"
        )
        time = None if self._database_clock else now
        return [Member(*row) for row in await self._do(lambda one: one.fetch(sql, time))]

    async def withdraw(self, replica: str) -> None:
        await self._do(lambda one: one.execute("DELETE FROM replica WHERE id = $1", replica))
