"""A service, a shop and its shoppers, until Ctrl-C: `python -m examples.search_demo`."""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
import threading
import time

from examples.search_demo.shop import Shop, serve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="of the shop; 0 takes a free one")
    parser.add_argument("--seconds", type=float, default=None, help="stop after that long")
    parser.add_argument("--a-second", type=float, default=20.0, help="searches of shoppers")
    parser.add_argument(
        "--opensearch", metavar="URL", help="search there instead, after indexing the products"
    )
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "rankloop", "serve", "--memory", "--port", "0"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the service ends, too
    try:
        assert service.stdout is not None
        shop = Shop(service.stdout.readline().split()[-1], opensearch=arguments.opensearch)
        shop.create()
        server = serve(shop, arguments.port)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(
            f"the shop is at http://127.0.0.1:{server.server_port}, the service at {shop.address}", flush=True
        )
        pace = {"a_second": arguments.a_second}
        threading.Thread(target=shop.open, args=(stop,), kwargs=pace, daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            follow(shop, arguments.seconds)
        server.shutdown()
    finally:
        stop.set()
        service.terminate()
        service.wait(30)


def follow(shop: Shop, seconds: float | None) -> None:
    """Print the verdict now and then, and once more when there is one."""
    began, winner = time.monotonic(), None
    while seconds is None or time.monotonic() - began < seconds:
        time.sleep(min(5.0, seconds or 5.0))
        found = shop.verdict()
        if winner is None:
            print(f"{time.monotonic() - began:4.0f} s  {found['sentence']}", flush=True)
        winner = found["winner"]


if __name__ == "__main__":
    main()
