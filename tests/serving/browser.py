"""A real Chromium, the system's own, without a window; and pages that remember everything that went wrong on them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = os.environ.get("RANKLOOP_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def launched() -> Iterator[Browser]:
    """One browser, with a fresh profile."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here: `apt-get install chromium`, or name one in RANKLOOP_CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(_FLAGS))
        yield browser
        browser.close()


class Visit:
    """A page of the service, as one visitor sees it."""

    def __init__(self, browser: Browser, url: str, **settings: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | settings)
        self.context.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)  # the first time, kernels are compiled
        self.page: Page = self.context.new_page()
        self.url = url
        self.wrong: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on("console", lambda told: self._note(told.type, told.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrong.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self._asked(request.url))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.wrong.append(text)

    def _asked(self, url: str) -> None:
        if urlsplit(url).netloc != urlsplit(self.url).netloc:
            self.elsewhere.append(url)

    def open(self, where: str = "") -> Page:
        self.page.goto(f"{self.url}/{where}")
        return self.page

    def close(self) -> None:
        self.context.close()
