"""The benchmarks compare like with like: the NumPy versions tell the package's story, and the tables add up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import bare, growth, numpy_ftpl, numpy_rtop1f, speed, startup, top
from benchmarks.numpy_summary import Summary, summary
from benchmarks.timing import Effort, race
from rankloop import environments, rankers, simulation
from rankloop.kernels import sorting
from rankloop.kernels.random import uniform
from tests.benchmarks.printed import printed

M, T = 6, 1_500
PLAIN = [
    (numpy_rtop1f.RTop1F, rankers.RTop1F),
    (numpy_rtop1f.RTop1FInPlace, rankers.RTop1F),
    (numpy_rtop1f.RTop1FByBlock, rankers.RTop1F),
    (numpy_ftpl.FTPL, rankers.FTPL),
    (numpy_ftpl.FTPLInPlace, rankers.FTPL),
]
TINY = Effort(slice_seconds=0.001, laps=1)


@pytest.fixture(scope="module")
def relevance() -> np.ndarray:
    chances = [0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    return (np.random.default_rng(7).random((T, M)) < chances).astype(np.int8)


def _ours(kind: Any, relevance: np.ndarray, seed: int) -> simulation.Trace:
    people = environments.FixedItems(relevance, measure="dcg")
    return simulation.play(kind(n_items=M, horizon=T, measure="dcg"), people, rounds=T, seed=seed, points=30)


def _plain(kind: Any, relevance: np.ndarray, seed: int) -> Summary:
    gains = relevance.astype(np.float64)
    ranker = kind(n_items=M, horizon=T, rng=np.random.default_rng(seed))
    return summary(ranker.play(gains), gains, np.linspace(0, T, 31).round().astype(np.int64)[1:])


@pytest.mark.parametrize(("plain", "ours"), PLAIN)
def test_numpy_tells_the_same_story(plain: Any, ours: Any, relevance: np.ndarray) -> None:
    theirs = np.array([_plain(plain, relevance, seed).regret for seed in range(40)])[:, [9, 29]]
    mine = np.array([_ours(ours, relevance, seed).regret for seed in range(40)])[:, [9, 29]]
    error = np.sqrt(theirs.var(axis=0, ddof=1) / 40 + mine.var(axis=0, ddof=1) / 40)
    assert (np.abs(theirs.mean(axis=0) - mine.mean(axis=0)) < 4 * error).all()
    assert (error < 0.1 * mine.mean(axis=0)).all(), "too few seeds to tell two stories apart"


@pytest.mark.parametrize(("plain", "ours"), PLAIN)
def test_numpy_explores_as_much_and_knows_the_same_best_ranking(
    plain: Any, ours: Any, relevance: np.ndarray
) -> None:
    told, trace = _plain(plain, relevance, 1), _ours(ours, relevance, 1)
    assert told.explored[-1] == trace.explored[-1]
    np.testing.assert_allclose(told.regret + told.total, trace.regret + trace.total)


def test_numpy_variants_of_rtop1f_learn_the_same_estimates(relevance: np.ndarray) -> None:
    # Every item is seen once a block, so over a constant block everybody ends up with the same sums.
    constant = np.tile(relevance[:1], (T, 1)).astype(np.float64)
    estimates = []
    for kind in (numpy_rtop1f.RTop1F, numpy_rtop1f.RTop1FInPlace, numpy_rtop1f.RTop1FByBlock):
        ranker = kind(n_items=M, horizon=T, rng=np.random.default_rng(3))
        ranker.play(constant)
        estimates.append(ranker.s_hat + ranker.r_hat)
    np.testing.assert_array_equal(estimates, np.tile(ranker.K * constant[0], (3, 1)))


@pytest.mark.parametrize("m", [10, 300])
def test_the_bare_rounds_draw_and_sort(m: int) -> None:
    words = np.random.default_rng(1).bit_generator.random_raw(3)
    drawn = np.array([uniform(words[-1], i) for i in range(m)])
    items, other_items = np.empty(m, np.int64), np.empty(m, np.int64)
    bare.draw_and_sort(words, np.empty(m), items, sorting.scratch(m))
    bare.draw_and_argsort(words, np.empty(m), other_items)
    np.testing.assert_array_equal(items, np.argsort(-drawn))
    np.testing.assert_array_equal(other_items, items)


def test_contenders_take_turns_and_keep_to_the_limit() -> None:
    played: list[tuple[str, int]] = []

    def contender(name: str) -> Callable[[int], Callable[[], object]]:
        return lambda rounds: lambda: played.append((name, rounds))

    seconds = race(
        {"a": contender("a"), "b": contender("b")}, effort=Effort(slice_seconds=9.0, laps=3), most_rounds=50
    )
    assert set(seconds) == {"a", "b"}
    assert played[-6:] == [("a", 50), ("b", 50)] * 3
    assert max(rounds for _, rounds in played) == 50


def test_exponents_are_those_of_the_curve() -> None:
    curve = growth.Growth("m log m", {m: 1e-9 * m * np.log(m) for m in growth.SIZES})
    assert curve.in_m_log_m == pytest.approx(1.0)
    assert 1.05 < curve.in_m < 1.25
    assert growth.Growth("m", {m: 1e-9 * m for m in growth.SIZES}).in_m == pytest.approx(1.0)


def test_microseconds_of_the_rankers_without_a_horizon() -> None:
    found = top.measure(TINY, lambda _: None, sizes=(10,))
    assert set(found[0].microseconds) == {*top.RANKERS, speed.BARE}
    slow = top.Times(100, dict.fromkeys(found[0].microseconds, 61.0))
    lines = [part for part in top.tables([*found, slow]) if isinstance(part, str)]
    assert [("aim at most 5" in line, "missed" in line) for line in lines][1] == (False, True)
    assert len(lines) == 2


def test_rows_columns_and_ratios_belong_together() -> None:
    found = speed.measure(TINY, lambda _: None, sizes=(10, 100))
    assert [(rates.ranker, rates.m) for rates in found] == [
        (name, m) for m in (10, 100) for name in ("RTop1F", "FTPL")
    ]
    first = found[0]
    assert set(first.rounds_per_second) == set(speed.contenders("RTop1F", speed.relevance_for(10)))
    expected = first.rounds_per_second[speed.FUSED] / first.rounds_per_second[speed.NUMPY]
    assert first.fused_over(speed.NUMPY) == expected
    text = printed(speed.tables(found))
    assert f"{first.rounds_per_second[speed.FUSED]:,.0f}" in text
    assert text.count("aim 50x") == text.count("aim 0.5x") == 2


@pytest.mark.parametrize(("ratio", "word"), [(49.9, "missed"), (50.0, "met")])
def test_an_aim_is_met_or_missed(ratio: float, word: str) -> None:
    assert word in speed.verdict("x", {10: 70.0, 100: ratio}, 50.0)


def test_the_horizons_are_ones_a_ranker_takes() -> None:
    for m in speed.SIZES:
        share = rankers.RTop1F(n_items=m, horizon=speed.horizon_for(m)).params.blocks[0] * m
        assert 0.04 < share / speed.horizon_for(m) < 0.25


def test_the_command_prints_and_writes_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [startup.StartUp("python itself", 0.02, 0.01, None), startup.StartUp("a round", 2.0, 0.9, 1.0)]
    monkeypatch.setattr(startup, "measure", lambda effort, tell: found)
    command.main(["startup", "--json", str(tmp_path / "numbers.json")])
    printed = capsys.readouterr().out
    assert "python itself" in printed
    assert "missed" in printed
    assert json.loads((tmp_path / "numbers.json").read_text())["startup"][1]["seconds"] == 2.0


def test_the_command_names_the_benchmarks_it_knows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["sped"])
    assert "speed, growth, catalogue, startup" in capsys.readouterr().err
