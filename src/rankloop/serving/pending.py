"""Futures that tell the one who waits at once, and not in the next turn of the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")
_log = logging.getLogger("rankloop.serving")


class Pending(asyncio.Future[Result]):
    """A future that `settle` or `fail` ends. It can be awaited as any other.

    then: called as soon as it is settled or has failed, in place of what a loop does for the callbacks of a future:
    with a batch of a thousand requests, that is a turn of the loop for each of them.
    """

    then: Callable[[], Any] | None = None

    def settle(self, result: Result) -> None:
        """End it; nothing to do where it has ended, as when the caller has gone."""
        if not self.done():
            self.set_result(result)
            self._tell()

    def fail(self, error: BaseException) -> None:
        """End it with an error; nothing to do where it has ended."""
        if not self.done():
            self.set_exception(error)
            self._tell()

    def _tell(self) -> None:
        if self.then is not None:
            try:
                self.then()
            except Exception:  # whoever settles it has others to tell
                _log.exception("what was to follow an answer failed")
