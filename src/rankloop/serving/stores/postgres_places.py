"""Which rankers a PostgreSQL store has, and in which of several databases a name may be used."""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from rankloop.serving.stores.places import Place

Result = TypeVar("Result")
THERE = "place IN ('here', 'leaving')"  # of rankers that are in this database, as readers see it


class PostgresPlaces(abc.ABC):
    """The part of a store in PostgreSQL that is about its place among others."""

    timeline: str

    @abc.abstractmethod
    async def _do(self, work: Callable[[Any], Awaitable[Result]]) -> Result:
        """Run `work` with a connection."""

    async def origin(self, ranker: str) -> str:
        sql = "SELECT origin FROM ranker WHERE name = $1"
        found: str | None = await self._do(lambda one: one.fetchval(sql, ranker))
        return found or self.timeline

    async def place(self, ranker: str) -> Place | None:
        sql = f"SELECT place = 'leaving', moves FROM ranker WHERE name = $1 AND {THERE}"
        found = await self._do(lambda one: one.fetchrow(sql, ranker))
        return None if found is None else Place(*found)

    async def claim(self, rankers: list[str], database: str) -> dict[str, str]:
        async def work(connection: Any) -> Any:
            await connection.execute(
                "INSERT INTO home SELECT unnest($1::text[]), $2 ON CONFLICT DO NOTHING", rankers, database
            )
            return await connection.fetch("SELECT ranker, database FROM home WHERE ranker = ANY($1)", rankers)

        return dict(await self._do(work))
