"""The benchmarks of rankers with features compare like with like: same steps, same story, and honest meters."""

from __future__ import annotations

import json
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from benchmarks import __main__ as command
from benchmarks import bare_topk, letor, memory, numpy_rtopkf, topk
from benchmarks.timing import Effort
from rankloop import data, environments, simulation
from rankloop.kernels import sorting
from tests.benchmarks.printed import printed

TINY = Effort(slice_seconds=0.001, laps=1)
D = 5


@pytest.fixture(scope="module")
def dataset() -> data.Dataset:
    return data.synthetic_letor(n_queries=40, n_features=D, seed=3, list_length=(1, 12))


@pytest.fixture
def stream(dataset: data.Dataset) -> environments.QueryStream:
    return environments.QueryStream(dataset, measure=topk.MEASURE)


@pytest.mark.parametrize("name", topk.LEARNERS)
def test_numpy_takes_the_same_steps(
    name: str, dataset: data.Dataset, stream: environments.QueryStream
) -> None:
    learner = topk.LEARNERS[name]
    ours, queries = learner.ours(D), numpy_rtopkf.Queries.of(stream)
    rng = np.random.default_rng(5)
    plain = topk.plain(learner, queries, rng)
    plain.w[:] = ours.state.w[:] = rng.normal(size=D)  # no two documents with equal scores: one greedy order
    start = ours.state.w.copy()
    for query in queries.each * 3:
        shown = ours.rank(query.X, rng=rng)
        s = query.X @ plain.w
        gamma = plain.at(plain.exploration) if plain.exploration else 0.0
        plain.learn(numpy_rtopkf.Seen(query.X, s, np.argsort(-s), shown.items, gamma, query.R))
        ours.learn(shown, query.R[shown.items][: ours.feedback.length(len(query.R))])
        np.testing.assert_allclose(plain.w, ours.state.w, rtol=1e-9, atol=1e-12)
    assert np.abs(start - plain.w).max() > 1e-3


@pytest.mark.parametrize("name", topk.LEARNERS)
def test_numpy_tells_the_same_story(name: str, stream: environments.QueryStream) -> None:
    learner, queries, rounds = topk.LEARNERS[name], numpy_rtopkf.Queries.of(stream), 400
    record = np.array([rounds // 2, rounds])
    theirs, mine = [], []
    for seed in range(30):
        sequence = topk.sequence_of(len(queries.each), rounds, seed=seed)
        plain = topk.plain(learner, queries, np.random.default_rng(seed))
        theirs.append(numpy_rtopkf.summary(plain.play(queries, sequence), queries, sequence, record))
        stream.restart()
        mine.append(simulation.play(learner.ours(D), stream, rounds=rounds, seed=seed, points=2))
    for what in ("total", "regret", "explored"):
        a = np.array([getattr(one, what) for one in theirs], dtype=np.float64)
        b = np.array([getattr(one, what) for one in mine], dtype=np.float64)
        error = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / 30)
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) <= 4 * error).all(), what
    total = np.array([one.total for one in mine])
    assert (total.std(axis=0) < 0.1 * total.mean(axis=0)).all(), "too few seeds to tell two stories apart"


def test_numpy_goes_back_into_the_ball(stream: environments.QueryStream) -> None:
    queries = numpy_rtopkf.Queries.of(stream)
    plain = topk.plain(topk.LEARNERS["kl"], queries, np.random.default_rng(1))
    plain.w[:] = 2 * numpy_rtopkf.RADIUS
    plain.play(queries, [0])
    assert np.linalg.norm(plain.w) == pytest.approx(numpy_rtopkf.RADIUS)


def test_numpy_shows_equal_scores_in_any_order(stream: environments.QueryStream) -> None:
    plain = topk.plain(topk.LEARNERS["kl"], numpy_rtopkf.Queries.of(stream), np.random.default_rng(1))
    tops = [plain.by_falling_score(np.array([1.0, 2.0, 2.0]))[0] for _ in range(100)]
    assert 20 < tops.count(1) < 80
    assert tops.count(0) == 0


def test_the_bare_rounds_score_and_sort(dataset: data.Dataset) -> None:
    w, n = np.random.default_rng(1).normal(size=D), dataset.lengths.max()
    scores, items = np.empty(n), np.empty(n, np.int64)
    words = np.random.default_rng(1).bit_generator.random_raw(2)
    for last in range(dataset.n_queries):
        sequence = np.array([0, last])
        bare_topk.score_and_sort(
            dataset.features, dataset.offsets, sequence, words, w, scores, items, sorting.scratch(n)
        )
        expected = dataset.query(last)[0] @ w
        np.testing.assert_allclose(scores[: len(expected)], expected, atol=1e-12)
        np.testing.assert_array_equal(items[: len(expected)], np.argsort(-expected))


def test_every_query_comes_once_a_pass() -> None:
    sequence = topk.sequence_of(7, 18)
    assert len(sequence) == 18
    assert sorted(sequence[:7]) == sorted(sequence[7:14]) == list(range(7))
    assert len(set(sequence[14:])) == 4


def test_rows_ratios_and_aims_belong_together(dataset: data.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        topk, "datasets", lambda: ({"made up": dataset}, [topk.Missing("nothing else is here")])
    )
    monkeypatch.setattr(topk, "DEFAULTS", {"RTopKF": topk.DEFAULTS["RTopKF"]})  # one is enough
    found = topk.measure(TINY, lambda _: None)
    rates = [one for one in found if isinstance(one, topk.Rates)]
    assert [one.learner for one in rates] == [*topk.LEARNERS, *topk.DEFAULTS]
    first = rates[0].rounds_per_second
    assert set(first) == {topk.FUSED, topk.NUMPY, topk.BARE}
    assert rates[0].fused_over(topk.NUMPY) == first[topk.FUSED] / first[topk.NUMPY]
    assert set(rates[-1].rounds_per_second) == {topk.FUSED, topk.BARE}, "the defaults have no NumPy version"
    text = printed(topk.tables(found))
    assert f"{first[topk.FUSED]:,.0f}" in text
    assert "nothing else is here" in text
    assert "aim 20x" in text
    assert "aim 0.5x" in text
    assert "of 4 reach it" in text, "ListNet and the defaults have no aim"


@pytest.mark.parametrize(("ratio", "word"), [(19.9, "missed"), (20.0, "met")])
def test_an_aim_is_met_by_all_or_missed(ratio: float, word: str) -> None:
    line = topk.verdict("over NumPy", {"kl on A": 30.0, "kl on B": ratio}, 20.0)
    assert word in line
    assert "kl on B" in line


def test_without_data_there_is_one_line_and_the_synthetic_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKLOOP_DATA", str(tmp_path))
    found, missing = topk.datasets()
    assert list(found) == [topk.SYNTHETIC]
    assert len(missing) == 1
    assert all(place in missing[0].line for place in topk.SETS.values())
    assert str(tmp_path) in missing[0].line


def test_the_meter_sees_what_compiled_code_allocates() -> None:
    @numba.njit
    def wasteful(rounds: int) -> float:
        total = 0.0
        for i in range(rounds):
            total += np.full(i + 1, 1.0).sum()
        return total

    wasteful(1)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().alloc
        wasteful(50)
        assert rtsys.get_allocation_stats().alloc - before >= 50
    finally:
        _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("name", topk.LEARNERS)
def test_a_play_allocates_nothing_a_round(name: str, stream: environments.QueryStream) -> None:
    memory.play(topk.LEARNERS[name], stream, 1)
    few, _ = memory.play(
        topk.LEARNERS[name], stream, 200
    )  # one call of the compiled loop: 256 rounds come first
    many, _ = memory.play(topk.LEARNERS[name], stream, 250)
    assert few == many
    lots, peak = memory.play(topk.LEARNERS[name], stream, 20_000)
    assert lots <= 100 * few
    assert peak < 20_000 * 100


def test_memory_is_told(dataset: data.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "datasets", lambda: ({"made up": dataset}, []))
    found = memory.measure(TINY, lambda _: None)
    assert all(one.dataset_shared and one.lists_shared for one in found)
    text = printed(memory.tables(found))
    assert "made up" in text
    assert text.count("met") == 2
    assert "missed" not in text


def test_the_command_knows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = topk.Rates("kl", "made up", "few", {topk.FUSED: 90.0, topk.NUMPY: 3.0, topk.BARE: 100.0})
    reading = letor.Reading("scikit-learn", "lines.txt", 10, 2.0, 1.0)
    monkeypatch.setattr(topk, "measure", lambda effort, tell: [rates])
    monkeypatch.setattr(letor, "measure", lambda effort, tell: [reading])
    command.main(["topk", "letor", "--json", str(tmp_path / "numbers.json")])
    printed = capsys.readouterr().out
    assert "30.0x" in printed
    assert "0.90x" in printed
    assert "scikit-learn" in printed
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert numbers["topk"][0]["dataset"] == "made up"
    assert numbers["letor"][0]["n_lines"] == 10
