"""Textbook games with the classes that are known for them.

The names and most of the matrices are those of Bartok, Foster, Pal, Rakhlin and Szepesvari (2014) and of Lattimore and
Szepesvari, *Bandit Algorithms* (2020), chapter 37.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

from rankloop.arguments import whole
from rankloop.games.game import Game


def apple_tasting() -> Game:
    """Sell an apple unseen, or bite into it: only the bite reveals whether it is good. Easy."""
    return Game([[1, 0], [0, 1]], [["good", "bad"], ["?", "?"]])


def label_efficient() -> Game:
    """Predict a bit; revealing it costs as much as a wrong guess. Hard."""
    return Game([[1, 1], [0, 1], [1, 0]], [["zero", "one"], ["?", "?"], ["?", "?"]])


def bandit(*, n_arms: int = 2) -> Game:
    """Of `n_arms` arms with loss 0 or 1 that of the pulled arm is revealed. Easy."""
    arms = range(whole("n_arms", n_arms, at_least=1))
    outcomes = list(product((0, 1), repeat=len(arms)))
    loss = [[outcome[arm] for outcome in outcomes] for arm in arms]
    return Game(loss, loss)


def full_information(*, n_actions: int = 3) -> Game:
    """The outcome is always revealed, whichever of `n_actions`. Easy."""
    actions = range(whole("n_actions", n_actions, at_least=1))
    return Game([[int(a != x) for x in actions] for a in actions], [list(actions) for _ in actions])


def matching_pennies(*, price: Any = Fraction(1, 2)) -> Game:
    """Guess a coin that is never shown, or pay `price` to see it. The price decides.

    Free: trivial. Up to 1/2: easy, because looking is then optimal, or lies between the two guesses. Above: hard.
    """
    return Game([[0, 1], [1, 0], [price, price]], [["?", "?"], ["?", "?"], ["heads", "tails"]])


def blind_pennies() -> Game:
    """Guess a coin that is never shown. Hopeless."""
    return Game([[0, 1], [1, 0]], [["?", "?"], ["?", "?"]])


def dynamic_pricing(*, n_prices: int = 4) -> Game:
    """Name one of `n_prices`: above the buyer's limit the sale is lost, for 2; below, the difference is. Hard."""
    prices = range(whole("n_prices", n_prices, at_least=1))
    return Game(
        [[limit - price if price <= limit else 2 for limit in prices] for price in prices],
        [["sold" if price <= limit else "not" for limit in prices] for price in prices],
    )


def dominated() -> Game:
    """One action is better whatever happens. Trivial."""
    return Game([[0, 1], [1, 2]], [["?", "?"], ["?", "?"]])


known: dict[str, tuple[Callable[[], Game], str]] = {
    "apple tasting": (apple_tasting, "easy"),
    "label-efficient prediction": (label_efficient, "hard"),
    "bandit, 2 arms": (bandit, "easy"),
    "bandit, 4 arms": (lambda: bandit(n_arms=4), "easy"),
    "full information": (full_information, "easy"),
    "matching pennies, looking is free": (lambda: matching_pennies(price=0), "trivial"),
    "matching pennies, price 1/4": (lambda: matching_pennies(price="1/4"), "easy"),
    "matching pennies, price 1/2": (matching_pennies, "easy"),
    "matching pennies, price 51/100": (lambda: matching_pennies(price="51/100"), "hard"),
    "blind matching pennies": (blind_pennies, "hopeless"),
    "dynamic pricing, 2 prices": (lambda: dynamic_pricing(n_prices=2), "easy"),
    "dynamic pricing, 4 prices": (dynamic_pricing, "hard"),
    "one better than the rest": (dominated, "trivial"),
}
"""What each is called, how it is made, and its class."""
