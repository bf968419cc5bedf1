"""The same state and the same lists, to the byte, on this processor and on an emulated plain x86-64."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.test_transcripts import CLASSES

ROOT = Path(__file__).parents[2]
# A processor of 2003, as far as numba, the C library, the matrix library and NumPy are concerned.
PLAIN = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX",
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3",
}


def told(folder: Path, name: str, **environment: str) -> subprocess.Popen[bytes]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_CPU", "GLIBC_"))}
    command = [sys.executable, "-m", "tests.portability.stories", str(folder / f"{name}.json")]
    return subprocess.Popen(command, cwd=ROOT, env=clean | environment)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="emulates a plain x86-64")
def test_every_ranker_on_a_plain_processor(tmp_path: Path) -> None:
    runs = [
        told(tmp_path, "here"),
        told(tmp_path, "plain", NUMBA_CACHE_DIR=str(tmp_path / "cache"), **PLAIN),
    ]
    assert [run.wait(timeout=900) for run in runs] == [0, 0]
    here, plain = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("here", "plain"))
    assert set(here) == set(plain)
    assert {f"transcript {name}" for name in CLASSES} <= set(here)
    portable = {name for name, kind in CLASSES.items() if kind.portable}
    assert len(portable) >= len(CLASSES) - 1
    differ = {story for story in here if here[story] != plain[story]}
    assert {story for story in differ if story.split()[-1] in portable} == set()
