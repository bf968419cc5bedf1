"""Named places at which a test may kill the process, or have a disk fail. Nothing happens unless the environment asks.

RANKLOOP_CRASH="after-commit:3" kills the process with SIGKILL when it comes to that place for the third time;
"after-commit:3:stop" stops it with SIGSTOP instead.
"""

from __future__ import annotations

import os
import signal


class _Plan:
    def __init__(self, text: str) -> None:
        place, _, rest = text.partition(":")
        times, _, how = rest.partition(":")
        self.place = place
        self.left = int(times or 1)
        self.signal = signal.SIGSTOP if how == "stop" else signal.SIGKILL


_plan = _Plan(os.environ["RANKLOOP_CRASH"]) if os.environ.get("RANKLOOP_CRASH") else None


def reach(place: str) -> None:
    """Die here if a test asked for it."""
    if _plan is None or place != _plan.place:
        return
    _plan.left -= 1
    if _plan.left == 0:
        os.kill(os.getpid(), _plan.signal)
