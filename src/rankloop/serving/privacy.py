"""Contexts of data subjects: encrypted with a key of the subject's own before they are written anywhere.

AES-SIV: the same context of the same list gives the same bytes, so that a request that is sent again is the same
request; a list's ID and its ranker are authenticated with it, so that one list's context cannot be passed off as
another's. Once the keys of a subject are destroyed, nobody reads its contexts any more.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from rankloop.extras import MissingExtra, require
from rankloop.serving.admission import Limits, RequestError, Unavailable
from rankloop.serving.api import RankRequest
from rankloop.serving.rank_request import check_context
from rankloop.serving.stores.contract import Store, StoreError, SubjectKey

KEY_BYTES = 64
REMEMBERED = 60.0  # seconds that a process uses a key without asking the store again
_SUBJECTS = 10_000  # whose keys are at hand
_CODE = 83  # of the MessagePack extension


class Context(NamedTuple):
    """The context of a list, as far as it can be read."""

    value: Any
    erased: bool = False


def _cipher(key: bytes) -> Any:
    require("cryptography", extra="erasure", for_="encrypting the context of a subject")
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    return AESSIV(key)


def encrypted(key: SubjectKey, context: Any, *, ranker: str, decision_id: str) -> msgspec.msgpack.Ext:
    """A context as it is written: the name of its key, and bytes that nobody reads without it."""
    about = [ranker.encode(), decision_id.encode()]
    plain = msgspec.msgpack.encode(context, order="deterministic")
    secret = _cipher(key.key or b"").encrypt(plain, about)
    return msgspec.msgpack.Ext(_CODE, msgspec.msgpack.encode((key.key_id, secret)))


def key_name(context: Any) -> str | None:
    """The name of the key that a context of the log is encrypted with."""
    if not isinstance(context, msgspec.msgpack.Ext):
        return None
    return msgspec.msgpack.decode(context.data, type=tuple[str, bytes])[0]


async def read_context(store: Store, context: Any, *, ranker: str, decision_id: str) -> Context:
    """The context of a list, decrypted where its key is there."""
    if not isinstance(context, msgspec.msgpack.Ext):
        return Context(context)
    key_id, secret = msgspec.msgpack.decode(context.data, type=tuple[str, bytes])
    found = await store.find_subject_key(key_id)
    if found is None or found.key is None:
        return Context(None, erased=True)
    plain = _cipher(found.key).decrypt(secret, [ranker.encode(), decision_id.encode()])
    return Context(msgspec.msgpack.decode(plain))


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
        for field in ("features", "shared", "query"):
            if getattr(request, field) is not None:
                raise RequestError(
                    f"{field} is learnt from, and cannot be erased: leave it out, or leave out subject",
                    field=field,
                )
        context = None
        if request.context is not None:
            check_context(request.context, self._limits)
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
