"""The rows of the log: their bytes are a format that old logs are in, so they are pinned here."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rankloop.serving.log import records
from rankloop.serving.log.records import (
    KINDS,
    Answer,
    Config,
    Conflict,
    Decision,
    Expire,
    Freeze,
    Items,
    Packed,
    Policy,
    Promote,
    Rollback,
    Row,
)

BODIES: dict[str, msgspec.Struct] = {
    "config": Config("RTop1F", 7, ["a", "b"], {"k": 1}, Policy(late="learn")),
    "reset": Config("RTop1F", 7, ["a"]),
    "decision": Decision(3, 0, b"\0\0\0\0", b"k" * 16, 99, True, b"p", (Packed("<f8", (1,), b"12345678"),)),
    "feedback": Answer("relevance", np.array([1.0]).astype("<f8").tobytes()),
    "items": Items(["c"], ["a"]),
    "freeze": Freeze(True),
    "promote": Promote(0.5),
    "expire": Expire(4),
    "rollback": Rollback(4, "hash", b"learnt"),
    "conflict": Conflict("feedback", "e", b"body"),
    "policy": records.PolicyChange("e", records.Policy(answers="union")),
    "ubi": records.Waits("impression", "tea", 3, "calm", "shop"),
}


def test_the_numbers_of_the_kinds_are_what_stores_have_written() -> None:
    assert KINDS == (
        "config",
        "decision",
        "activate",
        "feedback",
        "expire",
        "items",
        "freeze",
        "rollback",
        "reset",
        "conflict",
        "degraded",
        "upgrade",
        "policy",
        "promote",
        "import",
        "ubi",
    )


@pytest.mark.parametrize("kind", sorted(BODIES))
def test_a_body_is_read_as_it_was_written(kind: str) -> None:
    body = BODIES[kind]
    row = msgspec.convert(
        {"seq": 1, "at": 1, "kind": kind, "event_id": "e", "body": records.encode(body)}, Row
    )
    assert records.read_body(row) == body


def test_a_row_without_a_body_has_none() -> None:
    assert records.read_body(Row(1, 1, "activate", "e", b"")) is None


@pytest.mark.parametrize(
    ("body", "written"),
    [
        (Expire(4), "9104"),
        (Freeze(True), "91c3"),
        (Items(["c"], ["a"]), "9291a16391a161"),
        (Answer("clicks", b"\0\1"), "92a6636c69636b73c4020001"),
        (Config("A", 7), "82a9616c676f726974686da141a47365656407"),
        (Packed("<f8", (2, 1), b"x"), "93a33c6638920201c40178"),
        (
            Decision(3, 1, b"s", b"k", 99, False),
            "9d0301c40173c4016b63c2c090c0c0c0c0c0",
        ),
        (
            Decision(3, 1, b"s", b"k", 99, False, trial=records.Trial(b"b")),
            "9f0301c40173c4016b63c2c090c0c0c0c0c0c092c40162c400",
        ),
        (
            Decision(3, 1, b"s", b"k", 99, False, stored=records.ByReference(b"i", b"c", b"u")),
            "dc00100301c40173c4016b63c2c090c0c0c0c0c0c0c093c40169c40163c40175",
        ),
        (
            Items(["c"], [], ["a"], Packed("<f4", (2, 1), b"x"), ["n"]),
            "9591a1639091a16193a33c6634920201c4017891a16e",
        ),
    ],
)
def test_the_bytes_do_not_change(body: msgspec.Struct, written: str) -> None:
    assert records.encode(body).hex() == written


def test_a_list_of_before_deadlines_were_measured_between_rows_is_read_as_it_was() -> None:
    old = records.read_decision(bytes.fromhex("9c0301c40173c4016b63c2c090c0c0c0c0"))
    assert old == Decision(3, 1, b"s", b"k", 99, False)
    assert (old.deadline, old.allowed) == (99, None)


def test_a_policy_that_says_nothing_of_degraded_lists_has_the_bytes_it_always_had() -> None:
    assert (
        msgspec.json.encode(Policy())
        == b'{"deadline_seconds":86400.0,"parking_seconds":60.0,"late":"ignore"}'
    )


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<i4", ">i8", "<f4", "?"])
def test_arrays_are_packed_in_little_endian(dtype: str) -> None:
    array = np.array([[1, 0], [3, 2]]).astype(dtype)
    packed = records.pack(array)
    assert not packed.dtype.startswith(">")
    again = records.unpack(packed)
    assert again.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(again, array)


def test_only_numbers_are_unpacked() -> None:
    with pytest.raises(ValueError, match="must hold numbers"):
        records.unpack(Packed("|O", (1,), b"12345678"))
