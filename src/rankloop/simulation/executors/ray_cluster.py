"""Workers on a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Self

from rankloop.arguments import whole
from rankloop.extras import require

# What Ray raises when a worker or a machine is gone, and not because of what the call did.
_LOST = (
    "WorkerCrashedError",
    "NodeDiedError",
    "ObjectLostError",
    "LocalRayletDiedError",
    "OutOfMemoryError",
    "RaySystemError",
)


class RayCluster:
    """Workers on a Ray cluster, or on a small one that is started here for the purpose.

    Every machine needs rankloop and its libraries in the same versions; where a worker has others, the first result
    that it returns is refused.

    Parameters
    ----------
    address : str, optional
        The address of a cluster, such as ``"10.0.0.7:6379"`` or ``"ray://head:10001"``. By default the one to which
        this process is connected, or that of the environment variable ``RAY_ADDRESS``, or else a new one on this
        machine.
    workers : int, optional
        How many calls run at once; None takes one for each core of the cluster.
    """

    def __init__(self, address: str | None = None, *, workers: int | None = None) -> None:
        if workers is not None:
            workers = whole("workers", workers, at_least=1)
        require("ray", extra="cluster", for_='executor="ray"')
        import ray

        self._ray = ray
        self._connected = not ray.is_initialized()
        if self._connected:
            _connect(ray, address, workers)
        elif address is not None and address != ray.get_runtime_context().gcs_address:
            raise ValueError(
                f"address must be {ray.get_runtime_context().gcs_address}, to which this process is connected, "
                f"got {address!r}"
            )
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        # Ray's own retries are off: jobs are sent again by whoever counts them.
        self._call = ray.remote(num_cpus=1, max_retries=0)(_call)
        self._lost = tuple(getattr(ray.exceptions, name) for name in _LOST)
        self._tasks: set[_Task] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Call a function in a worker.

        Parameters
        ----------
        fn : callable
            The function.
        *args : Any
            Its arguments.

        Returns
        -------
        Any
            A future, with `result`, `add_done_callback` and `cancel`.
        """
        task = _Task(self._ray, self._call.remote(fn, *args))
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._tasks.discard(task))
        return task

    def is_lost(self, error: Exception) -> bool:
        """Whether an error says that a worker or a machine is gone.

        Parameters
        ----------
        error : Exception
            An error of a future.

        Returns
        -------
        bool
            Whether the call is worth another try.
        """
        return isinstance(error, self._lost)

    def close(self) -> None:
        """End what is running, and the connection if it was made here."""
        for task in list(self._tasks):
            task.cancel()
        if self._connected:
            self._ray.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Task:
    """A call on its way."""

    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray, self._reference = ray, reference
        self._future = reference.future()

    def result(self) -> Any:
        return self._future.result()

    def add_done_callback(self, call: Callable[[Any], object]) -> None:
        self._future.add_done_callback(call)

    def cancel(self) -> None:
        if not self._future.done():
            # By force: compiled code hears of nothing until it returns.
            self._ray.cancel(self._reference, force=True)


def _call(fn: Callable[..., Any], *args: Any) -> Any:
    return fn(*args)


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address is None and not os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(
            **options,
            address="local",
            num_cpus=workers or os.cpu_count(),
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
        )
        return
    try:
        ray.init(**options, address=address)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = address or os.environ["RAY_ADDRESS"]
        raise ConnectionError(f"no Ray cluster answers at {where}: {error}") from error
