"""The loop, once: a user comes, a ranking is shown, its sliver of feedback is learnt from; and what came of it.

Where ranker and environment are made of kernels the whole loop is compiled; otherwise it runs step by step. Both
tell the same story, bit by bit, and `checks.check_same_story` demands it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankloop.base import Environment, Ranker, whole
from rankloop.compiled import CompiledEnvironment, CompiledRanker

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_CHUNK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What a run came to, at each recorded round. All sums are exact, however few rounds are recorded.

    rounds: the recorded rounds, counted from 1. Every round of a short run; of a long one, evenly spread.
    value: mean value a round since the round recorded before, so the value itself where every round is recorded.
    regret: cumulative, against the best fixed ranking in hindsight of the rounds so far; positive is worse, for losses
        and gains alike.
    explored: how many of the rounds so far showed a ranking to find something out.
    counters: what the ranker counts about itself, such as a solver's fallbacks.
    """

    measure: str
    is_loss: bool
    seed: int
    rounds: NDArray[np.int64]
    value: NDArray[np.float64]
    total: NDArray[np.float64]
    regret: NDArray[np.float64]
    explored: NDArray[np.int64]
    seconds: float
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def n_rounds(self) -> int:
        """How many rounds were played."""
        return int(self.rounds[-1])

    @property
    def total_value(self) -> float:
        """Summed value of all rounds."""
        return float(self.total[-1])

    @property
    def mean_value(self) -> float:
        """Mean value a round."""
        return self.total_value / self.n_rounds

    @property
    def total_regret(self) -> float:
        """Regret after the last round."""
        return float(self.regret[-1])

    @property
    def exploration_share(self) -> float:
        """Share of the rounds that explored."""
        return float(self.explored[-1]) / self.n_rounds


def play(
    ranker: Ranker,
    environment: Environment,
    *,
    rounds: int,
    seed: int,
    points: int = 10_000,
    fused: bool | None = None,
    progress: bool | None = None,
    watch: Callable[[Trace], None] | None = None,
) -> Trace:
    """Play `rounds` rounds, from wherever ranker and environment stand.

    Parameters
    ----------
    ranker, environment : who plays whom. Both go on from their present state; `environment.restart()` begins anew.
    rounds : how many.
    seed : the same seed tells the same story, on any machine.
    points : at most so many rounds are recorded.
    fused : True demands the compiled loop, False forbids it, None takes it where it exists.
    progress : a bar on the terminal; None shows one where there is a terminal and more than two seconds to go.
    watch : called a few times a second with the trace so far.

    Examples
    --------
    >>> from rankloop import environments, rankers
    >>> people = environments.FixedItems(environments.users.bernoulli([0.2, 0.9, 0.5]), measure="dcg")
    >>> trace = play(rankers.FTPL(n_items=3), people, rounds=1000, seed=1)
    >>> len(trace.value), bool(trace.total_regret < 60)
    (1000, True)
    """
    rounds = whole("rounds", rounds, at_least=1)
    seed = whole("seed", seed, at_least=0)
    points = whole("points", points, at_least=1)
    _check_match(ranker, environment, rounds)
    both_compiled = (
        isinstance(ranker, CompiledRanker) and ranker.fusable and isinstance(environment, CompiledEnvironment)
    )
    if fused and not both_compiled:
        raise ValueError("fused=True needs a ranker and an environment that are made of kernels")
    environment.start_counting()
    record = np.unique(np.linspace(0, rounds, min(points, rounds) + 1).round().astype(np.int64))[1:]
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2)]
    kind = _FusedRun if both_compiled and fused is not False else _Run
    run = kind(ranker, environment, record, streams)
    begun = time.perf_counter()
    with _Bar(rounds, wanted=progress) as bar:
        chunk = 256
        while run.t < rounds:
            chunk_begun = time.perf_counter()
            run.advance(min(chunk, rounds - run.t))
            spent = time.perf_counter() - chunk_begun
            chunk = max(1, min(1 << 18, int(chunk * min(8.0, _CHUNK_SECONDS / max(spent, 1e-9)))))
            bar.show(run.t)
            if watch is not None and run.place:
                watch(run.trace(seed, time.perf_counter() - begun))
    return run.trace(seed, time.perf_counter() - begun)


def _check_match(ranker: Ranker, environment: Environment, rounds: int) -> None:
    wants, gives = ranker.feedback.kind, environment.reveals
    if wants not in (gives, "nothing"):
        raise ValueError(
            f"ranker {type(ranker).__name__} learns from {wants}, "
            f"environment {type(environment).__name__} reveals {gives}"
        )
    if ranker.n_positions is None or environment.n_features is not None:
        _check_features(ranker, environment)
    elif ranker.n_positions != environment.n_positions:
        raise ValueError(
            f"ranker shows {ranker.n_positions} positions, environment has {environment.n_positions}"
        )
    elif ranker.n_items not in (environment.n_items, None):
        raise ValueError(f"ranker has {ranker.n_items} items, environment has {environment.n_items}")
    if environment.remaining is not None and rounds > environment.remaining:
        raise ValueError(
            f"rounds must be at most {environment.remaining}, one for each user still to come, got {rounds}; "
            "environment.restart() begins again"
        )
    most = ranker.max_grade
    if wants == "relevance" and most is not None and environment.max_grade > most:
        raise ValueError(
            f"ranker was built for relevance up to max_grade={most}, environment gives up to {environment.max_grade}"
        )


def _check_features(ranker: Ranker, environment: Environment) -> None:
    if environment.n_features is None:
        raise ValueError(
            f"{type(ranker).__name__} ranks items by features, {type(environment).__name__} has none"
        )
    if ranker.n_positions is not None:
        raise ValueError(
            f"{type(ranker).__name__} ranks the same {ranker.n_positions} items each round, "
            f"{type(environment).__name__} brings another list each time"
        )
    if ranker.n_features not in (environment.n_features, None):
        raise ValueError(
            f"ranker takes {ranker.n_features} features, environment has {environment.n_features}"
        )


class _Run:
    """A run in progress, step by step; the compiled one differs only in `advance`."""

    def __init__(
        self,
        ranker: Ranker,
        environment: Environment,
        record: NDArray[np.int64],
        streams: list[np.random.Generator],
    ) -> None:
        self.ranker = ranker
        self.environment = environment
        self.record = record
        self.ranker_rng, self.environment_rng = streams
        self.t = self.place = self.explored = 0
        self.total = self.window = 0.0
        n = len(record)
        self.out: tuple[Any, ...] = (np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64))

    def advance(self, n_rounds: int) -> None:
        """Play the next `n_rounds`."""
        value_out, total_out, hindsight_out, explored_out = self.out
        for _ in range(n_rounds):
            context = self.environment.arrive(rng=self.environment_rng)
            ranking = self.ranker.rank(context, rng=self.ranker_rng)
            value = self.environment.value(ranking)
            response = self.environment.respond(ranking, rng=self.environment_rng)
            self.ranker.learn(ranking, response[: self.ranker.feedback.length(len(response))])
            self.explored += ranking.explored
            self.total += value
            self.window += value
            self.t += 1
            if self.t == self.record[self.place]:
                begun = self.record[self.place - 1] if self.place else 0
                value_out[self.place] = self.window / (self.t - begun)
                total_out[self.place] = self.total
                hindsight_out[self.place] = self.environment.hindsight()
                explored_out[self.place] = self.explored
                self.window = 0.0
                self.place += 1

    def trace(self, seed: int, seconds: float) -> Trace:
        """What has been recorded so far."""
        value, total, hindsight, explored = (part[: self.place].copy() for part in self.out)
        is_loss = self.environment.is_loss
        regret = total - hindsight if is_loss else hindsight - total
        recorded = self.record[: self.place].copy()
        return Trace(
            self.environment.measure,
            is_loss,
            seed,
            recorded,
            value,
            total,
            regret,
            explored,
            seconds,
            self.ranker.counters(),
        )


class _FusedRun(_Run):
    """A run whose rounds are one compiled loop over the kernels of both sides."""

    ranker: CompiledRanker
    environment: CompiledEnvironment

    def __init__(self, *args: Any) -> None:
        from rankloop.kernels.fusing import fused

        super().__init__(*args)
        self.play_rounds = fused(*self.ranker.kernels, *self.environment.kernels)
        longest = self.environment.n_positions
        self.scratch = self.ranker.scratch(longest)
        self.ticket = self.ranker.blank_ticket(longest)
        self.revealed = np.empty(self.ranker.feedback.length(longest))

    def advance(self, n_rounds: int) -> None:
        end = self.t + n_rounds
        while self.t < end:
            pause = self.ranker.until_pause()
            self._play(end - self.t if pause is None else min(pause, end - self.t))
            if self.ranker.until_pause() == 0:
                self.ranker.pause()

    def _play(self, n_rounds: int) -> None:
        self.t, self.place, self.total, self.window, self.explored = self.play_rounds(
            self.ranker.params,
            self.ranker.state,
            self.scratch,
            self.environment.params,
            self.environment.state,
            self.ranker_rng.bit_generator.random_raw(n_rounds),
            self.environment_rng.bit_generator.random_raw(2 * n_rounds),
            self.ticket,
            self.revealed,
            self.record,
            self.out,
            self.t,
            self.place,
            self.total,
            self.window,
            self.explored,
        )


class _Bar:
    """A progress bar that appears only on a terminal, and only when there is something to wait for."""

    def __init__(self, rounds: int, *, wanted: bool | None) -> None:
        self.rounds = rounds
        self.wanted = sys.stderr.isatty() if wanted is None else wanted
        self.patience = 0.3 if wanted is None else 0.0
        self.begun = time.perf_counter()
        self.bar: Progress | None = None
        self.task: TaskID | None = None

    def __enter__(self) -> _Bar:
        return self

    def show(self, t: int) -> None:
        """Move to round `t`."""
        spent = time.perf_counter() - self.begun
        if not self.wanted or spent < self.patience:
            return
        if self.bar is None:
            if self.patience and spent * (self.rounds - t) / t < 2.0:
                return
            from rich.console import Console
            from rich.progress import Progress, TextColumn

            self.bar = Progress(
                *Progress.get_default_columns(),
                TextColumn("{task.fields[rate]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self.bar.start()
            self.task = self.bar.add_task("rounds", total=self.rounds, rate="")
        assert self.task is not None
        self.bar.update(self.task, completed=t, rate=f"{t / spent:,.0f} rounds/s")

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
