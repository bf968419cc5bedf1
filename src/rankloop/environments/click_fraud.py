"""Worlds with click fraud: fake users who promote one item, and an attacker who also holds good items down.

Fake users come in a share of the rounds, or instead of a genuine user whose clicks would help an item that the
attacker wants to hold down, until a budget is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import number, whole
from rankloop.base import Floats, Ints, Ranking
from rankloop.compiled import CompiledEnvironment, EnvironmentKernels
from rankloop.environments.click_users import Tables, best_of_world, draw_clicks, expected_clicks
from rankloop.feedback import ClickModel
from rankloop.kernels.jit import hot
from rankloop.kernels.random import uniform


class FraudParams(NamedTuple):
    """How genuine users click, and what fake ones are there for."""

    browsing: Any  # tables with one world
    rows: Ints  # of the items in the tables
    best: float  # the expected clicks of the best list
    promoted: int  # the item that fake users click
    share: float  # of the users who are fake
    victim: NDArray[np.bool_]  # by item: whether its clicks are to be kept from the ranker
    budget: int  # how many genuine users' clicks the attacker can replace


class FraudState(NamedTuple):
    """The present user, and what the attacker has spent."""

    t: Ints  # users so far
    fake: Ints  # 1 where the present user is fake
    genuine: Ints  # genuine users since the counting began
    spent: Ints  # users whose clicks were replaced
    # Of all positions, also those that the ranker does not observe; zero between calls
    clicks: Floats
    last: Floats  # zero between calls


@hot
def arrive(params: Any, state: Any, key: Any) -> None:
    """The next user, genuine or fake."""
    fake = uniform(key, 0) < params.share
    state.fake[0] = fake
    state.genuine[0] += not fake
    state.t[0] += 1


@hot
def respond(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """The clicks that the ranker observes."""
    hidden = state.fake[0] == 1
    clicks = state.clicks
    if not hidden:
        every = params.browsing
        here = Tables(every.attraction[0], every.examination[0], every.after_click[0], every.after_none[0])
        draw_clicks(here, params.rows, 0, items, len(items), key, clicks)
        if state.spent[0] < params.budget:
            for j in range(len(clicks)):
                hidden = hidden or (clicks[j] > 0.0 and params.victim[items[j]])
            state.spent[0] += hidden
    for j in range(len(clicks)):
        if hidden:
            clicks[j] = items[j] == params.promoted
        if j < len(revealed):
            revealed[j] = clicks[j]
        clicks[j] = 0.0


@hot
def value(params: Any, state: Any, items: Any) -> float:
    """Expected clicks of the present user if genuine; a fake user's are worth nothing."""
    if state.fake[0] == 1:
        return 0.0
    return expected_clicks(params, 0, items, state.last)


@hot
def hindsight(params: Any, state: Any) -> Any:
    """The value of the best list to all genuine users so far."""
    return state.genuine[0] * params.best


class FraudWorld(CompiledEnvironment):
    """Genuine users of a click model, and fake ones. The value of a list is what genuine users click on it.

    A subclass says what the fake users do. `best()` is the best list for genuine users; `hindsight()` its value over
    the rounds in which one came.
    """

    reveals: ClassVar[str] = "clicks"
    reacts: ClassVar[bool] = True
    measure = "clicks"
    is_loss = False
    max_grade = 1
    n_items: int
    params: FraudParams
    state: FraudState
    kernels = EnvironmentKernels(arrive, respond, value, hindsight)

    def build(
        self,
        model: ClickModel,
        n_positions: int | None,
        *,
        item: int,
        share: float = 0.0,
        victims: Sequence[int] = (),
        budget: int = 0,
    ) -> None:
        """Read the arguments, and set up parameters and state."""
        if not isinstance(model, ClickModel):
            raise ValueError(f"model must be a click model of rankloop.feedback, got {model!r}")
        self.model = model
        self.n_items = n = model.n_items
        most = model.n_positions or n
        self.n_positions = most if n_positions is None else whole("n_positions", n_positions, at_least=1)
        if self.n_positions > n:
            raise ValueError(f"n_positions must be at most n_items={n}, got {n_positions}")
        promoted = whole("item", item, at_least=0, at_most=n - 1)
        tables = model.browsing(self.n_positions)
        best, self._best = best_of_world(tables)
        if not np.isfinite(best):
            raise ValueError(
                f"model must be one whose best list of {self.n_positions} of {n} items can be found, got {model!r}"
            )
        victim = np.zeros(n, np.bool_)
        for place, one in enumerate(victims):
            victim[whole(f"victims[{place}]", one, at_least=0, at_most=n - 1)] = True
        self.params = FraudParams(
            browsing=Tables(*(np.ascontiguousarray(part[None]) for part in tables)),
            rows=np.arange(n),
            best=best,
            promoted=promoted,
            share=number("share", share, at_least=0, at_most=1),
            victim=victim,
            budget=whole("budget", budget, at_least=0),
        )
        self.state = FraudState(
            t=np.zeros(1, np.int64),
            fake=np.zeros(1, np.int64),
            genuine=np.zeros(1, np.int64),
            spent=np.zeros(1, np.int64),
            clicks=np.zeros(self.n_positions),
            last=np.zeros(self.n_positions + 1),
        )

    def start_counting(self) -> None:
        self.state.genuine[...] = 0

    def best(self, context: Any = None) -> Ranking:
        """The list with the most clicks of genuine users."""
        return Ranking(self._best.copy())


class Promoted(FraudWorld):
    """A share of the users is fake: they click one item wherever it is shown, and nothing else.

    Parameters
    ----------
    model : ClickModel
        How genuine users click.
    item : int
        The item that fake users click.
    share : float, optional
        How many of the users are fake, between 0 and 1.
    n_positions : int, optional
        How many items are shown; None shows as many as the model has positions, or all items.

    Notes
    -----
    A fake user's clicks are worth nothing: the value of every list is 0 in such a round. Where genuine users click
    what they look at independently of the rest of the list, a promoted item cannot be told from a good one by its
    clicks: the share of fake users adds to its click rate in every round.

    Examples
    --------
    >>> from rankloop.feedback import CascadeModel
    >>> world = Promoted(CascadeModel(attraction=[0.2, 0.8, 0.5]), item=0, share=0.3, n_positions=2)
    >>> world.best().items
    array([1, 2])
    """

    def __init__(
        self, model: ClickModel, *, item: int, share: float = 0.1, n_positions: int | None = None
    ) -> None:
        self.build(model, n_positions, item=item, share=share)


class Attacked(FraudWorld):
    """An attacker who sees every list replaces genuine users' clicks, until a budget is spent.

    Where the present user would click one of `victims`, the ranker observes instead a click on the promoted item, if
    that is shown, and no other. A ranker that stops to show what seems bad is cheap to mislead: the attacker pays
    only while the victims are shown.

    Parameters
    ----------
    model : ClickModel
        How genuine users click.
    item : int
        The item that the attacker promotes.
    victims : sequence of int
        The items whose clicks it hides; `item` is not among them.
    budget : int
        How many users' clicks it can replace.
    n_positions : int, optional
        How many items are shown; None shows as many as the model has positions, or all items.

    Notes
    -----
    The user whose clicks are replaced was there: the value of a list is its expected clicks in every round. What the
    attacker has spent is in `state`, so `respond` changes it, and must be called once a round.

    References
    ----------
    K.-S. Jun, L. Li, Y. Ma and X. Zhu, Adversarial attacks on stochastic bandits, NeurIPS 2018, for attacks whose cost
    grows with the logarithm of the rounds only.

    Examples
    --------
    >>> from rankloop.feedback import CascadeModel
    >>> model = CascadeModel(attraction=[0.2, 0.8, 0.5])
    >>> world = Attacked(model, item=0, victims=[1], budget=100, n_positions=2)
    >>> rng = np.random.default_rng(1)
    >>> observed = np.zeros(2)
    >>> for _ in range(20):
    ...     world.arrive(rng=rng)
    ...     observed += world.respond(world.best(), rng=rng)
    >>> int(observed[0]), bool(world.state.spent[0] > 10)
    (0, True)
    """

    def __init__(
        self,
        model: ClickModel,
        *,
        item: int,
        victims: Sequence[int],
        budget: int,
        n_positions: int | None = None,
    ) -> None:
        self.build(model, n_positions, item=item, victims=victims, budget=budget)
        if self.params.victim[self.params.promoted]:
            raise ValueError(f"victims must not have the promoted item {item}, got {victims!r}")
