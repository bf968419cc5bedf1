"""Encrypts the context of a data subject with a key of its own, before it is written anywhere."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from rankloop.extras import MissingExtra
from rankloop.serving.admission import Limits, check_value
from rankloop.serving.api import RankRequest
from rankloop.serving.errors import RequestError, TooLarge, Unavailable
from rankloop.serving.log.sealed_context import encrypted
from rankloop.serving.stores.contract import Store, StoreError
from rankloop.serving.stores.subjects import SubjectKey

KEY_BYTES = 64
REMEMBERED = 60.0  # seconds that a process uses a key without asking the store again
_SUBJECTS = 10_000  # whose keys are at hand


class Sealing:
    """Encrypts the context of requests that name a subject.

    store: keeps the keys. now: the time, in milliseconds.
    """

    def __init__(self, store: Store, *, now: Callable[[], int], limits: Limits) -> None:
        self._store = store
        self._now = now
        self._limits = limits
        self._keys: OrderedDict[str, tuple[SubjectKey, int]] = OrderedDict()

    async def sealed(self, ranker: str, request: RankRequest, decision_id: str) -> RankRequest:
        """The request with its context encrypted."""
        for field in ("features", "shared"):
            if getattr(request, field) is not None:
                raise RequestError(
                    f"{field} of a request are learnt from, and cannot be erased: leave them out, or leave out subject",
                    field=field,
                )
        context = None
        if request.context is not None:
            check_value(request.context, field="context")
            told = msgspec.json.encode(request.context)
            if len(told) > self._limits.context_bytes:
                raise TooLarge(
                    f"context must be at most {self._limits.context_bytes} bytes, got {len(told)}",
                    field="context",
                )
            key = await self._key(request.subject or "")
            try:
                context = encrypted(key, request.context, ranker=ranker, decision_id=decision_id)
            except MissingExtra as error:
                raise RequestError(str(error), field="subject") from None
        return msgspec.structs.replace(request, context=context)

    async def _key(self, subject: str) -> SubjectKey:
        kept = self._keys.get(subject)
        if kept is not None and 0 <= self._now() - kept[1] < 1000 * REMEMBERED:
            return kept[0]
        try:
            found = await self._store.subject_key(subject)
            if found is None:
                found = SubjectKey(secrets.token_hex(8), secrets.token_bytes(KEY_BYTES))
                found = await self._store.write_subject_key(subject, found, at=self._now())
        except StoreError as error:
            raise Unavailable(f"the key of the subject cannot be had: {error}") from error
        self._keys[subject] = (found, self._now())
        self._keys.move_to_end(subject)
        if len(self._keys) > _SUBJECTS:
            self._keys.popitem(last=False)
        return found
