"""The page in a real browser: it loads, updates, can be tried, shows the history of a list, and is accessible."""

from __future__ import annotations

import fnmatch
import itertools
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from rankloop.serving.client import Client
from tests.serving.browser import Visit, launched
from tests.serving.process import Service

ITEMS = [
    "news",
    "walk",
    "tea",
    "<img src=x onerror=alert(1)>",
]  # the last one is a name, whatever it looks like
Opened = Callable[..., Visit]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service("--memory") as service, service.client() as client:
        client.create("unwind", algorithm="RTop1F", items=ITEMS, seed=7)
        _play(client, 100)
        yield service


def _play(client: Client, rounds: int) -> None:
    for _ in range(rounds):
        shown = client.rank("unwind")
        client.feedback("unwind", shown.decision_id, relevance=[float(shown.items[0] in ITEMS[1:3])])


@pytest.fixture
def visit(browser: Browser, service: Service) -> Iterator[Opened]:
    """Visits on which nothing may go wrong, and which may ask nobody but the service."""
    opened: list[Visit] = []

    def open_one(**settings: Any) -> Visit:
        opened.append(Visit(browser, service.url, **settings))
        return opened[-1]

    yield open_one
    for one in opened:
        one.page.wait_for_timeout(100)
        one.close()
        assert (one.wrong, one.elsewhere) == ([], [])


def test_it_loads_and_tells_what_the_service_knows(visit: Opened, service: Service) -> None:
    page = visit().open()
    with service.client() as client:
        current = client.ranker("unwind").current
    expect(page.locator("#status")).to_have_text("Live")
    expect(page.locator("#rankers a", has_text="unwind").locator(".spark path")).to_have_count(1)
    with service.client() as client:
        summary = client.ranker("unwind").summary
    assert summary
    expect(page.locator(".badge").first).to_have_text(f"RTop1F: {summary}")
    expect(page.locator("ol.order li > span:first-child")).to_have_text(current)
    expect(page.locator(".lines path.line.own").first).to_have_attribute("d", re.compile(r"M.*L"))
    tile = page.locator(".tile", has_text="Observed relevance")
    expect(tile).to_contain_text("with 95% probability between 0.")
    expect(page.locator("[data-part=summary]")).to_contain_text(
        "Mean relevance of the positions that reveal theirs, as observed"
    )
    expect(page.locator("[data-part=summary]")).to_contain_text("Only the top of a list is observed")
    expect(page.locator("path.band.own")).to_have_attribute("d", re.compile(r"M.*L"))
    points = page.locator(".lines path.line.own").first.get_attribute("d") or ""
    assert points.count("L") < 240
    expect(page.locator(".tile", has_text="Lists shown").locator("dd")).to_contain_text("100")


def test_it_is_alive(visit: Opened, service: Service) -> None:
    page = visit().open("#ranker/unwind")
    tile = page.locator(".tile", has_text="Lists shown").locator("dd")
    before = int(re.match(r"\d+", tile.inner_text())[0])
    with service.client() as client:
        _play(client, 7)
    expect(tile).to_contain_text(f"{before + 7}")


def test_a_chart_can_be_read_with_the_keyboard(visit: Opened) -> None:
    page = visit().open("#ranker/unwind")
    chart = page.locator("[data-part=worth] .chart")
    picture = chart.locator("svg[role=img]")
    expect(picture).to_have_attribute("aria-label", re.compile(r"unwind: now 0\.\d+ \(0\.\d+ to "))
    picture.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(chart.locator(".readout")).to_contain_text(
        re.compile(r"After \d+ lists, .*unwind \d.* \(0\.\d+ to ")
    )
    expect(chart.locator(".cursor .dot")).to_have_count(1)


def test_scales_and_ticks(visit: Opened) -> None:
    page = visit().open("#ranker/unwind")

    def scale(code: str) -> Any:
        return page.evaluate(f"import('/page/scale.js').then((s) => ({code}))")

    for low, high, most, step in (
        (0, 1, 5, 0.2),
        (0, 10, 5, 2),
        (1.2, 1.9, 5, 0.2),
        (0, 1234, 6, 500),
        (0, 1e-3, 5, 2e-4),
    ):
        assert scale(f"s.stepFor([{low}, {high}], {most})") == pytest.approx(step)
    assert scale("s.ticks([0, 0.6], 0.2)") == [0, 0.2, 0.4, 0.6]
    assert scale("s.ticks([-7, 12], 5)") == [-5, 0, 5, 10]
    assert scale("s.widened([1.23, 1.87], 0.2)") == [1.2, 2.0]
    assert scale("s.extent([3, 3])") == [2.5, 3.5]
    assert scale("s.extent([])") == [0, 1]
    assert scale("s.linear([0, 4], [10, 30])(1)") == 15
    assert scale("s.linear([0, 4], [10, 30]).invert(15)") == 1
    assert scale("s.nearest([1, 5, 9], 6.9)") == 1
    assert scale("s.linePath([[0, 1], [1, 2], [2, null], [3, 4]])") == "M0.00,1.00L1.00,2.00M3.00,4.00"
    assert scale("s.areaPath([[0, 1, 2], [1, 1, 3]])") == "M0.00,2.00L1.00,3.00L1.00,1.00L0.00,1.00Z"


def test_axes_have_round_numbers(visit: Opened) -> None:
    page = visit().open("#ranker/unwind")
    chart = page.locator(".chart").first
    expect(chart.locator(".y .tick").first).to_be_attached()
    heights = [float(text) for text in chart.locator(".y text").all_text_contents()]
    assert 2 <= len(heights) <= 7
    steps = {round(b - a, 6) for a, b in itertools.pairwise(heights)}
    assert len(steps) == 1
    assert chart.locator(".x text").count() >= 2


def test_the_history_of_one_list(visit: Opened) -> None:
    page = visit().open("#ranker/unwind")
    button = page.locator(".lists button").nth(2)
    chosen, top = button.get_attribute("data-list") or "", button.inner_text()
    button.click()
    expect(page).to_have_url(re.compile(re.escape(chosen)))
    history = page.locator("#history")
    expect(history).to_be_focused()
    expect(history.locator("ol.chances li").first).to_contain_text(top)
    expect(history).to_contain_text("A list was requested.")
    expect(history).to_contain_text(
        re.compile(rf"Feedback: {re.escape(top)}: (not )?relevant \([01]\)\. It was learnt from\.")
    )
    expect(page.locator("tr.chosen")).to_have_count(1)


def test_a_list_that_never_was(visit: Opened) -> None:
    one = visit()
    page = one.open("#ranker/unwind")
    page.get_by_label("Decision ID").fill("no-such-list")
    page.get_by_role("button", name="Show its history").click()
    expect(page.get_by_role("alert").filter(has_text="no-such-list")).to_be_visible()
    assert [text for text in one.wrong if "404" not in text] == []  # the browser itself notes the 404
    one.wrong.clear()


def test_try_it(visit: Opened, service: Service) -> None:
    page = visit().open("#try")
    page.get_by_role("button", name="Start").click()
    top, news, order = (
        page.locator("#try-top"),
        page.locator("#try-news"),
        page.locator("#try-order li > span:first-child"),
    )
    expect(page.locator("#try-yes")).to_be_enabled()
    first = order.all_inner_texts()
    heard = 0
    while order.first.inner_text() != "Have a cup of tea":
        heard += 1
        assert heard < 100
        likes = top.inner_text() == "Have a cup of tea"
        page.locator("#try-yes" if likes else "#try-no").press("Enter")
        expect(page.locator("#try-rounds")).to_contain_text(re.compile(rf"^{heard} answer"))
        expect(page.locator("#try-yes")).to_be_enabled()
    expect(news).to_have_text(re.compile("^The order changed: Have a cup of tea rose to place 1"))
    assert first[-1] == "Have a cup of tea"
    expect(page.locator("#try-yes, #try-no").and_(page.locator(":focus"))).to_have_count(1)
    page.get_by_role("button", name="simulated users like me").click()
    expect(page.locator("#try-rounds")).to_contain_text(f"{heard + 100} answers so far", timeout=30_000)
    with service.client() as client:
        told = client.ranker("try-it")
        assert (told.rounds, told.counts["activated"]) == (heard + 100, heard + 2)
    page.get_by_role("button", name="Start over").click()
    expect(order).to_have_text(first)


@pytest.mark.parametrize("where", ["#ranker/unwind", "#try"])
def test_it_fits_a_phone(visit: Opened, where: str) -> None:
    page = visit(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).open(where)
    if where == "#try":
        expect(page.locator("#try-begin:visible, #try-rest li:visible").first).to_be_visible()
        if page.locator("#try-begin").is_visible():  # as nobody has tried it yet
            page.locator("#try-begin").click()
    expect(page.locator("#ranker .line.own:visible, #try-rest li:visible").first).to_be_attached()
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for button in page.get_by_role("button").all():
        box = button.bounding_box()
        assert box is None or box["height"] >= 30, button.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_in_light_and_in_dark(visit: Opened, scheme: str) -> None:
    page = visit(color_scheme=scheme).open("#ranker/unwind")
    shade = {
        name: _luminance(page, name)
        for name in ("ground", "card", "ink", "soft", "accent", "on-accent", "bad")
    }
    assert (shade["ground"] < 0.1) == (scheme == "dark")
    for ink, ground, least in (
        ("ink", "ground", 7.0),
        ("soft", "ground", 4.5),
        ("soft", "card", 4.5),
        ("on-accent", "accent", 4.5),
        ("bad", "card", 4.5),
        ("accent", "card", 3.0),
    ):
        low, high = sorted((shade[ink], shade[ground]))
        assert (high + 0.05) / (low + 0.05) >= least, (ink, ground)


def _luminance(page: Page, name: str) -> float:
    """Relative luminance of a named colour, as the accessibility guidelines define it."""
    text = page.evaluate(
        "name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`)", name
    )
    parts = [int(text.strip().lstrip("#")[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_everything_has_a_name_and_a_place(visit: Opened) -> None:
    page = visit().open("#ranker/unwind")
    expect(page.locator(".line.own").first).to_be_attached()
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        expect(page.get_by_role(landmark)).to_have_count(1)
    nameless = page.evaluate(
        """[...document.querySelectorAll("a, button, input, select, progress, [role=img]")].filter((one) => {
            const labels = [...(one.labels ?? [])].map((label) => label.textContent).join("");
            const by = document.getElementById(one.getAttribute("aria-labelledby"))?.textContent ?? "";
            return one.checkVisibility() && !(one.textContent + labels + by + (one.ariaLabel ?? "")).trim();
        }).map((one) => one.outerHTML)"""
    )
    assert nameless == []
    assert page.evaluate("document.querySelectorAll('[style], script:not([src])').length") == 0


def test_a_key_is_asked_for_and_the_service_may_go_away(browser: Browser, tmp_path: Path) -> None:
    made = [
        sys.executable,
        "-m",
        "rankloop",
        "keys",
        "add",
        "--new-store",
        "--data",
        str(tmp_path),
        "--role",
        "reader",
    ]
    key = subprocess.run(made, capture_output=True, text=True, check=True).stdout.split()[0]
    with Service("--data", str(tmp_path)) as service:
        one = Visit(browser, service.url)
        page = one.open()
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Use this key").click()
        expect(page.locator("#status")).to_have_text("Live")
        expect(page.locator("#none")).to_contain_text("No ranker yet")
        service.stop()
        expect(page.locator("#status")).to_have_text("No connection to the service; trying again")
        one.close()


def test_the_files_of_the_page_are_part_of_the_package() -> None:
    root = Path(__file__).parents[3]
    packed = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"][
        "rankloop"
    ]
    for file in (root / "src/rankloop/serving/dashboard").iterdir():
        if file.is_file() and file.suffix != ".py":
            assert any(fnmatch.fnmatch(f"serving/dashboard/{file.name}", pattern) for pattern in packed), (
                file.name
            )
