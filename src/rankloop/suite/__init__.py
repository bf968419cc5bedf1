"""A fixed set of worlds, grouped by capability, and one score for each: what a ranker can do, and what it cannot.

`rankloop suite run` plays it, `report` draws it, `verify` replays a sample of somebody else's results.
"""

from rankloop.suite.entry import Entry, NotApplicable, every_entry
from rankloop.suite.running import run
from rankloop.suite.scores import Score, capability_scores, interquartile_mean
from rankloop.suite.submission import Submission, read_submission
from rankloop.suite.verifying import Replay, Verification, verify
from rankloop.suite.world import World
from rankloop.suite.worlds import WORLDS, capabilities

__all__ = [
    "WORLDS",
    "Entry",
    "NotApplicable",
    "Replay",
    "Score",
    "Submission",
    "Verification",
    "World",
    "capabilities",
    "capability_scores",
    "every_entry",
    "interquartile_mean",
    "read_submission",
    "run",
    "verify",
]
