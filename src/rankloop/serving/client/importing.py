"""The calls that give a ranker history to learn from: lists that something else has shown, or a state."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

from rankloop.serving.client.answers import read
from rankloop.serving.client.bodies import SupportsArray, json_bytes
from rankloop.serving.client.calls import Call, of


class ShownList(TypedDict):
    """A list that was shown elsewhere, for `import_lists`."""

    items: Sequence[str]
    clicks: NotRequired[Sequence[float]]
    relevance: NotRequired[Sequence[float]]
    propensities: NotRequired[Sequence[float]]
    features: NotRequired[Sequence[Sequence[float]]]


@dataclass(frozen=True)
class ImportAnswer:
    """What became of an import, or of a part of one.

    Parameters
    ----------
    status : str
        "accepted", "duplicate" or "conflict".
    seq : int
        Its row in the log.
    history : str
        What the import is called.
    duplicate : bool, optional
        Whether it was there before, so that nothing has changed.
    learnt : int or None, optional
        How many lists the ranker learnt from; None where it was there before, or where parts are to come.
    left_out : dict of str to int, optional
        How many lists it could not learn from, by reason.
    """

    status: str
    seq: int
    history: str
    duplicate: bool = False
    learnt: int | None = None
    left_out: dict[str, int] = field(default_factory=dict)


def import_lists(
    name: str,
    lists: Sequence[ShownList] | Sequence[dict[str, Any]],
    *,
    history: str | None = None,
    part: int = 1,
    last: bool = True,
    source: str = "",
) -> Call[ImportAnswer]:
    """Let a ranker learn from lists that something else has shown, all of them or none.

    Parameters
    ----------
    name : str
        The ranker.
    lists : sequence of dict
        Each with `items`, best position first, and `clicks` or `relevance`, a number for each item; `propensities`,
        the probability with which each was shown where it was, and `features`, a row for each, where they are known.
    history : str, optional
        What the import is called; the same again changes nothing. Derived from the lists where it is left out.
    part : int, optional
        The number of this part, from 1, where the lists are too many for one request.
    last : bool, optional
        Whether no part follows; the ranker learns then, and not before.
    source : str, optional
        Where they are from, in words.

    Returns
    -------
    ImportAnswer
        What became of it.
    """
    body: dict[str, Any] = {"lists": list(lists), "part": part, "last": last, "source": source}
    return _import(name, body, history)


def import_state(
    name: str,
    arrays: Mapping[str, SupportsArray],
    *,
    rounds: int,
    items: Sequence[str] = (),
    history: str | None = None,
    source: str = "",
) -> Call[ImportAnswer]:
    """Let a ranker that has learnt nothing yet begin with the state of another one, such as one of a simulation.

    Parameters
    ----------
    name : str
        The ranker, with the same algorithm and parameters.
    arrays : mapping of str to array
        The state, as `Ranker.state_arrays` gives it.
    rounds : int
        How many rounds that ranker has learnt from.
    items : sequence of str, optional
        The names of its items, in the order in which it numbers them; left out where each request brings its own.
    history : str, optional
        What the import is called; the same again changes nothing. Derived from the state where it is left out.
    source : str, optional
        Where it is from, in words.

    Returns
    -------
    ImportAnswer
        What became of it.
    """
    state = {
        "arrays": {name: _saved(value) for name, value in arrays.items()},
        "rounds": rounds,
        "items": list(items),
    }
    return _import(name, {"state": state, "source": source}, history)


def _import(name: str, body: dict[str, Any], history: str | None) -> Call[ImportAnswer]:
    if history is not None:
        body["history"] = history
    return Call("POST", f"{of(name)}/import", lambda told: read(ImportAnswer, told), json_bytes(body))


def _saved(value: SupportsArray) -> dict[str, Any]:
    array = value.__array__()
    plain = array.astype(array.dtype.newbyteorder("<"))
    data = base64.b64encode(plain.tobytes()).decode()
    return {"dtype": plain.dtype.str, "shape": list(plain.shape), "data": data}
