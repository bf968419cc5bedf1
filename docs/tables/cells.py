"""Tables in Markdown whose cells are a mean and its standard error."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from rankloop import simulation
from rankloop.base import Environment, Ranker

Pair = Callable[[], tuple[Ranker, Environment]]


def regrets(pair: Pair, *, rounds: int, seeds: Iterable[int]) -> list[float]:
    """Regret of each run against the best fixed list of all its rounds."""
    traces = simulation.play_many(pair, rounds=rounds, seeds=seeds, points=10, progress=False)
    return [trace.total_regret for trace in traces]


def cell(values: Sequence[float], *, digits: int = 0) -> str:
    """Mean and standard error."""
    error = np.std(values, ddof=1) / len(values) ** 0.5
    # Adding 0.0 after rounding turns a negative zero into zero.
    mean = round(float(np.mean(values)), digits) + 0.0
    return f"{mean:,.{digits}f} ± {error:,.{digits}f}".replace("-", "−")


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with its first column to the left and the others to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])
