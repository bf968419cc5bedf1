from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import polars as pl

from rankloop.experiments.harness.report import write_report
from rankloop.experiments.harness.reproduce import reproduce
from tests.experiments.toy import Toy

VOID = {"meta", "br", "img", "link", "hr"}


class Checker(HTMLParser):
    """Collects ids and references, and insists that tags are closed in the order they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def _note(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "srcset", "data"):
                self.references.append(value or "")


def page_of(out: Path) -> str:
    return write_report(out).read_text(encoding="utf-8")


def test_a_reproduction_leaves_everything_it_promises(tmp_path: Path) -> None:
    verdict = reproduce(Toy(), out=tmp_path, quick=True)
    assert verdict.holds
    assert sorted(path.name for path in (tmp_path / "toy").iterdir()) == [
        "claims.json",
        "falling.png",
        "falling.svg",
        "jobs",
        "results.parquet",
    ]
    assert pl.read_parquet(tmp_path / "toy" / "results.parquet").height == 150
    record = json.loads((tmp_path / "toy" / "claims.json").read_text(encoding="utf-8"))
    assert record["command"] == "rankloop reproduce toy --quick"
    assert record["seeds"] == [1, 2, 3]
    assert record["settings"] == {"rounds": 50}
    assert record["holds"] is True


def test_pictures_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    for out in ("a", "b"):
        reproduce(Toy(), out=tmp_path / out, quick=True)
    for name in ("falling.svg", "falling.png"):
        assert (tmp_path / "a/toy" / name).read_bytes() == (tmp_path / "b/toy" / name).read_bytes()


def test_the_report_needs_nothing_but_itself(tmp_path: Path) -> None:
    reproduce(Toy(), out=tmp_path, quick=True)
    page = page_of(tmp_path)
    assert not re.search(r"https?:|//[a-z]|@import|<script|<link|<img", page)
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert len(checker.ids) == len(set(checker.ids))
    assert all(reference.startswith("#") and reference[1:] in checker.ids for reference in checker.references)
    for used in re.findall(r"url\(([^)]*)\)", page):
        assert used[1:] in checker.ids
    for picture in re.findall(r"<svg.*?</svg>", page, re.S):
        assert not re.search(r"#[0-9a-f]{6}\b", picture), "a colour that does not follow the page"
    for used in re.findall(r"var\((--\w+)\)", page):
        assert f"{used}:" in page


def test_the_report_covers_every_experiment_in_the_folder(tmp_path: Path) -> None:
    class Other(Toy):
        name = "other"

    reproduce(Toy(), out=tmp_path, quick=True)
    reproduce(Other(truth=False), out=tmp_path)
    page = page_of(tmp_path)
    assert page.count("<section") == 2
    assert page.count("<svg") == 2
    assert "3 of 4 claims hold, in 2 experiments. 1 experiment ran with quick settings" in page
    assert "1 of 2 broken" in page
    assert "all 2 hold" in page
    checker = Checker()
    checker.feed(page)
    assert len(checker.ids) == len(set(checker.ids))


def test_the_report_says_how_it_was_made_and_escapes_what_it_shows(tmp_path: Path) -> None:
    reproduce(Toy(), out=tmp_path, quick=True)
    page = page_of(tmp_path)
    assert "A curve &lt;that&gt; falls &amp; settles" in page
    assert "it is &lt;true&gt;" in page
    for worded in ("before the run", "after a run"):
        assert page.count(f'<td class="quiet">{worded}</td>') == 1
    assert page.count("regret times 10") == 2
    assert '<code class="quiet">falls</code>' in page
    for wanted in ("rankloop reproduce toy --quick", "rounds = 50", "1 to 3", "numpy ", "There is no paper."):
        assert wanted in page


def test_claims_stored_by_an_earlier_version_are_shown_all_the_same(tmp_path: Path) -> None:
    reproduce(Toy(), out=tmp_path, quick=True)
    file = tmp_path / "toy" / "claims.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    del record["notes"]
    for claim in record["claims"]:
        for later in ("name", "fixed", "mutation"):
            del claim[later]
    file.write_text(json.dumps(record), encoding="utf-8")
    assert "it is &lt;true&gt;" in page_of(tmp_path)


def test_a_report_over_an_empty_folder_says_so(tmp_path: Path) -> None:
    assert "No experiment has been run yet." in page_of(tmp_path)
