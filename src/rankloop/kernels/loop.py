"""One compiled loop for each pair of ranker and environment kernels, kept on disk.

numba does not cache a function that takes other functions as arguments. One that finds them by name in its module
does cache, so each pair gets a module: the loop, with imports in place of its kernel arguments, written beside the
compiled kernels and named after everything it depends on.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rankloop.kernels.jit import CACHE, counts_references, loop

# The loop over rounds, once: it takes a ranker's and an environment's kernels and plays them without Python.


@loop
def play_rounds(
    rank: Any,
    learn: Any,
    arrive: Any,
    respond: Any,
    value: Any,
    hindsight: Any,
    ranker_params: Any,
    ranker_state: Any,
    scratch: Any,
    environment_params: Any,
    environment_state: Any,
    ranker_words: Any,  # one word a round
    environment_words: Any,  # two words a round
    ticket: Any,  # (items, propensities, memo)
    revealed: Any,
    record: Any,  # rounds to record, counted from 1, rising
    out: Any,  # (value, total, hindsight, explored), one entry each per recorded round
    t: int,
    place: int,
    total: float,
    window: float,
    explored: int,
) -> Any:
    """Play one round for each word from round `t` on; returns (t, place, total, window, explored) to go on from."""
    items, propensities, memo = ticket
    value_out, total_out, hindsight_out, explored_out = out
    window_start = record[place - 1] if place > 0 else 0
    for i in range(len(ranker_words)):
        context = arrive(environment_params, environment_state, environment_words[2 * i])
        explored += rank(
            ranker_params, ranker_state, context, ranker_words[i], scratch, items, propensities, memo
        )
        this_value = value(environment_params, environment_state, items)
        respond(environment_params, environment_state, items, environment_words[2 * i + 1], revealed)
        learn(ranker_params, ranker_state, context, scratch, items, propensities, memo, revealed)
        total += this_value
        window += this_value
        t += 1
        if t == record[place]:
            value_out[place] = window / (t - window_start)
            total_out[place] = total
            hindsight_out[place] = hindsight(environment_params, environment_state)
            explored_out[place] = explored
            window = 0.0
            window_start = t
            place += 1
    return t, place, total, window, explored


_ONE_AT_A_TIME = threading.Lock()
_ROLES = ("rank", "learn", "arrive", "respond", "value", "hindsight")


def fused(*kernels: Any) -> Callable[..., Any]:
    """The loop over rounds with these kernels (rank, learn, arrive, respond, value, hindsight) built in."""
    with _ONE_AT_A_TIME:
        return _fused(*kernels)


@functools.cache
def _fused(*kernels: Any) -> Callable[..., Any]:
    if not hasattr(play_rounds, "py_func"):
        return functools.partial(play_rounds, *kernels)  # numba is switched off, for a debugger
    sources = [_import_line(kernel, role) for kernel, role in zip(kernels, _ROLES, strict=True)]
    if None in sources:
        return functools.partial(play_rounds, *kernels)
    way = "kernel" if any(map(counts_references, kernels)) else "apart"
    text = "\n".join(
        [
            "from typing import Any",
            *map(str, sources),
            f"from rankloop.kernels.jit import {way} as compiled",
            _named_loop(),
        ]
    )
    try:
        module = _write_and_import(text, _digest(text, kernels))
    except OSError:
        return functools.partial(play_rounds, *kernels)  # nowhere to write: compile in every process
    loop: Callable[..., Any] = module.play_rounds
    return loop


def _named_loop() -> str:
    text = inspect.getsource(play_rounds.py_func).replace("@loop", "@compiled")  # type: ignore[attr-defined]
    for role in _ROLES:
        text = text.replace(f"    {role}: Any,\n", "")
    return text


def _import_line(kernel: Any, role: str) -> str | None:
    function = kernel.py_func
    module = sys.modules.get(function.__module__)
    if function.__module__ == "__main__" or getattr(module, function.__name__, None) is not kernel:
        return None  # made inside another function: no name to import it by
    return f"from {function.__module__} import {function.__name__} as {role}"


def _digest(text: str, kernels: tuple[Any, ...]) -> str:
    digest = hashlib.sha256(text.encode())
    for file in sorted({kernel.py_func.__code__.co_filename for kernel in kernels}):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:16]


def _write_and_import(text: str, digest: str) -> Any:
    name = f"rankloop_loop_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    path = CACHE / "loops" / f"{name}.py"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as part:
            part.write(text)
        Path(part.name).replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise OSError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
