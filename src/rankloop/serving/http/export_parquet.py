"""The log of a ranker as a Parquet file over HTTP: the file that `rankloop export` writes."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from rankloop.extras import MissingExtra
from rankloop.serving.errors import RequestError
from rankloop.serving.log.export import export
from rankloop.serving.stores.contract import Store

_PIECE = 1 << 20


async def parquet_pieces(store: Store, ranker: str) -> AsyncIterator[bytes]:
    """The file in pieces; it is written as a whole first, because its end says where everything is."""
    with tempfile.TemporaryDirectory(prefix="rankloop-export-") as folder:
        path = Path(folder) / "export.parquet"
        try:
            await export(store, ranker, path)
        except MissingExtra as error:
            raise RequestError(str(error), field="format") from None
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece
