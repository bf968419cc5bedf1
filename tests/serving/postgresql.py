"""Start a real PostgreSQL: Debian's, or whatever `pg_ctl` is on the path."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path


class Server:
    def __init__(self, folder: Path, binaries: Path, user: str | None) -> None:
        self.folder = folder
        self.binaries = binaries
        self.user = user
        self.url = f"postgresql://rankloop@/postgres?host={folder}"

    def run(self, program: str, *arguments: str) -> str:
        command = [str(self.binaries / program), *arguments]
        # PostgreSQL refuses to run as root.
        as_user = {"user": self.user, "extra_groups": []} if self.user else {}
        with tempfile.TemporaryFile("w+") as log:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
                cwd=self.folder,
                **as_user,
            )
            log.seek(0)
            told = log.read()
            if done.returncode:
                raise RuntimeError(f"{command}:\n{told}")
            return told

    def sql(self, statement: str) -> str:
        """Run a statement, and give back what it answered."""
        return self.run("psql", "-d", self.url, "-X", "-A", "-t", "-c", statement).strip()

    def begin(self) -> None:
        """Start, on a socket in the folder."""
        options = f"-k {self.folder} -c listen_addresses='' -c shared_buffers=16MB -c max_connections=50"
        log = str(self.folder / "log")
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-o", options, "-l", log, "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")


def start(folder: Path) -> Server:
    """A server that listens on a socket in `folder`, durable as it is by default."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    binary = str(found[-1]) if found else shutil.which("initdb")
    if binary is None:
        raise RuntimeError("there is no PostgreSQL here: apt install postgresql, or put initdb on the path")
    user = _somebody() if os.geteuid() == 0 else None
    place = Path(tempfile.mkdtemp(prefix="rl-pg-", dir="/tmp"))  # a socket's path must be short
    if user is not None:
        shutil.chown(place, user)
    server = Server(place, Path(binary).parent, user)
    data = str(place / "data")
    server.run("initdb", "-D", data, "-U", "rankloop", "--auth=trust", "--no-sync", "-E", "UTF8")
    server.begin()
    return server


def _somebody() -> str:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL does not run as root, and there is no other user")
