"""The comparison with other packages of click models skips in words what is not installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from benchmarks import click_models


def test_what_is_absent_is_skipped_in_words() -> None:
    log = click_models.pages(5)
    assert log.items.shape == (5, click_models.N_POSITIONS)
    (told,) = click_models.beside_clax(log, "/no/such/python")
    assert told == "CLAX skipped: /no/such/python cannot import it (pip install clax-models)"
    if importlib.util.find_spec("pyclick") is not None:
        pytest.skip("PyClick is installed")
    (told,) = click_models.beside_pyclick(log, None)
    assert told.startswith("PyClick skipped: No module named 'pyclick")


def test_a_fit_is_that_of_maximum_likelihood() -> None:
    log = click_models.pages(300)
    found, cpu = click_models.fit(log, "rctr")
    rates = log.clicks.mean(axis=0)
    likelihood = 300 * float((rates * np.log(rates) + (1 - rates) * np.log1p(-rates)).sum())
    assert found.log_likelihood == pytest.approx(likelihood)
    assert cpu >= 0.0
