"""A ranker of your own in thirty lines, the contract it must keep, and a bug that the checks find."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop import checks, environments, rankers, simulation
from rankloop.base import Ranker, Ranking
from rankloop.feedback import TopK


class Seen(NamedTuple):
    total: np.ndarray  # summed relevance of each item while it was on top
    times: np.ndarray  # how often that was


class EpsilonGreedy(Ranker):
    """Sorts by mean relevance so far; now and then puts a random item on top."""

    def __init__(self, *, n_items: int, epsilon: float = 0.1) -> None:
        self.n_positions = n_items
        self.epsilon = epsilon
        self.feedback = TopK(1)
        self.state = Seen(np.zeros(n_items), np.zeros(n_items, np.int64))

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        mean = (self.state.total + 1) / (self.state.times + 2)
        order = np.argsort(-(mean + 1e-9 * rng.random(len(mean))))
        explored = bool(rng.random() < self.epsilon)
        if explored:
            top = rng.integers(len(order))
            order = np.concatenate(([top], order[order != top]))
        return Ranking(order, explored=explored)

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        (relevance,) = self.feedback.check(feedback, len(ranking.items))
        self.state.total[ranking.items[0]] += relevance
        self.state.times[ranking.items[0]] += 1

    def current(self, context: Any = None) -> np.ndarray:
        return np.argsort(-(self.state.total + 1) / (self.state.times + 2), kind="stable")


class Forgetful(EpsilonGreedy):
    """The same, but it learns about whatever it showed last, not about the ranking that was answered."""

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        self.last = super().rank(context, rng=rng)
        return self.last

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        super().learn(self.last, feedback)


for ranker_class in (EpsilonGreedy, Forgetful):
    try:
        checks.check_ranker(partial(ranker_class, n_items=4))
        print(f"{ranker_class.__name__}: passes all checks")
    except checks.Broken as broken:
        print(f"{ranker_class.__name__}: {broken}")

print("\n10,000 simulated users, 10 items, regret per round:")
people = environments.FixedItems(environments.users.bernoulli(np.linspace(0.9, 0.1, 10)), measure="dcg")
for ranker in (
    EpsilonGreedy(n_items=10),
    rankers.RTop1F(n_items=10, horizon=10_000, measure="dcg"),
    rankers.Uniform(n_items=10),
):
    people.restart()
    trace = simulation.play(ranker, people, rounds=10_000, seed=1)
    print(f"  {type(ranker).__name__:<14}{trace.total_regret / 10_000:.4f}")
print("Greedy does well when preferences do not change. RTop1F's bound also holds when they do.")
