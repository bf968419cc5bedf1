"""A ranker's kernels made ready for calls from Python, one at a time.

A compiled kernel called from Python first finds out the type of everything that it is given: with thirty arrays in
params, state and scratch that takes five to ten times as long as the kernel itself, for ten items. A ranker's arrays
are of the same types at every call, so the machine code for them is looked up once. Scratch is made once as well.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.base import Feedback, Ranking
from rankloop.kernels.call_checks import ordinary, within
from rankloop.light_loading import lighten

if TYPE_CHECKING:
    from rankloop.compiled import CompiledRanker

_MOST_ROOMS = 1_000  # kept at once, of all rankers together: a service may have a hundred thousand of them
_MOST_LENGTHS = 1_000
_IN_ORDER = 0x101  # NumPy's flags of an array whose entries lie one after another, each where a number of its size may
_FLOAT = np.dtype(np.float64)
_rooms_kept: deque[list[Room]] = deque()
for _check in (ordinary, within):
    lighten(_check)


class Room(NamedTuple):
    """What one call works in; two threads have two."""

    length: int  # of the longest list that fits
    scratch: tuple[Any, ...]
    seen: NDArray[np.bool_]


class Form(NamedTuple):
    """What a ticket looks like for lists of one length."""

    n_revealed: int
    parts: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]  # shape and kind of items, propensities and memo


class PreparedCalls:
    """The kernels of one ranker, with the room that they work in."""

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
        self._free: list[Room] = []
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
        room = self._take(ranker, len(items))
        arguments = (self.params, self.state, request, key, room.scratch, items, propensities, memo)
        explored = self._entry(self.kernels.rank, request, arguments)(*arguments)
        self._free.append(room)
        return bool(explored)

    def learn(
        self, ranker: CompiledRanker, ranking: Ranking, revealed: NDArray[np.float64], request: Any
    ) -> None:
        """Call the kernel `learn` with what `read` accepted."""
        room = self._take(ranker, len(ranking.items))
        propensities = ranking.propensities if self.has_propensities else self.no_propensities
        ticket = (ranking.items, propensities, ranking.memo)
        arguments = (self.params, self.state, request, room.scratch, *ticket, revealed)
        self._entry(self.kernels.learn, request, arguments)(*arguments)
        self._free.append(room)

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
        room = self._take(ranker, n)
        n_items = n if ranker.n_items is None else ranker.n_items
        good = ordinary(items, room.seen, n_items, revealed, self.clicks, self.most)
        self._free.append(room)
        return revealed if good else None

    def _take(self, ranker: CompiledRanker, n: int) -> Room:
        # Nobody else has it until it is put back. Room may be longer than a list, never shorter.
        try:
            room = self._free.pop()
        except IndexError:
            pass
        else:
            if room.length >= n:
                return room
        _rooms_kept.append(self._free)
        if len(_rooms_kept) > _MOST_ROOMS:
            _rooms_kept.popleft().clear()
        return Room(n, ranker.scratch(n), np.zeros(n if ranker.n_items is None else ranker.n_items, np.bool_))

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
        found = self._entries.get(kind)
        if found is None:
            found = self._entries[kind] = entry_point(kernel, arguments)
        return found


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
    lighten(kernel)
    types = tuple(map(kernel.typeof_pyval, arguments))
    kernel.compile(types)
    return kernel.overloads[types].entry_point  # type: ignore[no-any-return]
