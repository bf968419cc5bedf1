"""A comparison of rankings on the page: the sentence, the interval of each pair, stop and promote."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from tests.serving.browser import Visit, launched
from tests.serving.process import Service

RANKINGS = {"engine": list("abcdef"), "new": list("cbadef")}
SEARCHES = 200


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    rng = np.random.default_rng(1)
    with Service("--memory") as service, service.client() as client:
        client.create("vs", algorithm="Comparison", parameters={"rankings": list(RANKINGS)}, seed=7)
        asked = [{"decision_id": f"d{i}", "rankings": RANKINGS} for i in range(SEARCHES)]
        for shown in client.rank_many("vs", asked):
            clicked = [item for item in shown.items if rng.random() < {"c": 0.6}.get(item, 0.05)]
            client.feedback("vs", shown.decision_id, clicked=clicked)
        yield service


def test_the_verdict_is_shown_and_the_winner_promoted(browser: Browser, service: Service) -> None:
    with service.client() as client:
        told = client.ranker("vs").comparison
    assert told is not None
    assert told.winner == "new"
    visit = Visit(browser, service.url)
    page = visit.open("#ranker/vs")
    expect(page.locator("[data-part=verdict]")).to_have_text(told.sentence)
    expect(page.locator("svg.lift.better")).to_be_visible()
    (pair,) = told.pairs
    decided = pair.wins + pair.losses
    expect(page.locator(".pair")).to_contain_text(
        f"new won {pair.losses} of {decided} decided searches, engine {pair.wins}"
    )
    for hidden in ("Guard rails", "Beside your own list"):
        expect(page.get_by_role("heading", name=hidden)).to_be_hidden()
    stop = page.locator("[data-part=stop]")
    stop.click()
    expect(stop).to_have_text("Press again to stop")
    stop.click()
    expect(page.locator("[data-part=verdict]")).to_contain_text("Stopped: lists show 'engine'.")
    expect(stop).to_be_hidden()
    choice = page.get_by_label("or show to everybody")
    expect(choice).to_have_value("new")
    page.get_by_role("button", name="Promote").click()
    expect(page.locator("[data-part=decide-done]")).to_contain_text("Promoted (row")
    expect(page.locator("[data-part=verdict]")).to_contain_text("Stopped: lists show 'new'.")
    visit.close()
    assert visit.wrong == visit.elsewhere == []
    with service.client() as client:
        assert client.rank("vs", rankings=RANKINGS).items == RANKINGS["new"]
