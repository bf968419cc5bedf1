"""The load generator measures what it says it measures."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks import load, load_features, load_feedback


def test_fsync_is_timed(tmp_path: Path) -> None:
    assert 0 < load.fsync_seconds(tmp_path, times=3) < 5
    assert list(tmp_path.iterdir()) == []


def test_load_on_a_bare_server() -> None:
    server = load.Server("-c", load._HELLO)
    try:
        measured = load.load(server, "GET", "/hello", b"", seconds=0.3)
    finally:
        server.stop()
    assert measured.rate > 50
    assert 0 < measured.p50 <= measured.p99 <= measured.p999
    assert measured.memory > 5


def test_load_with_feedback_learns_from_every_list(tmp_path: Path) -> None:
    measured = load_feedback.measure(load_feedback.CASES[1], tmp_path, seconds=0.3, connections=4)
    assert measured.rate > 1
    assert 0 < measured.rank_p50 <= measured.rank_p99
    assert 0 < measured.feedback_p50 <= measured.feedback_p99


def test_a_row_that_refers_to_stored_features_is_small() -> None:
    sizes = asyncio.run(load_features.row_bytes())
    assert sizes["stored, 100 names, JSON"] < 3_000
    assert sizes["130 stored, 6 in msgpack"] < 6_000
    assert sizes["in the request, msgpack"] < 60_000
