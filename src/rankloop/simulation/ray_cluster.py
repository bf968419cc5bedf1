"""Workers on a Ray cluster, as an executor."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Self

from rankloop.arguments import whole
from rankloop.extras import require

_RETRIES = 3  # so often Ray begins a call again whose worker or machine is gone


class RayCluster:
    """Workers on a Ray cluster, or on a small one that is started here for the purpose.

    Every machine needs rankloop and its libraries in the same versions; where a worker has others, the first result
    that it returns is refused. What a lost machine was computing, Ray computes again on another.

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
        workers = None if workers is None else whole("workers", workers, at_least=1)
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
        self._call = ray.remote(num_cpus=1, max_retries=_RETRIES)(_call)
        self._running: set[Any] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Call the function `fn` with `args` in a worker; a future of what it returns."""
        reference = self._call.remote(fn, *args)
        self._running.add(reference)
        future = reference.future()
        future.add_done_callback(lambda _: self._running.discard(reference))
        return future

    def close(self) -> None:
        """End what is running, and the connection if it was made here."""
        for reference in list(self._running):
            # By force: compiled code hears of nothing until it returns.
            self._ray.cancel(reference, force=True)
        if self._connected:
            self._ray.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _call(fn: Callable[..., Any], *args: Any) -> Any:
    return fn(*args)


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address is None and not os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        here = {"num_cpus": workers or os.cpu_count(), "include_dashboard": False}
        ray.init(**options, **here, address="local", _node_ip_address="127.0.0.1")
        return
    try:
        ray.init(**options, address=address)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = address or os.environ["RAY_ADDRESS"]
        raise ConnectionError(f"no Ray cluster answers at {where}: {error}") from error
