"""Start the service and run it until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import socket
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import uvicorn

from rankloop import __version__
from rankloop.base import whole
from rankloop.kernels import jit
from rankloop.serving.admission import Limits
from rankloop.serving.auth import checked_origins, is_local, stored_keys
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.http.connections import Connections
from rankloop.serving.rerank import load_extractor
from rankloop.serving.retention import Retention, Trimming
from rankloop.serving.simulated_users import come_and_go, rehearse
from rankloop.serving.stores.contract import Store, StoreError

_log = logging.getLogger("rankloop.serving")
_PATIENCE = 5.0  # seconds of folding before the service says that it is at it


def run(
    store: Store,
    *,
    host: str,
    port: int,
    snapshot_every: int,
    place: str,
    tell: Callable[[str], object],
    people: bool = False,
    seconds: float | None = None,
    limits: Limits | None = None,
    retention: Retention | None = None,
    webhooks: Path | None = None,
    origins: Collection[str] = (),
    extractor: str | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C, or for `seconds`; ValueError where that is refused.

    place: where the store is, in words. people: simulate users, and take any free port where this one is taken.
    retention: how much of each log stays live; None keeps all of it live.
    webhooks: a file that says which events of other systems are feedback.
    origins: of the pages of others that may use the service.
    extractor: the function package.module:function that finds features of documents to rerank.
    """
    checked_origins(origins)
    whole("snapshot_every", snapshot_every, at_least=1)
    if not 0 <= port <= 65_535:
        raise ValueError(f"port must be between 0 and 65535, got {port}")
    if people and jit.MODE == "numba":
        asyncio.run(rehearse())
    found = None if extractor is None else load_extractor(extractor)
    listening = _listen(host, port, or_any=people)
    engine = Engine(store, limits=limits, snapshot_every=snapshot_every)
    engine.extractor = found
    if retention is not None:
        engine.housekeeping.trimming = Trimming(engine, retention)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_run(engine, host, listening, place, tell, people, seconds, webhooks, origins))
    except StoreError as error:
        raise ValueError(str(error)) from None


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # it is not made for every system
        return None
    return uvloop.new_event_loop


async def _run(
    engine: Engine,
    host: str,
    listening: socket.socket,
    place: str,
    tell: Callable[[str], object],
    people: bool,
    seconds: float | None,
    webhooks: Path | None,
    origins: Collection[str],
) -> None:
    limits = engine.limits
    app = App(engine, host=host, origins=origins)
    if webhooks is not None:
        app.webhooks.load(webhooks)
    # Before uvicorn: what is wrong with the store is told in one sentence, not as a failed start of an application.
    try:
        await engine.open(wait=False)
    except BaseException:
        listening.close()
        raise
    if not is_local(host) and not await stored_keys(engine.store):
        await engine.close()
        listening.close()
        raise ValueError(
            f"{host} can be reached from other machines, and there are no API keys: create one first with "
            "`rankloop keys add --role admin`"
        )
    connections = Connections(app, limits)
    config = uvicorn.Config(
        connections,
        http="httptools",
        ws="none",
        proxy_headers=False,
        log_level="warning",
        access_log=False,
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=limits.idle_seconds,
    )
    connections.stand_before(config)
    server = _Server(config, app)
    shown = f"[{host}]" if ":" in host else host
    # The thread that waits for the disk wants the interpreter back at once, not after the usual 5 ms.
    sys.setswitchinterval(0.0005)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        address = f"http://{shown}:{listening.getsockname()[1]}"
        await _fold_log(engine, serving, address)
        if engine.ready:
            tell(f"rankloop serves at {address}")
            keys = "none are needed by callers on this machine" if app.access.open else "needed"
            tell(f"version {__version__}; store: {place}; API keys: {keys}")
    await _accompany(server, serving, engine, people=people, seconds=seconds)
    await engine.close()
    if not server.started:
        raise ValueError("the service could not start; the reason is above")


async def _fold_log(engine: Engine, serving: asyncio.Task[None], address: str) -> None:
    """Wait until the log is folded, or the service is to stop. The port is open meanwhile, and says how far it is."""
    folding = asyncio.create_task(engine.folded())
    await asyncio.wait({folding, serving}, timeout=_PATIENCE, return_when="FIRST_COMPLETED")
    if not folding.done() and not serving.done():
        _log.warning("listening at %s; the log is still being folded, /readyz tells how far", address)
        await asyncio.wait({folding, serving}, return_when="FIRST_COMPLETED")
    folding.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await folding
    # What is there now stays; and what comes later has no cycles worth a pause of a tenth of a second.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


class _Server(uvicorn.Server):
    """Lets the streams end when it is to stop: uvicorn itself would wait for them until its patience is over."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.broadcast.release()
        await super().shutdown(sockets)


def _listen(host: str, port: int, *, or_any: bool) -> socket.socket:
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        if or_any and port and error.errno == errno.EADDRINUSE:
            return _listen(host, 0, or_any=False)
        raise ValueError(f"cannot listen on {host}:{port}: {error}") from None
    return listening


async def _accompany(
    server: uvicorn.Server,
    serving: asyncio.Task[None],
    engine: Engine,
    *,
    people: bool,
    seconds: float | None,
) -> None:
    """Wait until it stops; meanwhile simulate users, and stop it when its time is up."""
    if not server.started:
        await serving
        return
    coming = asyncio.create_task(come_and_go(engine)) if people else None
    try:
        await asyncio.wait(
            {serving} | ({coming} if coming else set()), timeout=seconds, return_when="FIRST_COMPLETED"
        )
    finally:
        server.should_exit = True
        if coming is not None:
            coming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await coming
        await serving
