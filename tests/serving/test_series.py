"""Roll-ups and what is kept at hand stay small, however long the log, and lose nothing of what they sum up."""

from __future__ import annotations

import msgspec
import numpy as np

from rankloop.serving.series import MOST, WINDOWS, Series, columns


def test_a_series_is_bounded_and_sums_up_everything() -> None:
    series, rng = Series(), np.random.default_rng(1)
    rewards = rng.random(50_000)
    for i, reward in enumerate(rewards):
        series.decided(2 * i + 1, 1_000 + i, explored=i % 4 == 0)
        series.answered(2 * i + 2, 1_000 + i, reward=float(reward), delay=float(i % 7), estimate={})
        assert len(series.buckets) <= MOST
    assert len(series.buckets) > MOST / 3
    found = columns(series.buckets)
    assert len({len(column) for column in found.values()}) == 1
    assert sum(found["decisions"]) == sum(found["learnt"]) == 50_000
    weighed = np.dot(found["learnt"], found["reward"]) / 50_000
    np.testing.assert_allclose(weighed, rewards.mean())
    assert found["seq"] == sorted(found["seq"])
    assert sum(series.delay_histogram()["answers"]) == 50_000
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(series), type=Series)
    assert again == series


def test_windows_keep_the_last_hour_and_day_only() -> None:
    series, minute = Series(), 60_000
    for i in range(3 * 24 * 60):
        series.decided(i + 1, i * minute + 5, explored=i % 2 == 0)
    now = 3 * 24 * 60 * minute
    for window, (width, most) in WINDOWS.items():
        found_width, found = series.window(window, now=now)
        assert found_width == width
        assert len(found) == most
        assert sum(one.decisions for one in found) == width * most // minute
        assert sum(one.explored for one in found) == width * most // minute // 2
        assert found[0].first_at >= now - width * most
        assert series.window(window, now=now + width * most + width)[1] == []
    assert sum(one.decisions for one in series.window("all", now=now)[1]) == 3 * 24 * 60
