"""The one error that is worth another try: the worker is gone, and the job has done nothing wrong that we know of."""

from __future__ import annotations


class WorkerLost(RuntimeError):
    """The process or the machine that computed a job has ended before the job did."""
