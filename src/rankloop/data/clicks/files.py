"""Which files a path means, and how far their reading is."""

from __future__ import annotations

import glob
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from rankloop.data.clicks.remote import RemoteFile, find_remote
from rankloop.remote_folder import is_address


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the counting of a log is.

    Parameters
    ----------
    file : Path or RemoteFile
        The file that is read.
    done : int
        Bytes of all files that are counted.
    total : int
        Bytes of all files.
    seconds : float
        Since the start.
    seconds_left : float
        At the pace so far; infinite while there is none.
    """

    file: Path | RemoteFile
    done: int
    total: int
    seconds: float
    seconds_left: float


def find_files(paths: str | Path | Sequence[str | Path]) -> list[Path | RemoteFile]:
    """The files of a path or several: each a file, a folder with all in it, or a pattern such as ``logs/*.parquet``.

    Paths of object stores, such as ``s3://bucket/logs/*.parquet``, are listed through fsspec.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    if not given:
        raise ValueError("paths must name at least one file, got none")
    files: list[Path | RemoteFile] = []
    for one in given:
        if isinstance(one, str) and one.startswith("file://"):
            one = url2pathname(urlsplit(one).path)
        if is_address(one):
            files += find_remote(str(one))
            continue
        path = Path(one)
        if path.is_dir():
            inside = sorted(
                file
                for file in path.rglob("*")
                if file.is_file()
                and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
            )
            if not inside:
                raise ValueError(f"paths: the folder {path} has no file")
            files += inside
        elif not path.exists() and glob.has_magic(str(one)):
            found = sorted(Path(name) for name in glob.glob(str(one), recursive=True))  # noqa: PTH207
            found = [file for file in found if file.is_file()]
            if not found:
                raise ValueError(f"paths: no file matches {str(one)!r}")
            files += found
        else:
            files.append(path)
    return files


def size_of(file: Path | RemoteFile) -> int:
    """In bytes."""
    return file.stat().st_size if isinstance(file, Path) else file.size


class Pace:
    """Tells `report` of the progress, file by file."""

    def __init__(self, files: Sequence[Path | RemoteFile], report: Callable[[Progress], None] | None) -> None:
        self.sizes = [size_of(file) for file in files] if report else [0] * len(files)
        self.report, self.begun = report, time.monotonic()
        self.done, self.skipped = 0, 0

    def at(self, file: Path | RemoteFile, number: int, share: float, *, kept: bool = False) -> None:
        """Report a share of one file; `kept` if it was counted before and took no time."""
        if self.report is None:
            return
        done = sum(self.sizes[:number]) + round(share * self.sizes[number])
        if kept:
            self.skipped += self.sizes[number]
        total, seconds = sum(self.sizes), time.monotonic() - self.begun
        read = done - self.skipped
        left = seconds * (total - done) / read if read > 0 else float("inf")
        self.report(Progress(file, done, total, seconds, 0.0 if done == total else left))
