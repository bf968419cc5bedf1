"""The ranker beside the application's own list on the page: lift, promotion, guard rails; and the export as Parquet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.serving.browser import Visit, launched
from tests.serving.process import Service

ITEMS = ["walk", "tea", "nap", "music"]
LISTS = 200


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service("--memory") as service, service.client() as client:
        policy = {"holdout": 0.5, "exploration_cap": 0.5}
        client.create("front", algorithm="PBMTS", items=ITEMS, policy=policy, seed=7)
        client.create("plain", algorithm="FTRLPBM", items=ITEMS, seed=7)
        asked = [{"baseline": ITEMS, "decision_id": f"d{i}"} for i in range(LISTS)]
        for shown in client.rank_many("front", asked):
            held = client.decision("front", shown.decision_id).shown_by == "baseline"
            client.feedback("front", shown.decision_id, clicks=[0.0 if held else 1.0] * 4)
        yield service


@pytest.fixture
def visit(browser: Browser, service: Service) -> Iterator[Callable[..., Page]]:
    opened: list[Visit] = []

    def open_one(where: str, before: Callable[[Page], Any] = lambda page: None) -> Page:
        opened.append(Visit(browser, service.url))
        before(opened[-1].page)
        return opened[-1].open(where)

    yield open_one
    for one in opened:
        one.close()
        assert [text for text in one.wrong if "422" not in text] == one.elsewhere == []


def test_the_lift_is_shown_with_its_interval_and_the_ranker_is_promoted(
    visit: Callable[..., Page], service: Service
) -> None:
    page = visit("#ranker/front")
    words = page.locator("[data-part=lift-words]")
    expect(words).to_contain_text(
        re.compile(r"The ranker is better: a lift of \+(1\.000|0\.9\d\d) in mean reward")
    )
    expect(words).to_contain_text("95% interval +0.")
    expect(page.locator("svg.lift.better")).to_be_visible()
    facts = page.locator("[data-part=trial]")
    expect(facts).to_contain_text("Held out50%")
    share = page.get_by_label("Ranker's list, % of requests")
    expect(share).to_have_value("100")
    share.fill("40")
    page.get_by_role("button", name="Promote").click()
    expect(page.locator("[data-part=promote-done]")).to_contain_text("Promoted (row")
    expect(facts).to_contain_text("Ranker's list shown to20%")  # of all requests
    with service.client() as client:
        trial = client.ranker("front").trial
        assert trial is not None
        assert trial.live == pytest.approx(0.2)


def test_guard_rails_are_shown_and_changed(visit: Callable[..., Page], service: Service) -> None:
    page = visit("#ranker/front")
    cap = page.get_by_label("Exploration cap")
    expect(cap).to_have_value("50")
    cap.fill("12.5")
    page.get_by_label("Displacement").fill("2")
    page.get_by_role("button", name="Change the guard rails").click()
    done = page.locator("[data-part=rails-done]")
    expect(done).to_contain_text("Changed (row")
    with service.client() as client:
        policy = client.ranker("front").policy
        assert (policy.exploration_cap, policy.displacement, policy.holdout) == (0.125, 2, 0.5)
    expect(page.locator("[data-part=settings]")).to_contain_text("displacement2")
    page.get_by_role("button", name="Change the guard rails").click()
    expect(page.locator("[data-part=rails-failed]")).to_contain_text("name something of the policy")


def test_without_a_baseline_the_card_says_how_to_send_one_and_a_reader_changes_nothing(
    visit: Callable[..., Page],
) -> None:
    told = {"role": "reader", "rankers": [], "most_rankers": 0, "rate": 0.0}
    page = visit(
        "#ranker/plain", lambda page: page.route("**/v1/access", lambda route: route.fulfill(json=told))
    )
    expect(page.locator("[data-part=lift-words]")).to_contain_text("No request has brought a baseline yet")
    expect(page.get_by_role("button", name="Promote")).to_be_hidden()
    expect(page.get_by_role("button", name="Change the guard rails")).to_be_disabled()
    expect(page.get_by_label("compared with").locator("option")).to_have_text(["nothing", "front"])


def test_a_list_that_was_not_drawn_says_so(visit: Callable[..., Page], service: Service) -> None:
    kinds: dict[str, str] = {}
    with service.client() as client:
        for i in range(40):
            told = client.decision("front", f"d{i}")
            kinds.setdefault(told.shown_by if told.shown_by == "baseline" else told.guard_rail, f"d{i}")
    page = visit(f"#ranker/front/{kinds['baseline']}")
    history = page.locator("[data-part=history]")
    expect(history).to_contain_text("The application's own list was shown.")
    page = visit(f"#ranker/front/{kinds['greedy']}")
    history = page.locator("[data-part=history]")
    expect(history).to_contain_text("The exploration cap kept it from exploring")


def test_the_log_is_exported_as_parquet(visit: Callable[..., Page]) -> None:
    page = visit("#ranker/front")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as Parquet").click()
    assert download.value.suggested_filename == "front.parquet"
    table = pq.read_table(Path(download.value.path()))
    assert table.num_rows == 4 * LISTS
