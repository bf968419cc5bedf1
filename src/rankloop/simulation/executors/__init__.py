"""Where jobs run: threads, processes of this machine, a Ray cluster, or anything with `submit`.

`simulation.play_many`, `simulation.compare`, `simulation.tune` and `rankloop reproduce` take an `executor`. The jobs
and their seeds are the same for each of them, and so is every result, byte by byte.
"""

from rankloop.simulation.executors.choose import is_threads, opened
from rankloop.simulation.executors.dispatch import Dispatch, Executor
from rankloop.simulation.executors.lost import WorkerLost
from rankloop.simulation.executors.pickling import NotSendable
from rankloop.simulation.executors.processes import Processes
from rankloop.simulation.executors.ray_cluster import RayCluster

__all__ = [
    "Dispatch",
    "Executor",
    "NotSendable",
    "Processes",
    "RayCluster",
    "WorkerLost",
    "is_threads",
    "opened",
]
