"""Events in a file: all of them, each once unless it was interrupted, and from where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from examples import pull_events
from rankloop.serving.client import Client
from tests.serving.process import Service
from tests.serving.service import ITEMS


def learn(client: Client, n: int) -> None:
    for _ in range(n):
        client.feedback("unwind", client.rank("unwind").decision_id, relevance=[1])


def test_it_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "events.jsonl"

    def ids() -> list[str]:
        return [json.loads(line)["id"] for line in out.read_text().splitlines()]

    with Service("--memory") as service, service.client() as client:
        client.create("unwind", algorithm="RTop1F", items=ITEMS, seed=7)
        learn(client, 3)
        assert pull_events.pull(client, "unwind", out) == 4
        learn(client, 2)
        assert pull_events.pull(client, "unwind", out) == 2
        assert pull_events.pull(client, "unwind", out) == 0
        assert ids() == [f"unwind/{seq}" for seq in (1, 3, 5, 7, 9, 11)]

        learn(client, 1)
        write = pull_events.write

        def write_and_die(path: Path, events: list[dict[str, Any]]) -> None:
            write(path, events)
            raise KeyboardInterrupt  # after they were written, before that is remembered

        monkeypatch.setattr(pull_events, "write", write_and_die)
        with pytest.raises(KeyboardInterrupt):
            pull_events.pull(client, "unwind", out)
        monkeypatch.setattr(pull_events, "write", write)
        assert pull_events.pull(client, "unwind", out) == 1
        assert ids()[6:] == ["unwind/13", "unwind/13"]

        client.delete("unwind")
        client.create("unwind", algorithm="FTPL", items=ITEMS, seed=7)
        assert pull_events.pull(client, "unwind", out) == 1
        assert json.loads(out.read_text().splitlines()[-1])["algorithm"] == "FTPL"
