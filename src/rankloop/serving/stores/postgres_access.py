"""Who may use a store in PostgreSQL, and who looks after its rankers: API keys and leases."""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

from rankloop.serving.stores.contract import Left, StoredKey
from rankloop.serving.stores.leases import MOST_UNATTENDED

Result = TypeVar("Result")
_MOMENT = "(SELECT coalesce({}, extract(epoch FROM clock_timestamp())::float8) AS moment) AS clock"


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

    async def take_leases(
        self,
        holder: str,
        rankers: Collection[str],
        *,
        seconds: float,
        now: float,
        at_once: bool = False,
    ) -> dict[str, int]:
        sql = "SELECT * FROM take_leases($1, $2::text[], $3, $4, $5)"
        values = (holder, list(rankers), seconds, self._moment(now), at_once)
        return dict(await self._do(lambda one: one.fetch(sql, *values)))

    async def let_go(self, holder: str, rankers: Collection[Left], *, now: float) -> None:
        sql = (
            "UPDATE ranker_lease SET holder = '', until = moment, looked = told.looked, wake = moment + told.wake_in "
            "FROM unnest($2::text[], $3::bigint[], $4::float8[]) AS told (name, looked, wake_in) "
            f"JOIN ranker USING (name), {_MOMENT.format('$5')} "
            "WHERE ranker_lease.ranker = ranker.id AND holder = $1"
        )
        columns = [list(column) for column in zip(*rankers, strict=True)] or [[], [], []]
        await self._do(lambda one: one.execute(sql, holder, *columns, self._moment(now)))

    async def unattended(self, *, seconds: float, now: float, besides: Collection[str] = ()) -> list[str]:
        # A ranker that was just made is left to who made it, one that was just let go of to who wrote to it.
        sql = (
            "SELECT name FROM ranker LEFT JOIN ranker_lease ON ranker_lease.ranker = ranker.id, "
            f"{_MOMENT.format('$2')} WHERE place = 'here' AND strpos(name, '~') = 0 "
            "AND name <> ALL($3::text[]) "
            "AND NOT coalesce(until, last_at / 1000.0) BETWEEN moment - $1 AND moment + 2 * $1 "
            f"AND (last_seq > coalesce(looked, 0) OR wake <= moment) ORDER BY id LIMIT {MOST_UNATTENDED}"
        )
        values = (seconds, self._moment(now), list(besides))
        return [name for (name,) in await self._do(lambda one: one.fetch(sql, *values))]

    def _moment(self, now: float) -> float | None:
        return None if self._database_clock else now
