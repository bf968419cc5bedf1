"""What an operator does on the page: create, freeze, reset, roll back, export, search, compare, call the API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from rankloop.advice import FEEDBACK, USERS, advise
from tests.serving.browser import Visit, launched
from tests.serving.process import Service

ITEMS = [f"film {i:03}" for i in range(1_000)]
LISTS = 12


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service("--memory") as service, service.client() as client:
        client.create("films", algorithm="FTRLPBM", items=ITEMS, parameters={"n_positions": 3}, seed=7)
        client.create("unwind", algorithm="RTop1F", items=["walk", "tea", "nap"], seed=7)
        silent = {"deadline_seconds": 0.001}
        client.create("quiet", algorithm="FTRLPBM", items=["a", "b"], policy=silent, seed=7)
        client.create(
            "rooms",
            algorithm="LinTSPBM",
            items=["hall", "attic"],
            parameters={"n_features": 2},
            seed=7,
            features=[[1.0, 0.25], [0.0, 0.5]],
            feature_names=["light", "size"],
        )
        for i in range(LISTS):
            shown = client.rank("films")
            client.feedback("films", shown.decision_id, clicks=[1.0, 0.0, 0.0])
            shown = client.rank("unwind")
            client.feedback("unwind", shown.decision_id, relevance=[float(i % 2)])
        client.activate("quiet", client.rank("quiet").decision_id)
        yield service


@pytest.fixture
def visit(browser: Browser, service: Service) -> Iterator[Callable[..., Page]]:
    opened: list[Visit] = []

    def open_one(where: str = "", before: Callable[[Page], Any] = lambda page: None) -> Page:
        opened.append(Visit(browser, service.url))
        before(opened[-1].page)
        return opened[-1].open(where)

    yield open_one
    for one in opened:
        one.close()
        # The browser itself notes an answer of 422, which the page then tells.
        assert [text for text in one.wrong if "422" not in text] == one.elsewhere == []


def test_the_features_of_an_item_are_shown(visit: Callable[..., Page]) -> None:
    page = visit("#ranker/rooms")
    page.get_by_role("button", name="hall", exact=True).click()
    shown = page.locator("[data-part=item-features]")
    expect(shown.get_by_role("heading")).to_have_text("Features of hall")
    expect(shown.locator("tbody tr")).to_have_count(2)
    expect(shown).to_contain_text("light")
    expect(shown).to_contain_text("0.250")


def test_a_long_order_leaves_no_white_space(visit: Callable[..., Page]) -> None:
    page = visit("#ranker/films")
    expect(page.locator("ol.order li").first).to_be_visible()
    expect(page.locator(".chart .line.own").first).to_be_attached()
    order, chart = (
        page.locator("[data-part=order-card]").bounding_box(),
        page.locator("[data-part=worth]").bounding_box(),
    )
    assert order is not None
    assert chart is not None
    assert order["height"] < chart["height"] + 250


def test_silence_is_not_told_as_feedback(visit: Callable[..., Page], service: Service) -> None:
    with service.client() as client:
        page = visit("#ranker/quiet")
        tile = page.locator(".tile", has_text="Feedback received").locator("dd")
        expect(tile).to_have_text("0.0%on 0 lists; 1 more counted as no click")
        assert client.ranker("quiet").counts["expired"] == 1


def test_the_newest_stretch_is_never_half_filled(visit: Callable[..., Page]) -> None:
    page = visit("#ranker/unwind")

    def ends(n: int, size: int) -> Any:
        return page.evaluate(f"import('/page/ranker.js').then((m) => m.stretchEnds({n}, {size}))")

    assert [ends(n, 1) for n in (0, 1, 2, 3)] == [[], [0], [1], [0, 2]]
    assert ends(8, 3) == [0, 3, 7]  # the last has the whole buckets 4, 5, 6 and the one being filled


def test_time_axes(visit: Callable[..., Page]) -> None:
    page = visit("#ranker/unwind")

    def scale(code: str) -> Any:
        return page.evaluate(f"import('/page/scale.js').then((s) => ({code}))")

    assert scale("s.timeStep([0, 3600e3], 6)") == 900_000
    assert scale("s.timeStep([0, 50], 6)") == 1_000
    assert scale("s.timeStep([0, 400 * 86400e3], 6)") == 67 * 86_400_000
    found = scale("s.timeTicks([1e12 + 5, 1e12 + 3600e3], 900e3)")
    assert len(found) == 4
    assert scale("s.lastNotBeyond([1, 4, 9], [0, 1, 5, 10])") == [-1, 0, 1, 2]
    chart = page.locator("[data-part=worth] .chart")
    expect(chart.locator(".names text").first).to_have_text("Observed relevance")
    expect(chart.locator(".names text").last).to_have_text("time")
    page.get_by_label("along").select_option("lists")
    expect(chart.locator(".names text").last).to_have_text("lists shown")
    page.get_by_label("Charts of").select_option("hour")
    expect(chart.locator(".lines .line.own")).to_have_attribute("d", re.compile("^M"))
    page.get_by_label("measured by").select_option("answers")
    page.get_by_label("compared with").select_option("films")
    expect(chart.locator(".legend")).to_contain_text("films")


def test_the_table_of_items_is_searched_and_sorted(visit: Callable[..., Page]) -> None:
    page = visit("#ranker/films")
    rows = page.locator("[data-part=items] tr")
    expect(rows).to_have_count(100)
    page.get_by_role("button", name="Clicked").click()
    expect(page.locator("th[aria-sort=descending]")).to_have_text("Clicked")
    expect(rows.first.locator("td").nth(4)).to_have_text(re.compile(r"^[1-9]"))
    page.get_by_label("Search").fill("FILM 99")
    expect(rows).to_have_count(10)
    expect(page.locator("[data-part=items-note]")).to_contain_text("10 items of 1,000")


def test_freeze_snapshot_change_roll_back_and_reset(visit: Callable[..., Page], service: Service) -> None:
    page = visit("#ranker/unwind")
    done = page.locator("[data-part=done]")
    page.get_by_role("button", name="Freeze learning").click()
    expect(page.locator(".badge.warn")).to_have_text("frozen: learning is paused")
    page.get_by_role("button", name="Resume learning").click()
    expect(page.locator(".badge.warn")).to_have_count(0)
    page.get_by_role("button", name="Take a snapshot").click()
    expect(done).to_have_text("Taken.")
    page.get_by_label("Items to add").fill("swim\n\n read \n")
    page.get_by_label("Items to retire").fill("nap")
    page.get_by_role("button", name="Change the items").click()
    expect(done).to_contain_text("The items are changed (row")
    expect(page.locator("[data-part=items]")).to_contain_text("swim")
    page.get_by_role("button", name="Roll back", exact=True).click()
    page.get_by_role("button", name="Roll back: press again to confirm").click()
    expect(done).to_contain_text("Rolled back (row")
    page.get_by_role("button", name="Reset", exact=True).click()
    page.get_by_role("button", name="Reset: press again to confirm").click()
    expect(done).to_contain_text("What was learnt is forgotten")
    with service.client() as client:
        told = client.ranker("unwind")
        assert (told.rounds, sorted(told.current)) == (0, ["read", "swim", "tea", "walk"])
    page.get_by_label("Items to add").fill("swim")
    page.get_by_role("button", name="Change the items").click()
    expect(page.locator("[data-part=failed]")).to_contain_text("swim")


def test_the_log_is_exported(visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit("#ranker/films")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as CSV").click()
    assert download.value.suggested_filename == "films.csv"
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("decision,seq,model_seq,at,item,position,click")
    assert len(lines) == 1 + 3 * LISTS


def test_a_ranker_is_created(visit: Callable[..., Page], service: Service) -> None:
    page = visit()
    page.get_by_text("Create a ranker").click()
    page.get_by_label("Name").fill("made")
    page.get_by_label("Items, one per line").fill("one\ntwo\nthree")
    page.get_by_text("Another algorithm").click()
    page.get_by_label("Algorithm, instead of the advice").fill("TopFTRL")
    page.get_by_label("Its parameters, as JSON").fill("{k: 2}")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("#new-wrong")).to_contain_text("The parameters are not JSON")
    page.get_by_label("Its parameters, as JSON").fill('{"k": 2}')
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("#ranker-title")).to_have_text("made")
    expect(page.locator("[data-part=settings]")).to_contain_text("deadline seconds")
    with service.client() as client:
        assert client.ranker("made").parameters == {"k": 2}
        client.delete("made")


def test_the_page_asks_what_advise_asks_and_creates_what_it_takes(
    visit: Callable[..., Page], service: Service
) -> None:
    page = visit()
    page.get_by_text("Create a ranker").click()
    advice = page.locator("#new-advice")
    for feedback in FEEDBACK:
        for users in USERS:
            page.get_by_label("What do you observe?").select_option(feedback)
            page.get_by_label("Your users").select_option(users)
            expect(advice).to_have_text(advise(feedback, users=users).ranker)
    page.get_by_label("What do you observe?").select_option("clicks")
    page.get_by_label("Your users").select_option("stay")
    page.get_by_label("Name").fill("asked")
    page.get_by_label("Items, one per line").fill("one\ntwo\nthree")
    page.get_by_label("Positions shown, for clicks").fill("2")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("#ranker-title")).to_have_text("asked")
    page.get_by_text("Internals").click()
    expect(page.locator("[data-part=internals]")).to_contain_text("State hash")
    with service.client() as client:
        made = client.ranker("asked")
        assert (made.algorithm, made.parameters) == ("PBMTS", {"n_positions": 2})
        client.delete("asked")


def test_a_reader_sees_what_it_may_not_do(visit: Callable[..., Page]) -> None:
    told = {"role": "reader", "rankers": [], "most_rankers": 0, "rate": 0.0}

    def as_reader(page: Page) -> None:
        page.route("**/v1/access", lambda route: route.fulfill(json=told))

    page = visit("#ranker/films", as_reader)
    expect(page.locator("[data-part=may]")).to_have_text("These need an admin's key; this one is a reader's.")
    for name in ("Freeze learning", "Take a snapshot", "Reset", "Change the items"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    expect(page.get_by_role("button", name="Export as CSV")).to_be_enabled()


def test_every_call_of_the_api_can_be_made_from_the_docs(visit: Callable[..., Page]) -> None:
    page = visit("docs")
    described = page.evaluate(
        "fetch('/openapi.json').then((a) => a.json()).then((d) => Object.values(d.paths).flatMap(Object.keys).length)"
    )
    assert described > 20
    expect(page.locator("details.call")).to_have_count(described)
    rank = page.locator("#rank")
    rank.locator("summary").click()
    expect(rank).to_contain_text("decision_id?: string or null")
    rank.get_by_label("name").fill("films")
    rank.get_by_role("button", name="Send").click()
    expect(rank.get_by_role("status")).to_contain_text("Status 200")
    expect(rank.get_by_role("status")).to_contain_text('"propensities"')
    table = page.locator("#item_table")
    table.locator("summary").click()
    table.get_by_label("name", exact=True).fill("films")
    table.get_by_label("limit").fill("1")
    table.get_by_role("button", name="Send").click()
    expect(table.get_by_role("status")).to_contain_text('"total": 1000')
