"""Databases of the tests' own, on one PostgreSQL server."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.serving.postgresql import Server

_numbers = itertools.count()


@pytest.fixture
def new_database(postgresql: Server) -> Callable[[], str]:
    """Makes an empty database, and tells its URL."""

    def make() -> str:
        name = f"spread_{next(_numbers)}"
        postgresql.sql(f"CREATE DATABASE {name}")
        return postgresql.url.replace("/postgres?", f"/{name}?")

    return make
