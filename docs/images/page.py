"""Makes the pictures of the service's page: `.venv/bin/python docs/images/page.py`. Needs Chromium.

With the argument `verdict` only that of a comparison.
"""

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from rankloop import Client

HERE = Path(__file__).parent
LEARN = 110  # seconds before the first picture


def visit(browser: Browser, address: str, **settings: object) -> Page:
    """An open page, filled."""
    page = browser.new_context(**settings).new_page()
    page.goto(address)
    page.wait_for_selector(".order li:visible, #try-begin:visible, [data-part=verdict]:visible")
    page.wait_for_timeout(4_000)
    return page


def keep(page: Page, name: str, *, height: int | None = None) -> None:
    """Keep the picture in 256 colours, at a third of the size."""
    clip = (
        None if height is None else {"x": 0, "y": 0, "width": page.viewport_size["width"], "height": height}
    )
    page.screenshot(path=HERE / name, full_page=clip is not None, clip=clip)
    with Image.open(HERE / name) as picture:
        picture.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
            HERE / name, optimize=True
        )
    print(f"{name}: {(HERE / name).stat().st_size / 1000:.0f} kB")


@contextlib.contextmanager
def serving(*options: str) -> Iterator[tuple[str, Browser]]:
    """The address of a service, and a browser."""
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        command = [sys.executable, "-m", "rankloop", "serve", *options, "--port", "0", "--data", data]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield service.stdout.readline().split()[-1], browser
        browser.close()
        service.terminate()
        service.wait(20)


def of_verdict() -> None:
    """A comparison after 400 searches, whose users like "c" better than "a"."""
    rng = np.random.default_rng(1)
    with serving() as (address, browser), Client(address) as client:
        client.create("new-order", algorithm="Comparison", parameters={"rankings": ["engine", "new"]}, seed=7)
        rankings = {"engine": list("abcdef"), "new": list("cbadef")}
        shown = client.rank_many(
            "new-order", [{"decision_id": f"{i}", "rankings": rankings} for i in range(400)]
        )
        client.feedback_many(
            "new-order",
            [
                {
                    "decision_id": one.decision_id,
                    "clicked": [
                        item for item in one.items if rng.random() < {"c": 0.35, "a": 0.15}.get(item, 0.05)
                    ],
                }
                for one in shown
            ],
        )
        page = visit(browser, f"{address}/#ranker/new-order", viewport={"width": 1280, "height": 860})
        card = page.locator("[data-part=comparison-card]").bounding_box()
        keep(page, "page-verdict.png", height=int(card["y"] + card["height"]) + 12)


def of_page() -> None:
    """One ranker, on a desk and on a phone, and Try it."""
    with serving("--simulated-users") as (address, browser):
        time.sleep(LEARN)
        desk = visit(browser, f"{address}/#ranker/unwind", viewport={"width": 1280, "height": 860})
        health = desk.locator(".card", has=desk.locator("[data-part=health]")).bounding_box()
        keep(desk, "page.png", height=int(health["y"] + health["height"]) + 8)
        phone = {
            "viewport": {"width": 400, "height": 800},
            "color_scheme": "dark",
            "device_scale_factor": 1.5,
        }
        keep(visit(browser, f"{address}/#ranker/unwind", **phone), "page-phone.png", height=1660)
        trying = visit(browser, f"{address}/#try", viewport={"width": 1100, "height": 720})
        trying.click("#try-begin")
        for _ in range(13):
            trying.wait_for_selector("#try-yes:enabled")
            liked = trying.inner_text("#try-top") in ("Meditate", "Have a cup of tea")
            trying.click("#try-yes" if liked else "#try-no")
        trying.click("#try-people")
        trying.wait_for_selector("#try-yes:enabled", timeout=60_000)
        trying.wait_for_timeout(1_000)
        trying.mouse.move(5, 5)
        keep(trying, "page-try.png")


if __name__ == "__main__":
    of_verdict()
    if sys.argv[1:] != ["verdict"]:
        of_page()
