"""A streaming standby of PostgreSQL that falls behind and then takes over: what it had not received is gone."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from tests.serving.postgresql import Server


def follow(primary: Server) -> Server:
    """A second server that receives everything the first one writes."""
    place = Path(primary.folder).with_name(primary.folder.name + "-b")
    place.mkdir()
    if primary.user is not None:
        shutil.chown(place, primary.user)
    standby = Server(place, primary.binaries, primary.user)
    standby.run(
        "pg_basebackup", "-D", str(place / "data"), "-R", "-X", "stream", "-c", "fast",
        "-h", str(primary.folder), "-U", "rankloop",
    )  # fmt: skip
    standby.begin()
    return standby


def address(*servers: Server) -> str:
    """The address of whichever of them takes writes."""
    hosts = ",".join(str(one.folder) for one in servers)
    return f"postgresql://rankloop@/postgres?host={hosts}&target_session_attrs=read-write"


def caught_up(primary: Server, standby: Server) -> None:
    """Wait until the second server has everything."""
    wanted = primary.sql("SELECT pg_current_wal_lsn()")
    end = time.monotonic() + 30
    while standby.sql(f"SELECT pg_last_wal_replay_lsn() >= '{wanted}'") != "t":
        if time.monotonic() > end:
            raise RuntimeError("the standby does not catch up")
        time.sleep(0.05)


def cut_off(standby: Server) -> None:
    """From now on it receives nothing."""
    standby.sql("ALTER SYSTEM SET primary_conninfo = ''")
    standby.sql("SELECT pg_reload_conf()")
    end = time.monotonic() + 30
    while standby.sql("SELECT count(*) FROM pg_stat_wal_receiver") != "0":
        if time.monotonic() > end:
            raise RuntimeError("the standby goes on receiving")
        time.sleep(0.05)


def take_over(primary: Server, standby: Server) -> None:
    """The first server dies, the second one takes writes."""
    primary.stop()
    standby.sql("SELECT pg_promote(true, 60)")
