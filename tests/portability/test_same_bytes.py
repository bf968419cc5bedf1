"""The same state and the same lists, to the byte, on this processor and on an emulated plain x86-64."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from rankloop.kernels import jit
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.portability.stories import FEW, TOLD, served_story

ROOT = Path(__file__).parents[2]
# A processor of 2008, as far as the library of kernels is concerned, where there is one; of 2003 for numba, the C
# library, the matrix library and NumPy.
PLAIN = {
    "RANKLOOP_KERNELS": "numba" if jit.LIBRARY is None else "x86-64-v2",
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX",
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3",
}


NOT_HERE = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="emulates a plain x86-64")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process on that processor, with machine code of its own."""
    return PLAIN | {"NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("plain"))}


def start(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_CPU", "GLIBC_"))}
    return subprocess.Popen([sys.executable, "-m", *arguments], cwd=ROOT, env=clean | environment)


@NOT_HERE
def test_rankers_on_a_plain_processor(tmp_path: Path, plain: dict[str, str]) -> None:
    files = [tmp_path / "here.json", tmp_path / "plain.json"]
    # One after the other, the plain one first: it compiles everything for itself, while other tests compile for here.
    for file, environment in reversed([*zip(files, ({}, plain), strict=True)]):
        assert start("tests.portability.stories", str(file), **environment).wait(timeout=900) == 0
    here, there = (json.loads(file.read_text()) for file in files)
    assert set(here) == set(there)
    assert {f"{way} {name}" for name in TOLD for way in ("transcript", "served")} <= set(here)
    portable = {name for name, kind in TOLD.items() if kind.portable}
    assert len(portable) >= len(TOLD) - 1
    differ = {story for story in here if here[story] != there[story]}
    assert {story for story in differ if story.split()[-1] in portable} == set()


def test_the_few_use_every_kernel_that_rankers_share() -> None:
    program = f"""
import sys
from rankloop import rankers
from rankloop.kernels import loop
for name in {FEW}:
    getattr(rankers, name)
print(*(name for name in sys.modules if name.startswith("rankloop.kernels.")))
"""
    listed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    every = {f"rankloop.kernels.{path.stem}" for path in (ROOT / "src/rankloop/kernels").glob("[!_]*.py")}
    # Of data, and where numba compiles.
    names = ("click_fits", "cuda_compiler", "llvm", "numba_compiler", "text")
    others = {f"rankloop.kernels.{name}" for name in names}
    assert every - set(listed.stdout.split()) == others


@NOT_HERE
def test_a_log_written_here_verifies_there(tmp_path: Path, plain: dict[str, str]) -> None:
    for algorithm in FEW:
        asyncio.run(served_story(algorithm, SQLiteStore(tmp_path)))
    assert start("rankloop", "verify", "--data", str(tmp_path), **plain).wait(timeout=300) == 0
