"""What a notebook shows of our objects: small HTML in which every name is escaped, and a bar that moves."""

from __future__ import annotations

import sys
import types
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from rankloop import data, environments, feedback, games, rankers, simulation
from rankloop.experiments.experiment import Job
from rankloop.experiments.harness.progress import job_bar
from rankloop.notebook import card, in_notebook, sentence
from rankloop.simulation.bar import Bar

NASTY = "<script>alert('&')</script>"


class Read(HTMLParser):
    """Text and tags, and whether every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.open = "", set[str](), list[str]()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def _shown() -> dict[str, tuple[Any, str]]:
    users = environments.FixedItems(environments.users.bernoulli([0.2, 0.9, 0.5]), measure="dcg")
    letor = data.synthetic_letor(n_queries=3, n_features=4, seed=1)
    ratings = data.synthetic_ratings(n_users=5, n_items=4, seed=1)
    pages = feedback.Sessions([[0, 1]], [[1, 0]], name=NASTY)
    return {
        "ranker": (rankers.RTop1F(n_items=3, horizon=100, measure="dcg"), "horizon100"),
        "ranker by features": (rankers.PDGD(n_features=4), "by their features"),
        "environment": (users, "measured bydcg, larger is better"),
        "environment of queries": (environments.QueryStream(letor, measure="ndcg@3"), "reveals"),
        "dataset": (letor, "3 queries"),
        "ratings": (ratings, "5 users x 4 items"),
        "pages": (pages, NASTY),
        "counts": (pages.count(), NASTY),
        "verdict": (games.classify(games.ranking_game(measure="dcg", n_items=3, k=1)), "T^(2/3)"),
        "verdict of a game": (games.classify(games.zoo.apple_tasting()), "Verdict: easy"),
        "trace": (
            simulation.play(rankers.Uniform(n_items=3), users, rounds=10, seed=1, fused=False),
            "10, of which",
        ),
    }


def test_small_html() -> None:
    for name, (value, wanted) in _shown().items():
        html = value._repr_html_()
        read = Read(html)
        assert wanted in read.text, name
        assert read.open == [], name
        assert read.tags <= {"div", "b", "table", "tbody", "tr", "th", "td"}, name
        assert len(html) < 5_000, name
        assert "\n" not in repr(value), name
        assert len(repr(value)) < 1_000, name


def test_names_are_escaped() -> None:
    for html in (card(NASTY, {NASTY: NASTY}), sentence(f"Kind({NASTY!r}: more)")):
        assert "<script" not in html
        assert "alert(" in Read(html).text


def test_a_long_argument_is_cut() -> None:
    many = rankers.Uniform(n_items=3)
    many._given = {"listed": list(range(500)), "array": np.zeros((20, 30))}
    assert repr(many) == "Uniform(listed=<list of 500>, array=<20x30 float64>)"
    assert len(card("long", {"text": "x" * 10_000})) < 1_000


class _Screen:
    """Stands in for IPython in a kernel: keeps what is displayed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, kernel: bool = True) -> None:
        self.shown: list[dict[str, str]] = []
        shell = types.SimpleNamespace(kernel=object() if kernel else None)
        ipython = types.ModuleType("IPython")
        ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
        displays = types.ModuleType("IPython.display")
        displays.display = self.display  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", displays)
        monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))

    def display(self, shown: dict[str, str], *, raw: bool, display_id: bool) -> _Screen:
        assert raw
        assert display_id
        assert not self.shown, "a second output instead of an update"
        self.shown.append(shown)
        return self

    def update(self, shown: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(shown)


def test_here_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not in_notebook()
    _Screen(monkeypatch, kernel=False)  # IPython in a terminal
    assert not in_notebook()


def test_a_run_shows_a_bar_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = _Screen(monkeypatch)
    assert in_notebook()
    with Bar(1_000, wanted=True) as bar:
        bar.show(250)
        bar.show(500)
    assert ["500 of 1,000 rounds" in shown["text/plain"] for shown in screen.shown] == [False, True, False]
    assert 'value="0.5000"' in screen.shown[1]["text/html"]
    assert screen.shown[-1] == {"text/html": "", "text/plain": ""}
    assert capsys.readouterr() == ("", "")


def test_a_short_run_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen(monkeypatch)
    with Bar(1_000, wanted=None) as bar:
        bar.show(500)
    with Bar(1_000, wanted=False) as bar:
        bar.show(500)
    assert screen.shown == []


def test_jobs_show_a_bar_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen(monkeypatch)
    jobs = [Job(name="dear", seed=1, cost=3.0), Job(name="cheap", seed=2, cost=1.0)]
    with job_bar(NASTY, jobs, console=Console(stderr=True, force_terminal=False)) as advance:
        advance(jobs[0])
    assert 'value="0.7500"' in screen.shown[1]["text/html"]
    assert "1/2 jobs" in screen.shown[1]["text/plain"]
    assert "<script" not in "".join(shown["text/html"] for shown in screen.shown)
    assert screen.shown[-1] == {"text/html": "", "text/plain": ""}
