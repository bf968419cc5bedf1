"""JSON lines by the block: the same pages as line by line, and nothing accepted that Python refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rankloop import data
from rankloop.data.clicks import json_lines, pages, tally
from rankloop.feedback import ClickLog

GOOD = '{"query": "a", "shown": [1, 2], "clicked": []}\n{"query": "b", "shown": [2, 3], "clicked": [3, 3]}\n'


def one_by_one(path: Path) -> ClickLog:
    counted = tally.Tally()
    for number, block in json_lines.line_blocks(path):
        pages._count_lines(path, number, block, counted, "jsonl")
    return counted.log(name=path.stem)


def same(one: ClickLog, other: ClickLog) -> None:
    for name in ("queries", "items", "positions", "shown", "clicked", "rows"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("query_ids", "item_ids", "bad_rows", "n_positions"):
        assert getattr(one, name) == getattr(other, name), name


@pytest.mark.parametrize("kind", ["numbers", "text", "bad pages", "without queries"])
def test_a_block_at_once_is_counted_as_line_by_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    path = tmp_path / "log.jsonl"
    with path.open("w") as file:
        for page in range(300):
            shown = rng.permutation(12)[: rng.integers(1, 6)].tolist()
            clicked = [one for one in shown if rng.random() < 0.3]
            if kind == "bad pages":
                shown = [[], shown + shown[:1], shown, shown][page % 4]
                clicked = [*clicked, 99] if page % 4 == 2 else clicked
            if kind == "text":
                shown, clicked = [f"i{one}" for one in shown], [f"i{one}" for one in clicked]
            told = {
                "q": int(rng.integers(3)),
                "docs": shown,
                "clicks": clicked,
                "other": [None, {}][page % 2],
            }
            if kind == "without queries":
                del told["q"]
            file.write(json.dumps(told) + ("\n\n" if page == 7 else "\n"))
    slow = one_by_one(path)
    monkeypatch.setattr(json_lines, "_BYTES", 3_000)
    blocks = list(json_lines.line_blocks(path))
    assert len(blocks) > 4
    assert b"".join(block for _, block in blocks) == path.read_bytes()
    assert all(pages._parsed(path, *block) is not None for block in blocks)
    same(data.read_clicks(path), slow)
    if kind == "bad pages":
        assert sorted(slow.bad_rows.values()) == [75, 75, 75]


@pytest.mark.parametrize(
    "line",
    [
        '{"query": 1, "shown": ["a", 2], "clicked": [2]}',
        '{"query": "c", "query": "d", "shown": [1], "clicked": []}',
        '{"query": "c", "q": "d", "shown": [1], "clicked": [1]}',
        '{"q": "c", "shown": [1], "clicked": [1]}',
        '{"query": "c", "shown": [12345678901234567890], "clicked": []}',
        '{"query": "ü", "shown": ["\\u00fc"], "clicked": ["ü"]}',
    ],
)
def test_lines_unlike_the_first_are_read_by_themselves(line: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(GOOD + line + "\n", encoding="utf-8")
    same(data.read_clicks(path), one_by_one(path))
    assert data.read_clicks(path).n_rows == 3


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"query": "c", "shown": [1.0], "clicked": []}', "line 3: an id must be text or a whole number"),
        (b'{"query": "c", "shown": [true], "clicked": []}', "line 3: an id must be text or a whole number"),
        (b'{"query": "c", "shown": [null], "clicked": []}', "line 3: an id must be text or a whole number"),
        (b'{"query": null, "shown": [1], "clicked": []}', "line 3: an id must be text or a whole number"),
        (b'{"query": "c", "shown": [1]}', "line 3: no field clicked or clicks"),
        (b'{"query": "c", "shown": [1], "clicked": null}', "line 3: not a list of ids"),
        (b'{"query": "c", "shown": [1], "clicked": []} {"query": "d"}', "line 3, column 45: not JSON"),
        (b'{"query": "c", "shown": [01], "clicked": []}', "line 3, column 27: not JSON"),
        (b"[1]", "line 3: not a JSON object"),
        (b'{"query": "\xff", "shown": [1], "clicked": []}', "line 3, column 12: not UTF-8 text: byte 0xff"),
    ],
)
def test_a_line_that_python_refuses_is_refused(line: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(GOOD.encode() + line + b"\n" + GOOD.encode())
    with pytest.raises(ValueError, match=told) as caught:
        data.read_clicks(path)
    assert str(path) in str(caught.value)


def test_rows_as_json_lines_are_checked_like_those_of_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    good = [{"sku": i % 3, "position": i % 2 + 1, "click": i % 5 == 0, "query": "a"} for i in range(60)]
    bad = [
        {"sku": 1, "position": "one", "click": 1, "query": "a"},
        {"sku": None, "position": 1, "click": 1, "query": "a"},
        {"sku": [7], "position": 1, "click": 1, "query": "a"},
        {"sku": 1, "position": 1, "click": 2, "query": "a"},
        {"sku": 1, "position": 1, "click": 1},
    ]
    told = [json.dumps(row) + "\n" for row in (*good, *bad)]
    path.write_text("".join(told[:30] + told[60:] + told[30:60]))
    found = data.read_clicks(path, columns={"item": "sku"})
    assert found.bad_rows == {
        "no query": 1,
        "no item": 2,
        "a position that is not a whole number from 1 on": 1,
        "a click that is not 0 or 1": 1,
    }
    path.write_text("".join(told[:60]))
    monkeypatch.setattr(json_lines, "_BYTES", 500)
    same_good = data.read_clicks(path, columns={"item": "sku"})
    assert same_good.n_bad_rows == 0
    for name in ("queries", "items", "positions", "shown", "clicked"):
        np.testing.assert_array_equal(getattr(found, name), getattr(same_good, name))
    path.write_text(told[0] + "{\n")
    with pytest.raises(ValueError, match=r"rows.jsonl, line 2, column 3: not JSON"):
        data.read_clicks(path, columns={"item": "sku"})
    path.write_text('{"item": 1, "place": 2, "click": 0}\n')
    with pytest.raises(ValueError, match=r"rows.jsonl: no column for position .* among item, place, click"):
        data.read_clicks(path)
