"""Learning from logs: click models estimated from them, and what other rankings would have been worth."""

from rankloop.logs.pbm import ClickModelWarning, FittedPBM, fit_pbm

__all__ = ["ClickModelWarning", "FittedPBM", "fit_pbm"]
