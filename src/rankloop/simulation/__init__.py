"""The loop, once: a user comes, a ranking is shown, its sliver of feedback is learnt from; and what came of it.

Where ranker and environment are made of kernels the whole loop is compiled; otherwise it runs step by step. Both
tell the same story, bit by bit, and `checks.check_same_story` demands it.
"""

from rankloop.simulation.playing import play, play_many
from rankloop.simulation.trace import Trace

__all__ = ["Trace", "play", "play_many"]
