"""Feedback from a file: no line is lost, repeated lines count once, and what is refused is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from examples import feed_file
from examples.feed_file import Feed
from rankloop.serving.client import EventAnswer, RankloopError, Unreachable
from tests.serving.process import Service
from tests.serving.service import ITEMS


class Taker:
    """A service that takes everything but lines without a decision, and may be away or busy."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.calls = 0
        self.away = False
        self.busy_once: set[str] = set()

    def feedback_many(self, name: str, many: Any) -> list[EventAnswer]:
        self.calls += 1
        if self.away:
            raise Unreachable(0, "unreachable", "nobody there")
        if any("decision_id" not in one for one in many):
            raise RankloopError(422, "invalid", "decision_id is missing")
        answers = []
        for one in many:
            decision = one["decision_id"]
            if decision in self.busy_once:
                self.busy_once.remove(decision)
                answers.append(EventAnswer("busy", 0))
            else:
                self.taken.append(decision)
                answers.append(EventAnswer("accepted", len(self.taken)))
        return answers


def add_lines(path: Path, *names: str, end: str = "\n") -> None:
    with path.open("a") as file:
        file.write("\n".join(json.dumps({"decision_id": name, "clicks": [1]}) for name in names) + end)


def feed(taker: Any, path: Path, ranker: str = "r") -> tuple[int, int]:
    """A new one each time, as after a restart."""
    one = Feed(taker, ranker, path)
    one.send_new()
    return one.taken, one.refused


def test_it_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    path, taker = tmp_path / "clicks.jsonl", Taker()
    assert feed(taker, path) == (0, 0)  # nothing is there yet
    add_lines(path, "a", "b")
    add_lines(path, "c", end="")  # not whole yet
    assert feed(taker, path) == (2, 0)
    add_lines(path, end="\n")
    add_lines(path, "d")
    taker.away = True
    with pytest.raises(Unreachable):
        feed(taker, path)
    taker.away = False
    assert feed(taker, path) == (2, 0)
    assert taker.taken == ["a", "b", "c", "d"]
    assert feed(taker, path) == (0, 0)


def test_many_lines_go_in_batches(tmp_path: Path) -> None:
    path, taker = tmp_path / "clicks.jsonl", Taker()
    names = [f"d{i}" for i in range(1_234)]
    add_lines(path, *names)
    assert feed(taker, path) == (1_234, 0)
    assert (taker.taken, taker.calls) == (names, 3)


def test_refused_lines_are_told_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, taker = tmp_path / "clicks.jsonl", Taker()
    add_lines(path, "a")
    with path.open("a") as file:
        file.write('{"clicks": [1]}\nnot json\n[1]\n\n')
    add_lines(path, "b")
    assert feed(taker, path) == (2, 4)
    assert taker.taken == ["a", "b"]
    messages = capsys.readouterr().err.splitlines()
    assert sorted(line.split(" of ")[0] for line in messages) == ["line 2", "line 3", "line 4", "line 5"]


def test_what_the_service_was_too_busy_for_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_file, "PAUSE", 0.0)
    path, taker = tmp_path / "clicks.jsonl", Taker()
    taker.busy_once = {"b"}
    add_lines(path, "a", "b", "c")
    assert feed(taker, path) == (3, 0)
    assert taker.taken == ["a", "c", "b"]


def test_a_new_file_under_the_old_name_begins_anew(tmp_path: Path) -> None:
    path, taker = tmp_path / "clicks.jsonl", Taker()
    add_lines(path, "a", "b")
    feed(taker, path)
    add_lines(path, "late")  # after the last look, before the file gets another name
    path.rename(tmp_path / "clicks.jsonl.1")
    add_lines(path, "c")
    assert feed(taker, path) == (2, 0)
    assert taker.taken == ["a", "b", "late", "c"]


def test_a_place_of_something_else_is_refused(tmp_path: Path) -> None:
    path, kept, taker = tmp_path / "clicks.jsonl", tmp_path / "clicks.jsonl.sent", Taker()
    add_lines(path, "a")
    for wrong in ("", "far", "1 2 r", "1 x 2 r"):
        kept.write_text(wrong)
        with pytest.raises(ValueError, match="delete it to begin anew"):
            feed(taker, path)
    kept.unlink()
    assert feed(taker, path) == (1, 0)
    with pytest.raises(ValueError, match=r"was sent to 'r': delete .* to send all to 'other'"):
        feed(taker, path, "other")


def test_the_program_feeds_a_service(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    with Service("--memory") as service, service.client() as client:
        client.create("unwind", algorithm="RTop1F", items=ITEMS, seed=7)
        shown = [client.rank("unwind").decision_id for _ in range(3)]
        path.write_text("".join(json.dumps({"decision_id": one, "relevance": [1]}) + "\n" for one in shown))
        with path.open("a") as file:  # neither is a reason to stop
            file.write('{"decision_id": "nowhere", "item": "walk"}\n')
            file.write(f'{{"decision_id": "{shown[0]}", "item": "golf"}}\n')
        program = [sys.executable, feed_file.__file__, str(path), "--to", "unwind", "--url", service.url]
        done = subprocess.run(program, capture_output=True, text=True)
        assert done.stdout == "3 lines taken, 2 left out; line 5 was the last\n", done.stderr
        (tmp_path / "answers.jsonl.sent").unlink()  # as if it had been lost: all lines are sent again
        assert subprocess.run(program).returncode == 0
        assert client.ranker("unwind").counts["learnt"] == 3
