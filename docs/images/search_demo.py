"""Makes the picture of `make search-demo`: `.venv/bin/python -m docs.images.search_demo`. Needs Chromium."""

import shutil
import subprocess
import sys

from playwright.sync_api import sync_playwright

from docs.images.page import keep

LEARN = 75  # seconds before the picture


def main() -> None:
    """Let shoppers come for a while, then take the picture."""
    command = [sys.executable, "-m", "examples.search_demo", "--port", "0", "--seconds", str(LEARN + 30)]
    shop = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    address = shop.stdout.readline().split(",")[0].split()[-1]
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1000, "height": 830}, device_scale_factor=1.5)
            page.goto(address)
            page.wait_for_timeout(1000 * LEARN)
            page.get_by_role("button", name="Search").click()
            page.wait_for_timeout(2_000)
            keep(page, "search-demo.png")
    finally:
        shop.terminate()


if __name__ == "__main__":
    main()
