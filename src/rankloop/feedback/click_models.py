"""Click models: a chance for every way in which a user can click on a list."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers, shares, whole

Chances = NDArray[np.float64]
Ints = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def chances(name: str, values: Any, *, ndim: int = 1) -> Chances:
    """`values` as a frozen array of probabilities, or a ValueError that names the argument."""
    array = shares(name, values, n_axes=ndim)
    array.setflags(write=False)
    return array


class Browsing(NamedTuple):
    """How a user goes down a list: what they look at, what they click on, and when they stop.

    The user is at position j, and looks at it with the chance `examination[j, r]`, where r is 0 before the first click
    and otherwise counts the position of the last click from 1. A user who looks clicks with the chance
    `attraction[i, j]`, where i is the item there. Then they go on to position j + 1 with the chance
    `after_click[i, j]` or `after_none[j]`, or leave.

    Parameters
    ----------
    attraction : ndarray of float
        Items x positions.
    examination : ndarray of float
        Positions x the last click.
    after_click : ndarray of float
        Items x positions.
    after_none : ndarray of float
        By position.
    """

    attraction: Chances
    examination: Chances
    after_click: Chances
    after_none: Chances


def browsing(
    attraction: Chances,
    n_positions: int,
    *,
    examination: Chances | float = 1.0,
    after_click: Chances | float = 1.0,
    after_none: Chances | float = 1.0,
) -> Browsing:
    """The tables, each of its own memory; what is left out is as of a user who reads on to the end."""
    n, m = len(attraction), n_positions
    parts = ((attraction, (n, m)), (examination, (m, m)), (after_click, (n, m)), (after_none, (m,)))
    return Browsing(*(np.array(np.broadcast_to(part, shape), np.float64) for part, shape in parts))


class ClickModel(abc.ABC):
    """How users click on a list of items, position by position.

    Every model knows how attractive each item is: the chance that a user who looks at it clicks. Models differ in who
    looks where. `items` lists item numbers by position, best first: all n items or any m of them. Many lists can be
    given at once, as an array whose last axis is the position; what comes back has the same shape.
    """

    attraction: Chances
    n_positions: int | None = None  # the longest list it knows about; None for any

    @property
    def n_items(self) -> int:
        """How many items there are to show."""
        return len(self.attraction)

    def click(self, items: ArrayLike, *, rng: np.random.Generator) -> Ints:
        """One user's clicks on each list of `items`, drawn by `rng`: 1 for each clicked position, 0 for the others."""
        return self._draw(self._checked(items), rng).astype(np.int64)

    def click_probabilities(self, items: ArrayLike) -> Chances:
        """The exact chance of a click at each position of `items`, whatever happens at the others."""
        return self._marginals(self._checked(items))

    def likelihood(self, items: ArrayLike, clicks: ArrayLike) -> Chances:
        """The exact chance of each list of `items` that it is clicked just so: `clicks` has a 0 or 1 for each place."""
        shown = self._checked(items)
        clicked = numbers("clicks", clicks)
        if clicked.shape[-1:] != shown.shape[-1:] or not np.isin(clicked, (0.0, 1.0)).all():
            raise ValueError(f"clicks must be 0 or 1 for each of {shown.shape[-1]} positions, got {clicks!r}")
        try:
            shown, clicked = np.broadcast_arrays(shown, clicked)
        except ValueError:
            raise ValueError(f"clicks have shape {clicked.shape}, items {shown.shape}") from None
        return self._likelihood(shown, clicked.astype(np.bool_))

    def browsing(self, n_positions: int) -> Browsing:
        """The model as tables for lists of `n_positions`, for the compiled loop; ValueError where it knows fewer."""
        m = whole("n_positions", n_positions, at_least=1)
        if self.n_positions is not None and m > self.n_positions:
            raise ValueError(f"n_positions must be at most {self.n_positions}, as the model has, got {m}")
        return self._browsing(m)

    # The same of numbers, lists and clicks that were checked.
    @abc.abstractmethod
    def _browsing(self, m: int) -> Browsing: ...

    @abc.abstractmethod
    def _draw(self, items: Ints, rng: np.random.Generator) -> Booleans: ...

    @abc.abstractmethod
    def _marginals(self, items: Ints) -> Chances: ...

    @abc.abstractmethod
    def _likelihood(self, items: Ints, clicks: Booleans) -> Chances: ...

    def _everywhere(self, m: int) -> Ints:
        # Each item, a row for each, at all of m positions.
        return np.broadcast_to(np.arange(self.n_items)[:, None], (self.n_items, m))

    def _set_chances(self, *names: str) -> None:
        for name in names:
            object.__setattr__(self, name, chances(name, getattr(self, name)))

    def _checked(self, items: ArrayLike) -> Ints:
        numbered = numbers("items", items)
        if numbered.ndim == 0 or numbered.shape[-1] == 0:
            raise ValueError(f"items must be a list of item numbers, best position first, got {items!r}")
        if not (np.isfinite(numbered).all() and (numbered == np.floor(numbered)).all()):
            raise ValueError(f"items must be whole numbers, got {items!r}")
        if numbered.size and not 0 <= numbered.min() <= numbered.max() < self.n_items:
            raise ValueError(f"items must be numbers from 0 to {self.n_items - 1}, got {items!r}")
        if self.n_positions is not None and numbered.shape[-1] > self.n_positions:
            raise ValueError(
                f"items must fill at most {self.n_positions} positions, got {numbered.shape[-1]}"
            )
        if (np.diff(np.sort(numbered, axis=-1), axis=-1) == 0).any():
            raise ValueError(f"items must be different items, got {items!r}")
        return numbered.astype(np.int64)


class ChainModel(ClickModel):
    """Users who read down the list and may stop after each item; subclasses say which chances each list has.

    The user looks at the first item for certain. Having looked at an item, they click with the chance `likes`; then
    they look at the next one with the chance `after_click` or `after_none`. A user who stops never looks again.
    """

    @abc.abstractmethod
    def _chain(self, items: Ints) -> tuple[Chances, Chances, Chances]:
        """The chances `likes`, `after_click` and `after_none` at each position of lists that were checked."""

    def _browsing(self, m: int) -> Browsing:
        likes, after_click, after_none = self._chain(self._everywhere(m))
        return browsing(likes, m, after_click=after_click, after_none=after_none[0])

    def _draw(self, items: Ints, rng: np.random.Generator) -> Booleans:
        likes, after_click, after_none = self._chain(items)
        clicks = rng.random(likes.shape) < likes
        goes_on = rng.random(likes.shape) < np.where(clicks, after_click, after_none)
        looks = np.ones(likes.shape, np.bool_)
        looks[..., 1:] = np.logical_and.accumulate(goes_on[..., :-1], axis=-1)
        return clicks & looks

    def _marginals(self, items: Ints) -> Chances:
        likes, after_click, after_none = self._chain(items)
        goes_on = likes * after_click + (1.0 - likes) * after_none
        looks = np.ones(likes.shape)
        looks[..., 1:] = np.multiply.accumulate(goes_on[..., :-1], axis=-1)
        return looks * likes

    def _likelihood(self, items: Ints, clicks: Booleans) -> Chances:
        # The sum over all places where the user may have stopped.
        likes, after_click, after_none = self._chain(items)
        reading, stopped = np.ones(likes.shape[:-1]), np.zeros(likes.shape[:-1])
        for j in range(likes.shape[-1]):
            clicked = clicks[..., j]
            seen = reading * np.where(clicked, likes[..., j], 1.0 - likes[..., j])
            goes_on = np.where(clicked, after_click[..., j], after_none[..., j])
            # A click proves that the user was still reading.
            stopped = np.where(clicked, 0.0, stopped) + seen * (1.0 - goes_on)
            reading = seen * goes_on
        return reading + stopped


@dataclass(frozen=True, eq=False)
class CascadeModel(ChainModel):
    """Users read down the list until they find an item that they like, click on it and leave: at most one click.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks.

    References
    ----------
    N. Craswell, O. Zoeter, M. Taylor, B. Ramsey (2008). An experimental comparison of click position-bias models.
    *WSDM*.

    Examples
    --------
    >>> CascadeModel(attraction=[0.5, 0.5, 0.5]).click_probabilities([2, 0, 1])
    array([0.5  , 0.25 , 0.125])
    """

    attraction: Chances

    def __post_init__(self) -> None:
        self._set_chances("attraction")

    def _chain(self, items: Ints) -> tuple[Chances, Chances, Chances]:
        return self.attraction[items], np.zeros(items.shape), np.ones(items.shape)


@dataclass(frozen=True, eq=False)
class ClickChainModel(ChainModel):
    """Users read down the list, and read on with a chance that depends on the click and on how good the item was.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks; it is also how relevant the item turns out.
    continuation : Chances
        Three chances to read on: without a click, after a click on an item that is irrelevant, and after a click on
        one that is relevant. An item of attraction a counts as relevant with the chance a.

    Notation
    --------
    R_i -> attraction[i], alpha_1, alpha_2, alpha_3 -> continuation[0], continuation[1], continuation[2].

    References
    ----------
    F. Guo, C. Liu, A. Kannan, T. Minka, M. Taylor, Y.-M. Wang, C. Faloutsos (2009). Click chain model in web search.
    *WWW*.

    Examples
    --------
    >>> model = ClickChainModel(attraction=[1.0, 0.5], continuation=[1.0, 1.0, 0.5])
    >>> model.click_probabilities([0, 1]), model.click_probabilities([1, 0])
    (array([1.  , 0.25]), array([0.5  , 0.875]))
    """

    attraction: Chances
    continuation: Chances

    def __post_init__(self) -> None:
        self._set_chances("attraction", "continuation")
        if len(self.continuation) != 3:
            raise ValueError(f"continuation must have 3 numbers, got {len(self.continuation)}")

    def _chain(self, items: Ints) -> tuple[Chances, Chances, Chances]:
        likes = self.attraction[items]
        skipped, irrelevant, relevant = self.continuation
        return likes, irrelevant * (1.0 - likes) + relevant * likes, np.full(items.shape, skipped)


@dataclass(frozen=True, eq=False)
class DependentClickModel(ChainModel):
    """A cascade with several clicks: after a click the user reads on with a chance that depends on the position.

    Without a click they always read on. With `continuation` 0 everywhere it is the cascade model.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks.
    continuation : Chances
        For each position, the chance to read on after a click there.

    Notation
    --------
    lambda_j -> continuation[j].

    References
    ----------
    F. Guo, C. Liu, Y. M. Wang (2009). Efficient multiple-click models in web search. *WSDM*.

    Examples
    --------
    >>> model = DependentClickModel(attraction=[0.5, 0.5, 0.5], continuation=[0.5, 0.5, 0.5])
    >>> model.click_probabilities([2, 0, 1])
    array([0.5    , 0.375  , 0.28125])
    """

    attraction: Chances
    continuation: Chances

    def __post_init__(self) -> None:
        self._set_chances("attraction", "continuation")
        object.__setattr__(self, "n_positions", len(self.continuation))

    def _chain(self, items: Ints) -> tuple[Chances, Chances, Chances]:
        after_click = np.broadcast_to(self.continuation[: items.shape[-1]], items.shape)
        return self.attraction[items], after_click, np.ones(items.shape)


@dataclass(frozen=True, eq=False)
class DynamicBayesianModel(ChainModel):
    """Users read down the list until an item that they clicked on satisfies them, or until they lose patience.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks.
    satisfaction : Chances
        For each item, the chance that a user who clicked on it has what they wanted, and leaves.
    continuation : float, optional
        The chance that a user who is not satisfied goes on to the next item, clicked or not.

    Notation
    --------
    a_u -> attraction[u], s_u -> satisfaction[u], gamma -> continuation.

    References
    ----------
    O. Chapelle, Y. Zhang (2009). A dynamic Bayesian network click model for web search ranking. *WWW*.

    Examples
    --------
    >>> model = DynamicBayesianModel(attraction=[0.5, 0.5], satisfaction=[1.0, 0.0], continuation=0.8)
    >>> model.click_probabilities([0, 1]), model.click_probabilities([1, 0])
    (array([0.5, 0.2]), array([0.5, 0.4]))
    """

    attraction: Chances
    satisfaction: Chances
    continuation: float = 1.0

    def __post_init__(self) -> None:
        self._set_chances("attraction", "satisfaction")
        object.__setattr__(self, "continuation", float(chances("continuation", self.continuation, ndim=0)))
        if self.satisfaction.shape != self.attraction.shape:
            raise ValueError(
                f"satisfaction must have {self.n_items} numbers, one for each item as attraction has,"
                f" got {len(self.satisfaction)}"
            )

    def _chain(self, items: Ints) -> tuple[Chances, Chances, Chances]:
        after_click = (1.0 - self.satisfaction[items]) * self.continuation
        return self.attraction[items], after_click, np.full(items.shape, self.continuation)


class IndependentModel(ClickModel):
    """A click model in which positions do not influence each other: subclasses say who clicks where they look."""

    examination: Chances

    def _clicked(self, attraction: Chances) -> Chances:
        # The chance of a click where the user looks, by position along the last axis.
        return attraction

    def _browsing(self, m: int) -> Browsing:
        likes = self._clicked(self.attraction[self._everywhere(m)])
        return browsing(likes, m, examination=self.examination[:m, None])

    def _draw(self, items: Ints, rng: np.random.Generator) -> Booleans:
        looks = rng.random(items.shape) < self.examination[: items.shape[-1]]
        likes = rng.random(items.shape) < self._clicked(self.attraction[items])
        return looks & likes

    def _marginals(self, items: Ints) -> Chances:
        return self._clicked(self.attraction[items]) * self.examination[: items.shape[-1]]

    def _likelihood(self, items: Ints, clicks: Booleans) -> Chances:
        p = self._marginals(items)
        chance: Chances = np.prod(np.where(clicks, p, 1.0 - p), axis=-1)
        return chance


@dataclass(frozen=True, eq=False)
class PositionBasedModel(IndependentModel):
    """A click at position j needs two independent events: the user looks there, and the item attracts them.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks.
    examination : Chances
        For each position, the chance that a user looks there.

    Notation
    --------
    alpha_i -> attraction[i], beta_j -> examination[j] (Chen, Zhao and Li 2022).

    References
    ----------
    M. Richardson, E. Dominowska, R. Ragno (2007). Predicting clicks. *WWW*. N. Craswell, O. Zoeter, M. Taylor,
    B. Ramsey (2008). An experimental comparison of click position-bias models. *WSDM*.

    Examples
    --------
    >>> model = PositionBasedModel(attraction=[0.8, 0.4, 0.1], examination=[1.0, 0.5])
    >>> model.click_probabilities([1, 0])
    array([0.4, 0.4])
    >>> model.click([[1, 0], [0, 2]], rng=np.random.default_rng(1)).shape
    (2, 2)
    """

    attraction: Chances
    examination: Chances

    def __post_init__(self) -> None:
        self._set_chances("attraction", "examination")
        object.__setattr__(self, "n_positions", len(self.examination))


@dataclass(frozen=True, eq=False)
class TrustBiasModel(IndependentModel):
    """The position-based model with clicks by mistake: a user who looks at position j trusts what is shown there.

    They click on an item that attracts them with the chance `true_clicks[j]`, and on one that does not with the chance
    `false_clicks[j]`. With `true_clicks` 1 and `false_clicks` 0 everywhere it is the position-based model.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that it attracts a user.
    examination : Chances
        For each position, the chance that a user looks there.
    true_clicks, false_clicks : Chances
        For each position, the chance of a click on an item that attracts the user, and on one that does not.

    Notation
    --------
    theta_k -> examination[k - 1], epsilon+_k -> true_clicks[k - 1], epsilon-_k -> false_clicks[k - 1].

    References
    ----------
    A. Agarwal, X. Wang, C. Li, M. Bendersky, M. Najork (2019). Addressing trust bias for unbiased learning-to-rank.
    *WWW*.

    Examples
    --------
    >>> model = TrustBiasModel(
    ...     attraction=[1.0, 0.0], examination=[1.0, 0.5], true_clicks=[1.0, 1.0], false_clicks=[0.5, 0.25]
    ... )
    >>> model.click_probabilities([1, 0]), model.click_probabilities([0, 1])
    (array([0.5, 0.5]), array([1.   , 0.125]))
    """

    attraction: Chances
    examination: Chances
    true_clicks: Chances
    false_clicks: Chances

    def __post_init__(self) -> None:
        self._set_chances("attraction", "examination", "true_clicks", "false_clicks")
        m = len(self.examination)
        for name in ("true_clicks", "false_clicks"):
            if len(getattr(self, name)) != m:
                raise ValueError(
                    f"{name} must have {m} numbers, one for each position as examination has,"
                    f" got {len(getattr(self, name))}"
                )
        object.__setattr__(self, "n_positions", m)

    def _clicked(self, attraction: Chances) -> Chances:
        m = attraction.shape[-1]
        return attraction * self.true_clicks[:m] + (1.0 - attraction) * self.false_clicks[:m]


@dataclass(frozen=True, eq=False)
class UserBrowsingModel(ClickModel):
    """The chance to look at a position depends on the position and on the last click above it.

    With rows that do not depend on the last click it is the position-based model.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks.
    examination : Chances
        A square matrix: in row j (from 0), column 0 is the chance to look at position j when nothing above was
        clicked; column r that chance when the last click was on the r-th position from the top. Columns beyond
        j are never used and may hold anything from 0 to 1.

    Notation
    --------
    gamma_{r, d} with rank r and distance d -> examination[r - 1, r - d], and column 0 where there was no click.

    References
    ----------
    G. Dupret, B. Piwowarski (2008). A user browsing model to predict search engine click data from past
    observations. *SIGIR*.

    Examples
    --------
    >>> model = UserBrowsingModel(attraction=[0.5, 0.5], examination=[[1.0, 0.0], [0.2, 0.8]])
    >>> model.click_probabilities([0, 1])
    array([0.5 , 0.25])
    """

    attraction: Chances
    examination: Chances

    def __post_init__(self) -> None:
        self._set_chances("attraction")
        object.__setattr__(self, "examination", chances("examination", self.examination, ndim=2))
        rows, columns = self.examination.shape
        if rows != columns:
            raise ValueError(f"examination must be a square matrix, got {rows} by {columns}")
        object.__setattr__(self, "n_positions", rows)

    def _browsing(self, m: int) -> Browsing:
        return browsing(self.attraction[:, None], m, examination=self.examination[:m, :m])

    def _draw(self, items: Ints, rng: np.random.Generator) -> Booleans:
        likes = rng.random(items.shape) < self.attraction[items]
        luck = rng.random(items.shape)
        last = np.zeros(items.shape[:-1], np.int64)
        for j in range(items.shape[-1]):
            likes[..., j] &= luck[..., j] < self.examination[j, last]
            last = np.where(likes[..., j], j + 1, last)
        return likes

    def _marginals(self, items: Ints) -> Chances:
        m = items.shape[-1]
        likes = self.attraction[items]
        # The chance that the last click was there, with 0 for none yet.
        last = np.zeros((*items.shape[:-1], m + 1))
        last[..., 0] = 1.0
        p = np.empty(items.shape)
        for j in range(m):
            clicks = last[..., : j + 1] * self.examination[j, : j + 1] * likes[..., j, None]
            p[..., j] = clicks.sum(axis=-1)
            last[..., : j + 1] -= clicks
            last[..., j + 1] = p[..., j]
        return p

    def _likelihood(self, items: Ints, clicks: Booleans) -> Chances:
        likes = self.attraction[items]
        last = np.zeros(items.shape[:-1], np.int64)
        chance = np.ones(items.shape[:-1])
        for j in range(items.shape[-1]):
            p = likes[..., j] * self.examination[j, last]
            chance = chance * np.where(clicks[..., j], p, 1.0 - p)
            last = np.where(clicks[..., j], j + 1, last)
        return chance
