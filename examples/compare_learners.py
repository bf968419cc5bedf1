"""The price of partial feedback: three rankers with the same simulated users, and a figure of their regret.

Usage: python compare_learners.py [picture.png]
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from rankloop import environments, rankers, simulation
from rankloop.base import Ranker

ROUNDS, SEEDS = 20_000, range(1, 6)
learners: dict[str, Callable[[], Ranker]] = {
    "Uniform, no feedback": lambda: rankers.Uniform(n_items=8),
    "RTop1F, top item revealed": lambda: rankers.RTop1F(n_items=8, horizon=ROUNDS, measure="dcg"),
    "FTPL, full information": lambda: rankers.FTPL(n_items=8, horizon=ROUNDS, measure="dcg"),
}
people = environments.FixedItems(environments.users.bernoulli(np.linspace(0.9, 0.1, 8)), measure="dcg")

figure = Figure(figsize=(7, 4), layout="constrained")
axes = figure.subplots()
print(f"{'':<26}{'mean DCG':>9}{'regret a round':>16}{'explored':>10}")
for name, make in learners.items():
    traces = []
    for seed in SEEDS:
        people.restart()
        traces.append(simulation.play(make(), people, rounds=ROUNDS, seed=seed, points=500))
    value = np.mean([trace.mean_value for trace in traces])
    regret = np.mean([trace.regret for trace in traces], axis=0)
    share = np.mean([trace.exploration_share for trace in traces])
    print(f"{name:<26}{value:>9.3f}{regret[-1] / ROUNDS:>16.4f}{share:>10.0%}")
    axes.loglog(traces[0].rounds, regret, label=name)
axes.set(xlabel="round", ylabel="cumulative DCG regret", title=f"Mean of {len(SEEDS)} runs")
axes.legend(frameon=False)

picture = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "learners.png"
figure.savefig(picture, dpi=110)
print(f"\npicture: {picture}")
