"""The client for pages and Node: built by npm, tried in Node and in a page of another origin than the service's."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route

import rankloop
from rankloop.serving.client import Client
from tests.serving.browser import launched
from tests.serving.process import Service

FOLDER = Path(__file__).parents[2] / "clients" / "browser"
PAGE = """<!doctype html><meta charset="utf-8"><title>shop</title><script type="module">
import { Rankloop } from "./rankloop.js";
const told = new URLSearchParams(location.search);
window.lost = [];
window.client = new Rankloop(told.get("service"), {
  ranker: "shop", key: told.get("key"), delay: Number(told.get("delay")), onLost: (why, events) => lost.push(why),
});
document.title = "ready";
</script>"""


def npm(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["npm", *words], cwd=FOLDER, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="session")
def built() -> Path:
    """The client as npm would publish it; skipped where Node or its compiler is not to be had."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("no Node here: `apt-get install nodejs npm`")
    if not (FOLDER / "node_modules" / ".bin" / "esbuild").exists():
        installed = npm("ci", "--no-audit", "--no-fund")
        if installed.returncode:
            pytest.skip(f"npm installs nothing here: {installed.stderr.strip().splitlines()[-1]}")
    made = npm("run", "build")
    assert made.returncode == 0, made.stdout + made.stderr
    return FOLDER / "dist" / "rankloop.js"


def test_its_version_is_the_one_of_the_service() -> None:
    assert json.loads((FOLDER / "package.json").read_text())["version"] == rankloop.__version__


def test_it_keeps_its_promises_in_node(built: Path) -> None:
    run = npm("test")
    assert run.returncode == 0, run.stdout
    assert "# fail 0" in run.stdout
    assert built.stat().st_size < 5_000


def test_it_can_be_packed(built: Path) -> None:
    packed = npm("pack", "--dry-run", "--json", "--ignore-scripts")
    assert packed.returncode == 0, packed.stderr
    (told,) = json.loads(packed.stdout)
    assert {one["path"] for one in told["files"]} == {
        "README.md",
        "dist/rankloop.d.ts",
        "dist/rankloop.js",
        "package.json",
    }


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def site(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The origin of a shop's pages."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.html").write_text(PAGE)
    shutil.copy(built, folder)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


class Shop:
    """A service, and what its pages and its owner have of it."""

    def __init__(self, url: str, keys: dict[str, str]) -> None:
        self.url, self.keys = url, keys
        self.client = Client(url, key=keys["admin"], timeout=120.0)

    def counts(self) -> dict[str, int]:
        return dict(self.client.ranker("shop").counts)

    def wait_for(self, **wanted: int) -> None:
        end = time.monotonic() + 30
        while any(self.counts()[name] < n for name, n in wanted.items()):
            assert time.monotonic() < end, (self.counts(), wanted)
            time.sleep(0.1)
        time.sleep(0.3)  # and no more than that
        assert {name: self.counts()[name] for name in wanted} == wanted


@pytest.fixture
def shop(site: str, tmp_path: Path) -> Iterator[Shop]:
    data = tmp_path / "data"
    keys = {}
    for role in ("admin", "events"):
        # In a process of its own: in this one the browser's event loop runs.
        words = ["keys", "add", "--role", role, "--for", "shop", "--data", str(data)]
        words += [] if keys else ["--new-store"]
        made = subprocess.run(
            [sys.executable, "-m", "rankloop", *words], capture_output=True, text=True, check=True
        )
        keys[role] = made.stdout.split()[0]
    with Service("--data", str(data), "--allow-origin", site) as service:
        found = Shop(service.url, keys)
        found.client.create("shop", algorithm="FTRLPBM", items=["a", "b", "c"], parameters={"n_positions": 2})
        yield found


Opened = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, site: str, shop: Shop) -> Iterator[Opened]:
    """Pages of the shop, which are closed before its service is."""
    context = browser.new_context()

    def open_one(*, delay: int, where: str = site) -> Page:
        page = context.new_page()
        page.goto(f"{where}/?service={shop.url}&key={shop.keys['events']}&delay={delay}")
        page.wait_for_function("document.title === 'ready'")
        return page

    yield open_one
    context.close()


def click(page: Page, shown: Any, item: str) -> None:
    page.evaluate("([list, item]) => { client.shown(list); client.click(list, item); }", [shown, item])


def listed(shop: Shop) -> dict[str, Any]:
    answer = shop.client.rank("shop")
    return {"decision_id": answer.decision_id, "items": answer.items}


def test_clicks_arrive_from_a_page_of_another_origin(opened: Opened, shop: Shop) -> None:
    page = opened(delay=10)
    shown = listed(shop)
    click(page, shown, shown["items"][1])
    shop.wait_for(activated=1, feedback=1, dead=0)
    refused = page.evaluate("client.rank().catch((error) => `${error.status} ${error.message}`)")
    assert refused == "403 this needs the role writer, the key has events"
    assert page.evaluate("lost") == []


def test_a_page_that_is_left_sends_what_waits(opened: Opened, shop: Shop) -> None:
    leaving: tuple[Callable[[Page], Any], ...] = (
        lambda page: page.evaluate("setTimeout(() => { location.href = 'about:blank' })"),
        lambda page: page.close(run_before_unload=True),
    )
    for leave in leaving:
        before = shop.counts()
        page = opened(delay=600_000)
        shown = listed(shop)
        click(page, shown, shown["items"][0])
        leave(page)
        shop.wait_for(activated=before["activated"] + 1, feedback=before["feedback"] + 1)


def test_what_is_sent_again_counts_once(opened: Opened, shop: Shop) -> None:
    page = opened(delay=10)
    sent: list[str] = []

    def interrupt(route: Route) -> None:
        """Lose the first request on its way there, and the answer to the second on its way back."""
        sent.append(route.request.post_data or "")
        if len(sent) == 2:
            route.fetch()
        if len(sent) <= 2:
            route.abort()
        else:
            route.continue_()

    page.route("**/v1/ubi/events*", interrupt)
    shown = listed(shop)
    click(page, shown, shown["items"][1])
    page.evaluate("client.flush()")
    assert len(sent) == 3
    assert len(set(sent)) == 1
    shop.wait_for(activated=1, feedback=1)
    # A page that is left while a request is on its way sends it once more.
    page.unroute("**/v1/ubi/events*")
    page.route("**/v1/ubi/events*", lambda route: route.fetch() and None)  # it arrives, and is never answered
    shown = listed(shop)
    with page.expect_request("**/v1/ubi/events*"):
        click(page, shown, shown["items"][0])
    page.wait_for_timeout(1_000)
    shop.wait_for(activated=2, feedback=2)
    page.unroute("**/v1/ubi/events*")
    page.evaluate("setTimeout(() => { location.href = 'about:blank' })")
    page.wait_for_url("about:blank")
    shop.wait_for(activated=2, feedback=2, conflicts=0, dead=0)


def test_a_page_of_an_origin_that_is_not_allowed_can_report_nothing(
    opened: Opened, site: str, shop: Shop
) -> None:
    page = opened(delay=10, where=site.replace("127.0.0.1", "localhost"))
    shown = listed(shop)
    click(page, shown, shown["items"][0])
    page.evaluate("setTimeout(() => { location.href = 'about:blank' })")
    page.wait_for_url("about:blank")
    time.sleep(1.0)
    assert (shop.counts()["activated"], shop.counts()["feedback"]) == (0, 0)
