"""What is looked at before anything is written: names, sizes, policies, and whether a ranker can be built at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from rankloop.serving.errors import Mistake
from rankloop.serving.limits import Limits
from rankloop.serving.log.records import Config


def digest_of(*parts: str | bytes) -> bytes:
    """Equal for deliveries that say the same thing."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        told = part.encode() if isinstance(part, str) else part
        digest.update(len(told).to_bytes(8, "little") + told)
    return digest.digest()


def check_names(names: list[str] | None, limits: Limits, *, field: str) -> None:
    """No name twice, and not too many."""
    if names is None:
        return
    if len(names) > limits.items:
        raise Mistake(f"at most {limits.items} items, got {len(names)}", field=field)
    if len(set(names)) != len(names):
        raise Mistake("items must not repeat", field=field)


def check_size(config: Config, limits: Limits, *, more: int = 0) -> None:
    """Before anything is allocated: a few bytes of request must not ask for gigabytes."""
    n_items = more or len(config.items or ())
    features = config.parameters.get("n_features", 1)
    positions = config.parameters.get("n_positions") or (n_items if config.algorithm == "FTRLPBM" else 1)
    if isinstance(features, int) and features > limits.features:
        raise Mistake(f"n_features must be at most {limits.features}, got {features}", field="parameters")
    if isinstance(positions, int) and n_items * positions > limits.cells:
        raise Mistake(f"items x positions must be at most {limits.cells:,}", field="items")


def check_policy(config: Config) -> None:
    """Waiting times that make sense."""
    for name, most in (("deadline_seconds", 1e9), ("parking_seconds", 3_600.0)):
        value = getattr(config.policy, name)
        if not 0 <= value <= most:
            raise Mistake(
                f"policy.{name} must be between 0 and {most:g}, got {value}", field=f"policy.{name}"
            )


def refuse(attempt: Callable[[], object], *, field: str) -> None:
    """Try it; what goes wrong is the caller's mistake."""
    try:
        attempt()
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise Mistake(str(error), field=field) from None
