"""What the shell offers after TAB: names of rankers, environments, measures and experiments.

`rankloop --install-completion` switches it on. Whatever goes wrong while somebody types ends in no offer, not in a
traceback.
"""

from __future__ import annotations

from collections.abc import Callable


def rankers(incomplete: str) -> list[str]:
    """Names of rankers, those registered by other packages among them."""
    from rankloop.rankers import registry

    return _beginning(registry.names, incomplete)


def environments(incomplete: str) -> list[str]:
    """Names of environments."""
    from rankloop.cli.environments import environment_names

    return _beginning(lambda: list(environment_names()), incomplete)


def measures(incomplete: str) -> list[str]:
    """Names of measures; of those that need a cut-off, the name with the sign that it follows."""
    from rankloop import measures

    def names() -> list[str]:
        return [name + ("@" if measures.get(name).cutoffs == "required" else "") for name in measures.names()]

    return _beginning(names, incomplete)


def experiments(incomplete: str) -> list[str]:
    """Names of experiments, and `all`."""
    from rankloop import experiments

    return _beginning(lambda: [*experiments.names(), "all"], incomplete)


def _beginning(names: Callable[[], list[str]], incomplete: str) -> list[str]:
    try:
        return [name for name in names() if name.lower().startswith(incomplete.lower())]
    except Exception:  # a broken package of somebody's must not break the prompt
        return []
