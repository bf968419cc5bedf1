"""Feedback from a file: no line is lost, repeated lines count once, and what is refused is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rankloop.cli import app
from rankloop.serving.client.answers import EventAnswer
from rankloop.serving.client.errors import RankloopError, Unreachable
from rankloop.serving.feeding import Fed, Feed
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


def _lines(path: Path, *names: str, end: str = "\n") -> None:
    with path.open("a") as file:
        file.write("\n".join(json.dumps({"decision_id": name, "clicks": [1]}) for name in names) + end)


def test_it_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    path, taker = tmp_path / "clicks.jsonl", Taker()
    assert Feed(taker, "r", path).send_new() == Fed(0, 0)  # nothing is there yet
    _lines(path, "a", "b")
    _lines(path, "c", end="")  # not whole yet
    assert Feed(taker, "r", path).send_new() == Fed(2, 0)
    _lines(path, "", end="")
    path.write_text(path.read_text().removesuffix(json.dumps({"decision_id": "", "clicks": [1]})) + "\n")
    _lines(path, "d")
    feed = Feed(taker, "r", path)
    assert feed.send_new() == Fed(2, 0)
    assert taker.taken == ["a", "b", "c", "d"]
    assert feed.place.line == 4
    assert feed.send_new() == Fed(0, 0)


def test_nothing_is_skipped_that_was_not_acknowledged(tmp_path: Path) -> None:
    path, taker = tmp_path / "clicks.jsonl", Taker()
    _lines(path, "a", "b")
    taker.away = True
    feed = Feed(taker, "r", path)
    with pytest.raises(Unreachable):
        feed.send_new()
    taker.away = False
    assert Feed(taker, "r", path).send_new() == Fed(2, 0)
    assert taker.taken == ["a", "b"]


def test_many_lines_go_in_batches(tmp_path: Path) -> None:
    path, taker = tmp_path / "clicks.jsonl", Taker()
    names = [f"d{i}" for i in range(1_234)]
    _lines(path, *names)
    assert Feed(taker, "r", path).send_new() == Fed(1_234, 0)
    assert (taker.taken, taker.calls) == (names, 3)


def test_refused_lines_are_told_and_left_out(tmp_path: Path) -> None:
    path, taker, told = tmp_path / "clicks.jsonl", Taker(), []
    _lines(path, "a")
    with path.open("a") as file:
        file.write('{"clicks": [1]}\nnot json\n[1]\n\n')
    _lines(path, "b")
    assert Feed(taker, "r", path, tell=told.append).send_new() == Fed(2, 4)
    assert taker.taken == ["a", "b"]
    assert sorted(line.split(" of ")[0] for line in told) == ["line 2", "line 3", "line 4", "line 5"]


def test_what_the_service_was_too_busy_for_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankloop.serving.feeding._PAUSE", 0.0)
    path, taker = tmp_path / "clicks.jsonl", Taker()
    taker.busy_once = {"b"}
    _lines(path, "a", "b", "c")
    assert Feed(taker, "r", path).send_new() == Fed(3, 0)
    assert taker.taken == ["a", "c", "b"]


def test_a_new_file_under_the_old_name_begins_anew(tmp_path: Path) -> None:
    path, taker = tmp_path / "clicks.jsonl", Taker()
    _lines(path, "a", "b")
    feed = Feed(taker, "r", path)
    feed.send_new()
    _lines(path, "late")  # after the last look, before the file gets another name
    path.rename(tmp_path / "clicks.jsonl.1")
    _lines(path, "c")
    stops = iter([False, True])
    assert feed.follow(stop=lambda: next(stops)) == Fed(2, 0)
    assert taker.taken == ["a", "b", "late", "c"]


def test_a_place_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "clicks.jsonl.sent").write_text("far")
    with pytest.raises(ValueError, match="delete it to begin anew"):
        Feed(Taker(), "r", tmp_path / "clicks.jsonl")


def test_a_file_that_was_sent_to_another_ranker_is_not_taken_for_sent(tmp_path: Path) -> None:
    path, taker = tmp_path / "clicks.jsonl", Taker()
    _lines(path, "a")
    assert Feed(taker, "r", path).send_new() == Fed(1, 0)
    with pytest.raises(ValueError, match=r"was sent to 'r': delete it to send all to 'other'"):
        Feed(taker, "other", path)
    kept = tmp_path / "clicks.jsonl.sent"
    kept.write_text(" ".join(kept.read_text().split()[:3]))  # as an older version wrote it
    assert Feed(taker, "r", path).send_new() == Fed(0, 0)


def test_the_command_feeds_a_service(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    with Service("--memory") as service, service.client() as client:
        client.create("unwind", algorithm="RTop1F", items=ITEMS, seed=7)
        shown = [client.rank("unwind").decision_id for _ in range(3)]
        path.write_text("".join(json.dumps({"decision_id": one, "relevance": [1]}) + "\n" for one in shown))
        command = ["feed", str(path), "--to", "unwind", "--url", service.url]
        done = CliRunner().invoke(app, command)
        assert done.output == "3 lines taken, 0 left out; line 3 was the last\n"
        (tmp_path / "answers.jsonl.sent").unlink()  # as if it had been lost: all lines are sent again
        assert CliRunner().invoke(app, command).exit_code == 0
        assert client.ranker("unwind").counts["learnt"] == 3
        wrong = CliRunner().invoke(app, [*command[:1], "none.jsonl", *command[2:]])
        assert (wrong.exit_code, "there is no file none.jsonl" in wrong.output) == (2, True)
