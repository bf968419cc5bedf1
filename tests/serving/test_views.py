"""What the page shows at a glance: the newest lists with what came back, bounded whatever the log's length."""

from __future__ import annotations

from rankloop.serving.series import Series, columns
from rankloop.serving.views import decisions_answer, sparkline
from tests.serving.service import answer, create, play, rank, running


def test_the_newest_lists_come_first_with_what_came_back() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            for i in range(30):
                await rank(engine, f"d{i}")
            await answer(engine, "d28", 0.0)
            told = (await decisions_answer(engine.rankers["unwind"])).decisions
            assert [one.decision_id for one in told] == [f"d{i}" for i in range(29, 9, -1)]
            assert [one.values for one in told[:3]] == [None, [0.0], None]
            assert all(one.length == 5 and one.top for one in told)

    play(story)


def test_a_ranker_nobody_asked_yet_has_no_lists() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            assert (await decisions_answer(engine.rankers["unwind"])).decisions == []

    play(story)


def test_silence_that_counts_is_no_delay() -> None:
    series = Series()
    series.answered(1, 1, reward=1.0, delay=2.0, estimate={})
    series.answered(2, 1, reward=0.0, delay=None, estimate={})
    found = columns(series.buckets)
    assert (found["learnt"], found["answers"], found["delay_seconds"]) == ([2], [1], [2.0])
    assert series.n_answers() == 1
    assert sum(series.delay_histogram()["answers"]) == 1


def test_a_short_line_stays_short() -> None:
    series = Series(width=1)
    for seq in range(1, 5_000):
        series.answered(seq, seq, reward=1.0, delay=0.0, estimate={})
        points = sparkline(series)
        assert len(points) <= 40
    assert set(points) == {1.0}
