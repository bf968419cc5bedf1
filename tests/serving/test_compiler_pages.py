"""The pages of the compiler's library go, and come back where they are needed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from rankloop.serving.compiler_pages import LIBRARY, CompilerPages, unchanged

_SMAPS = Path("/proc/self/smaps")
_SAME = "define i64 @same(i64 %x) {\n  ret i64 %x\n}\n"
only_linux = pytest.mark.skipif(not _SMAPS.exists(), reason="no /proc/self/smaps")


def _held() -> int:
    """Kilobytes of the library that are in memory and could be given back."""
    kilobytes, inside = 0, False
    for line in _SMAPS.read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            inside = words[-1].endswith(LIBRARY) and words[1] == "r-xp"
        elif inside and words[0] == "Rss:":
            kilobytes += int(words[1])
    return kilobytes


@only_linux
def test_pages_go_and_come_back() -> None:
    llvm.parse_assembly(_SAME).verify()
    pages, before = CompilerPages(), _held()
    assert before > 0
    pages.release()
    assert _held() < before / 2
    assert "@same" in str(llvm.parse_assembly(_SAME))  # the compiler works as before
    pages.release()
    assert _held() < before / 2


@only_linux
def test_it_goes_on_until_it_is_stopped() -> None:
    async def story() -> None:
        llvm.parse_assembly(_SAME).verify()
        before = _held()
        going = asyncio.create_task(CompilerPages().release_now_and_then())
        await asyncio.sleep(0)
        assert _held() < before
        assert going.cancel()

    asyncio.run(story())


def test_only_what_is_as_in_the_file_is_given_back() -> None:
    told = [
        "1000-2000 r--p 00000000 08:01 7                          /lib/with a space/libllvmlite.so\n",
        "Anonymous:             0 kB\n",
        "VmFlags: rd mr mw me sd\n",
        "2000-3000 r--p 00001000 08:01 7                          /lib/with a space/libllvmlite.so\n",
        "Anonymous:             4 kB\n",  # relocated, then protected
        "3000-4000 rw-p 00002000 08:01 7                          /lib/with a space/libllvmlite.so\n",
        "Anonymous:             0 kB\n",
        "4000-5000 r-xp 00000000 08:01 8                          /lib/another.so\n",
        "Anonymous:             0 kB\n",
        "5000-6000 r--p 00000000 00:00 0 \n",
        "Anonymous:             0 kB\n",
    ]
    assert unchanged(told, LIBRARY) == [(0x1000, 0x2000)]


def test_where_nothing_is_told_of_memory_the_pages_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(path: Path) -> None:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "open", nothing)
    CompilerPages().release()
