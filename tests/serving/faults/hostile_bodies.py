"""Bodies that a decoder accepts and nobody expects, made by rule from the values that JSON and msgpack have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

_BIG = (1 << 63, 1 << 64, -(1 << 63) - 1, 10**30, -(10**30), 10**300)


def values() -> Iterator[tuple[str, bytes]]:
    """A name and the JSON of each value that may stand where any value may."""
    for number in _BIG:
        yield f"integer {number:.3e}", str(number).encode()
    for text in ("1e400", "-1e400", "1e-400", "-0.0", "123456789012345678901234567890.5"):
        yield f"number {text}", text.encode()
    for depth in (40, 965, 975):
        yield f"list {depth} deep", b"[" * depth + b"]" * depth
        yield f"object {depth} deep", b'{"a":' * depth + b"1" + b"}" * depth
    yield "lone surrogate", rb'"\ud800"'
    yield "zero byte", rb'"\u0000"'
    yield "long text", json.dumps("x" * 20_000).encode()
    yield "many keys", json.dumps({str(i): i for i in range(3_000)}).encode()
    yield "a key twice", b'{"a":1,"a":2}'
    yield "empty key", b'{"":1}'


def packed_values() -> Iterator[tuple[str, bytes]]:
    """A name and the msgpack of each value that JSON does not have."""
    for name, value in (
        ("integer key", {1: 2}),
        ("bytes key", {b"a": 1}),
        ("null key", {None: 1}),
        ("float key", {1.5: 1}),
        ("list key", {(1, 2): 1}),
        ("bytes", b"\0\xff"),
        ("extension", msgspec.msgpack.Ext(5, b"abc")),
        ("nan", float("nan")),
        ("infinity", float("inf")),
        ("unsigned 64 bits", (1 << 64) - 1),
    ):
        yield name, msgspec.msgpack.encode(value)
        yield f"{name}, deeper", msgspec.msgpack.encode([{"a": value}])
    yield "time stamp", b"\xd6\xff\x00\x00\x00\x01"
    yield "text that is no text", b"\xa2\xff\xfe"
    yield "a map that promises more", b"\xdf\xff\xff\xff\xff"
    yield "a list that promises more", b"\xdd\xff\xff\xff\xff"


def bodies(template: dict[str, Any]) -> Iterator[tuple[str, str, bytes]]:
    """The template with every field in turn replaced by every value: name, content type, body."""
    for field in template:
        rest = {name: value for name, value in template.items() if name != field}
        plain = json.dumps(rest).encode()[:-1] + (b"," if rest else b"") + json.dumps(field).encode() + b":"
        for name, value in values():
            yield f"{field}: {name}", "application/json", plain + value + b"}"
        packed = bytes([0x80 | len(template)]) + b"".join(
            msgspec.msgpack.encode(part) for pair in rest.items() for part in pair
        )
        for name, value in packed_values():
            yield f"{field}: {name}", "application/msgpack", packed + msgspec.msgpack.encode(field) + value
