"""Programs that are interrupted while they work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
# Whoever runs the tests may ignore Ctrl-C.
_HEAD = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"


def interrupted(
    code: str, begun: Callable[[IO[str]], object], *, by: signal.Signals = signal.SIGINT
) -> tuple[str, str, int]:
    """What a program prints, and how it ends, that gets a signal as soon as `begun` returns, called with its output."""
    with subprocess.Popen(
        [sys.executable, "-c", _HEAD + code],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            begun(process.stdout)
            process.send_signal(by)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()  # should it still be there
    return out, err, process.returncode
