"""Logs by address: listed, copied, counted, and named by their address in errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rankloop import data
from rankloop.data.clicks.files import Progress, find_files
from rankloop.data.clicks.remote import RemoteFile
from rankloop.extras import MissingExtra

fsspec = pytest.importorskip("fsspec")

ROWS = b"item,position,click\nx,1,1\ny,2,0\nx,2,1\n"
PAGE = b'{"q": "a", "docs": ["x", "y"], "clicks": ["x"]}\n'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    """A folder in memory, of this test alone."""
    files = fsspec.filesystem("memory")
    root = f"/{tmp_path.name}"
    files.pipe({f"{root}/logs/day=1/a.csv": ROWS, f"{root}/logs/b.csv": ROWS, f"{root}/logs/_SUCCESS": b""})
    files.pipe({f"{root}/pages.jsonl": PAGE * 3})
    yield f"memory://{root}"
    files.rm(root, recursive=True)


def shown(path: str | list[str | Path], **options: object) -> list[list[int]]:
    found: list[list[int]] = data.read_clicks(path, **options).matrices()[0].tolist()  # type: ignore[arg-type]
    return found


def test_files_folders_and_patterns(store: str, tmp_path: Path) -> None:
    assert shown(f"{store}/logs/b.csv") == [[1, 1], [0, 1]]
    assert shown(f"{store}/logs") == [[2, 2], [0, 2]]
    assert shown(f"{store}/logs/**/*.csv") == [[2, 2], [0, 2]]
    assert shown(f"{store}/pages.jsonl") == [[3, 0], [0, 3]]
    (tmp_path / "here.csv").write_bytes(ROWS)
    assert shown([f"{store}/logs/b.csv", tmp_path / "here.csv"]) == [[2, 2], [0, 2]]
    assert data.read_clicks(f"{store}/logs/b.csv").name == "b"
    assert data.read_sessions(f"{store}/pages.jsonl").items.shape == (3, 2)


def test_addresses_of_this_machine_are_paths(tmp_path: Path) -> None:
    (tmp_path / "a log.csv").write_bytes(ROWS)
    address = (tmp_path / "a log.csv").as_uri()
    assert address.startswith("file://")
    assert find_files(address) == [tmp_path / "a log.csv"]
    assert shown(address) == [[1, 1], [0, 1]]
    assert shown(f"file://{tmp_path}/*.csv") == [[1, 1], [0, 1]]


def test_progress_and_resume(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Progress] = []
    paths = f"{store}/logs"
    assert shown(paths, resume=tmp_path / "kept", progress=heard.append) == [[2, 2], [0, 2]]  # type: ignore[arg-type]
    assert [one.file.name for one in heard] == ["b.csv", "a.csv"]
    assert heard[-1].done == heard[-1].total == 2 * len(ROWS)
    monkeypatch.setattr("rankloop.data.clicks.read.local_copy", None)  # nothing is copied again
    assert shown(paths, resume=tmp_path / "kept") == [[2, 2], [0, 2]]


def test_a_file_that_changed_is_counted_anew(store: str, tmp_path: Path) -> None:
    shown(f"{store}/logs/b.csv", resume=tmp_path / "kept")
    fsspec.filesystem("memory").pipe({f"/{tmp_path.name}/logs/b.csv": ROWS.replace(b"y,2", b"y,1")})
    assert shown(f"{store}/logs/b.csv", resume=tmp_path / "kept") == [[1, 1], [1, 0]]


def test_errors_name_the_address(store: str, tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe({f"/{tmp_path.name}/bad.csv": b"item,place,click\nx,1,1\n"})
    with pytest.raises(ValueError, match=rf"^{store}/bad.csv: no column for position"):
        data.read_clicks(f"{store}/bad.csv")
    with pytest.raises(FileNotFoundError):
        data.read_clicks(f"{store}/nowhere.csv")
    with pytest.raises(ValueError, match=r"paths: no file matches 'memory://.*\.gz'"):
        data.read_clicks(f"{store}/*.gz")
    with pytest.raises(ValueError, match=r"paths: nosuch://bucket/log.csv: Protocol not known"):
        data.read_clicks("nosuch://bucket/log.csv")


def test_what_is_not_installed_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(address: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(
        MissingExtra, match=r"reading s3://bucket/log.csv needs another package: Install s3fs"
    ):
        data.read_clicks("s3://bucket/log.csv")
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(MissingExtra, match=r'reading s3://.* needs fsspec: pip install "rankloop\[remote\]"'):
        data.read_clicks("s3://bucket/log.csv")


def test_versions_of_a_file_differ() -> None:
    one = RemoteFile("s3://b/x.csv", 3, "etag")
    assert one.name == "x.csv"
    assert str(one) == "s3://b/x.csv"
    assert one != RemoteFile("s3://b/x.csv", 3, "another")
