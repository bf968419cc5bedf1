"""Many runs side by side on a GPU of NVIDIA's, one thread each, with the bytes that `play` gives on a CPU.

numba.cuda compiles the kernels of a ranker and of an environment as they are; what is written here is the loop around
them, for one pair of kernels and one size at a time (`Program`). A run is played in pieces, so that there is progress
and Ctrl-C. What the best fixed list would have been worth is computed by the CPU, from the state that the environment
had at each recorded round.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.compiled import CompiledEnvironment, CompiledRanker
from rankloop.extras import require
from rankloop.kernels import jit
from rankloop.simulation.play import CHUNK_SECONDS, Run

THREADS = 64  # in a block
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645  # of numpy's PCG64
_LOW, _WORD = (1 << 32) - 1, (1 << 64) - 1
_BY_LOW, _BY_HIGH = np.uint64(_MULTIPLIER & _WORD), np.uint64(_MULTIPLIER >> 64)
_M_LOW, _M_HIGH = np.uint64(_MULTIPLIER & _LOW), np.uint64((_MULTIPLIER >> 32) & _LOW)
_32, _63, _58, _MASK = np.uint64(32), np.uint64(63), np.uint64(58), np.uint64(_LOW)


def word(rng: Any, at: int) -> Any:
    """The next word of a generator of numpy's, PCG64: state and increment, low half first, lie from `at` on."""
    low, high = rng[at], rng[at + 1]
    # (high, low) * multiplier + increment, modulo 2^128, from products of 32 bits
    a, b = low & _MASK, low >> _32
    cross = a * _M_HIGH + (a * _M_LOW >> _32)
    middle = b * _M_LOW + (cross & _MASK)
    high = b * _M_HIGH + (cross >> _32) + (middle >> _32) + low * _BY_HIGH + high * _BY_LOW
    low = low * _BY_LOW + rng[at + 2]
    carry = np.uint64(1) if low < rng[at + 2] else np.uint64(0)
    high = high + rng[at + 3] + carry
    rng[at], rng[at + 1] = low, high
    mixed, by = high ^ low, high >> _58
    return (mixed >> by) | (mixed << ((np.uint64(64) - by) & _63))


class Leaf(NamedTuple):
    """An array or a number somewhere in a ranker or an environment: its place among those of its type."""

    shape: tuple[int, ...] | None  # None for a number
    dtype: np.dtype[Any]
    offset: int

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return 1 if self.shape is None else int(np.prod(self.shape, dtype=np.int64))


class Layout:
    """Where the leaves of a nest of tuples lie in flat arrays, one for each type of number."""

    def __init__(self, tree: Any) -> None:
        self.leaves: list[Leaf] = []
        self.words: dict[np.dtype[Any], int] = {}  # numbers of each type
        self.classes: dict[str, Any] = {}  # named tuples in the tree
        self.tree = self._walk(tree)  # as source, with {0}, {1}, ... for the leaves

    def _walk(self, value: Any) -> str:
        if value is None:
            return "None"
        if isinstance(value, tuple):
            parts = [self._walk(part) for part in value]
            if hasattr(value, "_fields"):
                name = f"{type(value).__name__}_{id(type(value))}"
                self.classes[name] = type(value)
                return f"{name}({', '.join(parts)})"
            return f"({''.join(f'{part}, ' for part in parts)})"
        array = np.asarray(value)
        offset = self.words.get(array.dtype, 0)
        leaf = Leaf(array.shape if isinstance(value, np.ndarray) else None, array.dtype, offset)
        self.words[array.dtype] = offset + leaf.size
        self.leaves.append(leaf)
        return f"{{{len(self.leaves) - 1}}}"

    @property
    def kind(self) -> tuple[Any, ...]:
        """What is the same for runs that one program plays."""
        return self.tree, tuple(self.leaves)

    def flat(self, tree: Any) -> dict[np.dtype[Any], NDArray[Any]]:
        """The numbers of such a tree."""
        found = {dtype: np.empty(n, dtype) for dtype, n in self.words.items()}
        for leaf, value in zip(self.leaves, _values(tree), strict=True):
            found[leaf.dtype][leaf.offset : leaf.offset + leaf.size] = np.ravel(value)
        return found

    def put_back(self, tree: Any, numbers: dict[np.dtype[Any], NDArray[Any]]) -> None:
        """Write numbers into the arrays of such a tree."""
        for leaf, value in zip(self.leaves, _values(tree), strict=True):
            part = numbers[leaf.dtype][leaf.offset : leaf.offset + leaf.size]
            value[...] = part.reshape(leaf.shape or ())


def _values(tree: Any) -> list[Any]:
    if tree is None:
        return []
    return [one for part in tree for one in _values(part)] if isinstance(tree, tuple) else [tree]


# One run: its rounds, between arrays of its own. Names in capitals are filled in.
_SOURCE = """
def many(rounds, record, rows, params, state, words, counters, sums, values, explored, kept):
    run = cuda.grid(1)
    if run >= rows.shape[0]:
        return
    row = rows[run]
ARRAYS
    rng = cuda.local.array(8, uint64)
    for i in range(8):
        rng[i] = words[i, run]
    t, place, exploring = counters[0, run], counters[1, run], counters[2, run]
    total, window = sums[0, run], sums[1, run]
    start = record[place - 1] if place > 0 else 0
    for _ in range(rounds):
        context = arrive(environment_params, environment_state, word(rng, 4))
        if rank(ranker_params, ranker_state, context, word(rng, 0), scratch, items, propensities, memo):
            exploring += 1
        this_value = value(environment_params, environment_state, items)
        respond(environment_params, environment_state, items, word(rng, 4), revealed)
        learn(ranker_params, ranker_state, context, scratch, items, propensities, memo, revealed)
        total += this_value
        window += this_value
        t += 1
        if t == record[place]:
            values[0, place, run] = window / (t - start)
            values[1, place, run] = total
            explored[place, run] = exploring
KEPT
            window = 0.0
            start = t
            place += 1
    counters[0, run], counters[1, run], counters[2, run] = t, place, exploring
    sums[0, run], sums[1, run] = total, window
    for i in range(8):
        words[i, run] = rng[i]
BACK
"""
# State goes on from launch to launch; the rest is room to work in.
_STATES, _ROOM = ("ranker_state", "environment_state"), ("scratch", "ticket", "revealed")


class Program:
    """The loop for one pair of kernels and one size: its source, and what the source names."""

    def __init__(self, run: Run) -> None:
        ranker, environment = _compiled(run)
        longest = environment.n_positions
        revealed = np.empty(ranker.feedback.length(longest))
        looked_at = max(environment.n_read, len(revealed))
        ticket = ranker.blank_ticket(looked_at if ranker.cuts_lists else longest)
        self.params = Layout((ranker.params, environment.params))
        self.state = Layout((ranker.state, environment.state))
        self.environment = Layout(environment.state)
        room = Layout((ranker.scratch(longest), ticket, revealed))
        kernels = (*ranker.kernels, environment.kernels.arrive, environment.kernels.respond)
        self.kernels = dict(
            zip(
                ("rank", "learn", "arrive", "respond", "value"),
                (*kernels, environment.kernels.value),
                strict=True,
            )
        )
        self.room = room
        self.classes = {**self.params.classes, **self.state.classes, **room.classes}
        # Named by the kernels, too: two pairs may have the same arrays.
        names = tuple(f"{one.__module__}.{one.__qualname__}" for one in self.kernels.values())
        self.kind = names, self.params.kind, self.state.kind, room.kind
        self.bytes_held = sum(leaf.size * leaf.dtype.itemsize for leaf in (*self.state.leaves, *room.leaves))

    @property
    def source(self) -> str:
        """The loop in Python, as it is compiled."""
        arrays, back, kept = [], [], []
        params = [_of_row(leaf, number, self.params) for number, leaf in enumerate(self.params.leaves)]
        arrays.append(f"ranker_params, environment_params = {self.params.tree.format(*params)}")
        state = [f"s{number}" for number in range(len(self.state.leaves))]
        for name, leaf in zip(state, self.state.leaves, strict=True):
            arrays += _room_for(name, leaf)
            arrays += _copied(leaf, f"{name}[AT] = state[{_number_of(self.state, leaf)}][FLAT, run]")
            back += _copied(leaf, f"state[{_number_of(self.state, leaf)}][FLAT, run] = {name}[AT]")
        arrays.append(f"ranker_state, environment_state = {self.state.tree.format(*state)}")
        of_environment = state[len(state) - len(self.environment.leaves) :]
        for name, leaf in zip(of_environment, self.environment.leaves, strict=True):
            array = f"kept[{_number_of(self.environment, leaf)}]"
            kept += _copied(leaf, f"{array}[FLAT, place, run] = {name}[AT]")
        room = [f"r{number}" for number in range(len(self.room.leaves))]
        for name, leaf in zip(room, self.room.leaves, strict=True):
            arrays += _room_for(name, leaf)
        arrays.append(f"scratch, ticket, revealed = {self.room.tree.format(*room)}")
        arrays.append("items, propensities, memo = ticket")
        parts = {"ARRAYS": (arrays, 4), "KEPT": (kept, 12), "BACK": (back, 4)}
        source = _SOURCE
        for mark, (lines, indent) in parts.items():
            source = source.replace(mark, "\n".join(" " * indent + line for line in lines))
        return source

    def function(self, cuda: Any, of_kernel: Callable[[Any], Any], word: Any) -> Any:
        """The loop as a function; kernels and `word` are compiled by `of_kernel` for where it runs."""
        types = {dtype.name: dtype.type for layout in (self.state, self.room) for dtype in layout.words}
        names: dict[str, Any] = {"cuda": cuda, "uint64": np.uint64, "word": word, **types, **self.classes}
        names["bool"] = np.bool_
        names |= {name: of_kernel(kernel) for name, kernel in self.kernels.items()}
        exec(compile(self.source, f"<{'.'.join(self.kind[0][0].split('.')[-2:])} on a GPU>", "exec"), names)
        return names["many"]


def _number_of(layout: Layout, leaf: Leaf) -> int:
    return list(layout.words).index(leaf.dtype)


def _of_row(leaf: Leaf, number: int, layout: Layout) -> str:
    array = f"params[{_number_of(layout, leaf)}][row]"
    if leaf.shape is None:
        return f"{array}[{leaf.offset}]"
    part = f"{array}[{leaf.offset}:{leaf.offset + leaf.size}]"
    return part if len(leaf.shape) == 1 else f"{part}.reshape({leaf.shape})"


def _room_for(name: str, leaf: Leaf) -> list[str]:
    shape = leaf.shape or ()
    if leaf.size:
        return [f"{name} = cuda.local.array({shape if len(shape) > 1 else leaf.size}, {leaf.dtype.name})"]
    cut = ", ".join(f":{n}" for n in shape)
    some = tuple(max(1, n) for n in shape)
    return [f"{name} = cuda.local.array({some if len(some) > 1 else some[0]}, {leaf.dtype.name})[{cut}]"]


def _copied(leaf: Leaf, line: str) -> list[str]:
    """Loops over the entries of a leaf around a line with their indices."""
    if not leaf.size:
        return []
    shape, lines, flat = leaf.shape or (1,), [], ""
    for axis, n in enumerate(shape):
        lines.append(f"{'    ' * axis}for i{axis} in range({n}):")
        flat = f"({flat}) * {n} + i{axis}" if flat else f"i{axis}"
    at = ", ".join(f"i{axis}" for axis in range(len(shape)))
    text = line.replace("AT]", f"{at}]").replace("FLAT", f"{leaf.offset} + {flat}")
    return [*lines, "    " * len(shape) + text]


def _compiled(run: Run) -> tuple[CompiledRanker, CompiledEnvironment]:
    ranker, environment = run.ranker, run.environment
    reason = None
    if not isinstance(ranker, CompiledRanker) or not ranker.fusable:
        reason = f"{type(ranker).__name__} is not made of kernels"
    elif ranker.until_pause() is not None:
        reason = f"{type(ranker).__name__} calls a solver between rounds"
    elif not isinstance(environment, CompiledEnvironment):
        reason = f"{type(environment).__name__} is not made of kernels"
    elif environment.n_features is not None:
        reason = f"{type(environment).__name__} has requests with features"
    if reason is not None:
        raise ValueError(f'executor="cuda" cannot play this pair: {reason}')
    assert isinstance(ranker, CompiledRanker)
    assert isinstance(environment, CompiledEnvironment)
    return ranker, environment


def grouped(runs: Sequence[Run]) -> list[tuple[Program, list[Run]]]:
    """Runs that one program can play, together; ValueError where a pair cannot be played, before any is."""
    groups: dict[Any, tuple[Program, list[Run]]] = {}
    for run in runs:
        program = Program(run)
        groups.setdefault((program.kind, run.rounds, len(run.record)), (program, []))[1].append(run)
    return list(groups.values())


class Batch:
    """Runs of one program, as arrays: numbers x runs, so that what neighbours read lies together."""

    def __init__(self, program: Program, runs: Sequence[Run]) -> None:
        self.program, self.runs = program, runs
        n, points = len(runs), len(runs[0].record)
        self.record = np.append(runs[0].record, -1)  # after the last round no place is looked for
        rows: dict[bytes, int] = {}
        self.rows, tables = np.empty(n, np.int64), []
        state, words = [], np.empty((8, n), np.uint64)
        for number, run in enumerate(runs):
            flat = program.params.flat((run.ranker.params, run.environment.params))  # type: ignore[attr-defined]
            key = b"".join(part.tobytes() for part in flat.values())
            if key not in rows:
                rows[key] = len(tables)
                tables.append(flat)
            self.rows[number] = rows[key]
            state.append(program.state.flat((run.ranker.state, run.environment.state)))  # type: ignore[attr-defined]
            generators = run.ranker_rng, run.environment_rng
            words[:, number] = [part for one in generators for part in _pcg64(one)]
        self.params = tuple(np.stack([flat[dtype] for flat in tables]) for dtype in program.params.words)
        self.state = tuple(np.stack([flat[dtype] for flat in state], axis=1) for dtype in program.state.words)
        self.words = words
        self.counters, self.sums = np.zeros((3, n), np.int64), np.zeros((2, n))
        self.values, self.explored = np.empty((2, points, n)), np.empty((points, n), np.int64)
        self.kept = tuple(
            np.empty((size, points, n), dtype) for dtype, size in program.environment.words.items()
        )

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the loop takes after the number of rounds."""
        written = self.words, self.counters, self.sums, self.values, self.explored, self.kept
        return self.record, self.rows, self.params, self.state, *written

    def hand_over(self, seconds: float) -> None:
        """Leave every run, its ranker and its environment as `play` would."""
        program = self.program
        for number, run in enumerate(self.runs):
            environment, ranker = run.environment, run.ranker
            for place in range(len(run.record)):
                kept = {
                    dtype: part[:, place, number]
                    for dtype, part in zip(program.environment.words, self.kept, strict=True)
                }
                program.environment.put_back(environment.state, kept)  # type: ignore[attr-defined]
                run.out[2][place] = environment.hindsight()
            numbers = {
                dtype: part[:, number] for dtype, part in zip(program.state.words, self.state, strict=True)
            }
            program.state.put_back((ranker.state, environment.state), numbers)  # type: ignore[attr-defined]
            run.out[0][:], run.out[1][:] = self.values[0, :, number], self.values[1, :, number]
            run.out[3][:] = self.explored[:, number]
            run.t, run.place, run.explored = (int(count) for count in self.counters[:, number])
            run.total, run.window = (float(part) for part in self.sums[:, number])
            run.seconds = seconds


def _pcg64(generator: np.random.Generator) -> tuple[int, ...]:
    state = generator.bit_generator.state["state"]
    return tuple(part for number in (state["state"], state["inc"]) for part in (number & _WORD, number >> 64))
