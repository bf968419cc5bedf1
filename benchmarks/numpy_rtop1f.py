"""RTop-1F in plain NumPy, three times: as one writes it with care, tuned, and with all the rounds of a block at once.

None of them loops over items in Python. What a block explores is drawn once a block, users and discounts are made
beforehand, and whatever can wait until after the last round waits (see `numpy_summary`).
"""

from __future__ import annotations

import numpy as np

from benchmarks.numpy_summary import Played, discounts


class RTop1F:
    """Chaudhuri and Tewari 2015, Algorithm 1, for DCG and binary relevance, with keep-rest exploration."""

    def __init__(self, *, n_items: int, horizon: int, rng: np.random.Generator) -> None:
        m, T = n_items, horizon
        K = max(1, min(round(T ** (2 / 3) / m ** (1 / 3)), T // m))
        self.m, self.T, self.K = m, T, K
        self.rng = rng
        self.reach = np.sqrt(m * K)  # 1/epsilon
        self.s_hat = np.zeros(m)
        self.r_hat = np.zeros(m)
        self.t = 0
        self.block = 0
        self._plan_block()

    def _plan_block(self) -> None:
        """Draw the item to explore in each round of the block; -1 in the rounds that follow the leader."""
        length = (self.block + 1) * self.T // self.K - self.t
        plan = np.full(length, -1)
        plan[self.rng.permutation(length)[: self.m]] = np.arange(self.m)[:length]
        self.plan = plan.tolist()  # reading a number from a list is quicker than from an array
        self.place = 0

    def _next_block(self) -> None:
        self.s_hat += self.r_hat
        self.block += 1
        self._plan_block()

    def play(self, relevance: np.ndarray) -> Played:
        """One round for each row of `relevance`."""
        discount = discounts(self.m)
        values = np.empty(len(relevance))
        explored = np.zeros(len(relevance), np.bool_)
        for i, gains in enumerate(relevance):
            if self.place == len(self.plan):
                self._next_block()
            item = self.plan[self.place]
            scores = self.s_hat + self.reach * self.rng.random(self.m)
            order = np.argsort(-scores)
            if item >= 0:
                order = np.concatenate(([item], order[order != item]))
                self.r_hat[item] = gains[item]
                explored[i] = True
            values[i] = discount @ gains[order]
            self.place += 1
            self.t += 1
        return Played(values, explored)


class RTop1FInPlace(RTop1F):
    """Tuned: no array is made where one can be reused, and one argsort also moves the item to explore to the top."""

    def play(self, relevance: np.ndarray) -> Played:
        discount = discounts(self.m)
        values = np.empty(len(relevance))
        explored = np.zeros(len(relevance), np.bool_)
        scores = np.empty(self.m)
        for i, gains in enumerate(relevance):
            if self.place == len(self.plan):
                self._next_block()
            item = self.plan[self.place]
            self.rng.random(out=scores)
            scores *= -self.reach  # negative, because argsort puts the lowest first
            scores -= self.s_hat
            if item >= 0:
                scores[item] = -np.inf
                self.r_hat[item] = gains[item]
                explored[i] = True
            values[i] = discount.dot(gains[scores.argsort()])
            self.place += 1
            self.t += 1
        return Played(values, explored)


class RTop1FByBlock(RTop1F):
    """Many rounds in one call: the leader changes only between blocks, and a simulation knows its users beforehand.

    Whoever has to answer one user before the next one comes cannot do this, and few rankers allow it.
    """

    NUMBERS_AT_ONCE = 1 << 16  # so that they stay in the cache

    def play(self, relevance: np.ndarray) -> Played:
        discount = discounts(self.m)
        values = np.empty(len(relevance))
        explored = np.zeros(len(relevance), np.bool_)
        at_once = max(1, self.NUMBERS_AT_ONCE // self.m)
        first = 0
        while first < len(relevance):
            if self.place == len(self.plan):
                self._next_block()
            last = min(self.place + at_once, self.place + len(relevance) - first)
            plan = np.array(self.plan[self.place : last])
            gains = relevance[first : first + len(plan)]
            scores = self.rng.random(gains.shape)
            scores *= -self.reach
            scores -= self.s_hat
            rows = np.flatnonzero(plan >= 0)
            items = plan[rows]
            scores[rows, items] = -np.inf
            self.r_hat[items] = gains[rows, items]
            explored[first + rows] = True
            orders = scores.argsort(axis=1)
            values[first : first + len(plan)] = np.take_along_axis(gains, orders, axis=1) @ discount
            first += len(plan)
            self.place += len(plan)
            self.t += len(plan)
        return Played(values, explored)
