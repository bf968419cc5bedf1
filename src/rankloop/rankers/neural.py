"""Rankers whose scores come from any torch module; they need the extra `torch`, which nothing else does."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop import base, surrogates
from rankloop.arguments import number, one_of, whole
from rankloop.base import Array, Floats, Ints, Ranker, Ranking, draw_key
from rankloop.compiled import check_items, read_features
from rankloop.extras import require
from rankloop.feedback import TopClicks, TopK
from rankloop.kernels import random
from rankloop.kernels.jit import kernel
from rankloop.kernels.plackett_luce import draw_list, weights_length
from rankloop.measures import HIGHEST_GRADE
from rankloop.rankers.linear import read_schedule
from rankloop.rankers.pdgd import gradient_in_scores
from rankloop.surrogates.estimators import horvitz_thompson

if TYPE_CHECKING:  # importing this package must not import torch
    import torch

__all__ = ["ModuleRanker", "NeuralPDGD", "NeuralRTopK"]


@kernel
def draw(scores: Any, m: int, key: Any, weights: Any, items: Any, header: Any) -> None:
    """Draw a list, and write to `header` what `preferences` needs to know about the documents after the first m."""
    shift, rest = draw_list(scores, len(scores), m, key, 0, weights, items)
    header[0] = m
    header[1] = shift
    header[2] = rest


@kernel
def preferences(shown: Any, header: Any, clicks: Any, scratch: Any, step: Any) -> bool:
    """Write PDGD's estimate, by shown document, to `step`; whether there is any preference."""
    return gradient_in_scores(shown, len(shown), header[1], header[2], clicks, scratch, step)


_SETTINGS = "optimiser.json"
_OPTIMISERS = ("sgd", "adagrad", "adam")
MakeOptimiser = Callable[[Any], Any]


class ModuleState(NamedTuple):
    """Beside the module and the optimiser, which hold arrays of their own."""

    t: Ints  # rounds learnt


class ModuleRanker(Ranker):
    """Scores documents by a torch module; a subclass estimates the gradient with respect to the scores.

    The module works on a copy, always in evaluation mode: dropout is off, and normalisation keeps its statistics. It is
    played step by step, and its bytes depend on the version of torch and on the machine.

    Parameters
    ----------
    module : torch.nn.Module
        Maps documents x features to one score for each document.
    n_features : int
        The length of a document's feature vector.
    optimiser : str or callable
        "sgd", "adagrad" or "adam"; or a function that takes the parameters and gives a `torch.optim.Optimizer`.
    learning_rate : float
        The optimiser's step, for optimisers given by name.
    """

    n_positions = None
    n_features: int
    portable = False
    informed = True  # by the weights that the module comes with
    unservable = "a torch module is code, which the log of a service cannot hold"

    def __init__(
        self,
        *,
        module: torch.nn.Module,
        n_features: int,
        optimiser: str | MakeOptimiser,
        learning_rate: float,
    ) -> None:
        require("torch", extra="torch", for_=type(self).__name__)
        import torch

        self.n_features = whole("n_features", n_features, at_least=1)
        if not isinstance(module, torch.nn.Module):
            raise ValueError(f"module must be a torch.nn.Module, got {module!r}")
        rate = number("learning_rate", learning_rate, above=0)
        self.module = copy.deepcopy(module).eval()
        kinds = {value.dtype for value in self.module.state_dict().values() if value.is_floating_point()}
        if not kinds <= {torch.float32, torch.float64} or len(kinds) != 1:
            raise ValueError(
                f"module must have parameters of float32 or of float64, got {sorted(map(str, kinds))}"
            )
        self._dtype = kinds.pop()
        learnt = [value for value in self.module.parameters() if value.requires_grad]
        if not learnt:
            raise ValueError("module must have parameters that require a gradient, got none")
        if isinstance(optimiser, str):
            make: Any = {
                "sgd": torch.optim.SGD,
                "adagrad": torch.optim.Adagrad,
                "adam": torch.optim.Adam,
            }[one_of("optimiser", optimiser, _OPTIMISERS)]
            self.optimiser = make(learnt, lr=rate)
        else:
            self.optimiser = optimiser(learnt)
            if not isinstance(self.optimiser, torch.optim.Optimizer):
                raise ValueError(f"optimiser must give a torch.optim.Optimizer, got {self.optimiser!r}")
        self.state = ModuleState(np.zeros(1, np.int64))
        try:
            self._scores(np.zeros((2, self.n_features)))
        except RuntimeError as error:
            raise ValueError(
                f"module must take documents with n_features={self.n_features}, got the error: {error}"
            ) from error

    def _forward(self, features: NDArray[Any]) -> torch.Tensor:
        import torch

        scores: torch.Tensor = self.module(torch.as_tensor(np.array(features), dtype=self._dtype))
        if tuple(scores.shape) not in ((len(features),), (len(features), 1)):
            raise ValueError(
                f"module must give one score for each of {len(features)} documents, got shape {tuple(scores.shape)}"
            )
        return scores.reshape(-1)

    def _scores(self, features: NDArray[Any]) -> Floats:
        import torch

        with torch.no_grad():
            scores: Floats = self._forward(features).numpy().astype(np.float64)
        if not np.isfinite(scores).all():
            raise ValueError(f"module must give finite scores, got {scores}")
        return scores

    def _descend(self, features: NDArray[Any], gradient: Floats) -> None:
        # One step of the optimiser, for this gradient with respect to the scores.
        import torch

        self.optimiser.zero_grad()
        try:
            self._forward(features).backward(torch.as_tensor(gradient, dtype=self._dtype))
            slopes = [value.grad for value in self.module.parameters() if value.grad is not None]
            if not all(bool(torch.isfinite(slope).all()) for slope in slopes):
                raise FloatingPointError("the module's gradient is not finite: nothing was learnt")
            self.optimiser.step()
        finally:
            self.optimiser.zero_grad()

    def _read_ticket(
        self, ranking: Ranking, feedback: ArrayLike, n_parts: int
    ) -> tuple[NDArray[Any], Floats]:
        # The features that a ticket ends with, and what was revealed of its list.
        n = len(ranking.items)
        revealed = self.feedback.check(feedback, n)
        if len(ranking.memo) != n_parts:
            raise ValueError(f"ranking.memo must have {n_parts} parts, got {len(ranking.memo)}")
        features = read_features(ranking.memo[-1], self.n_features)
        if len(features) != n:
            raise ValueError(
                f"ranking.memo must end with a request for {n} items, got one for {len(features)}"
            )
        check_items(ranking.items, n, n)
        return features, revealed

    def current(self, context: Any = None) -> Ints:
        return np.argsort(-self._scores(read_features(context, self.n_features)), kind="stable")

    def example_context(self, rng: np.random.Generator) -> Any:
        return rng.random((int(rng.integers(1, 9)), self.n_features))

    def state_arrays(self) -> dict[str, Array]:
        """The module's and the optimiser's `state_dict` as named arrays, and the number of rounds.

        Returns
        -------
        dict of str to numpy.ndarray
            `t`, `module.*`, `optimiser.*`, and the optimiser's settings as JSON. Nothing that could run.
        """
        arrays: dict[str, Array] = {"t": self.state.t.copy()}
        for name, value in self.module.state_dict().items():
            arrays[f"module.{name}"] = value.detach().numpy().copy()
        kept = self.optimiser.state_dict()
        settings: dict[str, Any] = {"groups": kept["param_groups"], "state": {}}
        for place, entries in kept["state"].items():
            settings["state"][str(place)] = {}
            for name, value in entries.items():
                if hasattr(value, "detach"):
                    arrays[f"optimiser.{place}.{name}"] = value.detach().numpy().copy()
                else:
                    settings["state"][str(place)][name] = value
        return arrays | {_SETTINGS: np.array(json.dumps(settings))}

    def load(self, saved: Mapping[str, Array] | str | os.PathLike[str]) -> None:
        if isinstance(saved, str | os.PathLike):
            saved = base.read_state(saved)
        base.check_origin(saved, self)
        weights, kept = self._read_module(saved), self._read_optimiser(saved)
        before = copy.deepcopy(self.optimiser.state_dict())
        try:
            self.optimiser.load_state_dict(kept)
        except (ValueError, KeyError, TypeError) as error:
            self.optimiser.load_state_dict(before)
            raise ValueError(f"saved state of the optimiser does not fit: {error}") from error
        self.module.load_state_dict(weights)
        self.state.t[...] = saved["t"]

    def _read_module(self, saved: Mapping[str, Array]) -> dict[str, Any]:
        import torch

        mine = {name: value for name, value in self.state_arrays().items() if name.startswith("module.")}
        theirs = {name for name in saved if not name.startswith("optimiser.")} - {base.ORIGIN}
        if theirs != {"t", *mine} or _SETTINGS not in saved:
            raise ValueError(
                f"saved state has {sorted(saved)}, this module needs {sorted(mine)}, t and {_SETTINGS}"
            )
        for name, value in {**mine, "t": self.state.t}.items():
            given = np.asarray(saved[name])
            if given.shape != value.shape or given.dtype != value.dtype:
                raise ValueError(
                    f"saved state {name!r} is {given.dtype}{given.shape}, "
                    f"this {type(self).__name__} holds {value.dtype}{value.shape}: another module?"
                )
            if not np.isfinite(given).all():
                raise ValueError(f"saved state {name!r} must be finite, got {given}")
        if saved["t"][0] < 0:
            raise ValueError(f"saved state 't' must not be negative, got {saved['t'][0]}")
        return {name.partition(".")[2]: torch.as_tensor(np.array(saved[name])) for name in mine}

    def _read_optimiser(self, saved: Mapping[str, Array]) -> dict[str, Any]:
        import torch

        try:
            settings = json.loads(str(saved[_SETTINGS]))
            groups, entries = settings["groups"], settings["state"]
            state: dict[int, dict[str, Any]] = {int(place): dict(part) for place, part in entries.items()}
            n_learnt = sum(len(group["params"]) for group in self.optimiser.param_groups)
            for name, value in saved.items():
                if name.startswith("optimiser.") and name != _SETTINGS:
                    _, place, entry = name.split(".", 2)
                    if not (0 <= int(place) < n_learnt and np.isfinite(value).all()):
                        raise ValueError(f"{name} must be finite, and of one of {n_learnt} parameters")
                    state.setdefault(int(place), {})[entry] = torch.as_tensor(np.array(value))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"saved state of the optimiser cannot be read: {error}") from error
        return {"param_groups": groups, "state": state}


class NeuralPDGD(ModuleRanker):
    """PDGD with scores from any torch module.

    Lists are drawn and clicks are turned into preferences as `PDGD` does; the estimated gradient with respect to the
    scores is the same, and autograd carries it on to the module's parameters. With a linear module and "sgd" it is
    PDGD.

    Parameters
    ----------
    module : torch.nn.Module
        Maps documents x features to one score for each document. A copy is learnt, in evaluation mode.
    n_features : int
        The length of a document's feature vector.
    n_positions : int, optional
        How many documents are shown, and may be clicked.
    learning_rate : float, optional
        The step of an optimiser that is given by name.
    optimiser : str or callable, optional
        "sgd", "adagrad" or "adam"; or a function that takes the parameters and gives a `torch.optim.Optimizer`.

    Departures
    ----------
    As for `PDGD`. Clicks that come late are weighed by the scores that the list was drawn by, and change the module as
    it is now.

    References
    ----------
    H. Oosterhuis and M. de Rijke, Differentiable unbiased online learning to rank, CIKM 2018, Algorithm 1.
    """

    summary = "Observes clicks on the first documents of each list, and learns a neural network."

    def __init__(
        self,
        *,
        module: torch.nn.Module,
        n_features: int,
        n_positions: int = 10,
        learning_rate: float = 0.1,
        optimiser: str | MakeOptimiser = "sgd",
    ) -> None:
        self.feedback = TopClicks(whole("n_positions", n_positions, at_least=1))
        super().__init__(
            module=module, n_features=n_features, optimiser=optimiser, learning_rate=learning_rate
        )

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        features = read_features(context, self.n_features)
        scores, n = self._scores(features), len(features)
        m = self.feedback.length(n)
        items, header = np.empty(n, np.int64), np.zeros(3)
        draw(scores, m, draw_key(rng), np.empty(weights_length(n)), items, header)
        rest = np.sort(items[m:])
        items[m:] = rest[np.argsort(-scores[rest], kind="stable")]
        return Ranking(items, memo=(header, scores[items[:m]], features.copy()))

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        features, clicks = self._read_ticket(ranking, feedback, 3)
        header, shown, _ = ranking.memo
        m = len(clicks)
        for part, shape in ((header, (3,)), (shown, (m,))):
            if part.shape != shape or part.dtype != np.float64:
                raise ValueError(f"ranking.memo must hold float64{shape}, got {part!r}: of another ranker?")
        if not (np.isfinite(header).all() and np.isfinite(shown).all() and header[0] == m and header[2] >= 0):
            raise ValueError(f"ranking.memo must be finite, and of {m} items, got {header}")
        step = np.zeros(m)
        if preferences(shown, header, clicks, np.empty((3, m + 1)), step):
            gradient = np.zeros(len(features))
            gradient[ranking.items[:m]] = -step
            self._descend(features, gradient)
        self.state.t[0] += 1


_SURROGATES = ("squared", "kl", "smooth_dcg", "ranksvm")


class NeuralRTopK(ModuleRanker):
    """RTop-kF with scores from any torch module: observes the labels of the top k documents.

    With probability gamma a list is in random order, otherwise by falling score. The labels of the top k give an
    unbiased estimate of a surrogate's gradient with respect to the scores, and autograd carries it on to the module's
    parameters.

    Parameters
    ----------
    module : torch.nn.Module
        Maps documents x features to one score for each document. A copy is learnt, in evaluation mode.
    n_features : int
        The length of a document's feature vector.
    k : int, optional
        How many top documents reveal their label.
    surrogate : str, optional
        "squared", "kl", "smooth_dcg" or "ranksvm" (needs k >= 2).
    exploration : float or tuple of float, optional
        Gamma: a number, or a pair (scale, power) for scale * t**-power, at most 1.
    max_grade : int, optional
        The largest label; larger feedback is refused.
    learning_rate : float, optional
        The step of an optimiser that is given by name.
    optimiser : str or callable, optional
        "sgd", "adagrad" or "adam"; or a function that takes the parameters and gives a `torch.optim.Optimizer`.

    Departures
    ----------
    The estimator uses all k labels, each divided by the probability that it was seen, and is averaged over the list.
    "squared" and "kl" guess each label by its score, cut to 0..max_grade (a control variate); beyond -max_grade and
    2 max_grade their scores count as these. The regret bound is for linear scores and says nothing here.

    References
    ----------
    S. Chaudhuri and A. Tewari, Online learning to rank with feedback at the top, AISTATS 2016, Algorithm 1.
    """

    summary = "Observes the labels of the top documents, and learns a neural network."

    def __init__(
        self,
        *,
        module: torch.nn.Module,
        n_features: int,
        k: int = 1,
        surrogate: str = "squared",
        exploration: float | tuple[float, float] = (1.0, 1 / 3),
        max_grade: int = 4,
        learning_rate: float = 0.05,
        optimiser: str | MakeOptimiser = "adagrad",
    ) -> None:
        self.feedback = TopK(k)
        self.max_grade = whole("max_grade", max_grade, at_least=1, at_most=int(HIGHEST_GRADE))
        name = one_of("surrogate", surrogate, _SURROGATES)
        self.surrogate = surrogates.require(surrogates.get(name), k)
        self.exploration = read_schedule("exploration", exploration, positive=False)
        if self.exploration.power == 0 and not 0 < self.exploration.scale <= 1:
            raise ValueError(f"exploration must be a probability above 0, got {exploration!r}")
        super().__init__(
            module=module, n_features=n_features, optimiser=optimiser, learning_rate=learning_rate
        )

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        features = read_features(context, self.n_features)
        scores, n = self._scores(features), len(features)
        key = draw_key(rng)
        gamma = min(1.0, self.exploration.at(int(self.state.t[0]) + 1))
        tiebreak, items = np.empty(n, np.int64), np.empty(n, np.int64)
        random.shuffle(key, 1, n, tiebreak)
        greedy = np.lexsort((tiebreak, -scores))
        explored = random.uniform(key, 0) < gamma
        if explored:
            random.shuffle(key, 1 + n, n, items)
        else:
            items[:] = greedy
        chances = (1.0 - gamma) * (items == greedy) + gamma / n
        return Ranking(items, chances, (np.array([gamma]), scores, greedy, features.copy()), bool(explored))

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        features, labels = self._read_ticket(ranking, feedback, 4)
        n, (header, scores, greedy, _) = len(features), ranking.memo
        if labels.max(initial=0.0) > self.max_grade:
            raise ValueError(f"feedback must be at most max_grade={self.max_grade}, got {labels}")
        if header.shape != (1,) or not 0 < header[0] <= 1:
            raise ValueError(
                f"ranking.memo must begin with a probability, got {header!r}: of another ranker?"
            )
        if scores.shape != (n,) or not np.isfinite(scores).all() or sorted(greedy.tolist()) != list(range(n)):
            raise ValueError(f"ranking.memo must hold {n} scores and their order, got {scores!r}, {greedy!r}")
        self._descend(features, self._estimate(ranking, scores, greedy, float(header[0]), labels))
        self.state.t[0] += 1

    def _estimate(self, ranking: Ranking, scores: Any, greedy: Any, gamma: float, labels: Any) -> Any:
        guess = None
        if self.surrogate.name in ("squared", "kl"):
            highest = self.max_grade or 0
            scores = np.clip(scores, -highest, 2 * highest)
            guess = np.clip(scores, 0, highest)
        z = horvitz_thompson(
            self.surrogate,
            s=scores,
            shown=ranking.items,
            labels=labels,
            greedy=greedy,
            gamma=gamma,
            baseline=guess,
        )
        return -z / len(scores) if self.surrogate.is_gain else z / len(scores)
