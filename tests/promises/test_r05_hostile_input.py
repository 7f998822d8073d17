"""R5: every request, however malformed, gets a response that its operation documents."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyStrategyDefinition, Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.core.transport import Response
from schemathesis.generation.stateful import run_state_machine_as_test

from app.settings import Settings
from tests.app import tiny_bundle
from tests.app.client import running
from tests.architecture.repository import document
from tests.promises.asgi_client import (
    AsgiClient,
    RawRequest,
    RawResponse,
    encode_json,
    find_fault,
    list_operations,
)
from tests.promises.figures import Figures
from tests.promises.hostile import JSON, raw_requests, sample_requests
from tests.promises.schemathesis_adapter import (
    CHECKS,
    build_schema,
    to_raw_request,
    to_schemathesis_response,
    use_known_ids,
)
from tests.promises.strength import Strength

DESCRIPTION: dict[str, Any] = json.loads(document("docs/openapi.json"))
OPERATIONS = list_operations(DESCRIPTION)
LEAST = 25
LEAST_IN_ALL = 10_000
DRAWN = hypothesis_settings(
    phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
)


@dataclass
class Tally:
    """Requests per operation, on both databases together, and the faults found."""

    requests: Counter[str] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)

    def check(self, client: AsgiClient, label: str, request: RawRequest) -> RawResponse:
        """Send a request, and check its response."""
        self.requests[label] += 1
        response = client.send(request)
        fault = find_fault(request, response, OPERATIONS[label])
        if fault is not None:
            self.faults[str(request)] = fault
        return response

    def check_case(self, client: AsgiClient, case: Case) -> Response:
        """Send a generated request, and check its response with Schemathesis, too."""
        request, prepared = to_raw_request(case)
        found = len(self.faults)
        raw = self.check(client, case.operation.label, request)
        response = to_schemathesis_response(raw, prepared)
        assert len(self.faults) == found, f"{self.faults[str(request)]}\n{case.as_curl_command()}"
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as group:
            self.faults[str(request)] = str(group)
            raise
        return response


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def asgi_client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AsgiClient]:
    """A service with two published versions, some users and some items."""
    directory = tmp_path_factory.mktemp("hostile")
    for number in (1, 2):
        tiny_bundle.publish(directory / "bundles", seed=number)
    url = f"sqlite:///{directory / 'kairos.db'}"
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql_server")
        name = f"kairos_{uuid4().hex}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        url = server.replace("/postgres?", f"/{name}?")
    # No response may depend on the machine's load.
    settings = Settings(
        database_url=url,
        bundle_store=directory / "bundles",
        requests_per_second=1_000_000.0,
        database_timeout_seconds=60.0,
        inference_patience_seconds=60.0,
    )
    with running(settings) as client:
        asgi_client = AsgiClient(client)
        items = [{"item_id": f"i{number}"} for number in range(20)]
        events = [
            {
                "user_id": f"u{n % 5}",
                "item_id": f"i{n % 20}",
                "action": "view",
                "timestamp": 1_700_000_000 + n,
            }
            for n in range(100)
        ]
        for method, path, sent in (("PUT", "/v1/items", items), ("POST", "/v1/events", events)):
            body = encode_json({path.rpartition("/")[2]: sent})
            answer = asgi_client.send(RawRequest(method, path.encode(), JSON, body))
            assert answer.status == 200, answer.content
        yield asgi_client


@pytest.fixture(scope="module")
def tally() -> Tally:
    return Tally()


def test_the_fuzzed_description_is_the_applications(asgi_client: AsgiClient) -> None:
    assert list_operations(asgi_client.client.app.openapi()).keys() == OPERATIONS.keys()


@pytest.mark.parametrize("label", OPERATIONS)
def test_hostile_requests_get_documented_responses(
    asgi_client: AsgiClient, tally: Tally, strength: Strength, label: str
) -> None:
    found = {*tally.faults}
    every = list(raw_requests(label, DESCRIPTION))
    for hostile in sample_requests(every, strength.select(short=LEAST, full=len(every))):
        tally.check(asgi_client, label, hostile)
    assert {sent: fault for sent, fault in tally.faults.items() if sent not in found} == {}


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("label", OPERATIONS)
def test_generated_requests_get_documented_responses(
    asgi_client: AsgiClient, tally: Tally, strength: Strength, label: str, mode: GenerationMode
) -> None:
    method, path = label.split()
    operation = build_schema(DESCRIPTION)[path][method]

    @hypothesis_settings(DRAWN, max_examples=strength.select(short=7, full=300))
    @given(case=operation.as_strategy(mode))
    def is_documented(case: Case) -> None:
        tally.check_case(asgi_client, case)

    try:
        is_documented()
    except Unsatisfiable:
        # A request without values has no invalid form.
        assert mode is GenerationMode.NEGATIVE


def test_operations_on_known_ids_get_documented_responses(
    asgi_client: AsgiClient, tally: Tally, strength: Strength
) -> None:
    schema = build_schema(DESCRIPTION)
    every = [
        schema[path][method].as_strategy() for method, path in map(str.split, sorted(OPERATIONS))
    ]
    known = {
        "user_id": [f"u{number}" for number in range(5)],
        "item_id": [f"i{number}" for number in range(20)],
        "version": [*asgi_client.client.app.state.context.store.list_versions(), "none"],
    }
    succeeded: Counter[bool] = Counter()

    @hypothesis_settings(DRAWN, max_examples=strength.select(short=50, full=2000))
    @given(case=st.one_of(every), random=st.randoms(use_true_random=False))
    def is_documented(case: Case, random: Random) -> None:
        response = tally.check_case(asgi_client, use_known_ids(case, known, random))
        succeeded[response.status_code < 300] += 1

    is_documented()
    assert succeeded[True] > succeeded[False]


def test_chained_operations_get_documented_responses(
    asgi_client: AsgiClient, tally: Tally, strength: Strength
) -> None:
    class Chain(build_schema(DESCRIPTION).as_state_machine()):  # type: ignore[misc]
        """Passes ids from one response to the next request."""

        def call(self, case: Case, **_: Any) -> Response:
            return tally.check_case(asgi_client, case)

        def validate_response(self, *_: Any, **__: Any) -> None:
            """Checked by `call`."""

    found = len(tally.faults)
    short = hypothesis_settings(DRAWN, max_examples=10, stateful_step_count=6)
    for number in range(strength.select(short=1, full=30)):
        # The stored data changes what can be generated; Hypothesis reports that as flaky.
        with suppress(FlakyStrategyDefinition):
            run_state_machine_as_test(seed(number)(Chain), settings=short)
    assert len(tally.faults) == found


def test_enough_requests_were_sent(tally: Tally, strength: Strength, figures: Figures) -> None:
    figures.record(
        "R5",
        "hostile requests to every operation, on SQLite and PostgreSQL",
        operations=len(OPERATIONS),
        requests=tally.requests.total(),
        fewest_per_operation=min(tally.requests.values()),
        faulty_answers=len(tally.faults),
    )
    assert tally.faults == {}
    assert tally.requests.keys() == OPERATIONS.keys()
    assert min(tally.requests.values()) >= LEAST
    assert tally.requests.total() >= strength.select(
        short=LEAST * len(OPERATIONS), full=LEAST_IN_ALL
    )
