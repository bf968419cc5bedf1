"""What the bandits over lists with features have in common: a linear chance of a click on what is examined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, shares, whole
from rankloop.base import Array, Ranking
from rankloop.compiled import CompiledRanker, RankerKernels, read_features, read_positions
from rankloop.feedback import Clicks, TopClicks
from rankloop.kernels import sorting
from rankloop.kernels.rankers import linear_clicks

SHOWN = 10  # positions of a list that a request brings


class LinearClickRanker(CompiledRanker):
    """Learns the weights of features from clicks, for a catalogue given once or for lists that requests bring."""

    draws: ClassVar[bool]  # whether theta is drawn; otherwise items are ranked by upper confidence bounds
    cascade: ClassVar[bool]  # whether nothing below the first click is examined
    n_features: int

    def build(
        self,
        n_features: Any,
        features: Any,
        n_positions: Any,
        *,
        sigma: Any,
        width: float = 1.0,
        examination: ArrayLike | None = None,
    ) -> None:
        """Check and keep the arguments, and allocate the state."""
        catalogue = self._read_catalogue(n_features, features)
        d = self.n_features
        kappa = np.empty(0)
        if examination is not None:
            kappa = shares("examination", examination, positive=True)
            n_positions = len(kappa) if n_positions is None else n_positions
        if len(catalogue):
            self.n_items = len(catalogue)
            self.n_positions = most = read_positions(n_positions, self.n_items) or self.n_items
            self.feedback = Clicks()
            self.kernels = RankerKernels(linear_clicks.rank_catalogue, linear_clicks.learn_catalogue)
        else:
            most = whole("n_positions", SHOWN if n_positions is None else n_positions, at_least=1)
            self.n_positions = None
            self.feedback = TopClicks(most)
            self.keeps_context = True
            self.kernels = RankerKernels(linear_clicks.rank_request, linear_clicks.learn_request)
        if examination is not None and len(kappa) != most:
            raise ValueError(f"examination must have {most} numbers, one for each position, got {len(kappa)}")
        self.informed = examination is not None  # the first item on the position that is examined most
        estimates = not self.cascade and examination is None
        self.params = linear_clicks.LinearClickParams(
            features=catalogue,
            draws=self.draws,
            cascade=self.cascade,
            estimates=estimates,
            width=width,
            precision=1.0 / number("sigma", sigma, above=0),
            most=most,
        )
        if estimates:
            kappa = np.ones(most)
        parts = len(kappa) if estimates else 1
        self.state = linear_clicks.LinearClickState(
            t=np.zeros(1, np.int64),
            updates=np.zeros(1, np.int64),
            due=np.full(1, d, np.int64),
            V=np.zeros((parts, d, d)),
            b=np.zeros((parts, d)),
            S=np.eye(d),
            theta=np.zeros(d),
            kappa=kappa.copy(),
        )

    def _read_catalogue(self, n_features: Any, features: Any) -> NDArray[np.float64]:
        if (n_features is None) == (features is None):
            raise ValueError(
                f"give either n_features or features, got n_features={n_features!r} and "
                f"{'no' if features is None else 'also'} features"
            )
        if features is None:
            self.n_features = whole("n_features", n_features, at_least=1)
            return np.empty((0, self.n_features))
        catalogue = np.array(read_features(features, name="features"), np.float64)
        self.n_features = catalogue.shape[1]
        return catalogue

    @property
    def theta(self) -> NDArray[np.float64]:
        """The estimated weights of the features."""
        return np.array(self.state.theta)

    @property
    def examination(self) -> NDArray[np.float64]:
        """How likely each position is looked at, as given or as estimated; empty where users read a cascade."""
        return np.array(self.state.kappa)

    def read_context(self, context: Any) -> tuple[int, Any]:
        if self.n_positions is not None:
            return super().read_context(context)
        features = read_features(context, self.n_features)
        return len(features), features

    def scratch(self, n: int) -> tuple[Any, ...]:
        k, d = self.n_items or n, self.n_features
        sorted_at_once = max(k, len(self.state.kappa))
        return (
            np.empty(k),
            np.empty(k),
            np.empty(k, np.int64),
            np.empty(len(self.state.kappa), np.int64),
            sorting.scratch(sorted_at_once),
            np.empty(d),
            np.empty(d),
            np.empty((d, d)),
        )

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if not ((saved["kappa"] > 0) & (saved["kappa"] <= 1)).all():
            raise ValueError(f"saved state 'kappa' must be probabilities, got {saved['kappa']}")
        for name in ("t", "updates", "due"):
            if (saved[name] < 0).any():
                raise ValueError(f"saved state {name!r} must be a count, got {saved[name]}")

    def weights_now(self) -> NDArray[np.float64] | None:
        return self.theta

    def learn_logged(
        self,
        items: NDArray[np.int64],
        feedback: Any,
        *,
        propensities: NDArray[np.float64] | None = None,
        features: Any = None,
    ) -> None:
        """Learns: a click is an observation of the weights, whoever chose the list."""
        self.learn(Ranking(items, None, () if features is None else (np.array(features),)), feedback)

    def current(self, context: Any = None) -> NDArray[np.int64]:
        """The items by estimated attraction, the best on the positions that are examined most."""
        n, request = self.read_context(context)
        features = self.params.features if request is None else request
        mean = np.empty(len(features))
        linear_clicks.means(features, self.state.theta, mean)
        order = np.argsort(-mean, kind="stable").astype(np.int64)[:n]
        items = order.copy()
        known = min(n, len(self.state.kappa))
        items[np.argsort(-self.state.kappa[:known], kind="stable")] = order[:known]
        return items

    def example_context(self, rng: np.random.Generator) -> Any:
        if self.n_positions is not None:
            return None
        return rng.random((int(rng.integers(1, 9)), self.n_features)) / self.n_features

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        d, parts = n_features, 1
        if not cls.cascade and parameters.get("examination") is None:
            parts = n_positions if isinstance(n_positions, int) else SHOWN
        return 8 * ((parts + 2) * d * d + (parts + 4) * d + 4 * n_items) + sorting.scratch_bytes(n_items)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        make: Any = cls  # each has arguments of its own
        yield make(features=example_features(5, 3), n_positions=3)
        yield make(n_features=3, n_positions=3)
        if cls.cascade:
            yield make(n_features=2, n_positions=4, sigma=0.5)
        else:
            yield make(features=example_features(4, 2), examination=[0.2, 1.0, 0.5, 0.1])
            yield make(n_features=2, examination=[1.0, 0.5])


def example_features(n_items: int, n_features: int) -> NDArray[np.float64]:
    """A small catalogue for the checks."""
    return np.random.default_rng(1).random((n_items, n_features)) / n_features
