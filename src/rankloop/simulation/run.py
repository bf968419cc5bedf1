"""A run in progress: step by step, or as one compiled loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import whole
from rankloop.base import Environment, Ranker
from rankloop.compiled import CompiledEnvironment, CompiledRanker
from rankloop.simulation.matching import check_match
from rankloop.simulation.trace import Trace

_LONGEST = 1_000  # characters that a trace keeps of a ranker's arguments
CHUNK_SECONDS = 0.1  # seconds between two returns from compiled code


def begin(
    ranker: Ranker, environment: Environment, rounds: int, seed: int, points: int, fused: bool | None
) -> Run:
    """A run of so many rounds, checked and ready."""
    rounds, seed, points = check(ranker, environment, rounds, seed, points, fused)
    environment.start_counting()
    record = np.unique(np.linspace(0, rounds, min(points, rounds) + 1).round().astype(np.int64))[1:]
    kind = FusedRun if _both_compiled(ranker, environment) and fused is not False else Run
    return kind(ranker, environment, record, seed)


def check(
    ranker: Ranker, environment: Environment, rounds: int, seed: int, points: int, fused: bool | None
) -> tuple[int, int, int]:
    """Rounds, seed and points of a run, as whole numbers; ValueError where it could not begin."""
    rounds = whole("rounds", rounds, at_least=1)
    seed = whole("seed", seed, at_least=0)
    points = whole("points", points, at_least=1)
    check_match(ranker, environment, rounds)
    if fused and not _both_compiled(ranker, environment):
        raise ValueError("fused=True needs a ranker and an environment that are made of kernels")
    return rounds, seed, points


def _both_compiled(ranker: Ranker, environment: Environment) -> bool:
    return (
        isinstance(ranker, CompiledRanker) and ranker.fusable and isinstance(environment, CompiledEnvironment)
    )


def brief(played: Ranker | Environment) -> str:
    """A ranker or an environment with its arguments, in one line that is not too long for the metadata of a file."""
    text = repr(played)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


class Run:
    """A run in progress, step by step; the compiled one differs only in `advance`."""

    def __init__(
        self,
        ranker: Ranker,
        environment: Environment,
        record: NDArray[np.int64],
        seed: int,
    ) -> None:
        self.ranker = ranker
        self.environment = environment
        self.record = record
        self.seed = seed
        self.ranker_rng, self.environment_rng = (
            np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2)
        )
        self.seconds = 0.0
        self.t = self.place = self.explored = 0
        self.total = self.window = 0.0
        n = len(record)
        self.out: tuple[Any, ...] = (np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64))

    @property
    def rounds(self) -> int:
        """How many there are to play."""
        return int(self.record[-1])

    def pieces(self) -> Iterator[int]:
        """Play to the end in pieces of about a tenth of a second; yields the rounds played after each."""
        chunk = 256
        begun = time.perf_counter()
        while self.t < self.rounds:
            chunk_begun = time.perf_counter()
            self.advance(min(chunk, self.rounds - self.t))
            self.seconds = time.perf_counter() - begun
            spent = time.perf_counter() - chunk_begun
            chunk = max(1, min(1 << 18, int(chunk * min(8.0, CHUNK_SECONDS / max(spent, 1e-9)))))
            yield self.t

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

    def trace(self) -> Trace:
        """The trace so far."""
        value, total, hindsight, explored = (part[: self.place].copy() for part in self.out)
        is_loss = self.environment.is_loss
        regret = total - hindsight if is_loss else hindsight - total
        recorded = self.record[: self.place].copy()
        return Trace(
            self.environment.measure,
            is_loss,
            self.seed,
            recorded,
            value,
            total,
            regret,
            explored,
            self.seconds,
            self.ranker.counters(),
            {"ranker": brief(self.ranker), "environment": brief(self.environment)},
        )


class FusedRun(Run):
    """A run whose rounds are one compiled loop over the kernels of both sides."""

    ranker: CompiledRanker
    environment: CompiledEnvironment

    def __init__(self, *args: Any) -> None:
        from rankloop.kernels.loop import fused

        super().__init__(*args)
        self.play_rounds = fused(*self.ranker.kernels, *self.environment.kernels)
        longest = self.environment.n_positions
        self.scratch = self.ranker.scratch(longest)
        self.revealed = np.empty(self.ranker.feedback.length(longest))
        looked_at = max(self.environment.n_read, len(self.revealed))
        self.ticket = self.ranker.blank_ticket(looked_at if self.ranker.cuts_lists else longest)

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
