"""The context of a list as it is in the log where its request named a subject: encrypted with the subject's key.

AES-SIV: the same context of the same list gives the same bytes, so that a request that is sent again is the same
request; a list's ID and its ranker are authenticated with it, so that one list's context cannot be passed off as
another's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from rankloop.extras import require
from rankloop.serving.stores.contract import Store, SubjectKey

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
    told = _cipher(key.key or b"").encrypt(plain, about)
    return msgspec.msgpack.Ext(_CODE, msgspec.msgpack.encode((key.key_id, told)))


def key_name(context: Any) -> str | None:
    """The name of the key that a context of the log is encrypted with."""
    if not isinstance(context, msgspec.msgpack.Ext):
        return None
    return msgspec.msgpack.decode(context.data, type=tuple[str, bytes])[0]


async def read_context(store: Store, context: Any, *, ranker: str, decision_id: str) -> Context:
    """The context of a list, decrypted where its key is there."""
    if not isinstance(context, msgspec.msgpack.Ext):
        return Context(context)
    key_id, told = msgspec.msgpack.decode(context.data, type=tuple[str, bytes])
    found = await store.find_subject_key(key_id)
    if found is None or found.key is None:
        return Context(None, erased=True)
    plain = _cipher(found.key).decrypt(told, [ranker.encode(), decision_id.encode()])
    return Context(msgspec.msgpack.decode(plain))
