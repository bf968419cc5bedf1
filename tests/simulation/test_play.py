"""The loop: exact however little is recorded, the same for the same seed, whole whenever it is stopped."""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rankloop import environments, measures, rankers, simulation
from rankloop.base import Array, Environment, Ranker, Ranking
from rankloop.environments import FixedItems, users
from rankloop.feedback import Clicks, TopK
from rankloop.simulation import Trace, play
from rankloop.simulation.play import Bar, duration
from tests.simulation.interrupt import interrupted

ROOT = Path(__file__).parents[2]
LOOPS = pytest.mark.parametrize("fused", [True, False], ids=["fused", "stepwise"])


def pair(measure: str = "dcg") -> tuple[rankers.RTop1F, FixedItems]:
    who = users.switching([[0.9, 0.5, 0.2, 0.1], [0.1, 0.5, 0.2, 0.9]], period=20)
    return rankers.RTop1F(n_items=4, horizon=300), FixedItems(who, measure=measure)


def run(rounds: int, measure: str = "dcg", **options: Any) -> Trace:
    ranker, environment = pair(measure)
    return play(ranker, environment, rounds=rounds, **{"seed": 1} | options)


def assert_same_story(one: Trace, other: Trace) -> None:
    for name in ("rounds", "value", "total", "regret", "explored"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@settings(max_examples=40)
@given(rounds=st.integers(1, 700), points=st.integers(1, 800))
@pytest.mark.parametrize("measure", ["dcg", "sum_loss", "err"])
def test_recording_less_loses_nothing(measure: str, rounds: int, points: int) -> None:
    every = run(rounds, measure, points=rounds)
    thin = run(rounds, measure, points=points)
    assert every.rounds.tolist() == list(range(1, rounds + 1))
    assert len(thin.rounds) == min(points, rounds)
    assert thin.rounds[-1] == rounds
    at = thin.rounds - 1
    assert (np.diff(at, prepend=-1) >= 1).all()
    np.testing.assert_array_equal(thin.total, every.total[at])
    np.testing.assert_array_equal(thin.regret, every.regret[at])
    np.testing.assert_array_equal(thin.explored, every.explored[at])
    windows = np.diff(thin.rounds, prepend=0)
    assert windows.max() - windows.min() <= 1, "recorded rounds are evenly spread"
    np.testing.assert_allclose((thin.value * windows).cumsum(), thin.total, rtol=1e-12, atol=1e-12)
    means = [part.mean() for part in np.split(every.value, thin.rounds[:-1])]
    np.testing.assert_allclose(thin.value, means, rtol=1e-12, atol=1e-12)


@pytest.mark.judges("2015-006")
@LOOPS
@pytest.mark.parametrize("measure", ["dcg", "ndcg@2", "sum_loss", "average_precision", "auc"])
def test_value_and_regret_are_those_of_the_definition(measure: str, fused: bool) -> None:
    matrix = np.random.default_rng(2).integers(0, 2, (40, 3))
    shown: list[NDArray[np.int64]] = []

    class Watched(rankers.Uniform):
        def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
            ranking = super().rank(context, rng=rng)
            shown.append(ranking.items)
            return ranking

    environment = FixedItems(matrix, measure=measure)
    watched = play(Watched(n_items=3), environment, rounds=40, seed=3, fused=False)
    environment.restart()
    trace = play(rankers.Uniform(n_items=3), environment, rounds=40, seed=3, fused=fused)
    assert_same_story(trace, watched)
    scored = measures.get(measure)
    value = np.asarray(scored(np.array(shown), matrix))
    np.testing.assert_allclose(trace.value, value, rtol=1e-12)
    every = np.asarray(scored(np.array(list(permutations(range(3))))[:, None], matrix[None])).cumsum(axis=1)
    best = every.min(axis=0) if scored.is_loss else every.max(axis=0)
    regret = value.cumsum() - best if scored.is_loss else best - value.cumsum()
    np.testing.assert_allclose(trace.regret, regret, rtol=1e-9, atol=1e-9)


def test_what_a_trace_says_of_itself() -> None:
    trace = run(250, "sum_loss", points=10)
    assert trace.n_rounds == 250
    assert trace.total_value == trace.total[-1]
    assert trace.mean_value == pytest.approx(trace.total[-1] / 250)
    assert trace.total_regret == trace.regret[-1]
    assert trace.exploration_share == pytest.approx(trace.explored[-1] / 250)
    assert (trace.measure, trace.is_loss, trace.seed) == ("sum_loss", True, 1)
    assert trace.seconds > 0
    assert_same_story(pickle.loads(pickle.dumps(trace)), trace)
    with pytest.raises(AttributeError):
        trace.seed = 2  # type: ignore[misc]


def test_traces_can_be_compared() -> None:
    one, other = run(20), run(20)
    assert isinstance(one == other, bool)


def test_regret_is_positive_where_a_ranking_is_worse_for_losses_and_gains_alike() -> None:
    for measure in ("dcg", "sum_loss", "ndcg", "auc"):
        environment = FixedItems(np.tile([1, 1, 0, 0], (100, 1)), measure=measure)
        worst = play(rankers.Fixed(order=[2, 3, 0, 1]), environment, rounds=100, seed=1)
        assert (np.diff(worst.regret) > 0).all()
        environment.restart()
        best = play(rankers.Fixed(order=[1, 0, 3, 2]), environment, rounds=100, seed=1)
        np.testing.assert_allclose(best.regret, 0, atol=1e-9)


@LOOPS
def test_the_same_seed_tells_the_same_story_and_another_another(fused: bool) -> None:
    assert_same_story(run(300, seed=7, fused=fused), run(300, seed=7, fused=fused))
    assert (run(300, seed=7, fused=fused).value != run(300, seed=8, fused=fused).value).any()
    assert_same_story(run(300, seed=np.int64(7), fused=fused), run(300, seed=7, fused=fused))


def test_the_users_of_a_seed_are_the_same_for_every_ranker() -> None:
    seen = []
    for ranker in (rankers.Fixed(order=[0, 1, 2, 3]), rankers.Uniform(n_items=4), pair()[0]):
        environment = pair()[1]
        play(ranker, environment, rounds=200, seed=9)
        seen.append(environment.state.total_gain.copy())
    np.testing.assert_array_equal(seen[0], seen[1])
    np.testing.assert_array_equal(seen[0], seen[2])


ELSEWHERE = """
from rankloop import environments, rankers, simulation
from rankloop.environments import users
who = users.switching([[0.9, 0.5, 0.2, 0.1], [0.1, 0.5, 0.2, 0.9]], period=20)
environment = environments.FixedItems(who, measure="dcg")
trace = simulation.play(rankers.RTop1F(n_items=4, horizon=300), environment, rounds=300, seed=1)
print(trace.value.tobytes().hex(), trace.regret.tobytes().hex())
"""


def test_another_process_tells_the_same_story() -> None:
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, check=True)
    trace = run(300)
    assert done.stdout.split() == [trace.value.tobytes().hex(), trace.regret.tobytes().hex()]


def test_threads_tell_the_same_stories() -> None:
    alone = [run(5_000, seed=seed, points=100) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: run(5_000, seed=seed, points=100), range(8)))
    for one, other in zip(alone, together, strict=True):
        assert_same_story(one, other)


@LOOPS
@pytest.mark.parametrize("seconds", [1e-9, 1e9])
def test_the_size_of_the_chunks_does_not_matter(
    seconds: float, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run(2_000, points=77)
    monkeypatch.setattr(sys.modules["rankloop.simulation.play"], "CHUNK_SECONDS", seconds)
    assert_same_story(run(2_000, points=77, fused=fused), before)


def test_a_progress_bar_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert_same_story(run(2_000, points=50, progress=True), run(2_000, points=50))
    assert capsys.readouterr().out == ""


@LOOPS
def test_play_goes_on_from_where_both_stand(fused: bool) -> None:
    ranker, environment = pair()
    first = play(ranker, environment, rounds=120, seed=4, fused=fused)
    assert (ranker.state.t[0], environment.state.t[0]) == (120, 120)
    learnt = ranker.state.s_hat.copy()
    second = play(ranker, environment, rounds=80, seed=5, fused=fused)
    assert (ranker.state.t[0], environment.state.t[0]) == (200, 200)
    assert (ranker.state.s_hat >= learnt).all()
    assert (first.n_rounds, second.n_rounds) == (120, 80)
    assert second.rounds[0] == 1


@LOOPS
@pytest.mark.parametrize("measure", ["dcg", "sum_loss", "average_precision"])
def test_regret_of_a_second_run_is_that_of_its_own_rounds(measure: str, fused: bool) -> None:
    matrix = np.random.default_rng(6).integers(0, 2, (200, 3))
    environment = FixedItems(matrix, measure=measure)
    play(rankers.Uniform(n_items=3), environment, rounds=100, seed=1, fused=fused)
    later = play(rankers.Fixed(order=[1, 0, 2]), environment, rounds=100, seed=2, fused=fused)
    fresh = FixedItems(matrix[100:], measure=measure)
    expected = play(rankers.Fixed(order=[1, 0, 2]), fresh, rounds=100, seed=2, fused=fused)
    np.testing.assert_array_equal(later.value, expected.value)
    np.testing.assert_allclose(later.regret, expected.regret, atol=1e-9)


@LOOPS
def test_watch_sees_every_trace_grow(fused: bool) -> None:
    seen: list[Trace] = []
    last = run(3_000, points=60, fused=fused, watch=seen.append)
    assert seen
    assert_same_story(seen[-1], last)
    lengths = [len(trace.rounds) for trace in seen]
    assert lengths == sorted(lengths)
    for trace in seen:
        n = len(trace.rounds)
        np.testing.assert_array_equal(trace.regret, last.regret[:n])
        assert trace.total_regret == last.regret[n - 1]


def test_what_watch_does_to_its_trace_does_not_reach_the_run() -> None:
    def spoil(trace: Trace) -> None:
        for part in (trace.rounds, trace.value, trace.total, trace.regret, trace.explored):
            part[:] = -1

    assert_same_story(run(3_000, points=60, watch=spoil), run(3_000, points=60))


@LOOPS
def test_stopped_from_watch_the_ranker_stands_between_two_rounds(fused: bool) -> None:
    def stop(trace: Trace) -> None:
        if trace.n_rounds > 1_000:
            raise KeyboardInterrupt

    ranker, environment = pair()
    with pytest.raises(KeyboardInterrupt):
        play(ranker, environment, rounds=10**7, seed=1, fused=fused, watch=stop)
    _assert_whole(ranker, environment, fused)


@LOOPS
@pytest.mark.parametrize("after", [0.03, 0.07, 0.13])
def test_stopped_by_ctrl_c_the_ranker_stands_between_two_rounds(fused: bool, after: float) -> None:
    def ctrl_c(*_: object) -> None:
        raise KeyboardInterrupt

    ranker, environment = pair()
    play(ranker, environment, rounds=1, seed=1, fused=fused)  # compile before the clock runs
    ranker, environment = pair()
    before = signal.signal(signal.SIGALRM, ctrl_c)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        with pytest.raises(KeyboardInterrupt):
            play(ranker, environment, rounds=10**9, seed=1, points=100, fused=fused)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ranker.state.t[0] > 0
    _assert_whole(ranker, environment, fused)


def _assert_whole(ranker: rankers.RTop1F, environment: FixedItems, fused: bool) -> None:
    """The state is exactly that after some number of rounds; stepwise, one more user may have come."""
    t = int(ranker.state.t[0])
    assert environment.state.t[0] - t in ((0,) if fused else (0, 1))
    twin, others = pair()
    play(twin, others, rounds=t, seed=1, points=1)
    for name, value in twin.save().items():
        np.testing.assert_array_equal(ranker.save()[name], value, err_msg=name)
    if environment.state.t[0] == t:
        np.testing.assert_array_equal(environment.state.total_gain, others.state.total_gain)
    play(ranker, environment, rounds=50, seed=2)


class Nothing(NamedTuple):
    t: NDArray[np.int64]


class Handmade(Ranker):
    """A ranker without kernels, and with whatever feedback a test wants."""

    def __init__(self, feedback: Any = None, m: int = 4) -> None:
        self.n_positions = m
        self.feedback = feedback or TopK(2)
        self.state = Nothing(np.zeros(1, np.int64))
        self.heard: list[list[float]] = []

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        return Ranking(np.arange(self.n_positions)[::-1].copy())

    def learn(self, ranking: Ranking, feedback: Array) -> None:
        self.state.t[0] += 1
        self.heard.append(feedback.tolist())

    def current(self, context: Any = None) -> NDArray[np.int64]:
        return np.arange(self.n_positions)


def test_a_ranker_without_kernels_plays_and_hears_only_its_share() -> None:
    matrix = np.random.default_rng(1).integers(0, 2, (30, 4))
    ranker = Handmade(TopK(2))
    trace = play(ranker, FixedItems(matrix), rounds=30, seed=1)
    assert ranker.heard == matrix[:, [3, 2]].tolist()
    assert trace.exploration_share == 0
    with pytest.raises(ValueError, match="fused"):
        play(ranker, FixedItems(matrix), rounds=30, seed=1, fused=True)


def test_a_pair_that_does_not_fit_is_refused_before_anything_happens() -> None:
    environment = FixedItems(np.ones((10, 4), int))
    for ranker, named in (
        (Handmade(Clicks()), "clicks"),
        (rankers.Uniform(n_items=5), "positions"),
        (rankers.Fixed(order=[0]), "positions"),
    ):
        with pytest.raises(ValueError, match=named):
            play(ranker, environment, rounds=5, seed=1)
    with pytest.raises(ValueError, match="rounds"):
        play(rankers.Uniform(n_items=4), environment, rounds=11, seed=1)
    graded = FixedItems(np.full((10, 4), 2))
    with pytest.raises(ValueError, match="max_grade"):
        play(rankers.RTop1F(n_items=4), graded, rounds=5, seed=1)
    assert environment.state.t[0] == graded.state.t[0] == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        *(({"rounds": bad}, "rounds") for bad in (0, -1, 1.5, None, "3", True, float("nan"))),
        *(({"points": bad}, "points") for bad in (0, -1, 1.5, None, "3")),
        *(({"seed": bad}, "seed") for bad in (None, -1, 1.5, "x")),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, Any], named: str) -> None:
    ranker, environment = pair()
    with pytest.raises(ValueError, match=named):
        play(ranker, environment, **{"rounds": 5, "seed": 1} | arguments)
    assert environment.state.t[0] == ranker.state.t[0] == 0


def test_arguments_after_the_pair_are_named() -> None:
    with pytest.raises(TypeError):
        play(*pair(), 10, 1)  # type: ignore[misc]


def test_long_runs_are_recorded_at_ten_thousand_rounds() -> None:
    trace = run(25_000)
    assert len(trace.rounds) == len(trace.value) == 10_000


def clicked_pair(name: str = "gap-0.03-corrupted") -> tuple[Ranker, Environment]:
    return rankers.FTRLPBM(n_items=10, n_positions=5), environments.named(name)


def same(one: Trace, other: Trace) -> bool:
    parts = ("rounds", "value", "total", "regret", "explored")
    return (one.measure, one.seed, one.counters) == (other.measure, other.seed, other.counters) and all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in parts
    )


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_many_seeds_are_played_as_one_by_one(workers: int | None) -> None:
    seeds = [5, 0, 5, 7]
    many = simulation.play_many(clicked_pair, rounds=3_000, seeds=seeds, points=50, workers=workers)
    alone = [simulation.play(*clicked_pair(), rounds=3_000, seed=seed, points=50) for seed in seeds]
    assert [len(trace.rounds) for trace in many] == [50] * 4
    assert all(map(same, many, alone))


def test_many_different_pairs_are_played_as_one_by_one() -> None:
    def pairs() -> Iterator[tuple[Ranker, Environment]]:
        for name in ("gap-0.01", "yandex-periodic-2", "lower-bound"):
            yield clicked_pair(name)
        environment = environments.FixedItems(environments.users.noisy_halves(n_items=4), measure="ndcg")
        yield rankers.Uniform(n_items=4), environment

    many = simulation.play_many(pairs(), rounds=500, seeds=range(4))
    alone = [simulation.play(*pair, rounds=500, seed=seed) for seed, pair in enumerate(pairs())]
    assert all(map(same, many, alone))
    assert [trace.measure for trace in many] == ["clicks", "clicks", "clicks", "ndcg"]


def test_runs_go_on_from_where_they_stand() -> None:
    pair = clicked_pair()
    simulation.play_many([pair], rounds=300, seeds=[1])
    again = simulation.play_many([pair], rounds=300, seeds=[2])
    other = clicked_pair()
    simulation.play(*other, rounds=300, seed=1)
    assert same(again[0], simulation.play(*other, rounds=300, seed=2))


def test_many_step_by_step_too() -> None:
    stepwise, compiled = (
        simulation.play_many(clicked_pair, rounds=200, seeds=[1, 2], fused=fused) for fused in (False, True)
    )
    assert all(map(same, stepwise, compiled))


def test_no_runs_are_no_traces() -> None:
    assert simulation.play_many([], rounds=10, seeds=[]) == []


def test_mistakes_of_many_are_named_before_anything_is_played() -> None:
    ranker, environment = clicked_pair()
    with pytest.raises(ValueError, match="seeds must be one for each of 1 runs, got 2"):
        simulation.play_many([(ranker, environment)], rounds=10, seeds=[1, 2])
    with pytest.raises(ValueError, match="every run needs its own ranker, pairs has"):
        simulation.play_many([(ranker, environment), (ranker, clicked_pair()[1])], rounds=10, seeds=[1, 2])
    with pytest.raises(ValueError, match="every run needs its own environment"):
        simulation.play_many(
            [(ranker, environment), (clicked_pair()[0], environment)], rounds=10, seeds=[1, 2]
        )
    with pytest.raises(ValueError, match=r"seed must be.*got -1"):
        simulation.play_many([(ranker, environment), clicked_pair()], rounds=10, seeds=[1, -1])
    with pytest.raises(ValueError, match=r"workers must be.*got 0"):
        simulation.play_many([(ranker, environment)], rounds=10, seeds=[1], workers=0)
    with pytest.raises(ValueError, match="learns from relevance"):
        simulation.play_many(
            [(ranker, environment), (rankers.FTPL(n_items=10), clicked_pair()[1])], rounds=10, seeds=[1, 2]
        )
    assert environment.state.t[0] == 0


class Failing(rankers.Uniform):
    """A ranker that fails in its fifth round."""

    fusable = False

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        if self.state.t[0] == 5:
            raise RuntimeError("no more")
        return super().rank(context, rng=rng)


def test_a_failure_ends_all_and_is_told() -> None:
    worlds = [environments.named("yandex") for _ in range(2)]
    long = rankers.Uniform(n_items=10, n_positions=5), worlds[0]
    begun, before = time.perf_counter(), threading.active_count()
    with pytest.raises(RuntimeError, match="no more"):
        simulation.play_many(
            [long, (Failing(n_items=10, n_positions=5), worlds[1])], rounds=10**9, seeds=[1, 2], points=10
        )
    assert time.perf_counter() - begun < 20
    until = time.monotonic() + 20
    while threading.active_count() > before:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert 0 < worlds[0].state.t[0] < 10**9


def test_one_bar_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    shown = simulation.play_many(clicked_pair, rounds=1_000, seeds=range(3), progress=True)
    assert "rounds [" in err.getvalue()
    err.truncate(0)
    err.seek(0)
    quiet = simulation.play_many(clicked_pair, rounds=1_000, seeds=range(3))
    assert err.getvalue() == ""
    assert all(map(same, shown, quiet))


def test_compiling_is_not_counted_as_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, err = [0.0], io.StringIO()
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    with Bar(1_000_000, wanted=True, stream=err) as bar:

        def show(at: float, done: int) -> str:
            err.truncate(0)
            err.seek(0)
            clock[0] = at
            bar.show(done)
            return err.getvalue().rstrip()

        assert show(20.0, 0).endswith("0% compiling (once)")
        assert show(30.0, 256).endswith("0%")  # one piece says nothing about the time
        assert show(31.0, 100_256).endswith("10% 100,000 rounds/s, 9.0 s left")
        assert show(40.0, 1_000_000).endswith("100% 99,974 rounds/s, 0.0 s left")
    # Without a wish, nothing is drawn before it is known that more than two seconds are left.
    monkeypatch.setattr(err, "isatty", lambda: True)
    clock[0] = 0.0
    with Bar(1_000_000, wanted=None, stream=err) as bar:
        assert show(0.2, 0) == show(30.0, 256) == show(31.0, 500_256) == ""
        assert show(32.5, 500_512).endswith("2.5 s left")


def test_the_first_run_of_new_kernels_says_that_it_compiles() -> None:
    code = (
        "import time; from rankloop import environments, rankers, simulation\n"
        "from rankloop.kernels.loop import Loop\n"
        "play, calls = Loop.play, []\n"
        "def slow(*arguments):\n"
        "    calls.append(None) or len(calls) == 1 and time.sleep(2.0)\n"  # as a compiler would
        "    return play(*arguments)\n"
        "Loop.play = slow\n"
        "def make():\n"
        "    return rankers.Uniform(n_items=10, n_positions=5), environments.named('yandex')\n"
        "simulation.play_many(make, rounds=10**6, seeds=[1], points=10, progress=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    shown = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    waiting = [line for line in shown if "compiling (once)" in line]
    assert shown[: len(waiting)] == waiting
    assert len(waiting) > 3
    # A million rounds take a second or two: with two seconds of compiling for 256 rounds it would be hours.
    assert not [line for line in shown if " min " in line or " h " in line]


def test_durations_at_the_borders() -> None:
    borders = {9.94: "9.9 s", 9.96: "10 s", 59.4: "59 s", 59.6: "1 min 0 s"}
    borders |= {3599.4: "59 min 59 s", 3600: "1 h 0 min"}
    assert {seconds: duration(seconds) for seconds in borders} == borders


def test_an_interrupt_leaves_cleanly() -> None:
    code = (
        "from rankloop import environments, rankers, simulation\n"
        "def make():\n"
        "    print('begun', flush=True)\n"
        "    return rankers.Uniform(n_items=10, n_positions=5), environments.named('yandex')\n"
        "try:\n"
        "    simulation.play_many(make, rounds=10**9, seeds=range(3), points=10)\n"
        "except KeyboardInterrupt:\n"
        "    print('left', flush=True)\n"
    )

    def begun(output: IO[str]) -> None:
        assert [output.readline().strip() for _ in range(3)] == ["begun"] * 3
        time.sleep(1.5)

    assert interrupted(code, begun) == ("left\n", "", 0)
