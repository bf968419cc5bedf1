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
from rankloop.kernels.call_checks import ordinary

__all__ = [
    "CompiledEnvironment",
    "CompiledRanker",
    "EnvironmentKernels",
    "RankerKernels",
    "check_items",
    "read_positions",
]

# A ranker's kernels made ready for calls from Python, one at a time.
#
# A compiled kernel called from Python first finds out the type of everything that it is given: with thirty arrays in
# params, state and scratch that takes five to ten times as long as the kernel itself, for ten items. A ranker's
# arrays are of the same types at every call, so the machine code for them is looked up once. Scratch is made once as
# well.


_MOST_BUFFERS = 1_000  # kept at once, of all rankers together: a service may have a hundred thousand of them
_MOST_LENGTHS = 1_000
_IN_ORDER = 0x101  # NumPy's flags of an array whose entries lie one after another, each where a number of its size may
_FLOAT = np.dtype(np.float64)
_buffers_kept: deque[list[Buffers]] = deque()


class Buffers(NamedTuple):
    """What one call works in; two threads have two."""

    length: int  # of the longest list that fits
    scratch: tuple[Any, ...]
    seen: NDArray[np.bool_]


class Form(NamedTuple):
    """What a ticket looks like for lists of one length."""

    n_revealed: int
    parts: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]  # shape and kind of items, propensities and memo


class PreparedCalls:
    """The kernels of one ranker, with the arrays that they work in."""

    def __init__(self, ranker: CompiledRanker) -> None:
        self.params = ranker.params
        self.state = ranker.state
        self.kernels = ranker.kernels
        self.feedback = ranker.feedback
        n = 1 if ranker.n_positions is None else ranker.n_positions
        _, propensities, memo = ranker.blank_ticket(n)
        self.has_propensities = len(propensities) > 0
        self.no_propensities = propensities[:0]
        self.n_memo = len(memo)
        self.knows_feedback = type(ranker.feedback).check is Feedback.check
        self.clicks = ranker.feedback.kind == "clicks"
        self.most = sys.float_info.max if ranker.max_grade is None else float(ranker.max_grade)
        self._free: list[Buffers] = []
        self._forms: dict[int, Form] = {}
        self._entries: dict[Any, Callable[..., Any]] = {}

    def are_of(self, ranker: CompiledRanker) -> bool:
        """Whether these are still the ranker's own arrays and kernels."""
        return (
            self.state is ranker.state
            and self.params is ranker.params
            and self.kernels is ranker.kernels
            and self.feedback is ranker.feedback
        )

    def rank(
        self, ranker: CompiledRanker, request: Any, key: np.uint64, items: Any, propensities: Any, memo: Any
    ) -> bool:
        """Call the kernel `rank`, which writes the ticket."""
        buffers = self._take(ranker, len(items))
        arguments = (self.params, self.state, request, key, buffers.scratch, items, propensities, memo)
        explored = self._entry(self.kernels.rank, request, arguments)(*arguments)
        self._free.append(buffers)
        return bool(explored)

    def learn(
        self, ranker: CompiledRanker, ranking: Ranking, revealed: NDArray[np.float64], request: Any
    ) -> None:
        """Call the kernel `learn` with what `read` accepted."""
        buffers = self._take(ranker, len(ranking.items))
        propensities = ranking.propensities if self.has_propensities else self.no_propensities
        ticket = (ranking.items, propensities, ranking.memo)
        arguments = (self.params, self.state, request, buffers.scratch, *ticket, revealed)
        self._entry(self.kernels.learn, request, arguments)(*arguments)
        self._free.append(buffers)

    def read(self, ranker: CompiledRanker, ranking: Ranking, feedback: ArrayLike) -> Any:
        """The feedback as numbers where ticket and feedback are such as they nearly always are; None otherwise.

        None says only that they must be looked at again, more slowly: they may still be good.
        """
        items = ranking.items
        if not self.knows_feedback or type(items) is not np.ndarray or items.ndim != 1:
            return None
        n = len(items)
        if n != ranker.n_positions and ranker.n_positions is not None:
            return None
        form = self._form(ranker, n)
        memo = ranking.memo[: self.n_memo] if ranker.keeps_context else ranking.memo
        parts = (items, ranking.propensities, *memo) if self.has_propensities else (items, *memo)
        if len(parts) != len(form.parts):
            return None
        for part, (shape, dtype) in zip(parts, form.parts, strict=True):
            if (
                type(part) is not np.ndarray
                or part.dtype != dtype
                or part.shape != shape
                or part.flags.num & _IN_ORDER != _IN_ORDER
            ):
                return None
        revealed = _numbers(feedback)
        if revealed is None or revealed.shape != (form.n_revealed,):
            return None
        buffers = self._take(ranker, n)
        n_items = n if ranker.n_items is None else ranker.n_items
        good = ordinary(items, buffers.seen, n_items, revealed, self.clicks, self.most)
        self._free.append(buffers)
        return revealed if good else None

    def _take(self, ranker: CompiledRanker, n: int) -> Buffers:
        # Nobody else has it until it is put back. It may be longer than a list, never shorter.
        try:
            buffers = self._free.pop()
        except IndexError:
            pass
        else:
            if buffers.length >= n:
                return buffers
        _buffers_kept.append(self._free)
        if len(_buffers_kept) > _MOST_BUFFERS:
            _buffers_kept.popleft().clear()
        n_items = n if ranker.n_items is None else ranker.n_items
        return Buffers(n, ranker.scratch(n), np.zeros(n_items, np.bool_))

    def _form(self, ranker: CompiledRanker, n: int) -> Form:
        form = self._forms.get(n)
        if form is None:
            items, propensities, memo = ranker.blank_ticket(n)
            parts = (items, propensities, *memo) if self.has_propensities else (items, *memo)
            form = Form(self.feedback.length(n), tuple((part.shape, part.dtype) for part in parts))
            if len(self._forms) >= _MOST_LENGTHS:
                self._forms.clear()
            self._forms[n] = form
        return form

    def _entry(self, kernel: Callable[..., Any], request: Any, arguments: tuple[Any, ...]) -> Any:
        # The machine code for this kind of request; the kernel itself where it has to look at the types.
        if request is None:
            kind: Any = kernel
        elif type(request) is np.ndarray and request.flags.num & _IN_ORDER == _IN_ORDER:
            kind = kernel, request.dtype, request.ndim
        else:
            return kernel
        entry = self._entries.get(kind)
        if entry is None:
            entry = self._entries[kind] = entry_point(kernel, arguments)
        return entry


def _numbers(feedback: ArrayLike) -> NDArray[np.float64] | None:
    if type(feedback) is not np.ndarray:
        try:
            feedback = np.asarray(feedback)
        except ValueError:  # rows of different lengths
            return None
    if feedback.dtype is _FLOAT:
        return feedback if feedback.flags.num & _IN_ORDER == _IN_ORDER else None
    return feedback.astype(np.float64) if feedback.dtype.kind in "biuf" else None


def entry_point(kernel: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """The machine code of `kernel` for arguments of these types, which it takes for granted from then on."""
    if not hasattr(kernel, "overloads"):
        return kernel  # type: ignore[no-any-return]  # in Python: numba is switched off, or a reference version
    types = tuple(map(kernel.typeof_pyval, arguments))
    kernel.compile(types)
    return kernel.overloads[types].entry_point  # type: ignore[no-any-return]


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


Ticket = tuple[NDArray[np.int64], NDArray[np.float64], Memo]


class CompiledRanker(Ranker):
    """A ranker made of kernels."""

    kernels: RankerKernels
    params: Any  # a NamedTuple of numbers and arrays that never change
    fusable = True  # whether the kernels are compiled; a reference version in Python plays step by step
    _prepared: PreparedCalls | None = None
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
        return memo[: self._calls().n_memo] if self.keeps_context else memo

    def whole_memo(self, memo: Memo, items: NDArray[np.int64], context: Callable[[], Any]) -> Memo:
        short = self.keeps_context and len(memo) == self._calls().n_memo
        return (*memo, *self.keep_request(context())) if short else memo

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        n, request = self.read_context(context)
        items, propensities, memo = self.blank_ticket(n)
        explored = self._calls().rank(self, request, draw_key(rng), items, propensities, memo)
        kept = (*memo, *self.keep_request(request)) if self.keeps_context else memo
        return Ranking(items, propensities if len(propensities) else None, kept, explored)

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        calls = self._calls()
        revealed = calls.read(self, ranking, feedback)
        if revealed is None:
            self._learn_checked(ranking, feedback)
        elif self.keeps_context:
            own = calls.n_memo
            request = self._kept_request(ranking, own)
            ranking = Ranking(ranking.items, ranking.propensities, ranking.memo[:own], ranking.explored)
            self.check_ticket(ranking)
            calls.learn(self, ranking, revealed, request)
        else:
            self.check_ticket(ranking)
            calls.learn(self, ranking, revealed, None)
        if self.until_pause() == 0:
            self.pause()

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

    def _calls(self) -> PreparedCalls:
        calls = self._prepared
        if calls is None or not calls.are_of(self):
            calls = self._prepared = PreparedCalls(self)
        return calls

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_prepared"}

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

    def check_ticket(self, ranking: Ranking) -> None:
        """ValueError where a `ranking` of the right shape holds values that no ticket of this ranker can have."""
        return


def _in_order(part: Any) -> Any:
    return np.require(part, requirements=("C", "A", "W")) if type(part) is np.ndarray else part


class CompiledEnvironment(Environment):
    """An environment made of kernels."""

    kernels: EnvironmentKernels
    params: Any
    state: Any

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
        return self.kernels.arrive(self.params, self.state, draw_key(rng))

    def respond(self, ranking: Ranking, *, rng: np.random.Generator) -> NDArray[np.float64]:
        revealed = np.empty(self.list_length)
        self._check(ranking)
        self.kernels.respond(self.params, self.state, ranking.items, draw_key(rng), revealed)
        return revealed

    def value(self, ranking: Ranking) -> float:
        self._check(ranking)
        return float(self.kernels.value(self.params, self.state, ranking.items))

    def hindsight(self) -> float:
        return float(self.kernels.hindsight(self.params, self.state))

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
