"""A fixed set of worlds, grouped by capability, and one score for each: what a ranker can do, and what it cannot.

`rankloop suite run` plays it, `report` draws it, `verify` replays a sample of somebody else's results.
"""

from rankloop.suite.atlas import COARSE, FULL, Atlas, Cell, Grid, draw_atlas, read_atlas
from rankloop.suite.report import Score, capability_scores, interquartile_mean
from rankloop.suite.submission import (
    Entry,
    NotApplicable,
    Replay,
    Submission,
    Verification,
    every_entry,
    read_submission,
    run,
    verify,
)
from rankloop.suite.worlds import WORLDS, World, capabilities

__all__ = [
    "COARSE",
    "FULL",
    "WORLDS",
    "Atlas",
    "Cell",
    "Entry",
    "Grid",
    "NotApplicable",
    "Replay",
    "Score",
    "Submission",
    "Verification",
    "World",
    "capabilities",
    "capability_scores",
    "draw_atlas",
    "every_entry",
    "interquartile_mean",
    "read_atlas",
    "read_submission",
    "run",
    "verify",
]
