"""Logs in object stores: listed by fsspec, and copied to a temporary folder one at a time to be read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankloop.extras import MissingExtra, require

_STAMPS = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "updated", "mtime", "created")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file in an object store.

    Parameters
    ----------
    address : str
        Such as ``s3://bucket/logs/monday.parquet``.
    size : int
        In bytes.
    stamp : str
        What the store says of its version: a hash, or when it was written.
    """

    address: str
    size: int
    stamp: str

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.rstrip("/").rpartition("/")[2]


def find_remote(address: str) -> list[RemoteFile]:
    """The files of an address: one file, a folder with all in it, or a pattern."""
    require("fsspec", extra="remote", for_=f"reading {address}")
    store, path = _store(address)
    if any(sign in path for sign in "*?["):
        found = [one for one in sorted(store.glob(path)) if store.isfile(one)]
        if not found:
            raise ValueError(f"paths: no file matches {address!r}")
    elif store.isdir(path) and not store.isfile(path):
        found = [one for one in sorted(store.find(path)) if not _hidden(one.removeprefix(path))]
        if not found:
            raise ValueError(f"paths: the folder {address} has no file")
    else:
        found = [path]
    files = []
    for one in found:
        told = store.info(one)
        stamp = next((str(told[name]) for name in _STAMPS if told.get(name) is not None), "")
        files.append(RemoteFile(store.unstrip_protocol(one), int(told["size"]), stamp))
    return files


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.split("/"))


def _store(address: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    try:
        store, path = url_to_fs(address)
    except ImportError as error:  # the package of this kind of store, which only its users need
        raise MissingExtra(f"reading {address} needs another package: {error}", name=error.name) from error
    except ValueError as error:
        raise ValueError(f"paths: {address}: {error}") from error
    return store, str(path)


@contextmanager
def local_copy(file: Path | RemoteFile) -> Iterator[Path]:
    """A file of this machine as it is; of a store, a copy for as long as it is read, named by its address in errors."""
    if isinstance(file, Path):
        yield file
        return
    store, path = _store(file.address)
    with tempfile.TemporaryDirectory(prefix="rankloop-") as folder:
        copy = Path(folder, file.name)
        store.get_file(path, str(copy))
        try:
            yield copy
        except ValueError as error:
            raise ValueError(str(error).replace(str(copy), file.address)) from error
