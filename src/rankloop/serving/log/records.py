"""The rows of the log: what kinds there are, and how the body of each is written: msgpack, no pickle."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rankloop.base import Ranker
    from rankloop.serving.stores.contract import Store


Body = TypeVar("Body")
# The place here is what stores write: append to it, never reorder it.
Kind = Literal[
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
]
KINDS: tuple[Kind, ...] = get_args(Kind)
NUMBER_OF_KIND: dict[Kind, int] = {kind: number for number, kind in enumerate(KINDS)}
# What happens to lists. All other kinds change the ranker: nobody may be shown a list from before, once it was told.
ABOUT_LISTS: tuple[Kind, ...] = ("decision", "activate", "feedback", "expire", "conflict", "degraded", "ubi")


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What is to be appended to the log of a ranker.

    event_id: unique within ranker and kind; digest: tells whether a second delivery says the same thing.
    decision: the decision that this is about, None where it is about none (or is one).
    drawn_from: for a decision, the number and the link of the row that the state behind it had folded last. A store
    that others write to as well refuses a decision whose state is not of its log.
    content: what `body` was written from, where that is at hand: it need not be read again by who folds it.
    """

    ranker: str
    kind: Kind
    event_id: str
    body: bytes
    digest: bytes = b""
    decision: str | None = None
    drawn_from: tuple[int, bytes] | None = None
    content: Any = None


class Row(msgspec.Struct, frozen=True, gc=False):
    """One row of a ranker's log. `seq` counts from 1 without gaps; `at` is in milliseconds and never falls.

    link: chains it to the row before, whose link is `before`; see `rankloop.serving.log.digests`.
    """

    seq: int
    at: int
    kind: Kind
    event_id: str
    body: bytes
    digest: bytes = b""
    decision: str | None = None
    link: bytes = b""
    before: bytes = b""


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ranker's policy: how long to wait, what to do with what comes too late, and what to do without the store.

    degraded: whether it may show lists that cannot be written, and so cannot be learnt from.
    answers: which of several answers to one list counts: the first, at once; or, when the deadline has passed, the
    last, the sum of all, or for each position the largest. Both are left out of the bytes where they are not set, so
    that older configurations keep their hash, as are the following.
    apprentice: whether requests with a baseline get the baseline until the ranker is promoted.
    holdout: the share of such requests that always get the baseline.
    silence: whether no answer to a list that was seen means a relevance of 0. It means no click in any case.
    exploration_cap: the largest share of lists that may explore. displacement: how many positions an item may stand
    from its place in the baseline, at most; 0 for any number. See `rankloop.serving.log.guard_rails`.
    gather_seconds: how long clicks that come one by one are gathered, where the first answer counts; 0 for the first.
    """

    deadline_seconds: float = 86_400.0
    parking_seconds: float = 60.0
    late: Literal["ignore", "learn"] = "ignore"
    degraded: bool | msgspec.UnsetType = msgspec.UNSET
    answers: Literal["first", "last", "sum", "union"] | msgspec.UnsetType = msgspec.UNSET
    apprentice: bool | msgspec.UnsetType = msgspec.UNSET
    holdout: float | msgspec.UnsetType = msgspec.UNSET
    silence: Literal["ignore", "zero"] | msgspec.UnsetType = msgspec.UNSET
    exploration_cap: float | msgspec.UnsetType = msgspec.UNSET
    displacement: int | msgspec.UnsetType = msgspec.UNSET
    gather_seconds: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def collects(self) -> bool:
        """Whether answers are gathered until the deadline, and learnt from then."""
        return self.answers in ("last", "sum", "union")

    @property
    def window(self) -> float:
        """For how many seconds from the first click others are gathered, where clicks come one by one."""
        return GATHER_SECONDS if self.gather_seconds is msgspec.UNSET else self.gather_seconds


GATHER_SECONDS = 30.0  # unless a policy says otherwise
DEFAULTS = 4  # of the rankers, counted up where the meaning of a parameter that is not given changes


def given(policy: msgspec.Struct) -> dict[str, Any]:
    """What is set of a policy, of the API or of the log, or is to be set."""
    told = msgspec.structs.asdict(policy)
    return {name: value for name, value in told.items() if value is not None and value is not msgspec.UNSET}


class Packed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An array as bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class Config(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that a ranker is built from; the body of a `config` row, and of a `reset` row.

    version: of the algorithm. probe: what a short trial of it came to where the row was written, empty in rows from
    before there were any; see `rankloop.serving.registry`.
    defaults: which version of the rankers' defaults stands for parameters that are not given. Rows from before there
    were several versions do not have it, and mean the first.
    features: of a ranker with features, a row of stored ones for each item. feature_names: of its columns.
    """

    algorithm: str
    seed: int
    items: list[str] | None = None
    parameters: dict[str, Any] = {}
    policy: Policy = Policy()
    version: int = 1
    probe: str = ""
    defaults: int = 1
    features: Packed | None = None
    feature_names: list[str] = []


def without_items(config: Config) -> Config:
    """The configuration of a ranker with features but for the items that it is created with, which may change."""
    if config.items is None and config.features is None and not config.feature_names:
        return config
    return msgspec.structs.replace(config, items=None, features=None, feature_names=[])


class Choice(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was left to the ranker of a list, where that was not everything; see `rankloop.serving.log.candidate_lists`.

    among: numbers in the catalogue of the items that it could choose (int32), none where the request brought a list.
    positions: those that it filled (int32); what was shown at the others was pinned.
    rest: items that it ordered behind those that were shown (int32), with their propensities (float64).
    """

    among: bytes
    positions: bytes
    rest: bytes = b""
    rest_chances: bytes = b""


class Trial(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The application's own list, where the request brought one; see `rankloop.serving.log.candidate_lists`.

    baseline: numbers of its items for the positions that were not pinned (int32).
    would: what the ranker would have shown there, where the baseline was shown; empty where the ranker's list was.
    """

    baseline: bytes
    would: bytes = b""


class ByReference(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Features of a list that are stored in the catalogue, as of the row that the list was drawn from.

    items: numbers in the catalogue of stored features (int32), pinned items at the end; see
    `rankloop.serving.log.stored_features`.
    columns: what the request added, a row for each item that was not pinned (float32).
    shared: numbers of the request as a whole (float32).
    """

    items: bytes
    columns: bytes = b""
    shared: bytes = b""


class Rails(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What guard rails made of a list; see `rankloop.serving.log.guard_rails`.

    greedy: whether it shows the best list of the moment instead of a draw.
    reach: items of the baseline below the list's end that could have been shown (int32).
    tiles: lengths of the groups of positions in each of which the ranker had its choice (int32).
    own: what the ranker drew, where items of it were moved (int32).
    """

    greedy: bool
    reach: bytes = b""
    tiles: bytes = b""
    own: bytes = b""


class Decision(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A list that was drawn, with all that learning from it needs, and what the draw was made from.

    shown: numbers of the shown items, best first (int32): of the catalogue, or of the request's own list.
    candidates: the names in the request's own list; None where the ranker has items of its own, or `stored` has them.
    generation: how often the ranker's items had changed; a list of another generation has other item numbers.
    key: 128 bits that the whole draw follows from; empty for a list that another system ordered.
    allowed: milliseconds from this row to the last row that may answer it. Times of two rows are compared, so no
    clock but the log's own counts. None in older rows, where `deadline` is a time by the clock of who drew the list.
    """

    model_seq: int
    generation: int
    shown: bytes
    key: bytes
    deadline: int
    explored: bool
    propensities: bytes | None = None
    memo: tuple[Packed, ...] = ()
    candidates: list[str] | None = None
    features: Packed | None = None
    context: Any = None
    weights: bytes | None = None  # float64: what an answer counts for in the estimate of the list's value
    allowed: int | None = None
    choice: Choice | None = None
    trial: Trial | None = None
    stored: ByReference | None = None
    rails: Rails | None = None
    query: int | None = None  # the key of what was searched for
    unit: bytes | None = None  # of a comparison, a digest of the session or user that the list is for


class Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What came back, by position; the body of a `feedback` row. Form "click": one of several that may come."""

    form: Literal["relevance", "clicks", "click"]
    values: bytes  # float64


class Items(msgspec.Struct, frozen=True, array_like=True):
    """Names that come and names that go; the body of an `items` row.

    update: names that stay, and get other features. features: a row for each of `add`, then for each of `update`.
    feature_names: of the columns, from here on; None leaves them as they are.
    """

    add: list[str]
    retire: list[str]
    update: list[str] = []
    features: Packed | None = None
    feature_names: list[str] | None = None


class Freeze(msgspec.Struct, frozen=True, array_like=True):
    """Whether the ranker stops learning or goes on."""

    frozen: bool


class Promote(msgspec.Struct, frozen=True, array_like=True):
    """The share of requests with a baseline, beside the holdout, that get the ranker's list from here on.

    ranking: of a comparison instead, the one whose order all requests get from here on; a share of 0 only stops it.
    """

    share: float
    ranking: str = ""


class Expire(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The deadline of the decision in row `decision_seq` passed, and nothing had come back."""

    decision_seq: int


class Rollback(msgspec.Struct, frozen=True, array_like=True):
    """Back to what was known at `to_seq`. The state travels in the row: the log alone stays enough."""

    to_seq: int
    state_hash: str
    learnt: bytes


class Conflict(msgspec.Struct, frozen=True, array_like=True):
    """Something came under an id that was taken, and said something else. Kept, never learnt."""

    kind: Kind
    event_id: str
    body: bytes


class PolicyChange(msgspec.Struct, frozen=True, array_like=True):
    """Another policy, for lists from here on; the body of a `policy` row, whose event ID counts the changes.

    event_id: the ID that whoever changed it gave the change.
    """

    event_id: str
    policy: Policy


class Upgrade(msgspec.Struct, frozen=True, array_like=True):
    """From here on another version of the algorithm, or another arithmetic. `saved`: the state that it goes on from.

    Without a state it only says what the log has been folded with so far, where no row has said so yet.
    """

    version: int
    probe: str
    saved: bytes = b""


class Import(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Lists from elsewhere, or a state; see `rankloop.serving.history_import`.

    history: what the import is called; its parts count from 1, and nothing is learnt before the `last`.
    names: of the items. lists: lists x positions, places in `names` (int32), -1 behind the end of a list. values: what
    came back (uint8 for clicks, else float64). propensities (float64) and features (float32, lists x positions x
    features) where known.
    learnt: a state instead, with form "state". queries: the keys of what was searched for, by list (int64).
    """

    history: str
    part: int
    last: bool
    source: str
    form: Literal["clicks", "relevance", "state"]
    names: list[str] = []
    lists: Packed | None = None
    values: Packed | None = None
    propensities: Packed | None = None
    features: Packed | None = None
    learnt: bytes = b""
    queries: Packed | None = None


class Waits(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A document of UBI whose list is not known yet; the body of a `ubi` row. See `rankloop.serving.ubi`."""

    action: Literal["query", "impression", "click"]
    item: str = ""
    ordinal: int | None = None
    user_query: str = ""
    application: str = ""


# gc=False: none of them can be part of a cycle, and a service keeps so many that looking for cycles would take long.

_encode = msgspec.msgpack.Encoder().encode
_read_decision = msgspec.msgpack.Decoder(Decision).decode
_BODIES: dict[str, Callable[[bytes], Any]] = {
    kind: msgspec.msgpack.Decoder(body).decode
    for kind, body in (
        ("config", Config),
        ("reset", Config),
        ("decision", Decision),
        ("degraded", Decision),
        ("feedback", Answer),
        ("items", Items),
        ("freeze", Freeze),
        ("promote", Promote),
        ("expire", Expire),
        ("rollback", Rollback),
        ("conflict", Conflict),
        ("upgrade", Upgrade),
        ("policy", PolicyChange),
        ("import", Import),
        ("ubi", Waits),
    )
}
_LITTLE = sys.byteorder == "little"


# Fields of a decision that are written, whatever is in them.
_ALWAYS = Decision.__struct_fields__.index("choice")


def encode(body: msgspec.Struct) -> bytes:
    """The body of a row as bytes."""
    if type(body) is Decision:
        # As it was before there were units, queries, guard rails, stored features, a baseline, and a choice.
        fields = msgspec.structs.astuple(body)
        n = len(fields)
        while n > _ALWAYS and fields[n - 1] is None:
            n -= 1
        return _encode(fields[:n])
    if type(body) is Promote and not body.ranking:
        return _encode((body.share,))
    if type(body) is Items and not body.update and body.features is None and body.feature_names is None:
        return _encode((body.add, body.retire))
    return _encode(body)


def decode(of: type[Body], packed: bytes) -> Body:
    """What `encode` wrote, as the type that it was."""
    return msgspec.msgpack.decode(packed, type=of)


def read_decision(body: bytes) -> Decision:
    """The body of a `decision` row."""
    return _read_decision(body)


def read_body(row: Row | Entry) -> Any:
    """The body of any row, as its own type; None for rows that have none."""
    decoder = _BODIES.get(row.kind)
    return None if decoder is None else decoder(row.body)


def pack(array: NDArray[Any]) -> Packed:
    """The array in little-endian bytes, whatever machine writes it."""
    if array.dtype.isnative and _LITTLE:
        return Packed(array.dtype.str, array.shape, array.tobytes())
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return Packed(plain.dtype.str, plain.shape, plain.tobytes())


def unpack(packed: Packed) -> NDArray[Any]:
    """The array that `pack` wrote; ValueError where the bytes are anything else."""
    dtype, native = _read_dtype(packed.dtype)
    array = np.frombuffer(packed.data, dtype)
    return (array if packed.shape == array.shape else array.reshape(packed.shape)).astype(native)


@functools.lru_cache(maxsize=64)
def _read_dtype(text: str) -> tuple[np.dtype[Any], np.dtype[Any]]:
    dtype = np.dtype(text)
    if dtype.kind not in "biuf":
        raise ValueError(f"an array must hold numbers, got dtype {text!r}")
    return dtype, dtype.newbyteorder("=")


class Counts(msgspec.Struct):
    """How often what happened, since the beginning."""

    decisions: int = 0
    explored: int = 0
    activated: int = 0
    feedback: int = 0
    learnt: int = 0
    late: int = 0
    expired: int = 0
    conflicts: int = 0
    dead: int = 0
    degraded: int = 0  # lists that were shown while the store was away
    imported: int = 0  # lists of other logs that were learnt from


class Learnt(msgspec.Struct):
    """What was learnt, and over which items: all that a rollback brings back."""

    arrays: dict[str, Packed]
    active: list[str]
    rounds: int


Change = tuple[int, str, Policy]  # the row, the ID that the change was given, and the policy from there on


class PolicyHistory:
    """The policy that a ranker was created with, and all changes of it.

    A list keeps the policy that it was drawn under: whether its feedback is late, and what several answers to it come
    to, follows from the rows of the log and not from when somebody looks.
    """

    def __init__(self, first: Policy, changes: list[Change] | None = None) -> None:
        self.first = first
        self.changes = changes or []

    def at(self, seq: int) -> Policy:
        for changed, _, policy in reversed(self.changes):
            if changed < seq:
                return policy
        return self.first

    def after(self, seq: int) -> list[Policy]:
        """All policies that lists after row `seq` may have."""
        return [self.at(seq + 1), *(policy for changed, _, policy in self.changes if changed > seq)]

    def event_id(self, decision_id: str, digest: bytes, seq: int | None, *, single: bool = False) -> str:
        """The ID of feedback that came without one on the list in row `seq`: the same again is the same event.

        Where several answers count, and for a single click, each content is an event; ValueError where only the caller
        can tell them apart.
        """
        policy = self.at(1 << 60) if seq is None else self.at(seq)
        if policy.answers == "sum":
            raise ValueError("with policy.answers 'sum' feedback needs an event_id")
        return f"{decision_id}#{digest.hex()}" if policy.collects or single else decision_id

    def change(self, seq: int, body: PolicyChange) -> None:
        self.changes = [*self.changes, (seq, body.event_id, body.policy)]


async def read_history(store: Store, ranker: str, first: Policy) -> PolicyHistory:
    """All changes of the policy that are in the log, found by their numbers."""
    history = PolicyHistory(first)
    while (row := await store.find(ranker, "policy", str(len(history.changes) + 1))) is not None:
        history.change(row.seq, read_body(row))
    return history


def waiting_time(policies: list[Policy]) -> tuple[int, bool]:
    """The milliseconds after which lists under any of these policies may be closed, and whether answers close them.

    Where policies differ, or gather answers until the deadline, each list must be looked at.
    """
    allowed = {round(one.deadline_seconds * 1000) for one in policies}
    return max(allowed), len(allowed) == 1 and not any(one.collects for one in policies)


def check_answers(policy: Policy, ranker: Ranker) -> None:
    """ValueError where this ranker cannot learn from what several answers come to."""
    if policy.answers == "sum" and ranker.feedback.kind == "clicks":
        raise ValueError("policy.answers must be first, last or union for a ranker of clicks, got 'sum'")
