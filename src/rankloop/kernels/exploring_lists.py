"""Lists that explore at a few positions only.

The first `kept` items are as in the greedy order, the next `drawn` are drawn at random from the others, and the rest
stays in greedy order, so that such a list costs little. With all positions drawn it is a random order.
"""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import inlined, kernel
from rankloop.kernels.random import draw


@inlined
def explore(
    key: Any, first: int, order: Any, n: int, kept: int, drawn: int, places: Any, marks: Any, items: Any
) -> None:
    """Write such a list, or as much as fits, to `items`, and to `places` where its items stand in the greedy order."""
    for place in range(n):
        marks[place] = 0
        places[place] = place
    draw(key, first, n - kept, drawn, places[kept:])
    for position in range(kept, kept + drawn):
        places[position] += kept
        marks[places[position]] = 1
    position = kept + drawn
    for place in range(kept, n):
        if marks[place] == 0:
            places[position] = place
            position += 1
    for position in range(min(n, len(items))):
        items[position] = order[places[position]]


@inlined
def chance(n: int, kept: int, drawn: int, place: int, position: int) -> Any:
    """The probability that such a list has at `position` the item at `place` of the greedy order."""
    if place < kept or position < kept:
        return 1.0 if place == position else 0.0
    rest = n - kept
    if position < kept + drawn:
        return 1.0 / rest
    # The item moved back by `drawn`, less by one for each item before it that was drawn: a hypergeometric number.
    before = place - kept
    fewer = drawn + place - position
    if fewer < 0 or fewer > drawn or fewer > before or drawn - fewer > rest - 1 - before:
        return 0.0
    found = 1.0
    for i in range(drawn):
        if i < fewer:
            found *= (before - i) / (fewer - i)
        else:
            found *= (rest - 1.0 - before - (i - fewer)) / (drawn - i)
        found *= (drawn - i) / (rest - i)
    return found


@kernel
def means(n: int, kept: int, drawn: int, by_position: Any, out: Any) -> None:
    """The mean over such lists of a number by position, for the item at each place of the greedy order."""
    for which in range(by_position.shape[0]):
        for place in range(n):
            total = 0.0
            if place < kept:
                total = by_position[which, place]
            else:
                for position in range(kept, kept + drawn):
                    total += by_position[which, position] / (n - kept)
                for position in range(max(place, kept + drawn), min(place + drawn + 1, n)):
                    total += chance(n, kept, drawn, place, position) * by_position[which, position]
            out[which, place] = total
