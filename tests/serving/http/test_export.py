"""The export over HTTP: which formats there are, and what is said where one cannot be written."""

from __future__ import annotations

import pytest

from rankloop.extras import MissingExtra
from rankloop.serving.http import stream
from rankloop.serving.http.app import App
from tests.serving.in_process import ask
from tests.serving.service import answer, create, play, rank, rounds, running


def test_csv_is_the_default_and_other_formats_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def missing(*_: object) -> int:
        raise MissingExtra('exporting to Parquet needs polars: pip install "rankloop[data]"')

    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine)
            await rounds(engine, 3)
            for where in ("export", "export?format=csv"):
                status, text = await ask(app, "GET", f"/v1/rankers/unwind/{where}")
                assert (status, len(text.splitlines())) == (200, 4)
            # What a spreadsheet would take for a formula is text.
            await create(engine, "sums", items=["＝1", "@x"])
            shown = (await rank(engine, "-1", "sums")).items[0]
            await answer(engine, "-1", name="sums")
            status, text = await ask(app, "GET", "/v1/rankers/sums/export")
            row = text.splitlines()[1].split(",")
            assert (row[0], row[4]) == ("'-1", f"'{shown}")
            status, told = await ask(app, "GET", "/v1/rankers/unwind/export?format=xml")
            assert (status, told["error"]["field"]) == (422, "format")
            assert told["error"]["message"] == "format must be one of csv, ubi, parquet, got 'xml'"
            monkeypatch.setattr(stream, "export", missing)
            status, told = await ask(app, "GET", "/v1/rankers/unwind/export?format=parquet")
            assert (status, told["error"]["field"]) == (422, "format")
            assert 'pip install "rankloop[data]"' in told["error"]["message"]

    play(story)
