"""What a service asks of a ranker beyond ranking and learning. `Ranker` inherits it: every answer has a default."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rankloop.features import query_rows


class Servable:
    """Defaults that suit a ranker with a table of numbers; a ranker overrides what it knows better.

    Attributes
    ----------
    summary : str
        One plain sentence for the readers of the dashboard: what it observes and how it learns.
    no_candidates : str
        Why it cannot draw a list from some of its items only, as the end of a sentence; empty where it can. Rankers
        whose requests bring a list of their own always can.
    stops_at_click : bool
        Whether it takes what stands below the first click for not examined.
    takes_queries : bool
        Whether a request is a query with its documents, `features.QueryRows`.
    no_baselines : str
        Why it learns nothing from lists that somebody else chose, as the end of a sentence, where it does not.
    unservable : str
        Why a service cannot run it, as the end of a sentence; empty where it can.
    estimate_from : {"feedback", "blocks", "weights"}
        What a service estimates the value of whole lists from: the feedback alone; blocks of rounds in which every item
        is explored once (`exploration_block`, `explored_items`); or the distribution that a list was drawn from
        (`mean_by_position`).
    algorithm_version : int
        Raised by whoever changes what the ranker shows or learns. A service goes on with a log of another version
        only after `rankloop upgrade`.
    defaults_before : mapping of int to mapping of str to object
        By version of the defaults, those that are no longer so: logs of that version and before were written with
        them. The versions are counted by the log, `rankloop.serving.log.records.DEFAULTS`.
    """

    feedback: Any
    current: Any
    summary: ClassVar[str] = "Learns from the feedback on the lists that it shows."
    no_candidates: str = "it does not say how to draw a list from some of its items"
    stops_at_click: ClassVar[bool] = False
    takes_queries: ClassVar[bool] = False
    no_baselines: ClassVar[str] = "it weighs feedback by the chances of its own lists"
    unservable: ClassVar[str] = ""
    estimate_from: ClassVar[Literal["feedback", "blocks", "weights"]] = "feedback"
    algorithm_version: ClassVar[int] = 1
    defaults_before: ClassVar[Mapping[int, Mapping[str, Any]]] = {}

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        """Memory that a ranker of this size allocates: state, parameters, scratch and one ranking.

        A service asks before it builds one. The default is three tables of float64, positions x items.

        Parameters
        ----------
        n_items : int, optional
            Number of items; 0 where each request brings a list of its own.
        n_positions : int, optional
            Number of positions shown; None shows all items.
        n_features : int, optional
            Number of features of an item.
        **parameters : Any
            Further arguments of the constructor.
        """
        shown = n_positions or n_items if "n_positions" in inspect.signature(cls).parameters else 1
        return 24 * (n_items * shown + n_features)

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        """Take over what `old` has learnt, a ranker with the same parameters and other items.

        Parameters
        ----------
        old : Ranker
            The ranker so far.
        origin : ndarray of int
            For each item of this ranker its number in `old`, -1 for a new one.
        positions : ndarray of int, optional
            For each position of this ranker its number in `old`; None where they are the same, the last one standing
            for those beyond.

        Raises
        ------
        ValueError
            Where the algorithm has no way to do that, which is the default.
        """
        raise ValueError(f"{type(self).__name__} cannot change its items while it runs")

    def translate(self, ranking: Any, before: NDArray[np.int64]) -> Any:
        """Turn a ranking from before a change of items into one that `learn` takes now.

        By default None: the feedback on it can no longer be used.

        Parameters
        ----------
        ranking : Ranking
            As it was shown.
        before : ndarray of int
            For each shown position the item's number now, -1 where it was retired.
        """
        return None

    def rank_among(
        self, items: NDArray[np.int64], positions: NDArray[np.int64], *, rng: np.random.Generator
    ) -> Any:
        """Draw a list of some of the items; reads state, and advances `rng`.

        By default a ValueError, with `no_candidates` as the reason.

        Parameters
        ----------
        items : ndarray of int
            The candidates, none twice.
        positions : ndarray of int
            The positions to fill, from the top, at most as many as candidates.
        rng : numpy.random.Generator
            Where the randomness comes from.

        Returns
        -------
        Ranking
            Items for these positions, then those candidates that were ordered behind them, if any. Its propensities
            are exact for these candidates. Its memo is for `learn_among`.
        """
        self.check_takes_candidates()
        raise NotImplementedError(f"{type(self).__name__} does not define rank_among")

    def check_takes_candidates(self) -> None:
        """ValueError where it cannot draw a list from some of its items, with the reason."""
        if self.no_candidates:
            raise ValueError(f"{type(self).__name__} takes no candidates: {self.no_candidates}")

    def current_among(self, items: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The order of some of the items that it estimates to be best now, at least as many of them as positions.

        `items` and `positions` are as for `rank_among`. By default in the order of `current`, those that it does not
        have at the end.
        """
        wanted = set(items.tolist())
        first = [item for item in self.current().tolist() if item in wanted]
        known = set(first)
        return np.array([*first, *(item for item in items.tolist() if item not in known)], np.int64)

    def feedback_among(self, n_items: int) -> Any:
        """What is revealed of a list that `rank_among` draws from `n_items` candidates; that of any list by default."""
        return self.feedback

    def learn_among(
        self, ranking: Any, feedback: Any, items: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> None:
        """Update state with the `feedback` on a `ranking` that `rank_among` drew.

        `items` and `positions` are those that it was drawn from, items by their numbers now. By default a ValueError,
        with `no_candidates` as the reason.
        """
        self.check_takes_candidates()
        raise NotImplementedError(f"{type(self).__name__} does not define learn_among")

    def learn_shown(self, items: NDArray[np.int64], feedback: Any) -> bool:
        """Learn from `items`, a list that somebody else chose, and the `feedback` on it, where that has no bias.

        Whether it learnt; not by default, since an estimate that weighs by propensities has none here.
        """
        return False

    def short_memo(self, memo: tuple[Any, ...]) -> tuple[Any, ...]:
        """The `memo` without what follows from the features of the request, for a log that has these anyway.

        All of it by default; otherwise its first parts.
        """
        return memo

    def whole_memo(
        self, memo: tuple[Any, ...], items: NDArray[np.int64], context: Callable[[], Any]
    ) -> tuple[Any, ...]:
        """The `memo` that `short_memo` may have made short, with the bytes that `rank` gave it.

        `items` are those of the ranking, and `context` is called for the request that it answered.
        """
        return memo

    def as_request(
        self, features: Any, query: str | int | None = None, items: Sequence[str | int] = ()
    ) -> Any:
        """What `rank` takes for rows of `features`: they alone, or with the names `query` and `items` as well."""
        if not self.takes_queries:
            return features
        return query_rows("" if query is None else query, items, features)

    def learn_logged(
        self,
        items: NDArray[np.int64],
        feedback: Any,
        *,
        propensities: NDArray[np.float64] | None = None,
        features: Any = None,
    ) -> None:
        """Learn from a list in the log of something else, where the algorithm can do that without bias.

        A ValueError, with the reason, where it cannot: by default, unless it learns from lists that others chose.

        Parameters
        ----------
        items : ndarray of int
            The items of the list, best position first; with `features`, rows of it.
        feedback : array_like
            What came back on it, by position.
        propensities : ndarray of float, optional
            The probability with which each of them was shown where it was, where that is known.
        features : array_like, optional
            Items x features, for rankers whose requests bring a list of their own.
        """
        if not self.learn_shown(items, feedback):
            raise ValueError(f"{type(self).__name__} learns from lists that it drew itself, not from a log")

    def learns_others_lists(self) -> bool:
        """Whether it can learn from lists that others chose: by `learn_shown`, with features by `learn_logged`."""
        way = "learn_logged" if getattr(self, "n_items", None) is None else "learn_shown"
        return getattr(type(self), way) is not getattr(Servable, way)

    def weights_now(self) -> NDArray[np.float64] | None:
        """The weight of each feature in the score of an item, where that is a weighed sum; None by default."""
        return None

    def exploration_chance(self, ranking: Any) -> float | None:
        """Probability with which the top of `ranking`, one of its own, was drawn for exploration.

        For rankers whose rankings have no propensities, but whose exploration rounds do. None where the ranking did not
        explore, or the probability is not known.
        """
        return None

    def exploration_block(self) -> tuple[int, ...]:
        """Which block of rounds it is in, where every item is explored once in each block.

        Another one as soon as the next block begins; empty where exploration has no blocks.
        """
        return ()

    def explored_items(self, ranking: Any) -> int:
        """How many of the top items of `ranking`, one of its own, stand there because it is their turn in the block."""
        return 0

    def mean_by_position(
        self, context: Any, ranking: Any, by_position: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Mean of a quantity that depends on an item's position, over all rankings that could have been drawn.

        Quantities x revealed items, from the top; None, the default, where the distribution is not known.

        Parameters
        ----------
        context : Any
            The request that `ranking` answered.
        ranking : Ranking
            One that this ranker issued, with the state that it still has.
        by_position : ndarray of float
            Quantities x positions.
        """
        return None


def carried_sums(values: NDArray[np.float64], origin: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums over time for changed items: those in `values` where known, the largest of them for new items.

    `origin` has for each item from now on its number so far, -1 for a new one. Rankers compare sums over time, so an
    item that began at zero would have to catch up with the others' past before it was shown. Level with the best, it is
    shown near the top and sinks if it is worse.

    Examples
    --------
    >>> carried_sums(np.array([3.0, 1.0]), np.array([1, -1]))
    array([1., 3.])
    """
    kept = values[np.maximum(origin, 0)] if len(values) else np.zeros(len(origin))
    return np.where(origin >= 0, kept, values.max() if len(values) else 0.0)
