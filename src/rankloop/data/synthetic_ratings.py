"""Synthetic ratings: a few tastes, each user a mixture of them."""

import numpy as np

from rankloop.arguments import number, whole
from rankloop.data.ratings.ratings import Ratings


def synthetic_ratings(
    *,
    n_users: int,
    n_items: int,
    seed: int,
    missing: float = 0.2,
    n_tastes: int = 3,
    noise: float = 0.3,
    scale: tuple[float, float] = (-10.0, 10.0),
) -> Ratings:
    """Draw realistic ratings: better and worse items, generous and harsh users, shared tastes.

    A rating is the sum of the item's quality, the user's generosity, how far the user's leanings agree with
    the item's traits (both of dimension `n_tastes`, so the taste part has that rank), and noise; put on the
    scale, rounded to hundredths and cut off at its ends.

    Parameters
    ----------
    n_users : int
        Shape of the matrix.
    n_items : int
        Shape of the matrix.
    seed : int
        The same seed gives the same users.
    missing : float, optional
        Probability with which a rating is blank, whatever the user, the item and the rating.
    n_tastes : int, optional
        Rank of the taste part; 0 for users who differ only in generosity.
    noise : float, optional
        Standard deviation of the noise, where half the scale is 1.
    scale : tuple of float, optional
        The lowest and the highest rating.

    Returns
    -------
    Ratings
        The ratings, a row for each user.

    Examples
    --------
    >>> from rankloop import data
    >>> ratings = data.synthetic_ratings(n_users=500, n_items=20, seed=1)
    >>> ratings
    Ratings('synthetic': 500 users x 20 items, 7,961 ratings, scale -10 to 10)
    >>> ratings.most_rated(5).n_items
    5
    """
    for name, count, least in (("n_users", n_users, 1), ("n_items", n_items, 1), ("n_tastes", n_tastes, 0)):
        whole(name, count, at_least=least)
    number("missing", missing, at_least=0, below=1)
    number("noise", noise, at_least=0)
    rng = np.random.default_rng(seed)
    quality = rng.normal(scale=0.25, size=n_items)
    generosity = rng.normal(scale=0.2, size=(n_users, 1))
    opinion = quality + generosity + rng.normal(scale=noise, size=(n_users, n_items))
    # One outer product a taste rather than a matrix product, whose rounding depends on the machine's BLAS.
    for _ in range(n_tastes):
        leaning, trait = rng.normal(size=(n_users, 1)), rng.normal(size=n_items)
        opinion += 0.3 / np.sqrt(n_tastes) * leaning * trait
    low, high = scale
    values = np.clip(np.round((low + high) / 2 + (high - low) / 2 * opinion, 2), low, high)
    values[rng.random(values.shape) < missing] = np.nan
    return Ratings(
        values=values,
        user_ids=np.arange(1, n_users + 1),
        item_ids=np.arange(1, n_items + 1),
        scale=scale,
        name="synthetic",
    )
