"""Roll-ups and what is kept at hand stay small, however long the log, and lose nothing of what they sum up."""

from __future__ import annotations

import msgspec
import numpy as np

from rankloop.serving.series import MOST, Series


def test_a_series_is_bounded_and_sums_up_everything() -> None:
    series, rng = Series(), np.random.default_rng(1)
    rewards = rng.random(50_000)
    for i, reward in enumerate(rewards):
        bucket = series.at(2 * i + 1, 1_000 + i)
        bucket.decisions += 1
        bucket.explored += i % 4 == 0
        series.answered(series.at(2 * i + 2, 1_000 + i), reward=float(reward), delay=float(i % 7))
        assert len(series.buckets) <= MOST
    assert len(series.buckets) > MOST / 3
    columns = series.columns()
    assert len({len(column) for column in columns.values()}) == 1
    assert sum(columns["decisions"]) == sum(columns["learnt"]) == 50_000
    weighed = np.dot(columns["learnt"], columns["reward"]) / 50_000
    np.testing.assert_allclose(weighed, rewards.mean())
    assert columns["seq"] == sorted(columns["seq"])
    assert sum(series.delay_histogram()["answers"]) == 50_000
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(series), type=Series)
    assert again.columns() == columns
