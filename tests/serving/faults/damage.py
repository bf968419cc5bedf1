"""Bit rot and cut-off ends: a bit flipped in any column or anywhere in the file, rows or bytes cut off at the end."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import apsw

from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import StoreError
from rankloop.serving.stores.sqlite import SQLiteStore

# What is read again after a restart; the lease is taken anew, and keys guard nothing that is stored.
COLUMNS = {
    "log": ("id", "topic", "at", "event", "decision", "digest", "body", "link"),
    "snapshot": ("ranker", "seq", "at", "epoch", "code", "config", "hash", "state", "link", "seal"),
    "ranker": ("id", "name"),
    "meta": ("value",),
}


def copied(folder: Path, to: Path) -> Path:
    """A copy of the folder of a store that nobody serves."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    return to


def settle(folder: Path) -> None:
    """Move everything into the database file, so that it is all there is."""
    connection = apsw.Connection(str(folder / "rankloop.db"))
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


def flip_column(folder: Path, table: str, column: str, rng: random.Random) -> str | None:
    """Flip one bit of one value of this column; what was done, or None where the database itself would refuse that."""
    connection = apsw.Connection(str(folder / "rankloop.db"))
    try:
        rows = list(connection.execute(f"SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL"))
        rowid, value = rng.choice(rows)
        bits = 62 if isinstance(value, int) else 8 * len(value.encode() if isinstance(value, str) else value)
        if not bits:
            return None
        bit = rng.randrange(bits)
        kind = "TEXT" if isinstance(value, str) else "BLOB"
        new = value ^ 1 << bit if isinstance(value, int) else _flipped(value, bit)
        cast = "?" if isinstance(value, int) else f"CAST(? AS {kind})"
        connection.execute(f"UPDATE {table} SET {column} = {cast} WHERE rowid = ?", (new, rowid))
        return f"bit {bit} of {table}.{column} in row {rowid}"
    except apsw.ConstraintError:
        return None
    finally:
        connection.close()


def _flipped(value: str | bytes, bit: int) -> bytes:
    changed = bytearray(value.encode() if isinstance(value, str) else value)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def flip_file(folder: Path, rng: random.Random, name: str = "rankloop.db", where: range | None = None) -> str:
    """Flip one bit anywhere in a file, or in this part of it."""
    path = folder / name
    told = bytearray(path.read_bytes())
    part = where or range(len(told))
    bit = rng.randrange(8 * len(part))
    told[part[bit // 8]] ^= 1 << bit % 8
    path.write_bytes(told)
    return f"bit {bit % 8} of byte {part[bit // 8]} of {name}"


def index_cells(folder: Path, index: str) -> list[range]:
    """Where in the database file the cells of an index are, after everything was packed."""
    connection = apsw.Connection(str(folder / "rankloop.db"))
    connection.execute("VACUUM")
    pages = [page for (page,) in connection.execute("SELECT pageno FROM dbstat WHERE name = ?", (index,))]
    ((size,),) = connection.execute("PRAGMA page_size")
    connection.close()
    told = (folder / "rankloop.db").read_bytes()
    begins = [(page - 1) * size for page in pages]
    return [range(at + int.from_bytes(told[at + 5 : at + 7]), at + size) for at in begins]


def cut_rows(folder: Path, n: int) -> None:
    """Remove the newest rows, as a disk does that forgot what it had acknowledged."""
    connection = apsw.Connection(str(folder / "rankloop.db"))
    connection.execute("DELETE FROM log WHERE id IN (SELECT id FROM log ORDER BY id DESC LIMIT ?)", (n,))
    connection.close()


def cut_file(folder: Path, n_bytes: int) -> None:
    """Cut off the end of the database file."""
    path = folder / "rankloop.db"
    path.write_bytes(path.read_bytes()[:-n_bytes])


def contents(folder: Path) -> list[Any]:
    """Everything that is read again after a restart."""
    connection = apsw.Connection(str(folder / "rankloop.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return [list(connection.execute(f"SELECT * FROM {table} ORDER BY rowid")) for table in COLUMNS]
    finally:
        connection.close()


async def problems(folder: Path) -> list[str]:
    """What `rankloop verify` would say."""
    store = SQLiteStore(folder, read_only=True)
    try:
        await store.open()
    except (StoreError, ValueError) as error:
        return [str(error)]
    try:
        found = await store.problems()
        names = await store.rankers()
        for name in names:
            found += (await verify(store, name)).problems
        return found if names else ["there are no rankers"]
    finally:
        await store.close()
