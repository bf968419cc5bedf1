"""A rating matrix, and the relevance grades derived from it."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import whole
from rankloop.notebook import sentence

Missing = Literal["drop", "zero", "item-mean"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ratings:
    """A frozen matrix of ratings, users by items.

    Parameters
    ----------
    values : ndarray of float
        Ratings, one row per user and one column per item; NaN where the user did not rate the item.
    user_ids : ndarray of int
        The names the source gives them, as integers, all different.
    item_ids : ndarray of int
        The names the source gives them, as integers, all different.
    scale : tuple of float
        The lowest and the highest rating a user could give, whether or not anyone did.
    name : str
        What to call the dataset in a figure.
    item_names : tuple of str, optional
        Titles, where the source has them.

    Examples
    --------
    >>> import numpy as np
    >>> from rankloop.data import Ratings
    >>> ratings = Ratings(
    ...     values=np.array([[4.0, -2.0, np.nan], [1.0, 3.0, -7.0]]),
    ...     user_ids=np.array([1, 2]),
    ...     item_ids=np.array([10, 11, 12]),
    ...     scale=(-10.0, 10.0),
    ...     name="two friends",
    ... )
    >>> ratings
    Ratings('two friends': 2 users x 3 items, 5 ratings, scale -10 to 10)
    >>> ratings.relevance(missing="zero")
    array([[1, 0, 0],
           [1, 1, 0]])
    >>> ratings.most_rated(2).item_ids
    array([10, 11])
    """

    values: NDArray[np.float64]
    user_ids: NDArray[np.int64]
    item_ids: NDArray[np.int64]
    scale: tuple[float, float]
    name: str
    item_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        # Copies, so that freezing them does not freeze what the caller still works on.
        for field, dtype in (("values", np.float64), ("user_ids", np.int64), ("item_ids", np.int64)):
            array = np.array(getattr(self, field), dtype=dtype)
            array.setflags(write=False)
            object.__setattr__(self, field, array)
        if self.values.ndim != 2 or self.values.size == 0:
            raise ValueError(
                f"values must be a non-empty users x items matrix, got shape {self.values.shape}"
            )
        for field, ids, count in (
            ("user_ids", self.user_ids, self.n_users),
            ("item_ids", self.item_ids, self.n_items),
        ):
            if ids.shape != (count,) or len(np.unique(ids)) != count:
                raise ValueError(f"{field} must be {count} different integers, got {ids}")
        if self.item_names is not None and len(self.item_names) != self.n_items:
            raise ValueError(f"item_names must be {self.n_items} names, got {len(self.item_names)}")
        low, high = self.scale
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ValueError(f"scale must be two finite numbers in increasing order, got {self.scale}")
        outside = (self.values < low) | (self.values > high)
        if outside.any():
            raise ValueError(
                f"values must lie on the scale {low:g} to {high:g}, got {self.values[outside][0]}"
            )

    @property
    def n_users(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def n_items(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    def __repr__(self) -> str:
        low, high = self.scale
        n_ratings = np.count_nonzero(~np.isnan(self.values))
        size = f"{self.n_users:,} users x {self.n_items:,} items, {n_ratings:,} ratings"
        return f"Ratings({self.name!r}: {size}, scale {low:g} to {high:g})"

    def _repr_html_(self) -> str:
        return sentence(repr(self))

    def most_rated(self, n_items: int, *, complete: bool = True) -> "Ratings":
        """Only the `n_items` items that most users rated, and only the users who rated all of those.

        Items keep the order they have here, so that an item's index says nothing about how popular it is. Of
        items rated equally often, the one with the smaller id goes in first. `complete=False` keeps every
        user.

        Parameters
        ----------
        n_items : int
            How many items to keep.
        complete : bool, optional
            Keep only users who rated all of them.

        Returns
        -------
        Ratings
            The smaller matrix.
        """
        n_items = whole("n_items", n_items, at_least=1, at_most=self.n_items)
        n_ratings = np.count_nonzero(~np.isnan(self.values), axis=0)
        items = np.sort(np.lexsort((self.item_ids, -n_ratings))[:n_items])
        users = np.arange(self.n_users)
        if complete:
            users = users[~np.isnan(self.values[:, items]).any(axis=1)]
            if len(users) == 0:
                raise ValueError(f"n_items is too many: no user rated all of the {n_items} most-rated items")
        return Ratings(
            values=self.values[np.ix_(users, items)],
            user_ids=self.user_ids[users],
            item_ids=self.item_ids[items],
            scale=self.scale,
            name=self.name,
            item_names=None if self.item_names is None else tuple(self.item_names[item] for item in items),
        )

    def relevance(
        self,
        *,
        grades: int = 1,
        threshold: float | None = None,
        missing: Missing = "drop",
        shuffle_seed: int | None = None,
    ) -> NDArray[np.int64]:
        """Relevance grades 0 to `grades`, one row per user: a matrix that can be played, each user one round.

        A rating's grade is the number of cuts it lies strictly above. The cuts divide the scale into
        `grades` + 1 equal parts, so that binary relevance (`grades=1`) means "above the middle of the scale",
        which for Jester is "found it funny". The middle belongs to the scale, not to the user: cutting at a
        user's own mean would remove the difference between generous and harsh users, but a grade would then depend on
        which other items happened to be rated.

        Parameters
        ----------
        grades : int, optional
            The highest grade; 1 is binary.
        threshold : float, optional
            Where to cut the scale instead of in the middle; only for binary relevance.
        missing : Missing, optional
            ``"drop"`` leaves out users who did not rate everything: every grade is one that a user gave, but the
            remaining users are the most active ones. ``"zero"`` takes what was not rated as irrelevant: every user
            stays, but the grades are biased, the more so the more rarely an item was rated. ``"item-mean"``
            fills in the item's mean rating before grading: every user stays, but users look more alike than
            they are.
        shuffle_seed : int, optional
            Shuffles the order of the users; None keeps it.
        """
        grades = whole("grades", grades, at_least=1)
        low, high = self.scale
        cuts = low + (high - low) * np.arange(1, grades + 1) / (grades + 1)
        if threshold is not None:
            if grades != 1:
                raise ValueError(
                    f"threshold cuts into two grades, got threshold={threshold} with grades={grades}"
                )
            if not low <= threshold < high:
                raise ValueError(
                    f"threshold must lie on the scale, {low:g} <= threshold < {high:g}, got {threshold}"
                )
            cuts = np.array([threshold])
        values = self._filled(missing)
        # "left" counts the cuts strictly below a rating; what is still missing was asked to be zero.
        relevance = np.where(np.isnan(values), 0, np.searchsorted(cuts, values, side="left")).astype(np.int64)
        if shuffle_seed is not None:
            np.random.default_rng(shuffle_seed).shuffle(relevance, axis=0)
        return relevance

    def _filled(self, missing: Missing) -> NDArray[np.float64]:
        blank = np.isnan(self.values)
        if missing == "zero":
            return self.values
        if missing == "drop":
            complete = ~blank.any(axis=1)
            if not complete.any():
                raise ValueError("missing='drop' leaves no user: none rated every item; see most_rated")
            return self.values[complete]
        if missing == "item-mean":
            n_ratings = np.count_nonzero(~blank, axis=0)
            if not n_ratings.all():
                unrated = self.item_ids[np.argmin(n_ratings)]
                raise ValueError(f"missing='item-mean' has no mean for item {unrated}: no user rated it")
            means = np.where(blank, 0.0, self.values).sum(axis=0) / n_ratings
            return np.where(blank, means, self.values)
        raise ValueError(f"missing must be one of {', '.join(get_args(Missing))}, got {missing!r}")
