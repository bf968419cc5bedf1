"""What was read once need not be read again, unless the file has changed or what was kept is damaged."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop import data
from rankloop.data.letor import assemble
from rankloop.data.letor import cache as letor_cache

TEXT = "1 qid:a 1:0.5 2:3 # docid = X\n0 qid:a 2:1 # docid = Ü\n2 qid:b 1:7\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RANKLOOP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every reading of text."""
    read, count = assemble.read, list[int]()

    def counted(*arguments: Any, **options: Any) -> data.Dataset:
        count.append(1)
        return read(*arguments, **options)

    monkeypatch.setattr(assemble, "read", counted)
    return count


def write(path: Path, text: str, *, hours_ago: float = 1) -> Path:
    path.write_text(text)
    changed = path.stat().st_mtime - 3600 * hours_ago
    os.utime(path, (changed, changed))
    return path


def same(one: data.Dataset, other: data.Dataset) -> bool:
    for field in ("features", "relevance", "offsets"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
        assert getattr(one, field).dtype == getattr(other, field).dtype
        assert not getattr(one, field).flags.writeable
    return all(
        getattr(one, field) == getattr(other, field)
        for field in ("query_ids", "name", "max_grade", "comments")
    )


def test_the_second_time_nothing_is_read(tmp_path: Path, cache: Path, readings: list[int]) -> None:
    path = write(tmp_path / "some.txt", TEXT)
    first = data.read_letor(path)
    second = data.read_letor(str(path))
    assert len(readings) == 1
    assert same(first, second)
    assert second.comments == ("docid = X", "docid = Ü", "")
    assert [file.name.startswith("letor-") for file in cache.iterdir()] == [True]
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "cache",
        "some.txt",
    ]  # nothing beside the data
    assert data.read_letor(path, name="other").name == "other"
    assert len(readings) == 1


def test_without_comments(tmp_path: Path, cache: Path, readings: list[int]) -> None:
    path = write(tmp_path / "some.txt", "1 qid:1 1:1\n")
    assert same(data.read_letor(path), data.read_letor(path))
    assert len(readings) == 1


def test_each_option_has_its_own(tmp_path: Path, cache: Path, readings: list[int]) -> None:
    path = write(tmp_path / "some.txt", TEXT)
    other = write(tmp_path / "other.txt", TEXT)
    variants: list[dict[str, Any]] = [
        {},
        {"normalize": None},
        {"dtype": "float64"},
        {"n_features": 5},
        {"preset": "mslr"},
        {"first_feature": 0},
    ]
    for count, options in enumerate(variants, start=1):
        assert same(data.read_letor(path, **options), data.read_letor(path, **options))
        assert len(readings) == count
    data.read_letor(other)
    data.read_letor([path, other])
    data.read_letor([other, path])
    assert len(readings) == len(variants) + 3


def test_cache_false_neither_reads_nor_writes_it(tmp_path: Path, cache: Path, readings: list[int]) -> None:
    path = write(tmp_path / "some.txt", TEXT)
    data.read_letor(path, cache=False)
    assert not cache.exists()
    data.read_letor(path)
    data.read_letor(path, cache=False)
    assert len(readings) == 3


@pytest.mark.parametrize(("text", "hours_ago"), [(TEXT + TEXT, 1), (TEXT.replace("7", "8"), 2)])
def test_a_changed_file_is_read_again(
    tmp_path: Path, cache: Path, readings: list[int], text: str, hours_ago: float
) -> None:
    path = write(tmp_path / "some.txt", TEXT)
    data.read_letor(path)
    write(path, text, hours_ago=hours_ago)
    changed = data.read_letor(path)
    assert same(changed, data.read_letor(path, cache=False))
    assert same(changed, data.read_letor(path))
    assert len(readings) == 3
    assert len(list(cache.iterdir())) == 1  # the old one is gone


def test_a_file_still_warm_is_not_kept(tmp_path: Path, cache: Path, readings: list[int]) -> None:
    # Written again at once, it might have the same size and the same time.
    path = write(tmp_path / "some.txt", TEXT, hours_ago=0)
    data.read_letor(path)
    path.write_text(TEXT.replace("7", "8"))
    assert data.read_letor(path, normalize=None).features[2, 0] == 8
    assert not cache.exists()


def test_a_file_that_changes_while_it_is_read_is_not_kept(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "some.txt", TEXT)
    read = assemble.read

    def slow(*arguments: Any, **options: Any) -> data.Dataset:
        dataset = read(*arguments, **options)
        write(path, TEXT, hours_ago=3)
        return dataset

    monkeypatch.setattr(assemble, "read", slow)
    data.read_letor(path)
    assert not cache.exists()


def test_damage_is_noticed_and_repaired(tmp_path: Path, cache: Path, readings: list[int]) -> None:
    path = write(tmp_path / "some.txt", TEXT)
    first = data.read_letor(path)
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    damages = [b"", b"x", whole[:10], whole[:40], whole[:-1], whole + b"\0", b"\0" * len(whole)]
    damages += [whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :] for at in range(0, len(whole), 5)]
    for count, damage in enumerate(damages, start=2):
        kept.unlink()
        kept.write_bytes(damage)
        assert same(first, data.read_letor(path))
        assert len(readings) == count, damage
        assert kept.read_bytes() == whole
    assert len(list(cache.iterdir())) == 1


def test_no_room_for_a_cache_is_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readings: list[int]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RANKLOOP_CACHE", str(tmp_path / "file"))
    path = write(tmp_path / "some.txt", TEXT)
    assert same(data.read_letor(path), data.read_letor(path))
    assert len(readings) == 2


def test_a_failed_write_leaves_nothing_behind(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    data.read_letor(write(tmp_path / "some.txt", TEXT))
    assert list(cache.iterdir()) == []


def test_features_are_mapped_not_copied(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path / "some.txt", TEXT)
    data.read_letor(path)
    kept = data.read_letor(path)
    base: Any = kept.features
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, memoryview)
    assert kept.features.ctypes.data % 64 == 0


def test_what_is_kept_needs_no_compiler(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path / "some.txt", TEXT)
    data.read_letor(path)
    code = (
        f"import sys; from rankloop import data;data.read_letor({str(path)!r}); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANKLOOP_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for platform, place in (("linux", "xdg"), ("win32", "local"), ("darwin", "Library/Caches")):
        monkeypatch.setattr(sys, "platform", platform)
        assert letor_cache.folder() == tmp_path / place / "rankloop"
