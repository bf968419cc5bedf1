"""Simulated people: they come, answer late or never, and leave when told to; a service ends when its time is up."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rankloop.serving.simulated_users import applications, come_and_go
from tests.serving.process import Service
from tests.serving.service import adds_up, play, running


def test_they_use_three_applications_until_they_are_told_to_go() -> None:
    async def story() -> None:
        async with running(clock=time.time) as engine:
            coming = asyncio.create_task(come_and_go(engine))
            names = [application.ranker.name for application in applications()]
            async with asyncio.timeout(120):  # the first time, kernels are compiled
                while not all(
                    name in engine.rankers and engine.rankers[name].fold.rounds > 5 for name in names
                ):
                    await asyncio.sleep(0.05)
            coming.cancel()
            with pytest.raises(asyncio.CancelledError):
                await coming
            await asyncio.sleep(0.05)
            for name in names:
                counts = engine.rankers[name].fold.counts
                assert counts.decisions >= counts.activated >= counts.learnt > 5
                await adds_up(engine, name)
            there = engine.rankers["unwind"].fold.applied
            await asyncio.sleep(0.3)
            assert engine.rankers["unwind"].fold.applied == there

    play(story)


def test_it_ends_when_its_time_is_up_and_finds_a_free_port() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with Service("--memory", "--people", "--seconds", "1", "--port", str(port)) as service:
            assert service.url.startswith("http://127.0.0.1:")
            assert service.url != f"http://127.0.0.1:{port}"
            assert service.process.stdout is not None
            # Not `communicate`: it leaves out what `readline` has read ahead.
            said = service.process.stdout.read().splitlines()
            assert said[0].startswith("version ")
            assert "; store: nothing is kept; " in said[0]
            assert said[1:] == ["rankloop stopped."]
            assert service.process.wait(timeout=60) == 0


def test_what_is_rehearsed_are_all_their_kernels(tmp_path: Path) -> None:
    """So that a service without a library answers from its first second: nothing more is compiled after it."""
    program = """
import asyncio, time
from rankloop.kernels import jit
from rankloop.serving.simulated_users import applications, come_and_go, rehearse
from tests.serving.service import running

called = set()
find = jit.find
jit.find = lambda kernel, kind: (called.add((getattr(kernel, "name", ""), kind)), find(kernel, kind))[1]
asyncio.run(rehearse())
before = set(called)

async def story():
    async with running(clock=time.time) as engine:
        coming = asyncio.create_task(come_and_go(engine))
        await asyncio.sleep(2)
        coming.cancel()

asyncio.run(story())
assert before
print(called - before)
"""
    environment = os.environ | {
        "RANKLOOP_MISSED_KERNELS": str(tmp_path / "missed")
    }  # asks the library each time
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr
