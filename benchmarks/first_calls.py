"""The first call of several rankers; a minute and more of compiling, so only by name.

Another version of the package is measured with `PYTHONPATH=/path/to/it/src python -m benchmarks.first_calls`.
"""

from __future__ import annotations

from collections.abc import Callable

from rich import print as show

from benchmarks import first_call
from benchmarks.first_call import FirstCall, tables
from benchmarks.timing import FULL, Effort

__all__ = ["EXAMPLES", "measure", "tables"]

_IMPORTS = first_call.IMPORTS
EXAMPLES = {
    "RTop1F(10), 1,000 rounds": f"""
{_IMPORTS}
users = environments.FixedItems(environments.users.noisy_halves(n_items=10), measure="dcg")
simulation.play(rankers.RTop1F(n_items=10, horizon=1000), users, rounds=1000, seed=1)
""",
    "RTopKF, 1,000 rounds": f"""
{_IMPORTS}
queries = data.synthetic_letor(n_queries=50, n_features=20, seed=1)
users = environments.QueryStream(queries, measure="ndcg@10")
simulation.play(rankers.RTopKF(n_features=20), users, rounds=1000, seed=1)
""",
    "FTRLPBM(10, 5), 1,000 rounds": f"""
{_IMPORTS}
simulation.play(rankers.FTRLPBM(n_items=10, n_positions=5), environments.named("gap-0.03"), rounds=1000, seed=1)
""",
    "FTRLPBM(10, 5), one rank, one learn": f"""
{_IMPORTS}
import numpy
ranker = rankers.FTRLPBM(n_items=10, n_positions=5)
ranker.learn(ranker.rank(rng=numpy.random.default_rng(1)), [0, 1, 0, 0, 0])
""",
}


def measure(effort: Effort, tell: Callable[[str], None]) -> list[FirstCall]:
    """Each example, in processes of its own."""
    return first_call.timed(EXAMPLES, tell)


if __name__ == "__main__":
    show(*tables([*first_call.measure(FULL, show), *measure(FULL, show)]))
