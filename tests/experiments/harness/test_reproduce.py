"""One experiment from jobs to verdict: what is written, and how often the work is listed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path

import polars as pl
import pytest

from rankloop.experiments.experiment import Claim, Job
from rankloop.experiments.harness.report import write_report
from rankloop.experiments.harness.reproduce import reproduce
from tests.experiments.toy import Toy


class Counting(Toy):
    listed = 0

    def jobs(self, *, quick: bool) -> list[Job]:
        self.listed += 1
        return super().jobs(quick=quick)


def test_the_jobs_are_listed_once(tmp_path: Path) -> None:
    experiment = Counting()
    reproduce(experiment, out=tmp_path, quick=True)
    assert experiment.listed == 1


def test_the_record_tells_what_was_run_and_what_was_found(tmp_path: Path) -> None:
    verdict = reproduce(Toy(truth=False), out=tmp_path, quick=True)
    record = json.loads((tmp_path / "toy" / "claims.json").read_text(encoding="utf-8"))
    assert not verdict.holds
    assert not record["holds"]
    assert [claim["holds"] for claim in record["claims"]] == [True, False]
    assert (record["settings"], record["seeds"], record["jobs"]) == ({"rounds": 50}, [1, 2, 3], 3)
    assert record["command"] == "rankloop reproduce toy --quick"
    assert [picture["name"] for picture in record["figures"]] == ["falling"]
    assert len(record["summary"]) == 3
    assert pl.read_parquet(tmp_path / "toy" / "results.parquet").height == 150


def test_two_claims_of_one_name_are_refused(tmp_path: Path) -> None:
    class Twice(Toy):
        def claims(self, results: pl.DataFrame, *, quick: bool) -> list[Claim]:
            return 2 * super().claims(results, quick=quick)

    with pytest.raises(ValueError, match="'toy' has two claims of the same name"):
        reproduce(Twice(), out=tmp_path, quick=True)


def test_claims_may_come_one_by_one(tmp_path: Path) -> None:
    class Lazy(Toy):
        def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:  # type: ignore[override]
            yield from super().claims(results, quick=quick)

    assert len(reproduce(Lazy(), out=tmp_path, quick=True).claims) == 2


def test_figures_are_the_same_byte_for_byte_when_made_again(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        reproduce(Toy(), out=tmp_path / folder, quick=True)
    for ending in ("png", "svg"):
        one, two = (
            (tmp_path / folder / "toy" / f"falling.{ending}").read_bytes() for folder in ("one", "two")
        )
        assert one == two


def test_figures_for_a_paper(tmp_path: Path) -> None:
    reproduce(Toy(), out=tmp_path, quick=True, pdf=True, titles=False)
    folder = tmp_path / "toy"
    assert (folder / "falling.pdf").read_bytes().startswith(b"%PDF")
    assert 'id="caption"' not in (folder / "falling.svg").read_text(encoding="utf-8")
    page = write_report(tmp_path).read_text(encoding="utf-8")
    (picture,) = json.loads((folder / "claims.json").read_text(encoding="utf-8"))["figures"]
    assert picture["caption_share"] == 0.0
    assert page.count(f"<figcaption>{escape(picture['caption'])}</figcaption>") == 1
