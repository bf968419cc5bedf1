"""Pairs of rankers compared run by run on common seeds."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from rankloop.arguments import one_of
from rankloop.simulation.significance import TESTS, holm, mean_interval

if TYPE_CHECKING:
    from rankloop.simulation.comparison import Comparison


class Difference(NamedTuple):
    """Two rankers in one world: the first one's measure minus the second one's, NaN where a single seed tells nothing.

    `p_holm` is corrected for all pairs that were asked for together; `better` is empty where the difference is not
    significant.
    """

    world: str
    ranker: str
    other: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    better: str


def smaller_is_better(found: Comparison, world: str, measure: str) -> bool:
    """Whether a smaller value is the better one: of the regret, and of losses."""
    return measure == "regret" or found.traces[world, next(iter(found.rankers))][0].is_loss


def paired_differences(
    found: Comparison, measure: str, *, against: str | None, test: str, place: int
) -> list[Difference]:
    """Every pair of rankers, or those `against` one, in every world, at one of the recorded rounds."""
    one_of("test", test, TESTS)
    if against is None:
        named = list(itertools.combinations(found.rankers, 2))
    else:
        one_of("against", against, found.rankers)
        named = [(name, against) for name in found.rankers if name != against]
    asked, tested = [], []
    for world in found.worlds:
        ends = {name: found.values(world, name, measure)[:, place] for name in found.rankers}
        for ranker, other in named:
            gaps = ends[ranker] - ends[other]
            mean, low, high = map(float, mean_interval(gaps, level=found.level))
            asked.append((world, ranker, other))
            tested.append((mean, low, high, TESTS[test](gaps)))
    result = []
    for names, numbers, p_holm in zip(asked, tested, holm([p for *_, p in tested]), strict=True):
        world, ranker, other = names
        better = ""
        if p_holm < 1.0 - found.level:  # never of NaN
            first = (numbers[0] < 0.0) == smaller_is_better(found, world, measure)
            better = ranker if first else other
        result.append(Difference(*names, *numbers, p_holm, better))
    return result
