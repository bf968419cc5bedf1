"""The client for ordinary code and threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

import httpx

from rankloop.serving.client import batches, calls, catalogue, explaining, importing, promotion
from rankloop.serving.client.calls import Call
from rankloop.serving.client.documented import documented
from rankloop.serving.client.retrying import Connection, Tries

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def _sends(build: Callable[Arguments, Call[Answer]]) -> Callable[Concatenate[Client, Arguments], Answer]:
    def method(self: Client, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        return self._send(build(*args, **kwargs))

    return documented(method, build, owner="Client")


class Client:
    """Talks to a rankloop service. One client may be shared by threads.

    Every call that changes something carries an ID, and the same ID counts once, so that calls are repeated safely.

    Parameters
    ----------
    url : str or sequence of str, optional
        Where the service is, such as "http://127.0.0.1:8000"; of several replicas, the addresses of all: where one does
        not answer, the next is asked.
    key : str, optional
        An API key, where the service wants one.
    timeout : float, optional
        Seconds to wait for an answer.
    retries : int, optional
        How often a call is repeated when the service cannot be reached or is too busy.
    transport : httpx.BaseTransport, optional
        Another way to reach the service: through a proxy, with certificates of your own, or to a test.

    Raises
    ------
    RankloopError
        By every call that the service refuses.
    Unreachable
        By every call that the service does not answer.

    Examples
    --------
    ::

        client = Client("http://127.0.0.1:8000")
        client.create("unwind", algorithm="TopFTRL", items=["walk", "meditate", "music"])
        shown = client.rank("unwind")
        client.feedback("unwind", shown.decision_id, relevance=[1])
    """

    def __init__(
        self,
        url: str | Sequence[str] = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 5,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, key=key, timeout=timeout, retries=retries)
        if transport is None:
            transport = httpx.HTTPTransport(
                verify=self._connection.context, limits=self._connection.limits(None), trust_env=False
            )
        self._http = httpx.Client(transport=transport, **self._connection.settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _send(self, call: Call[Answer]) -> Answer:
        tries = Tries(self._connection)
        while True:
            try:
                response = self._http.request(call.method, tries.url(call), content=call.body)
            except httpx.RequestError as error:
                pause = tries.after_failure(error)
            else:
                if response.is_success:
                    return tries.read(call, response)
                pause = tries.after_refusal(response)
            time.sleep(pause)

    create = _sends(catalogue.create)
    ranker = _sends(calls.ranker)
    rankers = _sends(calls.rankers)
    rank = _sends(calls.rank)
    rank_many = _sends(batches.rank_many)
    activate = _sends(calls.activate)
    feedback = _sends(calls.feedback)
    feedback_many = _sends(calls.feedback_many)
    change_items = _sends(catalogue.change_items)
    item_features = _sends(catalogue.item_features)
    change_policy = _sends(batches.change_policy)
    freeze = _sends(calls.freeze)
    promote = _sends(promotion.promote)
    import_lists = _sends(importing.import_lists)
    import_state = _sends(importing.import_state)
    rollback = _sends(calls.rollback)
    reset = _sends(calls.reset)
    delete = _sends(calls.delete)
    snapshots = _sends(calls.snapshots)
    take_snapshot = _sends(calls.take_snapshot)
    decision = _sends(calls.decision)
    explain = _sends(explaining.explain)
    events = _sends(calls.events)
    series = _sends(calls.series)
