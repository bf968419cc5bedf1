"""Successive halving: many settings play a few runs, the better ones more, until one is left."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankloop.ranges import Range

Arguments = dict[str, Any]


def draw_settings(ranges: Mapping[str, Range], count: int, *, seed: int) -> list[Arguments]:
    """Settings that cover every range evenly: each of `count` equal parts of a range is drawn from once.

    >>> from rankloop.ranges import Between, OneOf
    >>> drawn = draw_settings({"k": OneOf(1, 2), "radius": Between(1, 100)}, 4, seed=0)
    >>> sorted(setting["k"] for setting in drawn)
    [1, 1, 2, 2]
    """
    shares = {}
    for place, name in enumerate(sorted(ranges)):
        rng = np.random.default_rng([seed, place])
        even = (rng.permutation(count) + rng.random(count)) / count
        shares[name] = np.minimum(even, np.nextafter(1.0, 0.0)).tolist()
    return [{name: ranges[name].at(shares[name][i]) for name in ranges} for i in range(count)]


def ladder(count: int, factor: int) -> list[tuple[int, int]]:
    """How many settings play in each rung, and how many runs each of them has by its end.

    >>> ladder(16, 2)
    [(16, 1), (8, 2), (4, 4), (2, 8)]
    """
    rungs, runs = [], 1
    while count > 1:
        rungs.append((count, runs))
        count, runs = math.ceil(count / factor) if count > factor else 1, runs * factor
    return rungs


def best(values: Mapping[int, Sequence[float]], count: int, *, is_loss: bool) -> list[int]:
    """The `count` settings with the best means, best first; of equal ones those with the smaller number.

    >>> best({0: [0.5], 1: [0.9], 2: [0.9]}, 2, is_loss=False)
    [1, 2]
    """
    sign = 1.0 if is_loss else -1.0
    means = {setting: sign * math.fsum(found) / len(found) for setting, found in values.items()}
    return sorted(means, key=lambda setting: (means[setting], setting))[:count]
