"""The library of compiled kernels: finding the one for this processor, and calling a kernel in it.

A kernel in the library takes the address of an array of 64-bit words: its arguments, leaf by leaf, then space for what
it returns. An array is seven words or more (owner, parent, number of entries, bytes of one, address, shape, strides), a
number, a truth value or None one word, a tuple the words of its parts. `kind_of` describes arguments in a line of text,
and there is one variant of a kernel for each kind.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import hashlib
import importlib
import json
import platform
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).parent / "compiled"
_PACKAGE = Path(__file__).parents[1]
# Where kernels are written: what is compiled depends on these.
_SOURCES = ("environments", "kernels", "rankers", "games/play.py", "experiments/pbm_2022/rankers.py")
# What `compile_kernels.py` depends on, and what compiles for a GPU.
_NO_KERNELS = ("jit.py", "library.py", "numba_compiler.py", "cuda_compiler.py")
_V2 = {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}


def code(source: Path) -> bytes:
    """What a file does: its syntax tree in text, which comments and docstrings do not change."""
    tree = ast.parse(source.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            del node.body[0]
    return ast.dump(tree).encode()


@functools.cache
def fingerprint(read: Callable[[Path], bytes] = Path.read_bytes) -> str:
    """A digest of all sources of kernels, byte by byte or by their `code`, which takes longer."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        path = _PACKAGE / name
        for source in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            if source.exists() and source.name not in _NO_KERNELS:
                digest.update(read(source))
    return digest.hexdigest()[:16]


def processors() -> list[str]:
    """The names of the processors whose libraries run on this one, the best first."""
    if platform.system() != "Linux":
        return []
    machine = platform.machine().lower()
    if machine in ("aarch64", "arm64"):
        return ["aarch64"]
    if machine not in ("x86_64", "amd64"):
        return []
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return []
    flags = set(next((line for line in text.splitlines() if line.startswith("flags")), "").split())
    return [name for name, needed in (("x86-64-v3", _V3), ("x86-64-v2", _V2)) if needed <= flags]


def opened(asked: str, complain: Callable[[str], None]) -> Library | None:
    """The library for this processor, or for the one that is `asked` for; None, and a complaint if it is damaged."""
    try:
        index = _index()
        known = json.loads(index.read_text())
        for name in processors() if asked in ("", "library") else [asked]:
            if name in known["sha256"]:
                path = FOLDER / f"{index.stem}-{name}.so"
                if hashlib.sha256(path.read_bytes()).hexdigest() != known["sha256"][name]:
                    raise ValueError("its bytes have changed")
                return Library(name, path, known["kernels"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        complain(f"the compiled kernels in {FOLDER} cannot be used: {error}")
    return None


def _index() -> Path:
    # Of the library that was made of these files; else of one made of others with the same code.
    index = FOLDER / f"{fingerprint()}.json"
    if not index.exists():
        for other in FOLDER.glob("*.json"):
            if json.loads(other.read_text()).get("code") == fingerprint(code):
                return other
    return index


class Library:
    """A loaded library."""

    def __init__(self, processor: str, path: Path, kernels: dict[str, list[str]]) -> None:
        self.processor = processor
        self.path = path
        self._handle = ctypes.CDLL(str(path))
        self._kernels = kernels

    def find(self, name: str, kind: str) -> Variant | None:
        """The kernel of this name for arguments of this kind, if the library has it."""
        found = self._kernels.get(f"{name} {kind}")
        if found is None:
            return None
        symbol, returned = found
        function = self._handle[symbol]
        function.argtypes, function.restype = [ctypes.c_void_p], None
        return Variant(name, function, n_words(kind), returned)


class Variant(NamedTuple):
    """A kernel for arguments of one kind."""

    name: str
    function: Any
    n_words: int  # of the arguments; behind them the status, then what is returned
    returned: str  # its kind

    @property
    def address(self) -> int:
        """Where its machine code is."""
        return ctypes.cast(self.function, ctypes.c_void_p).value or 0

    def call(self, *arguments: Any) -> Any:
        """Call it once."""
        return self.prepared(arguments).run()

    def prepared(self, arguments: tuple[Any, ...]) -> Prepared:
        """Its arguments as words, to be called with many times."""
        return Prepared(self, arguments)


class Unset(NamedTuple):
    """An argument that is to come, of this kind."""

    kind: str


class Prepared:
    """A kernel with its arguments as words. It keeps the arguments."""

    def __init__(self, variant: Variant, arguments: tuple[Any, ...]) -> None:
        self.variant = variant
        self.arguments = arguments
        size = variant.n_words + 1 + n_words(variant.returned)
        self.words = (ctypes.c_uint64 * size)()
        self.address = ctypes.addressof(self.words)
        self.places: list[int] = []  # of each argument's first word
        self._function, self._returned = variant.function, variant.returned
        at = 0
        for argument in arguments:
            self.places.append(at)
            at += self._put(at, argument)
        self.status = at

    def _put(self, at: int, argument: Any) -> int:
        if isinstance(argument, Unset):
            return n_words(argument.kind)
        form, leaves = "", list[Any]()
        for letters, words in _leaves(argument):
            form += letters
            leaves += words
        struct.pack_into(form, self.words, 8 * at, *leaves)
        return len(leaves)

    def put(self, number: int, argument: Any) -> None:
        """Another argument of the same kind in place `number`. Whoever calls this keeps it until the call."""
        if type(argument) is np.uint64:
            self.words[self.places[number]] = int(argument)
        else:
            self._put(self.places[number], argument)

    def run(self) -> Any:
        """Call the kernel and read what it returns."""
        self._function(self.address)
        words, status, returned = self.words, self.status, self._returned
        if words[status]:
            raise RuntimeError(f"{self.variant.name} failed with status {words[status]}")
        if returned == "b":
            return words[status + 1] != 0
        return None if returned == "n" else self._read(parsed(returned), status + 1)[0]

    def _read(self, part: Any, at: int) -> tuple[Any, int]:
        if isinstance(part, _Tuple):
            values = []
            for inner in part.parts:
                value, at = self._read(inner, at)
                values.append(value)
            return (part.make(*values) if part.make is not None else tuple(values)), at
        if part == "n":
            return None, at + 1
        if part in _SCALARS:
            return struct.unpack_from(_SCALARS[part], self.words, 8 * at)[0], at + 1
        return self._array(part, at), at + n_words(part)

    def _array(self, kind: str, at: int) -> Any:
        dtype, ndim = np.dtype(kind[0]), int(kind[1])
        owner, address = self.words[at], self.words[at + 4]
        shape = struct.unpack_from(f"{ndim}q", self.words, 8 * (at + 5))
        strides = struct.unpack_from(f"{ndim}q", self.words, 8 * (at + 5 + ndim))
        if owner:
            size = dtype.itemsize * int(np.prod(shape))
            copied = np.frombuffer(ctypes.string_at(address, size), dtype).reshape(shape).copy()
            _release(owner)
            return copied
        for array in _arrays(self.arguments):  # a part of an argument: it keeps that alive
            begin = array.__array_interface__["data"][0]
            if begin <= address <= begin + array.nbytes and array.nbytes:
                return np.ndarray(shape, dtype, array.data, address - begin, strides)
        return np.empty(shape, dtype)


def _release(owner: int) -> None:
    # One holder less of memory that a kernel allocated. Its first word counts them: of a tuple, two parts may share it.
    holders = ctypes.c_int64.from_address(owner)
    holders.value -= 1
    if holders.value == 0:
        free = ctypes.CDLL(None).free
        free.argtypes, free.restype = [ctypes.c_void_p], None
        free(owner)


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif isinstance(value, np.ndarray):
        yield value


_SCALARS = {"b": "?", "i": "q", "u": "Q", "f": "d"}


def _leaves(value: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, np.ndarray):
        address = value.__array_interface__["data"][0]
        yield (
            f"{5 + 2 * value.ndim}q",
            (0, 0, value.size, value.itemsize, address, *value.shape, *value.strides),
        )
    elif value is None:
        yield "q", (0,)
    elif isinstance(value, float):
        yield "d", (value,)
    elif isinstance(value, np.uint64):
        yield "Q", (value,)
    else:
        yield "q", (int(value),)


def kind_of(value: Any) -> str:
    """The kind of a value, in text: of arrays the type of entry, the number of dimensions and their order."""
    kind = type(value)
    if kind is np.ndarray:
        flags = value.flags
        layout = "C" if flags.c_contiguous and flags.aligned else "A"
        return f"{value.dtype.char}{value.ndim}{layout}"
    if kind in _KINDS:
        return _KINDS[kind]
    if kind is Unset:
        return str(value.kind)
    if isinstance(value, tuple):
        name = "" if kind is tuple else f"{kind.__module__}:{kind.__qualname__}"
        return f"{name}({','.join(map(kind_of, value))})"
    return UNKNOWN


UNKNOWN = "*"  # what no kernel of the library takes
_KINDS: dict[Any, str] = {
    int: "i",
    np.int64: "i",
    np.uint64: "u",
    float: "f",
    np.float64: "f",
    bool: "b",
    np.bool_: "b",
    type(None): "n",
}


class _Tuple(NamedTuple):
    make: Callable[..., Any] | None  # a class with names; None for a plain tuple
    parts: list[Any]


@functools.cache
def parsed(kind: str) -> Any:
    """A kind as a tree."""
    if not kind.endswith(")"):
        return kind
    name, _, inside = kind[:-1].partition("(")
    make = None
    if name:
        module, _, cls = name.partition(":")
        make = getattr(importlib.import_module(module), cls)
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(inside):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(parsed(inside[start:i]))
            start = i + 1
    if inside:
        parts.append(parsed(inside[start:]))
    return _Tuple(make, parts)


@functools.cache
def n_words(kind: str) -> int:
    """How many words a value of this kind takes."""
    return _count(parsed(kind))


def _count(part: Any) -> int:
    if isinstance(part, _Tuple):
        return sum(map(_count, part.parts))
    return 1 if len(part) == 1 else 5 + 2 * int(part[1])
