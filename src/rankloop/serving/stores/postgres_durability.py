"""Whether a PostgreSQL server keeps what it has acknowledged: its settings, checked before anything is written."""

from __future__ import annotations

from typing import Any

from rankloop.serving.stores.contract import StoreError

_WAITS = (
    "on",
    "remote_apply",
)  # with these a commit waits for the disk, and for standbys that it has to wait for
_NEEDED = {
    "fsync": "a crash of the machine can destroy the database",
    "full_page_writes": "a crash of the machine can leave torn pages",
}


async def check_durable_server(connection: Any, *, allow_unsafe: bool) -> str:
    """Refuse a server that can lose what it has acknowledged; what `synchronous_commit` our connections are to have."""
    for name, consequence in _NEEDED.items():
        if await connection.fetchval(f"SHOW {name}") != "on" and not allow_unsafe:
            raise StoreError(
                f"the database runs with {name} = off: {consequence}, and acknowledged events with it. "
                "Set it to on, or start with --unsafe-database where losing them is no harm"
            )
    found: str = await connection.fetchval("SHOW synchronous_commit")
    return found if found in _WAITS or allow_unsafe else "on"


async def check_durable_connection(connection: Any) -> None:
    """Refuse a connection whose commits do not wait, as behind a pooler that drops our settings."""
    found = await connection.fetchval("SELECT current_setting('synchronous_commit')")
    if found not in _WAITS:
        raise StoreError(
            f"the database runs with synchronous_commit = {found}, and the service cannot change that: set it to on"
        )
