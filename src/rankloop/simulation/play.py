"""The loop of rounds: one run, step by step or compiled, with a bar that shows how far it is."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from html import escape
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import whole
from rankloop.base import Environment, Ranker
from rankloop.compiled import CompiledEnvironment, CompiledRanker
from rankloop.kernels.loop import Loop
from rankloop.simulation.trace import Trace

_LONGEST = 1_000  # characters that a trace keeps of a ranker's arguments
CHUNK_SECONDS = 0.1  # seconds between two returns from compiled code
_WIDTH = 30  # of the bar
# Of a thread that works for others: set once nobody waits any more for what it computes.
STOP: ContextVar[threading.Event | None] = ContextVar("STOP", default=None)


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
    ranker : Ranker
        Who ranks. It goes on from its present state.
    environment : Environment
        Who responds. It goes on from its present state; `environment.restart()` begins anew.
    rounds : int
        How many.
    seed : int
        The same seed gives the same run, on any machine.
    points : int, optional
        At most so many rounds are recorded.
    fused : bool, optional
        True demands the compiled loop, False forbids it, None takes it where it exists.
    progress : bool, optional
        A bar on the terminal; None shows one where there is a terminal and more than two seconds to go.
    watch : callable, optional
        Called a few times a second with the trace so far.

    Examples
    --------
    >>> from rankloop import environments, rankers
    >>> users = environments.FixedItems(environments.users.bernoulli([0.2, 0.9, 0.5]), measure="dcg")
    >>> trace = play(rankers.FTPL(n_items=3), users, rounds=1000, seed=1)
    >>> len(trace.value), bool(trace.total_regret < 60)
    (1000, True)
    """
    run = begin(ranker, environment, rounds, seed, points, fused)
    with Bar(run.rounds, wanted=progress) as bar:
        bar.show(0)
        for t in run.pieces():
            bar.show(t)
            if watch is not None and run.place:
                watch(run.trace())
    return run.trace()


def begin(
    ranker: Ranker, environment: Environment, rounds: int, seed: int, points: int, fused: bool | None
) -> Run:
    """A run of so many rounds, checked and ready."""
    rounds, seed, points = checked(ranker, environment, rounds, seed, points, fused)
    environment.start_counting()
    record = np.unique(np.linspace(0, rounds, min(points, rounds) + 1).round().astype(np.int64))[1:]
    kind = FusedRun if _both_compiled(ranker, environment) and fused is not False else Run
    return kind(ranker, environment, record, seed)


def checked(
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
            if (stop := STOP.get()) is not None and stop.is_set():
                raise RuntimeError("nobody waits for this run any more")
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
        return Trace(
            measure=self.environment.measure,
            is_loss=is_loss,
            seed=self.seed,
            rounds=self.record[: self.place].copy(),
            value=value,
            total=total,
            regret=regret,
            explored=explored,
            seconds=self.seconds,
            counters=self.ranker.counters(),
            provenance={"ranker": brief(self.ranker), "environment": brief(self.environment)},
        )


class FusedRun(Run):
    """A run whose rounds are one compiled loop over the kernels of both sides."""

    ranker: CompiledRanker
    environment: CompiledEnvironment

    @functools.cached_property
    def loop(self) -> Loop:
        """The loop, which a run that a GPU plays does without."""
        ranker, environment = self.ranker, self.environment
        longest = environment.n_positions
        revealed = np.empty(ranker.feedback.length(longest))
        looked_at = max(environment.n_read, len(revealed))
        ticket = ranker.blank_ticket(looked_at if ranker.cuts_lists else longest)
        sides = ranker.params, ranker.state, ranker.scratch(longest), environment.params, environment.state
        return Loop((*ranker.kernels, *environment.kernels), (*sides, ticket, revealed))

    def advance(self, n_rounds: int) -> None:
        end = self.t + n_rounds
        while self.t < end:
            pause = self.ranker.until_pause()
            self._play(end - self.t if pause is None else min(pause, end - self.t))
            if self.ranker.until_pause() == 0:
                self.ranker.pause()

    def _play(self, n_rounds: int) -> None:
        self.t, self.place, self.total, self.window, self.explored = self.loop.play(
            self.ranker_rng.bit_generator.random_raw(n_rounds),
            self.environment_rng.bit_generator.random_raw(2 * n_rounds),
            self.record,
            self.out,
            self.t,
            self.place,
            self.total,
            self.window,
            self.explored,
        )


def check_match(ranker: Ranker, environment: Environment, rounds: int) -> None:
    """ValueError unless this ranker can play so many rounds in this environment."""
    _check_kinds(ranker, environment)
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


def _check_kinds(ranker: Any, environment: Any) -> None:
    if isinstance(ranker, Ranker) and isinstance(environment, Environment):
        return
    swapped = isinstance(ranker, Environment) and isinstance(environment, Ranker)
    hint = "; the ranker comes first" if swapped else ""
    got = " and ".join(type(one).__name__ for one in (ranker, environment))
    raise ValueError(f"play needs a ranker and an environment{hint}, got {got}")


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
    seen = environment.n_positions if environment.n_shown is None else environment.n_shown
    wanted = ranker.feedback.length(environment.n_positions)
    if wanted > seen:
        raise ValueError(
            f"ranker learns from {wanted} positions of a list, users of the environment see {seen}"
        )
    if environment.sparse and not ranker.takes_sparse:
        raise ValueError(
            f"{type(ranker).__name__} takes dense features, those of {type(environment).__name__} are sparse"
        )
    if ranker.takes_queries != environment.names_queries:
        needs, named = ("needs the names", True) if ranker.takes_queries else ("takes no names", False)
        raise ValueError(
            f"{type(ranker).__name__} {needs} of queries: {type(environment).__name__}(named={named})"
        )
    if ranker.n_features and ranker.n_features != environment.n_features:
        raise ValueError(
            f"ranker takes {ranker.n_features} features, environment has {environment.n_features}"
        )


def duration(seconds: float) -> str:
    """A length of time in words.

    >>> duration(0.04), duration(75), duration(7260)
    ('0.0 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def in_notebook() -> bool:
    """Whether this code runs in the kernel of a notebook, and not in IPython in a terminal."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None and "ipykernel" in sys.modules else None
    return getattr(running, "kernel", None) is not None


class Bar:
    """A line of plain text, redrawn in place; in a notebook, a bar below the cell.

    It appears only on a terminal or in a notebook, and only for what takes a while. What is left is estimated from the
    second piece of work on: the first may have been compiling, once.
    """

    def __init__(
        self,
        total: float,
        *,
        wanted: bool | None,
        label: str = "rounds",
        stream: TextIO | None = None,
    ) -> None:
        self.total, self.label = total, label
        self.stream = stream or sys.stderr
        self.notebook = in_notebook()
        self._cell: Any = None  # the output below the cell, once there is one
        self.wanted = (self.notebook or self.stream.isatty()) if wanted is None else wanted
        self.patience = 0.3 if wanted is None else 0.0
        self.begun = time.perf_counter()
        self.first: tuple[float, float] | None = None  # when the first work was done, and how much
        self.drawn = 0  # characters of the line on the screen

    def __enter__(self) -> Bar:
        return self

    def show(self, done: float, words: str | None = None) -> None:
        """Move to so much of the total; `words` stand instead of the speed, and before the first work is done."""
        now = time.perf_counter()
        if not self.wanted:
            return
        if self.first is None and done:
            self.first = now, done
        if now - self.begun < self.patience:
            return
        text = words or "compiling (once)"
        if self.first is not None:
            when, before = self.first
            pace = (done - before) / (now - when) if done > before else 0.0
            left = (self.total - done) / pace if pace else None
            if self.patience and not self.drawn and (left is None or left < 2.0):
                return
            speed = f"{pace:,.0f} rounds/s" if pace and words is None else words
            text = ", ".join(part for part in (speed, left is not None and f"{duration(left)} left") if part)
        share = min(1.0, done / self.total) if self.total else 1.0
        if self.notebook:
            so_far = f"{done:,} of {self.total:,} rounds" if words is None else self.label
            text = ", ".join(part for part in (so_far, text) if part)
            self._show_in_cell(f'<progress value="{share:.4f}" max="1"></progress> {escape(text)}', text)
            self.drawn = 1
            return
        filled = int(_WIDTH * share)
        line = f"{self.label} [{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%} {text}".rstrip()
        print(f"\r{line:<{self.drawn}}", end="", file=self.stream, flush=True)
        self.drawn = len(line)

    def _show_in_cell(self, html: str, text: str) -> None:
        shown = {"text/html": html, "text/plain": text}
        if self._cell is None:
            display: Any = importlib.import_module("IPython.display").display
            self._cell = display(shown, raw=True, display_id=True)
        else:
            self._cell.update(shown, raw=True)

    def __exit__(self, *_: object) -> None:
        if self._cell is not None:
            self._show_in_cell("", "")
        elif self.drawn:
            print(f"\r{'':<{self.drawn}}\r", end="", file=self.stream, flush=True)
