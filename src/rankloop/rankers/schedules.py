"""Step sizes and exploration rates that decrease with the rounds: scale * t**-power."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankloop.arguments import one_of
from rankloop.base import Floats
from rankloop.kernels import elementary


class Schedule(NamedTuple):
    """scale * t**-power at round t, counted from 1.

    >>> Schedule(0.1, 1 / 3).at(8)
    0.05
    """

    scale: float
    power: float = 0.0

    def at(self, t: int) -> float:
        """The value at round t."""
        return float(self.scale * elementary.power(t, -self.power))


class Smoothing(NamedTuple):
    """RTop-kF's epsilon: a schedule or None, where it ends, and whether it follows the width of the scores."""

    epsilon: Schedule | None
    floor: float
    relative: bool


def read_schedule(name: str, given: float | tuple[float, float], *, positive: bool = True) -> Schedule:
    """A number stays as it is; a pair is scale and power."""
    pair = given if isinstance(given, tuple | list) else (given, 0.0)
    good = len(pair) == 2 and all(isinstance(part, int | float | np.number) for part in pair)
    scale, power = pair if good else (np.nan, np.nan)
    if not (
        np.isfinite(scale) and np.isfinite(power) and power >= 0 and (scale > 0 if positive else scale >= 0)
    ):
        raise ValueError(
            f"{name} must be a positive number, or a pair (scale, power) for scale * t**-power, got {given!r}"
        )
    return Schedule(float(scale), float(power))


def is_adaptive(learning_rate: Any) -> bool:
    """Whether the steps are AdaGrad's."""
    return isinstance(learning_rate, str) and learning_rate == "adagrad"


def read_steps(learning_rate: str | float | tuple[float, float]) -> Schedule | None:
    """The schedule of the steps; None for AdaGrad's."""
    if isinstance(learning_rate, str):
        one_of("learning_rate", learning_rate, ("adagrad",))
        return None
    return read_schedule("learning_rate", learning_rate)


def read_papers_schedule(
    name: str,
    given: str | float | tuple[float, float],
    camera_ready: Schedule,
    power: float,
    horizon: int | None,
) -> Schedule:
    """A schedule of one's own, or one of the two that RTop-kF was published with."""
    if not isinstance(given, str):
        return read_schedule(name, given)
    one_of(name, given, ("camera-ready", "preprint"))
    if given == "camera-ready":
        return camera_ready
    if horizon is None:
        raise ValueError(f"{name}='preprint' is a constant made from T: it needs a horizon, got None")
    return Schedule(float(elementary.power(horizon, -power)))


def check_scaled_weights(saved: Any, radius: float, start: Floats) -> None:
    """ValueError unless AdaGrad can have left such a state."""
    if saved["t"][0] < 0:
        raise ValueError(f"saved state 't' must not be negative, got {saved['t'][0]}")
    for name in ("squares", "scale"):
        if not ((saved[name] >= 0) & np.isfinite(saved[name])).all():
            raise ValueError(f"saved state {name!r} must be finite and not negative, got {saved[name]}")
    # A weight far from 0 beside its radius is rounded, by a part of itself.
    most = radius * (1 + 1e-9) + 1e-12 * np.abs(start) * saved["scale"]
    if not (np.abs(saved["w"] - start) * saved["scale"] <= most).all():
        raise ValueError(
            f"saved state 'w' must be within {radius:g} of its start, times 'scale', got {saved['w']}"
        )


def check_weights(saved: Any, radius: float) -> None:
    """ValueError unless saved weights are in the ball and the rounds are not negative."""
    if saved["t"][0] < 0:
        raise ValueError(f"saved state 't' must not be negative, got {saved['t'][0]}")
    if np.linalg.norm(saved["w"]) > radius * (1 + 1e-9):
        raise ValueError(f"saved state 'w' must be in the ball of radius {radius:g}, got {saved['w']}")
