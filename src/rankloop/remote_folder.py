"""Results in an object store: a copy of the folder on this machine, of which every whole file goes there at once."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rankloop.extras import require
from rankloop.whole_file import copying

_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")


def is_address(place: str | os.PathLike[str]) -> bool:
    """Whether `place` is an address of a store and not a folder of this machine.

    Parameters
    ----------
    place : str or os.PathLike
        A folder or an address.

    Returns
    -------
    bool
        True for what begins like ``s3://``.

    Examples
    --------
    >>> is_address("s3://bucket/results"), is_address("results")
    (True, False)
    """
    return isinstance(place, str) and _ADDRESS.match(place) is not None


@contextmanager
def opened_folder(place: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to read and write: `place` itself, or a copy of what an object store has there.

    Of a store, everything is fetched on the way in. Each file that `whole_file.write_whole` then puts into the copy is
    sent as soon as it is there, so that an interrupted run leaves in the store what it has finished.

    Parameters
    ----------
    place : str or os.PathLike
        A folder, or an address that fsspec knows, such as ``s3://bucket/results``.

    Yields
    ------
    Path
        The folder, or its copy.

    Raises
    ------
    ValueError
        Where the address is of no known kind, or the library for it is not installed.
    """
    if not is_address(place):
        yield Path(place)
        return
    address = str(place)
    store, root = _store(address)
    if "file" in (store.protocol if isinstance(store.protocol, tuple | list) else (store.protocol,)):
        yield Path(root)
        return
    with tempfile.TemporaryDirectory(prefix="rankloop-") as made:
        copy = Path(made)
        if store.exists(root):
            for file in store.find(root):
                target = copy / os.path.relpath(file, root)
                target.parent.mkdir(parents=True, exist_ok=True)
                store.get_file(file, str(target))

        def send(path: Path) -> None:
            # In one call, which object stores carry out entirely or not at all.
            name = f"{root}/{path.relative_to(copy).as_posix()}"
            store.makedirs(name.rpartition("/")[0], exist_ok=True)
            store.pipe_file(name, path.read_bytes())

        with copying(copy, send):
            yield copy


def _store(address: str) -> tuple[Any, str]:
    require("fsspec", extra="remote", for_=f"the address {address}")
    import fsspec

    try:
        store, root = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise ValueError(f"address {address} cannot be used: {error}") from error
    return store, root.rstrip("/")
