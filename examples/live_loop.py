"""A live loop of your own: rankings kept as JSON, feedback that is late or missing, and a restart every day."""

import json
import tempfile
from pathlib import Path

import numpy as np

import rankloop
from rankloop import rankers
from rankloop.base import Ranker, Ranking

HEADLINES = ["Council budget", "Storm warning", "Local derby", "Chess results", "New bakery", "Road works"]
LIKED_BY = [0.15, 0.85, 0.60, 0.05, 0.70, 0.30]  # true preferences, which the ranker never sees


def open_ranker(folder: Path) -> Ranker:
    """The ranker as it was left, or a new one."""
    saved = folder / "ranker.npz"
    return rankloop.load(saved) if saved.exists() else rankers.TopFTRL(n_items=len(HEADLINES), measure="dcg")


def to_json(ranking: Ranking) -> str:
    """A ranking as text: for a database row, a cookie, a message."""
    return json.dumps({name: array.tolist() for name, array in ranking.save().items()})


def from_json(text: str) -> Ranking:
    return Ranking.load({name: np.array(value) for name, value in json.loads(text).items()})


def one_day(ranker: Ranker, visitors: int, *, seed: int) -> tuple[int, int]:
    """Show headlines to visitors; most report later whether they liked the top one. Returns (liked, answered)."""
    rng, people = np.random.default_rng(seed), np.random.default_rng(seed + 1000)
    waiting: list[str] = []
    liked = answered = 0
    for _ in range(visitors):
        waiting.append(to_json(ranker.rank(rng=rng)))
        if len(waiting) > 3:  # feedback comes, not always in order
            ticket = from_json(waiting.pop(int(people.integers(len(waiting)))))
            if people.random() < 0.8:  # the others close the page: no feedback
                likes = people.random() < LIKED_BY[ticket.items[0]]
                ranker.learn(ticket, [float(likes)])
                liked, answered = liked + likes, answered + 1
    return liked, answered


with tempfile.TemporaryDirectory() as temporary:
    folder = Path(temporary)
    for day in range(1, 6):
        ranker = open_ranker(folder)  # each day another process
        liked, answered = one_day(ranker, 2_000, seed=day)
        ranker.save(folder / "ranker.npz")
        print(f"day {day}: {answered:,} users answered, {liked / answered:.0%} liked the headline on top")

    print("\nlearnt order:")
    for item in open_ranker(folder).current():
        print(f"  {HEADLINES[item]:<15} liked by {LIKED_BY[item]:.0%}")
