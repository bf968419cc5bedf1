"""The contracts: rankings, rankers, environments, and the five rules they keep.

1. `rank` changes nothing but `rng`; many rankings may be open at once.
2. `learn` works from a ticket that was saved and loaded in another process; late and out of order is normal.
3. All mutable state is in `state`; parameters are not state; `load` goes into a ranker built with the same arguments.
4. Randomness is an argument; the same seed gives the same run, on any machine.
5. One signature for all; `context=None` where there is none.

`rankloop.checks` tests each rule on any class that follows these contracts.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import inspect
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers, one_of, whole
from rankloop.extras import card
from rankloop.ranges import Range
from rankloop.servable import Servable

Array = NDArray[Any]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Memo = tuple[Array, ...]


def draw_key(rng: np.random.Generator) -> np.uint64:
    """One 64-bit word of `rng`; a kernel expands it into as many numbers as it needs."""
    return np.uint64(generator(rng).bit_generator.random_raw())


def generator(rng: Any) -> np.random.Generator:
    """Read the argument `rng`."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a generator, such as np.random.default_rng(1), got {rng!r}")
    return rng


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """A ranking that was shown: the ticket that `learn` needs to use its feedback.

    Parameters
    ----------
    items : ndarray of int
        Item indices, best position first; positions count from 0.
    propensities : ndarray of float, optional
        Exact probability with which each shown (item, position) was shown; None where the ranking is
        deterministic or the probability has no closed form.
    memo : Memo, optional
        Written and read only by the ranker that issued it; plain arrays.
    explored : bool, optional
        Whether this ranking was shown to find something out rather than to please.
    """

    items: NDArray[np.int64]
    propensities: NDArray[np.float64] | None = None
    memo: Memo = ()
    explored: bool = False

    def save(self) -> dict[str, Array]:
        """The ticket as named arrays, ready for `np.savez`."""
        saved: dict[str, Array] = {"items": self.items, "explored": np.asarray(self.explored)}
        if self.propensities is not None:
            saved["propensities"] = self.propensities
        return saved | {f"memo.{i}": part for i, part in enumerate(self.memo)}

    @classmethod
    def load(cls, saved: Mapping[str, Array]) -> Ranking:
        """The ticket that `save` wrote, from the arrays `saved`."""
        n_parts = sum(name.startswith("memo.") for name in saved)
        for name in ("items", "explored", *(f"memo.{i}" for i in range(n_parts))):
            if name not in saved:
                raise ValueError(f"saved ticket has no {name!r}, only {sorted(saved)}")
        items = numbers("items", saved["items"])
        if items.ndim != 1 or (items != np.floor(items)).any():
            raise ValueError(f"items must be a list of item numbers, got {saved['items']!r}")
        return cls(
            items=items.astype(np.int64),
            propensities=np.asarray(saved["propensities"], np.float64) if "propensities" in saved else None,
            memo=tuple(np.asarray(saved[f"memo.{i}"]) for i in range(n_parts)),
            explored=bool(saved["explored"]),
        )


def with_sentences(kind: type) -> None:
    """Let the methods `rank` and `learn` that a class defines check their arguments first."""
    for name, checked in (("rank", _rank), ("learn", _learn)):
        method = vars(kind).get(name)
        if method is not None and not getattr(method, "__isabstractmethod__", False):
            setattr(kind, name, checked(method))


def _rank(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def rank(self: Any, *args: Any, rng: Any = None, **kwargs: Any) -> Any:
        return method(self, *args, rng=generator(rng), **kwargs)

    return rank


def _learn(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def learn(self: Any, ranking: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(ranking, Ranking):
            raise ValueError(f"ranking must be a Ranking that rank() returned, got {ranking!r}")
        return method(self, ranking, *args, **kwargs)

    return learn


_LONGEST = 100  # numbers of an array that are written out


class Constructed:
    """Remembers what it was constructed with; `Ranker` and `Environment` inherit it, and so does every subclass."""

    _given: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _remembering(cls.__init__)  # type: ignore[method-assign]

    def get_params(self) -> dict[str, Any]:
        """The arguments of the constructor: those that were given, and the defaults of the others.

        Examples
        --------
        >>> from rankloop.rankers import Uniform
        >>> Uniform(n_items=4).get_params()
        {'n_items': 4, 'n_positions': None}
        """
        known = inspect.signature(type(self)).parameters
        arguments = vars(self).get("_given", {})
        params = {}
        for name, parameter in known.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                params.update(arguments.get(name, {}))
            elif name in arguments:
                params[name] = arguments[name]
            elif parameter.default is not inspect.Parameter.empty:
                params[name] = parameter.default
        return params

    def clone(self) -> Self:
        """A fresh one with the same arguments, in its initial state.

        Examples
        --------
        >>> from rankloop.rankers import Uniform
        >>> Uniform(n_items=4).clone()
        Uniform(n_items=4)
        """
        call = inspect.signature(type(self)).bind_partial()
        call.arguments.update({name: _kept(value) for name, value in vars(self).get("_given", {}).items()})
        return type(self)(*call.args, **call.kwargs)

    def __repr__(self) -> str:
        arguments = vars(self).get("_given", {})
        shown = ", ".join(f"{name}={_written(value)}" for name, value in arguments.items())
        return f"{type(self).__name__}({shown})"

    def _facts(self) -> dict[str, object]:
        arguments = vars(self).get("_given", {})
        return {name: _written(value) for name, value in arguments.items()}

    def _repr_html_(self) -> str:
        return card(type(self).__name__, self._facts())


def plain(value: Any) -> Any:
    """Write an argument as JSON can hold it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biufU":
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: plain(part) for name, part in value.items()}
    if hasattr(value, "as_argument"):
        return plain(value.as_argument())
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def import_path(kind: type) -> str:
    """Where a class is found: `package.module:Class`, by the shortest package that exports it.

    Examples
    --------
    >>> from rankloop.rankers.ftrl_pbm import FTRLPBM
    >>> import_path(FTRLPBM)
    'rankloop.rankers:FTRLPBM'
    """
    parts = kind.__module__.split(".")
    for n in range(1, len(parts)):
        package = ".".join(parts[:n])
        if getattr(sys.modules.get(package), kind.__qualname__, None) is kind:
            return f"{package}:{kind.__qualname__}"
    return f"{kind.__module__}:{kind.__qualname__}"


def _remembering(init: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(init)

    @functools.wraps(init)
    def remember(self: Any, *args: Any, **kwargs: Any) -> None:
        # A constructor that calls its parent's comes here first, and its own arguments are the ones that count.
        if "_given" not in vars(self):
            try:
                arguments = signature.bind(self, *args, **kwargs).arguments
            except TypeError:
                arguments = {}  # the call below says what is wrong with them
            self._given = {name: _kept(value) for name, value in list(arguments.items())[1:]}
        init(self, *args, **kwargs)

    return remember


def _kept(value: Any) -> Any:
    # A copy of what the caller might change later.
    if isinstance(value, np.ndarray):
        return value.copy() if value.flags.writeable else value
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(_kept(part) for part in value)
    if type(value) is dict:
        return {name: _kept(part) for name, part in value.items()}
    return value


def _written(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        if value.size <= _LONGEST:
            return repr(value.tolist())
        return f"<{'x'.join(map(str, value.shape))} {value.dtype}>"
    if isinstance(value, np.generic):
        return repr(value.item())
    if type(value) in (list, tuple) and len(value) > _LONGEST:
        return f"<{type(value).__name__} of {len(value):,}>"
    if type(value) in (list, tuple) and any(isinstance(part, np.ndarray | np.generic) for part in value):
        inside = ", ".join(map(_written, value)) + ("," if type(value) is tuple and len(value) == 1 else "")
        return f"[{inside}]" if type(value) is list else f"({inside})"
    if hasattr(value, "as_argument"):
        return repr(value.as_argument())
    return " ".join(repr(value).split())


# A saved ranker is a file of named arrays: its state, and its class and arguments as JSON. Never pickle.
Arrays = Mapping[str, NDArray[Any]]
ORIGIN = "ranker.json"  # beside the arrays; a field of a NamedTuple cannot be called so


def state_origin(ranker: Constructed) -> NDArray[np.str_]:
    """Class and arguments of a ranker, as an array that `np.savez` takes."""
    parameters, left_out = {}, {}
    for name, value in ranker.get_params().items():
        try:
            parameters[name] = plain(value)
        except TypeError:
            left_out[name] = type(value).__name__
    origin = {"class": import_path(type(ranker)), "parameters": parameters, "left_out": left_out}
    return np.array(json.dumps(origin))


def read_origin(saved: Arrays) -> dict[str, Any] | None:
    """Class and arguments from a saved ranker."""
    if ORIGIN not in saved:
        return None
    try:
        origin = json.loads(str(saved[ORIGIN]))
        if isinstance(origin["class"], str) and all(
            isinstance(origin[part], dict) for part in ("parameters", "left_out")
        ):
            return dict(origin)
    except (ValueError, TypeError, KeyError):
        pass
    raise ValueError(
        f"saved state {ORIGIN!r} must hold a class and its parameters, got {saved[ORIGIN]!s:.100}"
    )


def check_origin(saved: Arrays, ranker: Constructed) -> None:
    """Refuse the state of a ranker of another class or with other arguments."""
    origin = read_origin(saved)
    if origin is None:
        return
    here = json.loads(str(state_origin(ranker)))
    mine, theirs = (path.rpartition(":")[2] for path in (here["class"], origin["class"]))
    if mine != theirs:
        raise ValueError(f"saved state is of {theirs}, this ranker is {mine}")
    for name, value in origin["parameters"].items():
        if name in here["left_out"]:
            continue
        if name not in here["parameters"]:
            raise ValueError(
                f"saved state is of {mine} with {name}={value!r}, which {mine} here does not have"
            )
        if here["parameters"][name] != value:
            raise ValueError(
                f"saved state is of {mine} with {name}={value!r}, this ranker has {name}={here['parameters'][name]!r}"
            )


def write_state(path: str | os.PathLike[str], arrays: Arrays) -> None:
    """Write arrays to a file in NumPy's npz format, whole or not at all."""
    path = Path(path)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(draft).chmod(0o666 & ~umask)  # as any new file; mkstemp makes it private
        Path(draft).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise


def read_state(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The arrays that `write` wrote."""
    try:
        with np.load(path, allow_pickle=False) as saved:
            return {name: saved[name] for name in saved.files}
    except (ValueError, EOFError, zipfile.BadZipFile, TypeError) as error:
        # NumPy takes any other file for a pickle, and tells how to load it all the same.
        why = "it is no .npz file" if "allow_pickle" in str(error) else str(error)
        raise ValueError(f"{os.fspath(path)}: not a saved ranker: {why}") from error


__all__ = [
    "Array",
    "Environment",
    "Feedback",
    "Memo",
    "Ranker",
    "Ranking",
    "draw_key",
    "numbers",
    "one_of",
    "whole",
]


class Feedback(abc.ABC):
    """What a user reveals of a shown list. Concrete kinds live in `rankloop.feedback`."""

    kind: ClassVar[str]  # "clicks" are 0 or 1

    @abc.abstractmethod
    def length(self, n_positions: int) -> int:
        """How many positions, from the top, are revealed of a list with `n_positions`."""

    def check(self, revealed: ArrayLike, n_positions: int) -> NDArray[np.float64]:
        """What was `revealed` of `n_positions` positions, as numbers, one for each; ValueError if it is not that."""
        array = numbers("feedback", revealed)
        expected = self.length(n_positions)
        if array.shape != (expected,):
            raise ValueError(
                f"feedback has shape {array.shape}, {self} of {n_positions} positions needs ({expected},)"
            )
        if not np.isfinite(array).all() or (array < 0).any():
            raise ValueError(f"feedback must be finite and not negative, got {array}")
        if self.kind == "clicks" and not ((array == 0.0) | (array == 1.0)).all():
            raise ValueError(f"feedback must be 0 (no click) or 1 (click), got {array}")
        return array


class Ranker(Constructed, Servable, abc.ABC):
    """Shows rankings and learns from feedback."""

    feedback: Feedback
    state: Any  # a NamedTuple of arrays
    n_positions: int | None  # None where each request brings a list of its own, with features
    n_items: int | None = None  # to choose from for those positions; None where each request brings its own
    n_features: int | None = None  # of an item in such a list, where it must be known
    takes_sparse: ClassVar[bool] = (
        False  # whether the features of a request may be sparse, `features.SparseRows`
    )
    max_grade: int | None = None  # the largest relevance that it was built for, where that matters
    informed: bool = False  # whether its arguments give the order to begin with; otherwise as numbered
    portable: ClassVar[bool] = True  # whether its state has the same bytes on every machine

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        with_sentences(cls)

    @abc.abstractmethod
    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        """A ranking for one request. Reads state; its only effect is to advance `rng`.

        Parameters
        ----------
        context : object, optional
            The request: a row of features for each candidate, or None where items are the same for everybody.
        rng : numpy.random.Generator
            Where the randomness comes from.
        """

    @abc.abstractmethod
    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        """Update state with the feedback on `ranking`.

        Parameters
        ----------
        ranking : Ranking
            The ranking that was shown, perhaps saved and loaded in between.
        feedback : array_like
            What came back, by position: as many numbers as `self.feedback` reveals.
        """

    @abc.abstractmethod
    def current(self, context: Any = None) -> NDArray[np.int64]:
        """The order that it estimates to be best now, without exploration or perturbation.

        Of items that it estimates to be equally good, the one with the smaller number comes first. The request
        `context` is as for `rank`.
        """

    def state_arrays(self) -> dict[str, Array]:
        """A copy of every mutable thing, as named arrays."""
        return {name: np.array(value) for name, value in self.state._asdict().items()}

    @overload
    def save(self) -> dict[str, Array]: ...

    @overload
    def save(self, path: str | os.PathLike[str]) -> None: ...

    def save(self, path: str | os.PathLike[str] | None = None) -> dict[str, Array] | None:
        """Save state, class and arguments: to a file, or as named arrays that are ready for `np.savez`.

        Parameters
        ----------
        path : str or os.PathLike, optional
            The file, in NumPy's npz format. It is written whole or not at all; `rankloop.load(path)` reads it.

        Returns
        -------
        dict of str to numpy.ndarray or None
            The arrays where no path is given.
        """
        saved = self.state_arrays() | {ORIGIN: state_origin(self)}
        if path is None:
            return saved
        write_state(path, saved)
        return None

    def load(self, saved: Mapping[str, Array] | str | os.PathLike[str]) -> None:
        """Take over the state that a ranker built with the same arguments saved.

        Parameters
        ----------
        saved : mapping of str to numpy.ndarray, str or os.PathLike
            What `save` of a ranker built with the same arguments gave.

        Raises
        ------
        ValueError
            Where it was saved by another class or with other arguments, or holds no state of this ranker. Nothing
            changes then.
        """
        if isinstance(saved, str | os.PathLike):
            saved = read_state(saved)
        check_origin(saved, self)
        fields = self.state._asdict()
        if set(saved) - {ORIGIN} != set(fields):
            raise ValueError(f"saved state has {sorted(saved)}, {type(self).__name__} needs {sorted(fields)}")
        for name, value in fields.items():
            if np.shape(saved[name]) != value.shape or np.asarray(saved[name]).dtype != value.dtype:
                raise ValueError(
                    f"saved state {name!r} is {np.asarray(saved[name]).dtype}{np.shape(saved[name])}, "
                    f"this {type(self).__name__} holds {value.dtype}{value.shape}: built with other arguments?"
                )
            if not np.isfinite(saved[name]).all():
                raise ValueError(f"saved state {name!r} must be finite, got {saved[name]}")
        self.check_state(saved)
        for name, value in fields.items():
            value[...] = saved[name]

    def check_state(self, saved: Mapping[str, Array]) -> None:
        """ValueError where arrays of the right shape, `saved`, hold values that no state of this ranker can have."""
        return

    def tunable(self) -> Mapping[str, Range]:
        """The arguments that `simulation.tune` may search, each with a range that suits the others; none by default."""
        return {}

    def counters(self) -> dict[str, int]:
        """Counters for the trace, such as how often a solver fell back."""
        return {}

    def _facts(self) -> dict[str, object]:
        if self.n_positions is None:
            ranks = "lists that requests bring, by their features"
        else:
            ranks = f"{self.n_positions:,} of {self.n_items or self.n_positions:,} items"
        return super()._facts() | {"ranks": ranks, "learns from": self.feedback}

    def example_context(self, rng: np.random.Generator) -> Any:
        """A request such as this ranker takes, drawn from `rng`, for the checks."""
        return None


class Environment(Constructed, abc.ABC):
    """Users with known preferences."""

    reveals: ClassVar[str]  # the kind of feedback that `respond` gives
    measure: str
    is_loss: bool
    n_positions: int  # of the longest list
    n_items: int | None = (
        None  # to choose from for those positions; None where requests bring lists of their own
    )
    n_features: int | None = None  # of an item, where requests bring lists of their own
    sparse: bool = False  # whether those features come as `features.SparseRows`
    names_queries: bool = False  # whether requests say which query and documents they are about
    n_shown: int | None = None  # how many positions of such a list users see; None for all
    max_grade: int  # the largest relevance that `respond` gives
    reacts: ClassVar[bool] = False  # whether `respond` remembers what was shown; else only `arrive` moves on

    @property
    def remaining(self) -> int | None:
        """How many users are still to come; None where they never end."""
        return None

    @abc.abstractmethod
    def arrive(self, *, rng: np.random.Generator) -> Any:
        """The next request, drawn from `rng`: the context that `rank` gets."""

    @abc.abstractmethod
    def respond(self, ranking: Ranking, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """All that this user could reveal of the shown `ranking`, by position; the feedback model cuts it.

        Randomness comes from `rng`.
        """

    @abc.abstractmethod
    def value(self, ranking: Ranking) -> float:
        """The true value of this `ranking` for this user, never revealed to the ranker."""

    @abc.abstractmethod
    def best(self, context: Any = None) -> Ranking:
        """An optimal ranking, for the request `context` where it matters."""

    @abc.abstractmethod
    def hindsight(self) -> float:
        """Total value of the best fixed ranking since `start_counting`; NaN where it cannot be computed."""

    @abc.abstractmethod
    def start_counting(self) -> None:
        """Start counting for `hindsight` here. The users to come do not change."""

    @abc.abstractmethod
    def restart(self) -> None:
        """Start again with the first user."""

    def _facts(self) -> dict[str, object]:
        shown = f"{self.n_positions:,} positions" + (
            "" if self.n_items is None else f", {self.n_items:,} items"
        )
        measured = f"{self.measure}, {'smaller' if self.is_loss else 'larger'} is better"
        return super()._facts() | {"shows": shown, "reveals": self.reveals, "measured by": measured}
