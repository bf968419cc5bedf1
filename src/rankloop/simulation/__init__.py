"""The loop of rounds: a user arrives, a ranking is shown, the ranker learns from the feedback; and the trace of it.

Where ranker and environment are made of kernels the whole loop is compiled; otherwise it runs step by step. Both
give the same run, bit by bit, and `checks.check_same_story` tests it.
"""

from rankloop.simulation.compare import Comparison, compare
from rankloop.simulation.play import play
from rankloop.simulation.runs import play_many
from rankloop.simulation.trace import Trace
from rankloop.simulation.tune import TunedRun, Tuning, tune

__all__ = ["Comparison", "Trace", "TunedRun", "Tuning", "compare", "play", "play_many", "tune"]
