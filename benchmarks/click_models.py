"""Click models beside those of CLAX and PyClick, on the same 20,000 pages.

    python -m benchmarks.click_models --clax PYTHON --pyclick FOLDER

PYTHON is an interpreter that has CLAX (`pip install clax-models` in an environment of its own), FOLDER a clone of
PyClick's repository. Without one of them, that half is skipped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankloop import feedback, logs

N_PAGES, N_ITEMS, N_POSITIONS = 20_000, 12, 10
BOTH = ("rctr", "pbm", "ubm", "dcm", "ccm", "dbn")  # that CLAX has, too
DEFAULT_STEPS = 50  # of PyClick's EM


class Ours(NamedTuple):
    """A fit of ours: by maximum likelihood, after it was compiled."""

    found: logs.FittedModel
    cpu: float

    @property
    def per_page(self) -> float:
        """The log likelihood of a page."""
        return self.found.log_likelihood / N_PAGES


def pages(n: int = N_PAGES) -> feedback.Sessions:
    """Dynamic Bayesian users on one query, each item mostly near its place."""
    rng = np.random.default_rng(1)
    users = feedback.DynamicBayesianModel(
        attraction=np.linspace(0.5, 0.05, N_ITEMS),
        satisfaction=np.linspace(0.8, 0.2, N_ITEMS),
        continuation=0.85,
    )
    items = np.argsort(np.arange(N_ITEMS) + 3 * rng.standard_normal((n, N_ITEMS)), axis=1)[:, :N_POSITIONS]
    return feedback.Sessions(items=items, clicks=users.click(items, rng=rng))


def fit(log: feedback.Sessions, name: str) -> Ours:
    """By maximum likelihood without smoothing, timed the second time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logs.fit_model(log, name, smoothing=0.0)
        begin = time.process_time()
        found = logs.fit_model(log, name, smoothing=0.0)
    return Ours(found, time.process_time() - begin)


def beside_clax(log: feedback.Sessions, python: str) -> Iterator[str]:
    """For each model both log likelihoods, or one sentence where CLAX is absent."""
    if not _imports(python, "clax"):
        yield f"CLAX skipped: {python} cannot import it (pip install clax-models)"
        return
    yield "model   log likelihood of a page: here, CLAX   CPU seconds: here, CLAX"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.npz"
        np.savez(path, items=log.items, clicks=log.clicks)
        for name in BOTH:
            ours = fit(log, name)
            words = [python, str(Path(__file__).with_name("clax_fit.py")), str(path), name]
            theirs = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
            yield (
                f"{name:<6}  {ours.per_page:.5f}  {theirs['log_likelihood']:.5f}"
                f"  {ours.cpu:.3f}  {theirs['cpu']:.1f}"
            )


def _imports(python: str, module: str) -> bool:
    try:
        done = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
    except OSError:  # no such interpreter
        return False
    return done.returncode == 0


def beside_pyclick(log: feedback.Sessions, folder: str | None) -> Iterator[str]:
    """One step of PyClick's EM from our maximum: how far it moves, what it does to the likelihood, how long it takes.

    A step of expectation maximisation never lowers the likelihood that it climbs, and stays at its maximum.
    """
    if folder is not None:
        sys.path.insert(0, folder)
    try:
        from pyclick.click_models.CCM import CCM
        from pyclick.click_models.DBN import DBN
        from pyclick.click_models.Inference import EMInference
        from pyclick.search_session.SearchResult import SearchResult
        from pyclick.search_session.SearchSession import SearchSession
    except ImportError as error:
        yield f"PyClick skipped: {error} (give a clone of its repository with --pyclick)"
        return
    sessions = []
    for items, clicks in zip(log.items.tolist(), log.clicks.tolist(), strict=True):
        session = SearchSession("q")
        session.web_results = [SearchResult(item, click) for item, click in zip(items, clicks, strict=True)]
        sessions.append(session)
    yield (
        "model   one EM step from our maximum: log likelihood of a page before, after; moves at most;"
        f" CPU seconds: here, {DEFAULT_STEPS} steps"
    )
    for name, kind in (("dbn", DBN), ("ccm", CCM)):
        ours = fit(log, name)
        model: Any = kind(inference=EMInference(1))
        before = _put(model, ours.found)
        begin = time.process_time()
        model.train(sessions)
        seconds = (time.process_time() - begin) * DEFAULT_STEPS
        moved = {
            part: max(abs(_value(model, *key) - value) for key, value in before.items() if key[0] == part)
            for part in dict.fromkeys(key[0] for key in before)
        }
        after = {key: _value(model, *key) for key in before}
        values = [_log_likelihood(log, one) for one in (before, after)]
        parts = ", ".join(f"{part} {far:.5f}" for part, far in moved.items())
        yield (
            f"{name:<6}  {values[0]:.5f}  {values[1]:.5f}  {parts}"
            f"  {ours.cpu:.3f}  {seconds:.0f} ({seconds / ours.cpu:,.0f} times)"
        )


def _put(model: Any, found: logs.FittedModel) -> dict[tuple[Any, ...], float]:
    """Our estimates as PyClick's parameters; by part and item."""
    number = {name: int(name) for name in found.names}
    values: dict[tuple[Any, ...], float] = {}
    for name, value in zip(found.names, found.attraction.value, strict=True):
        values["attr", number[name]] = float(value)
    if found.satisfaction is not None:
        for name, value in zip(found.names, found.satisfaction.value, strict=True):
            values["sat", number[name]] = float(value)
    parts = (
        ("cont",)
        if found.satisfaction is not None
        else ("cont_noclick", "cont_click_nonrel", "cont_click_rel")
    )
    for part, value in zip(parts, found.shared["continuation"].value, strict=True):
        values[(part,)] = float(value)
    for key, value in values.items():
        param = _param(model, *key)
        param._numerator, param._denominator = value, 1.0
    return values


def _log_likelihood(log: feedback.Sessions, values: dict[tuple[Any, ...], float]) -> float:
    """The log likelihood of a page, by the click models of `rankloop.feedback`."""

    def of(part: str) -> list[float]:
        return [values[part, item] for item in range(N_ITEMS)]

    users: feedback.ClickModel
    if ("cont",) in values:
        users = feedback.DynamicBayesianModel(
            attraction=of("attr"), satisfaction=of("sat"), continuation=values[("cont",)]
        )
    else:
        parts = ("cont_noclick", "cont_click_nonrel", "cont_click_rel")
        users = feedback.ClickChainModel(
            attraction=of("attr"), continuation=[values[(part,)] for part in parts]
        )
    return float(np.log(users.likelihood(log.items, log.clicks)).mean())


def _param(model: Any, part: str, *item: int) -> Any:
    container = model.params[model.param_names[part]]
    return container.get("q", *item) if item else container.get()


def _value(model: Any, part: str, *item: int) -> float:
    return float(_param(model, part, *item).value())


def main() -> None:
    """Print both tables."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--clax", default=sys.executable, help="an interpreter that has CLAX")
    reader.add_argument("--pyclick", help="a clone of PyClick's repository")
    given = reader.parse_args()
    log = pages()
    for line in chain(beside_clax(log, given.clax), beside_pyclick(log, given.pyclick)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
