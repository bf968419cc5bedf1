"""A service in a process of its own, which can be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Self

from rankloop.serving.client import Client


class Service:
    """`rankloop serve` on a free port."""

    def __init__(self, *arguments: str, crash: str | None = None, env: dict[str, str] | None = None) -> None:
        environment = {**os.environ, **(env or {})}
        environment.pop("RANKLOOP_CRASH", None)
        if crash is not None:
            environment["RANKLOOP_CRASH"] = crash
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rankloop", "serve", "--port", "0", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.url = line.rpartition(" ")[2].strip() if "serves at" in line else ""
        if not self.url:
            self.process.wait(10)

    def client(self, **settings: Any) -> Client:
        return Client(self.url, **{"timeout": 120.0, "retries": 0} | settings)

    def stop(self) -> str:
        """Ask it to stop, and give back what it said on the way."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, told = self.process.communicate(timeout=90)
        return told

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def wait_dead(self, seconds: float = 20.0) -> bool:
        """Whether it died by itself within that time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                self.process.communicate()
                return True
            time.sleep(0.01)
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
