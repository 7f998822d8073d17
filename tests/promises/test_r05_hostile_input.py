"""R5: whatever is sent, the answer is one that the operation's description names."""

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
from tests.promises.asked import Answer, Asked, Asking, as_json, fault, operations
from tests.promises.drawn import CHECKS, among, as_schemathesis_reads, as_sent, drawing
from tests.promises.figures import Figures
from tests.promises.hostile import JSON, raw_requests, some_of
from tests.promises.strength import Strength

DESCRIPTION: dict[str, Any] = json.loads(document("docs/openapi.json"))
OPERATIONS = operations(DESCRIPTION)
LEAST = 25
LEAST_IN_ALL = 10_000
DRAWN = hypothesis_settings(
    phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
)


@dataclass
class Tally:
    """How many requests each operation met, on both databases together, and the faults found."""

    asked: Counter[str] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)

    def judge(self, asking: Asking, label: str, asked: Asked) -> Answer:
        """The answer to a request, judged."""
        self.asked[label] += 1
        answer = asking.send(asked)
        wrong = fault(asked, answer, OPERATIONS[label])
        if wrong is not None:
            self.faults[str(asked)] = wrong
        return answer

    def judge_drawn(self, asking: Asking, case: Case) -> Response:
        """The answer to a drawn request, judged by Schemathesis, too."""
        asked, prepared = as_sent(case)
        found = len(self.faults)
        response = as_schemathesis_reads(self.judge(asking, case.operation.label, asked), prepared)
        assert len(self.faults) == found, f"{self.faults[str(asked)]}\n{case.as_curl_command()}"
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as group:
            self.faults[str(asked)] = str(group)
            raise
        return response


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def asking(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asking]:
    """A service with two published versions, some users and some items."""
    place = tmp_path_factory.mktemp("hostile")
    for number in (1, 2):
        tiny_bundle.publish(place / "bundles", seed=number)
    url = f"sqlite:///{place / 'kairos.db'}"
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql_server")
        name = f"kairos_{uuid4().hex}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        url = server.replace("/postgres?", f"/{name}?")
    # What is sent decides, not how busy the machine is that tries it.
    settings = Settings(
        database_url=url,
        bundle_store=place / "bundles",
        requests_per_second=1_000_000.0,
        database_timeout_seconds=60.0,
        inference_patience_seconds=60.0,
    )
    with running(settings) as client:
        asking = Asking(client)
        items = [{"item_id": f"i{number}"} for number in range(20)]
        events = [
            {"user_id": f"u{n % 5}", "item_id": f"i{n % 20}", "action": "view", "timestamp": n}
            for n in range(100)
        ]
        for method, path, sent in (("PUT", "/v1/items", items), ("POST", "/v1/events", events)):
            body = as_json({path.rpartition("/")[2]: sent})
            answer = asking.send(Asked(method, path.encode(), JSON, body))
            assert answer.status == 200, answer.content
        yield asking


@pytest.fixture(scope="module")
def tally() -> Tally:
    return Tally()


def test_the_description_that_is_fuzzed_is_that_of_the_application(asking: Asking) -> None:
    assert operations(asking.client.app.openapi()).keys() == OPERATIONS.keys()


@pytest.mark.parametrize("label", OPERATIONS)
def test_what_no_honest_client_sends_gets_a_documented_answer(
    asking: Asking, tally: Tally, strength: Strength, label: str
) -> None:
    found = {*tally.faults}
    every = list(raw_requests(label, DESCRIPTION))
    for hostile in some_of(every, strength.of(short=LEAST, full=len(every))):
        tally.judge(asking, label, hostile)
    assert {asked: wrong for asked, wrong in tally.faults.items() if asked not in found} == {}


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("label", OPERATIONS)
def test_what_is_drawn_from_the_description_gets_a_documented_answer(
    asking: Asking, tally: Tally, strength: Strength, label: str, mode: GenerationMode
) -> None:
    method, path = label.split()
    operation = drawing(DESCRIPTION)[path][method]

    @hypothesis_settings(DRAWN, max_examples=strength.of(short=7, full=300))
    @given(case=operation.as_strategy(mode))
    def is_answered(case: Case) -> None:
        tally.judge_drawn(asking, case)

    try:
        is_answered()
    except Unsatisfiable:
        # Nothing can be wrong with a request that takes no values.
        assert mode is GenerationMode.NEGATIVE


def test_operations_on_the_same_few_things_get_documented_answers(
    asking: Asking, tally: Tally, strength: Strength
) -> None:
    drawn = drawing(DESCRIPTION)
    every = [
        drawn[path][method].as_strategy() for method, path in map(str.split, sorted(OPERATIONS))
    ]
    known = {
        "user_id": [f"u{number}" for number in range(5)],
        "item_id": [f"i{number}" for number in range(20)],
        "version": [*asking.client.app.state.context.store.versions(), "none"],
    }
    succeeded: Counter[bool] = Counter()

    @hypothesis_settings(DRAWN, max_examples=strength.of(short=50, full=2000))
    @given(case=st.one_of(every), random=st.randoms(use_true_random=False))
    def is_answered(case: Case, random: Random) -> None:
        response = tally.judge_drawn(asking, among(case, known, random))
        succeeded[response.status_code < 300] += 1

    is_answered()
    assert succeeded[True] > succeeded[False]


def test_operations_on_what_others_answered_get_documented_answers(
    asking: Asking, tally: Tally, strength: Strength
) -> None:
    class Chain(drawing(DESCRIPTION).as_state_machine()):  # type: ignore[misc]
        """Takes ids that one operation answers with to the next."""

        def call(self, case: Case, **_: Any) -> Response:
            return tally.judge_drawn(asking, case)

        def validate_response(self, *_: Any, **__: Any) -> None:
            """Judged already."""

    found = len(tally.faults)
    short = hypothesis_settings(DRAWN, max_examples=10, stateful_step_count=6)
    for number in range(strength.of(short=1, full=30)):
        # What may be drawn depends on what is stored by then; Hypothesis takes that for a defect.
        with suppress(FlakyStrategyDefinition):
            run_state_machine_as_test(seed(number)(Chain), settings=short)
    assert len(tally.faults) == found


def test_enough_was_asked(tally: Tally, strength: Strength, figures: Figures) -> None:
    figures.keep(
        "R5",
        "hostile requests to every operation, on SQLite and PostgreSQL",
        operations=len(OPERATIONS),
        requests=tally.asked.total(),
        fewest_per_operation=min(tally.asked.values()),
        faulty_answers=len(tally.faults),
    )
    assert tally.faults == {}
    assert tally.asked.keys() == OPERATIONS.keys()
    assert min(tally.asked.values()) >= LEAST
    assert tally.asked.total() >= strength.of(short=LEAST * len(OPERATIONS), full=LEAST_IN_ALL)
