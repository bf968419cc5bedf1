"""What a ranker learnt and how it was changed, appended to a file of JSON lines: pulled, page by page.

    python examples/pull_events.py front events.jsonl --follow

Events come in the order of the log, each at least once, with an `id` that tells repetitions. How far it came is kept in
FILE.pulled, written after the events are on disk. Put your own receiver in the place of `write`.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from rankloop import Client
from rankloop.serving.client import RankloopError

PAUSE = 0.5  # seconds between two requests where nothing is new


def write(out: Path, events: list[dict[str, Any]]) -> None:
    with out.open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)
        file.flush()
        os.fsync(file.fileno())


def pull(client: Client, ranker: str, out: Path) -> int:
    """Write what there is and was not written yet; how many events that were."""
    kept, n_events = Path(f"{out}.pulled"), 0
    log, after = json.loads(kept.read_text()) if kept.exists() else ("", 0)
    while True:
        page = client.events(ranker, after=after)
        if log and page.log != log:  # the name is used again, for another log
            log, after = "", 0
            continue
        if page.through == after:
            return n_events
        log, after, n_events = page.log, page.through, n_events + len(page.events)
        write(out, page.events)
        part = Path(f"{kept}.part")
        part.write_text(json.dumps([log, after]))
        part.replace(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("ranker")
    parser.add_argument("file", type=Path)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--key", default=os.environ.get("RANKLOOP_KEY"), help="an API key of a reader")
    parser.add_argument("--follow", action="store_true", help="go on with whatever happens, until Ctrl-C")
    options = parser.parse_args()
    retries = (
        1_000 if options.follow else 5
    )  # the client waits longer and longer, or as long as it is told to
    with Client(options.url, key=options.key, retries=retries) as client:
        try:
            n_events = pull(client, options.ranker, options.file)
            while options.follow:
                time.sleep(PAUSE)
                n_events += pull(client, options.ranker, options.file)
        except RankloopError as error:
            sys.exit(f"stopped, and goes on from there when it is started again: {error}")
    print(f"{n_events:,} events written")


if __name__ == "__main__":
    main()
