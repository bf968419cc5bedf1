"""Verdicts as plain JSON and back: fractions become text, pairs become text with a comma."""

from __future__ import annotations

import json
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from rankloop.games.inequalities import Mixture
from rankloop.games.swaps import SwapWitness, Term
from rankloop.games.verdict import CellWitness, Verdict, Worlds

_FORMAT = 2


def save(verdict: Verdict, path: Path | str) -> None:
    """Write the verdict with its whole witness."""
    Path(path).write_text(json.dumps(as_plain(verdict), indent=1) + "\n")


def load(path: Path | str) -> Verdict:
    """The verdict that `save` wrote; a ValueError says where the file is something else."""
    try:
        return from_plain(json.loads(Path(path).read_text()))
    except OSError as problem:
        raise ValueError(f"{path}: {problem.strerror or problem}") from None
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as problem:
        raise ValueError(f"{path} is not a saved verdict: {problem}") from None


def as_plain(verdict: Verdict) -> dict[str, Any]:
    """The verdict as numbers, text, lists and tables of them."""
    plain = {
        each.name: _plain(getattr(verdict, each.name)) for each in fields(verdict) if each.name != "class_"
    }
    return {"format": _FORMAT, "class": verdict.class_, "rate": verdict.rate, **plain}


def from_plain(plain: dict[str, Any]) -> Verdict:
    """The verdict that `as_plain` gave."""
    if plain["format"] != _FORMAT:
        raise ValueError(f"format {plain['format']!r} is not known")
    told = plain["witness"]
    witness: CellWitness | SwapWitness
    worlds = None if told["worlds"] is None else _worlds(told["worlds"])
    if plain["route"] == "cells":
        witness = CellWitness(
            same=tuple(told["same"]),
            points={int(i): tuple(p) for i, p in told["points"].items()},
            mixtures={int(i): _mixture(mixture) for i, mixture in told["mixtures"].items()},
            touching={int(i): tuple(p) for i, p in told["touching"].items()},
            walls={_pair(pair): tuple(p) for pair, p in told["walls"].items()},
            apart={_pair(pair): _mixture(mixture) for pair, mixture in told["apart"].items()},
            estimates={
                _pair(pair): {_pair(signal): Fraction(value) for signal, value in terms.items()}
                for pair, terms in told["estimates"].items()
            },
            blind=None if told["blind"] is None else (tuple(told["blind"][0]), tuple(told["blind"][1])),
            worlds=worlds,
        )
    else:
        witness = SwapWitness(
            tuple((count, size) for count, size in told["blocks"]), _term(told["unseen"]), worlds
        )
    plain = {"feedback": None, **plain}  # which was always the top k labels before there was a choice
    simple = {
        each.name: plain[each.name] for each in fields(Verdict) if each.name not in ("class_", "witness")
    }
    for name in ("pareto", "degenerate", "dominated"):
        simple[name] = tuple(simple[name])
    simple["neighbours"] = tuple(tuple(pair) for pair in simple["neighbours"])
    return Verdict(class_=plain["class"], witness=witness, **simple)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mixture):
        return {"weights": _plain(value.weights), "s": str(value.s)}
    if isinstance(value, CellWitness | SwapWitness | Worlds | Term):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {
            ",".join(map(str, key)) if isinstance(key, tuple) else str(key): _plain(each)
            for key, each in value.items()
        }
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


def _pair(text: str) -> tuple[int, int]:
    first, second = text.split(",")
    return int(first), int(second)


def _term(plain: dict[str, Any] | None) -> Term | None:
    if plain is None:
        return None
    steps = plain["steps"]
    return Term(**{**plain, "steps": None if steps is None else tuple(map(tuple, steps))})


def _mixture(plain: dict[str, Any]) -> Mixture:
    return Mixture({int(i): Fraction(w) for i, w in plain["weights"].items()}, Fraction(plain["s"]))


def _worlds(plain: dict[str, Any]) -> Worlds:
    def listed(value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    p, q = (tuple(Fraction(chance) for chance in side) for side in plain["chances"])
    first, second = map(listed, plain["best"])
    return Worlds(tuple(map(listed, plain["outcomes"])), (p, q), (first, second), Fraction(plain["forced"]))
