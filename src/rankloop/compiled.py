"""Rankers and environments whose arithmetic is a set of kernels: the contracts filled in once for all of them.

A subclass states its kernels, params, state and the shape of its ticket. Stepwise play then calls the kernels one
by one, and `simulation.play` hands the same kernels to the compiled loop, so both give the same run, bit by bit.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.base import Environment, Feedback, Memo, Ranker, Ranking, draw_key, whole
from rankloop.features import LARGEST_FEATURE as LARGEST_FEATURE
from rankloop.features import read_features as read_features
from rankloop.kernels.call_checks import ordinary, within
from rankloop.kernels.jit import Ready, ready
from rankloop.kernels.library import Prepared, Unset, kind_of

__all__ = [
    "CompiledEnvironment",
    "CompiledRanker",
    "EnvironmentKernels",
    "RankerKernels",
    "check_items",
    "read_positions",
]

_MOST_DESKS = 1_000  # kept at once, of all rankers together: a service may have a hundred thousand of them
_IN_ORDER = 0x101  # NumPy's flags of an array whose entries lie one after another, each where a number of its size may
_FLOAT = np.dtype(np.float64)
_desks_kept: deque[list[Desk]] = deque()


class Desk:
    """The arrays that one call works in, for a ranker and lists of one length; two threads have two.

    To hand over thirty arrays takes longer than the kernel itself, for ten items. So kernels always get the same ones,
    and what comes and goes is copied. A kernel of the library then finds all that it needs in an array of words, which
    is filled once.
    """

    def __init__(self, ranker: CompiledRanker, n: int) -> None:
        self.kernels = ranker.kernels
        self.owned = ranker.params, ranker.state
        self.scratch = ranker.scratch(n)
        self.items, self.propensities, self.memo = self.ticket = ranker.blank_ticket(n)
        self.revealed = np.empty(ranker.feedback.length(n))
        self.has_propensities = len(self.propensities) > 0
        parts = (
            (self.items, self.propensities, *self.memo) if self.has_propensities else (self.items, *self.memo)
        )
        self.parts = [(part, part.shape, part.dtype) for part in parts]
        n_items = n if ranker.n_items is None else ranker.n_items
        most = sys.float_info.max if ranker.max_grade is None else float(ranker.max_grade)
        clicks = ranker.feedback.kind == "clicks"
        seen = np.zeros(n_items, np.bool_)
        self.ordinary = ready(ordinary, (self.items, seen, n_items, self.revealed, clicks, most))
        limits = ranker.ticket_limits(*self.ticket)
        self.within = [ready(within, (part, least, most)) for _, part, least, most in limits]
        self._rank: dict[str, Ready | Prepared] = {}  # by the kind of request
        self._learn: dict[str, Ready | Prepared] = {}

    def rank(self, request: Any, key: np.uint64) -> bool:
        """Draw a ranking into the ticket."""
        kind = "n" if request is None else kind_of(request)
        rank = self._rank.get(kind)
        if rank is None:
            to_come = None if request is None else Unset(kind)
            arguments = (*self.owned, to_come, Unset("u"), self.scratch, *self.ticket)
            rank = self._rank[kind] = ready(self.kernels.rank, arguments)
        if request is not None:
            rank.put(2, request)
        rank.put(3, key)
        return bool(rank.run())

    def learn(self, request: Any) -> None:
        """Learn from the ticket and what was revealed."""
        kind = "n" if request is None else kind_of(request)
        learn = self._learn.get(kind)
        if learn is None:
            to_come = None if request is None else Unset(kind)
            arguments = (*self.owned, to_come, self.scratch, *self.ticket, self.revealed)
            learn = self._learn[kind] = ready(self.kernels.learn, arguments)
        if request is not None:
            learn.put(2, request)
        learn.run()

    def accepts(self, ranking: Ranking, memo: Memo, feedback: ArrayLike) -> bool:
        """Copy a ticket and its feedback where they are such as they nearly always are.

        False says only that they must be looked at again, more slowly: they may still be good.
        """
        parts = (
            (ranking.items, ranking.propensities, *memo) if self.has_propensities else (ranking.items, *memo)
        )
        if len(parts) != len(self.parts):
            return False
        for part, (own, shape, dtype) in zip(parts, self.parts, strict=True):
            if type(part) is not np.ndarray or part.dtype != dtype or part.shape != shape:
                return False
            own[...] = part
        revealed = _numbers(feedback)
        if revealed is None or revealed.shape != self.revealed.shape:
            return False
        self.revealed[...] = revealed
        for within_limits in self.within:
            if not within_limits.run():
                return False
        return bool(self.ordinary.run())


class Desks:
    """The desks of one ranker, by the length of lists."""

    def __init__(self, ranker: CompiledRanker) -> None:
        self.owned = ranker.params, ranker.state, ranker.kernels, ranker.feedback
        self.n_memo = len(ranker.blank_memo(1 if ranker.n_positions is None else ranker.n_positions))
        self.knows_feedback = type(ranker.feedback).check is Feedback.check
        self.checks_more = type(ranker).check_ticket is not CompiledRanker.check_ticket
        self._free: dict[int, list[Desk]] = {}

    def are_of(self, ranker: CompiledRanker) -> bool:
        """Whether these are still for the ranker's own arrays and kernels."""
        params, state, kernels, feedback = self.owned
        return (
            state is ranker.state
            and params is ranker.params
            and kernels is ranker.kernels
            and feedback is ranker.feedback
        )

    def take(self, ranker: CompiledRanker, n: int) -> Desk:
        """A desk for lists of n items. Nobody else has it until it is given back."""
        free = self._free.setdefault(n, [])
        try:
            return free.pop()
        except IndexError:
            _desks_kept.append(free)
            if len(_desks_kept) > _MOST_DESKS:
                _desks_kept.popleft().clear()
            return Desk(ranker, n)

    def give_back(self, desk: Desk) -> None:
        """Leave a desk for the next call."""
        self._free[len(desk.items)].append(desk)


def _numbers(feedback: ArrayLike) -> NDArray[np.float64] | None:
    if type(feedback) is not np.ndarray:
        try:
            feedback = np.asarray(feedback)
        except ValueError:  # rows of different lengths
            return None
    if feedback.dtype is _FLOAT:
        return feedback
    return feedback.astype(np.float64) if feedback.dtype.kind in "biuf" else None


class RankerKernels(NamedTuple):
    """The two halves of a compiled ranker.

    rank(params, state, context, key, scratch, items, propensities, memo) -> explored
    learn(params, state, context, scratch, items, propensities, memo, feedback)

    Buffers may be longer than a list: of n items, the first n entries count. Where the ranker `cuts_lists`, those of
    the ticket may be shorter: then only the first places of the list are asked for.

    Parameters
    ----------
    rank : callable
        Draws a ranking into the buffers.
    learn : callable
        Writes what came back into the state.
    """

    rank: Callable[..., bool]
    learn: Callable[..., None]


class EnvironmentKernels(NamedTuple):
    """The four answers of a compiled environment.

    arrive(params, state, key) -> context; respond(params, state, items, key, revealed)
    value(params, state, items) -> float; hindsight(params, state) -> float

    Parameters
    ----------
    arrive : callable
        Draws the next user.
    respond : callable
        Writes what the user would reveal of each position.
    value : callable
        What a ranking is worth to the user.
    hindsight : callable
        What the best fixed ranking would have been worth so far.
    """

    arrive: Callable[..., Any]
    respond: Callable[..., None]
    value: Callable[..., float]
    hindsight: Callable[..., float]


Limits = tuple[str, NDArray[Any], float, float]  # in words after "ranking.", for an array, least and greatest
Ticket = tuple[NDArray[np.int64], NDArray[np.float64], Memo]


class CompiledRanker(Ranker):
    """A ranker made of kernels."""

    kernels: RankerKernels
    params: Any  # a NamedTuple of numbers and arrays that never change
    fusable = True  # whether the kernels are compiled; a reference version in Python plays step by step
    _desks: Desks | None = None
    cuts_lists = False  # whether the kernels can leave out the end of a list that nobody looks at
    keeps_context = False  # whether `learn` needs the request again; it then travels in the ticket

    def scratch(self, n: int) -> tuple[Any, ...]:
        """Arrays for the kernels to work in on a list of `n` items, in the order that they expect; never state."""
        return ()

    def blank_memo(self, n: int) -> Memo:
        """The arrays that `rank` writes for `learn` to read, unwritten, for a list of `n` items."""
        return ()

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        """An unwritten array for exact propensities of a list of `n` items; empty where there are none."""
        return np.empty(0)

    def blank_ticket(self, n: int) -> Ticket:
        """An unwritten ticket for a list of `n` items: items, propensities and memo."""
        return np.empty(n, np.int64), self.blank_propensities(n), self.blank_memo(n)

    def read_context(self, context: Any) -> tuple[int, Any]:
        """How many items the request `context` is about, and the request as the kernels take it, checked."""
        if context is not None or self.n_positions is None:
            raise ValueError(f"{type(self).__name__} takes no context, got {context!r}")
        return self.n_positions, None

    def keep_request(self, request: Any) -> Memo:
        """The `request` that `read_context` returned, as arrays that travel in the ticket if it `keeps_context`.

        Copies: the caller may use the same memory for the next request while this ranking is open.
        """
        return (np.array(request),)

    def kept_request(self, kept: Memo, n: int) -> tuple[int, Any]:
        """The request that a ticket has `kept`, for `n` items, checked again: a ticket may come from anywhere."""
        if len(kept) != 1:
            raise ValueError(f"ranking.memo must end with one request, got {len(kept)} parts more")
        return self.read_context(kept[0])

    def short_memo(self, memo: Memo) -> Memo:
        return memo[: self._own_desks().n_memo] if self.keeps_context else memo

    def whole_memo(self, memo: Memo, items: NDArray[np.int64], context: Callable[[], Any]) -> Memo:
        short = self.keeps_context and len(memo) == self._own_desks().n_memo
        return (*memo, *self.keep_request(context())) if short else memo

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        n, request = self.read_context(context)
        desks = self._own_desks()
        desk = desks.take(self, n)
        explored = desk.rank(request, np.uint64(rng.bit_generator.random_raw()))
        self.order_rest(desk.items, desk.scratch)
        items, memo = desk.items.copy(), tuple([part.copy() for part in desk.memo])
        propensities = desk.propensities.copy() if desk.has_propensities else None
        desks.give_back(desk)
        kept = (*memo, *self.keep_request(request)) if self.keeps_context else memo
        return Ranking(items, propensities, kept, explored)

    def order_rest(self, items: NDArray[np.int64], scratch: tuple[Any, ...]) -> None:
        """Order what the kernel leaves of `items` as it is, because no user looks there; `scratch` is as it left it."""

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        desks, items = self._own_desks(), ranking.items
        n = len(items) if type(items) is np.ndarray and items.ndim == 1 else -1
        if desks.knows_feedback and (n == self.n_positions or (self.n_positions is None and n > 0)):
            desk = desks.take(self, n)
            try:
                learnt = self._learn_at(desk, ranking, desks.n_memo, feedback, desks.checks_more)
            finally:
                desks.give_back(desk)
        else:
            learnt = False
        if not learnt:
            self._learn_checked(ranking, feedback)
        if self.until_pause() == 0:
            self.pause()

    def _learn_at(
        self, desk: Desk, ranking: Ranking, own: int, feedback: ArrayLike, checks_more: bool
    ) -> bool:
        request = None
        if not desk.accepts(ranking, ranking.memo[:own] if self.keeps_context else ranking.memo, feedback):
            return False
        if self.keeps_context:
            request = self._kept_request(ranking, own)
            ranking = Ranking(ranking.items, ranking.propensities, ranking.memo[:own], ranking.explored)
        if checks_more:
            self.check_ticket(ranking)
        desk.learn(request)
        return True

    def _kept_request(self, ranking: Ranking, own: int) -> Any:
        n = len(ranking.items)
        if len(ranking.memo) <= own:
            raise ValueError(
                "ranking.memo must end with the request, got nothing: is it a ticket of another ranker?"
            )
        size, request = self.kept_request(ranking.memo[own:], n)
        if size != n:
            raise ValueError(f"ranking.memo must end with a request for {n} items, got one for {size}")
        return request

    def _own_desks(self) -> Desks:
        desks = self._desks
        if desks is None or not desks.are_of(self):
            desks = self._desks = Desks(self)
        return desks

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_desks"}

    def _learn_checked(self, ranking: Ranking, feedback: ArrayLike) -> None:
        # Tells what is wrong, or learns from arrays of another kind, such as every second entry of a longer one.
        # The kernels do not check bounds, and a ticket may come from anywhere.
        n = len(ranking.items)
        if self.n_positions not in (n, None):
            raise ValueError(f"ranking.items must be {self.n_positions} items, got {n}")
        revealed = self.feedback.check(feedback, n)
        if self.max_grade is not None and revealed.max(initial=0.0) > self.max_grade:
            raise ValueError(f"feedback must be at most max_grade={self.max_grade}, got {revealed}")
        request = None
        if self.keeps_context:
            own = len(self.blank_memo(n))
            request = self._kept_request(ranking, own)
            ranking = Ranking(ranking.items, ranking.propensities, ranking.memo[:own], ranking.explored)
        items, propensities, memo = self.blank_ticket(n)
        parts = (ranking.items, ranking.propensities if len(propensities) else propensities, *ranking.memo)
        names = ("items", "propensities", *(f"memo.{i}" for i in range(len(memo))))
        for name, wanted, got in zip(names, (items, propensities, *memo), parts, strict=False):
            if got is None or got.shape != wanted.shape or got.dtype != wanted.dtype:
                raise ValueError(
                    f"ranking.{name} must be {wanted.dtype}{wanted.shape}, got {got!r}: a ticket of another ranker?"
                )
        if len(ranking.memo) != len(memo):
            raise ValueError(f"ranking.memo must have {len(memo)} parts, got {len(ranking.memo)}")
        check_items(ranking.items, n, n if self.n_items is None else self.n_items)
        self._check_limits(ranking)
        self.check_ticket(ranking)
        # Copied into order: else the kernel would be compiled once more, for arrays of another kind.
        items, propensities, *memo_parts = map(_in_order, parts)
        ticket = (items, propensities, tuple(memo_parts))
        learn, request, scratch = self.kernels.learn, _in_order(request), self.scratch(n)
        learn(self.params, self.state, request, scratch, *ticket, _in_order(revealed))

    def until_pause(self) -> int | None:
        """How many more rounds may be learnt before `pause` must be called; None where it never need be."""
        return None

    def pause(self) -> None:
        """Work between rounds that kernels cannot do, such as calling a solver. Reads and writes state."""
        return

    def ticket_limits(
        self, items: NDArray[np.int64], propensities: NDArray[np.float64], memo: Memo
    ) -> list[Limits]:
        """What the numbers in `items`, `propensities` and `memo` of a ticket must be."""
        return []

    def check_ticket(self, ranking: Ranking) -> None:
        """ValueError where a `ranking` within the limits holds values that no ticket of this ranker can have."""
        return

    def _check_limits(self, ranking: Ranking) -> None:
        propensities = np.empty(0) if ranking.propensities is None else ranking.propensities
        for what, part, least, most in self.ticket_limits(ranking.items, propensities, ranking.memo):
            if not within(part, least, most):
                raise ValueError(f"ranking.{what}, got {part}")


def _in_order(part: Any) -> Any:
    return np.require(part, requirements=("C", "A", "W")) if type(part) is np.ndarray else part


class CompiledEnvironment(Environment):
    """An environment made of kernels."""

    kernels: EnvironmentKernels
    params: Any
    state: Any
    _owned: tuple[Any, ...] | None = None  # what the kernels in `_ready` were given
    _ready: dict[str, Ready | Prepared]

    @property
    def list_length(self) -> int:
        """How many positions the present request has."""
        return self.n_positions

    @property
    def n_read(self) -> int:
        """How many positions from the top the kernel `value` looks at, at most; all unless a subclass knows better."""
        return self.n_positions

    def _check(self, ranking: Ranking) -> None:
        n = self.list_length
        check_items(ranking.items, n, n if self.n_items is None else self.n_items)

    def arrive(self, *, rng: np.random.Generator) -> Any:
        return self._call("arrive", draw_key(rng))

    def respond(self, ranking: Ranking, *, rng: np.random.Generator) -> NDArray[np.float64]:
        revealed = np.empty(self.list_length)
        self._check(ranking)
        self._call("respond", np.ascontiguousarray(ranking.items), draw_key(rng), revealed)
        return revealed

    def value(self, ranking: Ranking) -> float:
        self._check(ranking)
        return float(self._call("value", np.ascontiguousarray(ranking.items)))

    def hindsight(self) -> float:
        return float(self._call("hindsight"))

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a kernel of this environment; its own arrays are handed over once."""
        owned = self.kernels, self.params, self.state
        if self._owned is None or any(was is not now for was, now in zip(self._owned, owned, strict=True)):
            self._owned, self._ready = owned, {}
        kernel = self._ready.get(name)
        if kernel is None:
            kernel = self._ready[name] = ready(getattr(self.kernels, name), (*owned[1:], *arguments))
        for number, argument in enumerate(arguments, start=2):
            kernel.put(number, argument)
        return kernel.run()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_owned", "_ready")}

    def restart(self) -> None:
        for part in self.state:
            part[...] = 0


def check_items(items: NDArray[np.int64], n_positions: int, n_items: int) -> None:
    """ValueError unless `items` are `n_positions` of `n_items` items, none twice."""
    if items.shape != (n_positions,) or items.dtype != np.int64:
        raise ValueError(f"items must be int64({n_positions},), got {items.dtype}{items.shape}")
    if items.min() < 0 or items.max() >= n_items:
        raise ValueError(f"items must be in 0..{n_items - 1}, got {items}")
    seen = np.zeros(n_items, np.bool_)
    seen[items] = True
    if np.count_nonzero(seen) != len(items):
        raise ValueError(f"items must not repeat, got {items}")


def read_positions(n_positions: Any, n_items: int | None) -> int | None:
    """How many of `n_items` items are shown: `n_positions`, all where it is None; ValueError where there are fewer.

    None of `n_items` where each request brings its own.
    """
    if n_positions is None:
        return n_items
    m = whole("n_positions", n_positions, at_least=1)
    if n_items is None or m > n_items:
        raise ValueError(f"n_positions must be at most n_items={n_items}, got {n_positions!r}")
    return m
