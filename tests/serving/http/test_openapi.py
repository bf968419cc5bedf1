"""The service does what its OpenAPI description says: schemathesis makes up requests, good and bad, from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from rankloop.serving.http.endpoints import describe
from tests.serving.process import Service

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service("--data", str(tmp_path_factory.mktemp("described"))) as service:
        yield service
        assert service.client().rankers() is not None
        assert "Traceback" not in service.stop()


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
def test_requests_made_from_the_description(service: Service, mode: schemathesis.GenerationMode) -> None:
    described = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    # A name that made-up requests hit, until the last of them archives it.
    service.client().create("0", algorithm="RTop1F", items=["a", "b"], seed=1)
    operations = [found.ok() for found in described.get_all_operations()]
    operations.sort(key=lambda one: one.method.upper() == "DELETE")
    assert len(operations) >= 15
    for operation in operations:
        try:
            _try_out(operation.as_strategy(generation_mode=mode))
        except Unsatisfiable:
            assert mode is schemathesis.GenerationMode.NEGATIVE  # nothing in it can be made wrong


def _try_out(cases: Any) -> None:
    @settings(
        max_examples=10,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(case=cases)
    def play(case: schemathesis.Case) -> None:
        if case.media_type is not None and case.media_type != "application/json":
            return  # schemathesis writes no msgpack; our own tests do
        case.call_and_validate(checks=CHECKS)

    play()


def test_what_is_said_of_a_field_stands_beside_it() -> None:
    described = describe()["components"]["schemas"]
    assert "----" not in json.dumps(described)
    answer = described["EventAnswer"]
    assert answer["description"] == "What became of an event, and its row in the log."
    assert answer["properties"]["seq"]["description"] == "The row of the event in the log."
    hashes = described["SnapshotAnswer"]["properties"]
    assert hashes["code_hash"]["description"] == hashes["state_hash"]["description"]
