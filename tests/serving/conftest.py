"""A PostgreSQL server of the tests' own: started when first asked for, on a socket in a temporary folder."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.serving.postgresql import Server, start

_schemas = itertools.count()


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start(tmp_path_factory.mktemp("postgresql"))
    yield server
    server.stop()
    shutil.rmtree(server.folder)


@pytest.fixture
def fresh_schema() -> Callable[[], str]:
    return lambda: f"rankloop_{next(_schemas)}"
