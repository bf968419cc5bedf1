"""Many runs side by side on a GPU of NVIDIA's, one thread each, with the bytes that `play` gives on a CPU.

The kernels of a ranker and of an environment are compiled as they are; what is written here is the loop around them,
for one pair of kernels and one size at a time (`Program`), and what goes to the GPU and comes back (`Batch`). A run is
played in pieces, so that there is progress and Ctrl-C. What the best fixed list would have been worth is computed by
the CPU, from the state that the environment had at each recorded round.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop import kernels
from rankloop.compiled import CompiledEnvironment, CompiledRanker
from rankloop.extras import require, write_text
from rankloop.kernels.jit import hot
from rankloop.kernels.library import fingerprint
from rankloop.simulation.play import CHUNK_SECONDS, Run

THREADS = 64  # in a block
_MOST_BYTES = 4 << 30  # of the arrays of one batch: they are on the GPU and here
_SMALL = 1 << 16  # bytes of parameters whose contents are compared
_WORD = (1 << 64) - 1
_LOW = np.uint64((1 << 32) - 1)
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645  # of numpy's PCG64
_BY_LOW, _BY_HIGH = np.uint64(_MULTIPLIER & _WORD), np.uint64(_MULTIPLIER >> 64)
_M_LOW, _M_HIGH = np.uint64(_MULTIPLIER & 0xFFFFFFFF), np.uint64(_MULTIPLIER >> 32 & 0xFFFFFFFF)
_32, _58, _63, _64 = np.uint64(32), np.uint64(58), np.uint64(63), np.uint64(64)


@hot
def next_word(rng: Any, at: int) -> Any:
    """The next word of a generator of numpy's, PCG64: state and increment, low half first, lie from `at` on."""
    low, high = rng[at], rng[at + 1]
    # (high, low) * multiplier + increment, modulo 2^128, from products of 32 bits
    a, b = low & _LOW, low >> _32
    cross = a * _M_HIGH + (a * _M_LOW >> _32)
    middle = b * _M_LOW + (cross & _LOW)
    high = b * _M_HIGH + (cross >> _32) + (middle >> _32) + low * _BY_HIGH + high * _BY_LOW
    low = low * _BY_LOW + rng[at + 2]
    high = high + rng[at + 3] + np.uint64(low < rng[at + 2])
    rng[at], rng[at + 1] = low, high
    mixed, by = high ^ low, high >> _58
    return (mixed >> by) | (mixed << ((_64 - by) & _63))


def state_of(generator: np.random.Generator) -> list[int]:
    """State and increment of a generator of numpy's, in words for `next_word`."""
    state = generator.bit_generator.state["state"]
    return [part for number in (state["state"], state["inc"]) for part in (number & _WORD, number >> 64)]


class Leaf(NamedTuple):
    """An array somewhere in a nest of tuples, or a number, which has no axes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Layout:
    """The leaves of a nest of tuples, and the nest itself as source: the leaves are `prefix0`, `prefix1`, ... there."""

    def __init__(self, prefix: str, tree: Any) -> None:
        self.prefix = prefix
        self.leaves: list[Leaf] = []
        self.classes: dict[str, Any] = {}  # named tuples in the tree
        self.source = self._walk(tree)

    @property
    def names(self) -> list[str]:
        """The leaves in the source."""
        return [f"{self.prefix}{number}" for number in range(len(self.leaves))]

    def _walk(self, value: Any) -> str:
        if value is None:
            return "None"
        if isinstance(value, tuple):
            inside = "".join(f"{self._walk(part)}, " for part in value)
            if not hasattr(value, "_fields"):
                return f"({inside})"
            name = f"{type(value).__module__}.{type(value).__qualname__}".replace(".", "_")
            self.classes[name] = type(value)
            return f"{name}({inside})"
        array = np.asarray(value)
        self.leaves.append(Leaf(array.dtype, array.shape))
        return f"{self.prefix}{len(self.leaves) - 1}"


def leaves(tree: Any) -> list[Any]:
    """The arrays and numbers in a nest of tuples, in the order of a `Layout`."""
    if tree is None:
        return []
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


_SOURCE = """
def many({arguments}):
    run = cuda.grid(1)
    if run >= rows.shape[0]:
        return
    row = rows[run]
    {params}
    {room}
    {state}
    rng = cuda.local.array(8, uint64)
    for i in range(8):
        rng[i] = words[i, run]
    t, place, explored = counters[0, run], counters[1, run], counters[2, run]
    total, window = sums[0, run], sums[1, run]
    start = record[place - 1] if place > 0 else 0
    for _ in range(rounds):
        context = arrive(environment_params, environment_state, next_word(rng, 4))
        explored += rank(
            ranker_params, ranker_state, context, next_word(rng, 0), scratch, items, propensities, memo
        )
        this_value = value(environment_params, environment_state, items)
        respond(environment_params, environment_state, items, next_word(rng, 4), revealed)
        learn(ranker_params, ranker_state, context, scratch, items, propensities, memo, revealed)
        total += this_value
        window += this_value
        t += 1
        if t == record[place]:
            value_out[place, run] = window / (t - start)
            total_out[place, run] = total
            explored_out[place, run] = explored
            {kept}
            window = 0.0
            start = t
            place += 1
    counters[0, run], counters[1, run], counters[2, run] = t, place, explored
    sums[0, run], sums[1, run] = total, window
    for i in range(8):
        words[i, run] = rng[i]
    {back}
"""
# What the source takes before its leaves.
_FIRST = ["rounds", "record", "rows", "words", "counters", "sums", "value_out", "total_out", "explored_out"]


class Program:
    """The loop for one pair of kernels and one size. The state goes on from launch to launch."""

    def __init__(self, run: Run) -> None:
        reason = reason_against(run)
        if reason is not None:
            raise ValueError(f'executor="cuda" cannot play this pair: {reason}')
        ranker: Any = run.ranker
        environment: Any = run.environment
        longest = environment.n_positions
        revealed = np.empty(ranker.feedback.length(longest))
        looked_at = max(environment.n_read, len(revealed))
        ticket = ranker.blank_ticket(looked_at if ranker.cuts_lists else longest)
        self.params = Layout("p", (ranker.params, environment.params))
        self.state = Layout("s", (ranker.state, environment.state))
        self.room = Layout("r", (ranker.scratch(longest), *ticket, revealed))
        self.n_kept = len(leaves(environment.state))  # the last ones of the state
        self.kernels = {
            "rank": ranker.kernels.rank,
            "learn": ranker.kernels.learn,
            "arrive": environment.kernels.arrive,
            "respond": environment.kernels.respond,
            "value": environment.kernels.value,
        }

    @functools.cached_property
    def kind(self) -> tuple[Any, ...]:
        """What is the same for all runs that one program plays; two pairs may have the same arrays."""
        parts = self.params, self.state, self.room
        return (
            *(f"{kernel.__module__}.{kernel.__qualname__}" for kernel in self.kernels.values()),
            *((part.source, tuple(part.leaves)) for part in parts),
        )

    @property
    def arguments(self) -> list[np.dtype[Any] | tuple[np.dtype[Any], int]]:
        """The type of each argument, and how many axes it has if it is an array."""
        whole, real, word = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.uint64)
        first = [(whole, 1), (whole, 1), (word, 2), (whole, 2), (real, 2), (real, 2), (real, 2), (whole, 2)]
        per_row = [(leaf.dtype, 1 + len(leaf.shape)) for leaf in (*self.params.leaves, *self.state.leaves)]
        return [whole, *first, *per_row, *((dtype, 2 + len(shape)) for dtype, shape in self.kept)]

    @property
    def kept(self) -> list[Leaf]:
        """What is kept at recorded rounds."""
        return self.state.leaves[len(self.state.leaves) - self.n_kept :]

    @functools.cached_property
    def source(self) -> str:
        """The loop in Python, as it is compiled."""
        state, params, room = self.state, self.params, self.room
        kept = state.names[len(state.names) - self.n_kept :]
        into = [f"k{number}" for number in range(self.n_kept)]
        named = [f"{name}_in" for name in params.names], [f"{name}_in" for name in state.names]
        lines = {
            "params": [f"{name} = {name}_in[row]" for name in params.names],
            "room": [_room_for(*one) for one in zip(room.names, room.leaves, strict=True)],
            "state": [_room_for(*one) for one in zip(state.names, state.leaves, strict=True)],
            "kept": [],
            "back": [],
        }
        for name, leaf in zip(state.names, state.leaves, strict=True):
            lines["state"] += _copied(f"{name}_in[AT, run]", f"{name}[AT]", leaf)
            lines["back"] += _copied(f"{name}[AT]", f"{name}_in[AT, run]", leaf)
        for name, to, leaf in zip(kept, into, self.kept, strict=True):
            lines["kept"] += _copied(f"{name}[AT]", f"{to}[AT, place, run]", leaf)
        lines["params"].append(f"ranker_params, environment_params = {params.source}")
        lines["room"].append(f"scratch, items, propensities, memo, revealed = {room.source}")
        lines["state"].append(f"ranker_state, environment_state = {state.source}")
        arguments = ", ".join([*_FIRST, *named[0], *named[1], *into])
        indented = {part: f"\n{' ' * 4}".join(each) for part, each in lines.items() if part != "kept"}
        return _SOURCE.format(arguments=arguments, kept=f"\n{' ' * 12}".join(lines["kept"]), **indented)

    def function(self, cuda: Any) -> Any:
        """The loop as a function; `cuda` is `numba.cuda`, or has its `grid` and `local.array`."""
        names = {"cuda": cuda, "next_word": next_word, "uint64": np.uint64, **self.kernels}
        for part in (self.params, self.state, self.room):
            names |= part.classes | {leaf.dtype.name: leaf.dtype.type for leaf in part.leaves}
        exec(compile(self.source, f"<{self.kernels['rank'].__module__} on a GPU>", "exec"), names)
        return names["many"]

    def ptx(self, cc: tuple[int, int]) -> tuple[str, str]:
        """The code for GPUs of capability `cc`, and the loop's name in it; compiled once, and then found on disk."""
        compiler = Path(kernels.__file__).parent / "cuda_compiler.py"
        digest = hashlib.sha256(compiler.read_bytes())
        digest.update(f"{fingerprint()} {cc} {self.kind[:5]} {self.arguments} {self.source}".encode())
        place = os.environ.get("NUMBA_CACHE_DIR") or compiler.parent / "__pycache__"
        file = Path(place) / f"kernels-gpu-{fingerprint()}" / f"{digest.hexdigest()[:32]}.ptx"
        with suppress(OSError):
            name, code = file.read_text().split("\n", 1)
            return code, name.removeprefix("// ")
        require("numba", "numba_cuda", extra="cuda", for_='executor="cuda"')
        compiled = importlib.import_module("rankloop.kernels.cuda_compiler")
        code, name = compiled.to_ptx(self.function(compiled.numba_cuda()), self.arguments, cc)
        with suppress(OSError):  # a read-only installation
            write_text(file, f"// {name}\n{code}")
        return code, name


def _room_for(name: str, leaf: Leaf) -> str:
    if 0 not in leaf.shape:
        return f"{name} = cuda.local.array({leaf.shape}, {leaf.dtype.name})"
    some = tuple(max(1, n) for n in leaf.shape)
    cut = ", ".join(f":{n}" for n in leaf.shape)
    return f"{name} = cuda.local.array({some}, {leaf.dtype.name})[{cut}]"


def _copied(one: str, other: str, leaf: Leaf) -> list[str]:
    """Loops over the entries of a leaf, from one array to the other."""
    if 0 in leaf.shape:
        return []
    at = ", ".join(f"i{axis}" for axis in range(len(leaf.shape)))
    loops = [f"{'    ' * axis}for i{axis} in range({n}):" for axis, n in enumerate(leaf.shape)]
    return [*loops, f"{'    ' * len(loops)}{other.replace('AT', at)} = {one.replace('AT', at)}"]


def reason_against(run: Run) -> str | None:
    """Why a GPU cannot play this run, in words; None if it can."""
    ranker, environment = run.ranker, run.environment
    if not isinstance(ranker, CompiledRanker) or not ranker.fusable:
        return f"{type(ranker).__name__} is not made of kernels"
    if ranker.until_pause() is not None:
        return f"{type(ranker).__name__} calls a solver between rounds"
    if not isinstance(environment, CompiledEnvironment):
        return f"{type(environment).__name__} is not made of kernels"
    if environment.n_features is not None:
        return f"{type(environment).__name__} has requests with features"
    return None


def grouped(runs: Sequence[Run]) -> list[tuple[Program, list[Run]]]:
    """Runs that one program can play, together; ValueError where a pair cannot be played."""
    groups: dict[Any, tuple[Program, list[Run]]] = {}
    for run in runs:
        program = Program(run)
        key = program.kind, run.rounds, len(run.record)
        groups.setdefault(key, (program, []))[1].append(run)
    return list(groups.values())


class Batch:
    """Runs of one program, as arrays whose last axis is the run, so that what neighbours read lies together."""

    def __init__(self, program: Program, runs: Sequence[Run]) -> None:
        self.program, self.runs = program, runs
        n, points = len(runs), len(runs[0].record)
        self.record = np.append(runs[0].record, -1)  # after the last round no place is looked for
        self.rows, tables = _table([leaves((run.ranker.params, run.environment.params)) for run in runs])  # type: ignore[attr-defined]
        self.params = [
            np.array([table[number] for table in tables], leaf.dtype)
            for number, leaf in enumerate(program.params.leaves)
        ]
        states = [leaves((run.ranker.state, run.environment.state)) for run in runs]  # type: ignore[attr-defined]
        self.state = [
            np.stack([state[number] for state in states], axis=-1) for number in range(len(states[0]))
        ]
        self.words = np.array(
            [state_of(run.ranker_rng) + state_of(run.environment_rng) for run in runs], np.uint64
        ).T.copy()
        self.counters, self.sums = np.zeros((3, n), np.int64), np.zeros((2, n))
        self.value, self.total = np.empty((points, n)), np.empty((points, n))
        self.explored = np.empty((points, n), np.int64)
        self.kept = [np.empty((*leaf.shape, points, n), leaf.dtype) for leaf in program.kept]

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """What the loop takes after the number of rounds."""
        first = [self.record, self.rows, self.words, self.counters, self.sums]
        out = [self.value, self.total, self.explored]
        return [*first, *out, *self.params, *self.state, *self.kept]

    def hand_over(self, seconds: float) -> None:
        """Leave every run, its ranker and its environment as `play` would."""
        for number, run in enumerate(self.runs):
            ranker: Any = run.ranker
            environment: Any = run.environment
            for place in range(len(run.record)):
                _put(environment.state, [part[..., place, number] for part in self.kept])
                run.out[2][place] = environment.hindsight()
            _put((ranker.state, environment.state), [part[..., number] for part in self.state])
            for out, part in zip((0, 1, 3), (self.value, self.total, self.explored), strict=True):
                run.out[out][:] = part[:, number]
            run.t, run.place, run.explored = (int(count) for count in self.counters[:, number])
            run.total, run.window = (float(part) for part in self.sums[:, number])
            run.seconds = seconds


def _table(parameters: list[list[Any]]) -> tuple[NDArray[np.int64], list[list[Any]]]:
    """Which row of a table each run's parameters are, and the rows, none twice."""
    rows: dict[tuple[Any, ...], int] = {}
    table: list[list[Any]] = []
    numbers = np.empty(len(parameters), np.int64)
    for run, those in enumerate(parameters):
        arrays = [np.asarray(one) for one in those]
        key = tuple(one.tobytes() if one.nbytes <= _SMALL else id(one) for one in arrays)
        numbers[run] = rows.setdefault(key, len(rows))
        if len(rows) > len(table):
            table.append(those)
    return numbers, table


def _put(tree: Any, numbers: list[NDArray[Any]]) -> None:
    for leaf, value in zip(leaves(tree), numbers, strict=True):
        leaf[...] = value


class Device:
    """The first GPU of this machine, by NVIDIA's driver."""

    def __init__(self) -> None:
        require("cuda", extra="cuda", for_='executor="cuda"')
        self._driver = importlib.import_module("cuda.bindings.driver")
        try:
            self._call("cuInit", 0)
            device = self._call("cuDeviceGet", 0)
            self._call("cuCtxSetCurrent", self._call("cuDevicePrimaryCtxRetain", device))
        except RuntimeError as error:
            raise RuntimeError(
                f'executor="cuda" needs a GPU of NVIDIA\'s and its driver, beside "rankloop[cuda]": {error}'
            ) from None
        ask = partial(self._ask, "cuDeviceGetAttribute", "CUdevice_attribute.CU_DEVICE_ATTRIBUTE", device)
        self.cc = ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR")
        self.threads = ask("MULTIPROCESSOR_COUNT") * ask("MAX_THREADS_PER_MULTIPROCESSOR")
        self._loaded: dict[str, Any] = {}  # by the code

    def _call(self, name: str, *arguments: Any) -> Any:
        error, *answer = getattr(self._driver, name)(*arguments)
        if error != 0:
            told = self._driver.cuGetErrorString(error)[1]
            raise RuntimeError(f"{name}: {told.decode() if told else error}")
        return answer[0] if len(answer) == 1 else answer

    def play(self, program: Program, batch: Batch, show: Callable[[int], None]) -> None:
        """Play all runs of a batch to the end; `show` is told how many rounds were played, piece by piece."""
        function = self.loaded(program)
        addresses: list[Any] = []
        try:
            for array in batch.arrays:
                addresses.append(self._call("cuMemAlloc", max(1, array.nbytes)))
                if array.nbytes:
                    self._call("cuMemcpyHtoD", addresses[-1], array.ctypes.data, array.nbytes)
            arguments = [0]
            for address, array in zip(addresses, batch.arrays, strict=True):
                # An array as numba hands it over: owner, parent, entries, bytes of one, address, shape, strides
                arguments += [0, 0, array.size, array.itemsize, int(address), *array.shape, *array.strides]
            n, left, piece = len(batch.rows), batch.runs[0].rounds, 64
            while left:
                begun = time.perf_counter()
                arguments[0] = piece = min(piece, left)
                numbers = tuple(arguments), (ctypes.c_int64,) * len(arguments)
                blocks = -(-n // THREADS)
                self._call("cuLaunchKernel", function, blocks, 1, 1, THREADS, 1, 1, 0, 0, numbers, 0)
                self._call("cuCtxSynchronize")
                left -= piece
                show(piece * n)
                spent = time.perf_counter() - begun
                piece = max(1, int(piece * min(8.0, CHUNK_SECONDS / max(spent, 1e-9))))
            for address, array in zip(addresses, batch.arrays, strict=True):
                if array.nbytes:
                    self._call("cuMemcpyDtoH", array.ctypes.data, address, array.nbytes)
        finally:
            for address in addresses:
                self._driver.cuMemFree(address)

    def loaded(self, program: Program) -> Any:
        """The loop of a program on the GPU; MemoryError where its threads need more than there is."""
        code, name = program.ptx(self.cc)
        if code not in self._loaded:
            module = self._call("cuModuleLoadData", code.encode() + b"\0")
            self._loaded[code] = self._call("cuModuleGetFunction", module, name.encode())
        function = self._loaded[code]
        needed, free = self.threads * self.asks(function, "LOCAL_SIZE_BYTES"), self._call("cuMemGetInfo")[0]
        if needed > free:
            raise MemoryError(
                f"the GPU has {free >> 20:,} MiB free, its threads need {needed >> 20:,} for this pair"
            )
        return function

    def asks(self, function: Any, what: str) -> int:
        """What a loaded function needs of each thread: "LOCAL_SIZE_BYTES", or "NUM_REGS", its registers."""
        return self._ask("cuFuncGetAttribute", "CUfunction_attribute.CU_FUNC_ATTRIBUTE", function, what)

    def _ask(self, name: str, kind: str, of: Any, what: str) -> int:
        return int(self._call(name, attrgetter(f"{kind}_{what}")(self._driver), of))


def played(runs: Sequence[Run], show: Callable[[int], None] = lambda rounds: None) -> Iterator[list[Run]]:
    """Play these runs to the end on the GPU: gives those that have ended, batch by batch.

    `show` is told how many rounds were played so far, of all runs together. ValueError, before anything is compiled or
    played, where a pair cannot be played there.
    """
    groups = grouped(runs)
    if not groups:
        return
    device, so_far = Device(), 0

    def count(rounds: int) -> None:
        nonlocal so_far
        so_far += rounds
        show(so_far)

    for program, those in groups:
        for part in _parts(program, those):
            begun = time.perf_counter()
            batch = Batch(program, part)
            device.play(program, batch, count)
            batch.hand_over(time.perf_counter() - begun)
            yield part


def _parts(program: Program, runs: list[Run]) -> Iterator[list[Run]]:
    """As many runs at a time as their arrays leave room for."""

    def size(parts: list[Leaf]) -> int:
        return sum(part.dtype.itemsize * math.prod(part.shape) for part in parts)

    each = size(program.state.leaves) + len(runs[0].record) * (24 + size(program.kept))
    at_once = max(1, _MOST_BYTES // each)
    for first in range(0, len(runs), at_once):
        yield runs[first : first + at_once]
