"""With numba switched off, every ranker plays in a debugger, and tells the story of its transcript."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STORIES = """
from tests.examples import of_ranker
from tests.golden.test_transcripts import CLASSES, FOLDER, same, transcript

for name, kind in CLASSES.items():
    told, written = transcript(of_ranker(name)), (FOLDER / f"{name}.txt").read_text()
    if not (told == written if kind.portable else same(told, written)):
        print(name)
"""


def test_every_ranker_tells_its_story_in_plain_python() -> None:
    program = [sys.executable, "-W", "error::RuntimeWarning", "-c", STORIES]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    ended = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
