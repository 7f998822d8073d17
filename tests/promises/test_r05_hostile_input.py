"""R5: every request, however malformed, gets a response that its operation documents."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, seed
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyStrategyDefinition, Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.core.transport import Response
from schemathesis.generation.stateful import run_state_machine_as_test

from tests.promises import fuzzing
from tests.promises.asgi_client import AsgiClient, list_operations
from tests.promises.figures import Figures
from tests.promises.fuzzing import (
    DESCRIPTION,
    DRAWN,
    OPERATIONS,
    Tally,
    create_database,
    list_known_ids,
    serve_some_data,
)
from tests.promises.hostile import raw_requests, sample_requests
from tests.promises.schemathesis_adapter import build_schema, use_known_ids
from tests.promises.strength import Strength

LEAST = 25
LEAST_IN_ALL = 10_000


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def asgi_client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AsgiClient]:
    """A service with two published versions, some users and some items."""
    directory = tmp_path_factory.mktemp("hostile")
    url = f"sqlite:///{directory / 'kairos.db'}"
    if request.param == "postgresql":
        url = create_database(request.getfixturevalue("postgresql_server"))
    with serve_some_data(url, directory) as client:
        yield client


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
    known = list_known_ids(asgi_client)
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


def test_a_run_of_fresh_cases_is_recorded_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzzing, "DATABASES", ("sqlite",))
    monkeypatch.setattr(fuzzing, "BATCH", 10)
    begin = ["--seed", "7", "--records", str(tmp_path), "--cases"]
    assert fuzzing.main([*begin, "25"]) == 0
    assert fuzzing.main([*begin, "40"]) == 0
    batches = json.loads((tmp_path / "7.json").read_text())
    assert [batch["kind"] for batch in batches.values()] == list(fuzzing.KINDS)
    assert [batch["requests"] for batch in batches.values()][:2] == [10, 10]
    # The batches of the first run were not repeated.
    printed = capsys.readouterr().out
    assert printed.count("batch 0:") == printed.count("batch 2:") == printed.count("batch 3:") == 1


def test_a_run_of_fresh_cases_finds_an_undocumented_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("app.users.router.read_user_history", fail)
    monkeypatch.setattr(fuzzing, "DATABASES", ("sqlite",))
    monkeypatch.setattr(fuzzing, "KINDS", ("known ids",))
    again = ["--seed", "7", "--records", str(tmp_path), "--cases", "200"]
    assert fuzzing.main(again) == 1
    first = (tmp_path / "7.json").read_text()
    assert "GET b'/v1/users/u" in first
    # Its seed reproduces the batch.
    assert fuzzing.main([*again, "--only", "0"]) == 1
    assert json.loads(first)["0"]["faults"].keys() == (
        json.loads((tmp_path / "7.json").read_text())["0"]["faults"].keys()
    )
