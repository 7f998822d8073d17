"""Random requests to a service with some data, and a tally of responses that break its contract.

    python -m tests.promises.fuzzing --cases 100000

sends fresh cases to services on SQLite and PostgreSQL, in batches with a seed each. The record in
`var/fuzz/` is written after every batch: the same command with `--seed` resumes an interrupted run,
and `--only` repeats the batch that found a fault.
"""

import argparse
import json
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import psycopg
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.core.transport import Response

from app.settings import Settings
from tests.app import tiny_bundle
from tests.app.client import running
from tests.app.conftest import postgresql
from tests.architecture.repository import document
from tests.promises.asgi_client import (
    AsgiClient,
    RawRequest,
    RawResponse,
    encode_json,
    find_fault,
    list_operations,
)
from tests.promises.hostile import JSON, raw_requests
from tests.promises.schemathesis_adapter import (
    CHECKS,
    build_schema,
    to_raw_request,
    to_schemathesis_response,
    use_known_ids,
)

DESCRIPTION: dict[str, Any] = json.loads(document("docs/openapi.json"))
OPERATIONS = list_operations(DESCRIPTION)
DRAWN = hypothesis_settings(
    phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck), database=None
)
BATCH = 500
DATABASES = ("sqlite", "postgresql")
KINDS = ("hostile", "valid", "invalid", "known ids")
"""Kinds of batches, in turn: raw bytes, what the description allows, what it does not, and requests
about stored users, items and versions."""


@dataclass
class Tally:
    """Requests per operation, and the faults found."""

    requests: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)

    def check(self, client: AsgiClient, label: str, request: RawRequest) -> RawResponse:
        """Send a request, and check its response."""
        self.requests[label] += 1
        response = client.send(request)
        self.statuses[str(response.status)] += 1
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


@contextmanager
def serve_some_data(database_url: str, directory: Path) -> Iterator[AsgiClient]:
    """Run a service with two published versions, some users and some items."""
    for number in (1, 2):
        tiny_bundle.publish(directory / "bundles", seed=number)
    # No response may depend on the machine's load.
    settings = Settings(
        database_url=database_url,
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


def create_database(server: str) -> str:
    """Create a database on a PostgreSQL server; return its URL."""
    name = f"kairos_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")


def list_known_ids(client: AsgiClient) -> dict[str, list[str]]:
    """List ids that the service knows, by the names of their fields."""
    return {
        "user_id": [f"u{number}" for number in range(5)],
        "item_id": [f"i{number}" for number in range(20)],
        "version": [*client.client.app.state.context.store.list_versions(), "none"],
    }


def run_batch(client: AsgiClient, kind: str, batch_seed: int, cases: int) -> Tally:
    """Send the random cases of one batch, which its seed determines, and check every response."""
    tally = Tally()
    if kind == "hostile":
        random = Random(batch_seed)
        every = [(label, one) for label in OPERATIONS for one in raw_requests(label, DESCRIPTION)]
        for label, request in random.sample(every, min(cases, len(every))):
            tally.check(client, label, request)
        return tally
    mode = GenerationMode.NEGATIVE if kind == "invalid" else GenerationMode.POSITIVE
    schema = build_schema(DESCRIPTION)
    known = list_known_ids(client) if kind == "known ids" else {}
    # In turns: an operation without parameters has few different requests, so none may get many.
    turns = Random(batch_seed).sample(sorted(OPERATIONS), k=len(OPERATIONS))
    for label, share in Counter(islice(cycle(turns), cases)).items():
        method, path = label.split()

        @seed(batch_seed)
        @hypothesis_settings(DRAWN, max_examples=share, derandomize=False)
        @given(
            case=schema[path][method].as_strategy(mode),
            random=st.randoms(use_true_random=False),
        )
        def check(case: Case, random: Random) -> None:
            # Later cases are sent after a fault, too: the tally holds it.
            with suppress(AssertionError, FailureGroup):
                tally.check_case(client, use_known_ids(case, known, random))

        # A request without values has no invalid form.
        with suppress(Unsatisfiable):
            check()
    return tally


@dataclass(frozen=True)
class Run:
    """A run of batches, with its record."""

    seed: int
    cases: int
    record: Path

    def list_batches(self) -> Iterator[tuple[int, str, str, int]]:
        """List number, database, kind and cases of every batch."""
        for number, begin in enumerate(range(0, self.cases, BATCH)):
            database = DATABASES[number % len(DATABASES)]
            kind = KINDS[number // len(DATABASES) % len(KINDS)]
            yield number, database, kind, min(BATCH, self.cases - begin)

    def read(self) -> dict[str, Any]:
        """Read the finished batches, by their number."""
        known: dict[str, Any] = json.loads(self.record.read_text()) if self.record.exists() else {}
        return known

    def write(self, number: int, batch: dict[str, Any]) -> None:
        """Add a finished batch to the record."""
        self.record.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.record.with_suffix(".new")
        unfinished.write_text(json.dumps({**self.read(), str(number): batch}, indent=1) + "\n")
        unfinished.replace(self.record)


def run_all(run: Run, only: int | None = None) -> int:
    """Send the batches that the record lacks; return how many faults it then holds."""
    with ExitStack() as stack:
        clients: dict[str, AsgiClient] = {}
        for number, database, kind, cases in run.list_batches():
            if str(number) in run.read() if only is None else number != only:
                continue
            if database not in clients:
                clients[database] = stack.enter_context(_serve_on(database))
            tally = run_batch(clients[database], kind, run.seed + number, cases)
            run.write(
                number,
                {
                    "database": database,
                    "kind": kind,
                    "requests": tally.requests.total(),
                    "statuses": dict(sorted(tally.statuses.items())),
                    "faults": tally.faults,
                },
            )
            _report(f"batch {number}: {database}, {kind}", tally.requests.total(), tally.faults)
    batches = run.read().values()
    faults = {sent: fault for batch in batches for sent, fault in batch["faults"].items()}
    _report(f"seed {run.seed}", sum(batch["requests"] for batch in batches), faults)
    return len(faults)


@contextmanager
def _serve_on(database: str) -> Iterator[AsgiClient]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{directory / 'kairos.db'}"
        if database == "postgresql":
            url = create_database(stack.enter_context(postgresql()).get_uri())
        yield stack.enter_context(serve_some_data(url, directory))


def _report(what: str, requests: int, faults: dict[str, str]) -> None:
    print(f"{what}: {requests} requests, {len(faults)} faults", flush=True)  # noqa: T201
    for sent, fault in faults.items():
        print(f"  {sent}\n    {fault}", flush=True)  # noqa: T201


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 if a response breaks the contract."""
    parser = argparse.ArgumentParser(description="Fuzz every operation on both databases.")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, help="resume the run of this seed; default: a new one")
    parser.add_argument("--only", type=int, help="repeat this batch only")
    parser.add_argument("--records", type=Path, default=Path("var/fuzz"))
    given_arguments = parser.parse_args(arguments)
    run_seed = given_arguments.seed
    if run_seed is None:
        run_seed = secrets.randbelow(2**31)
    run = Run(run_seed, given_arguments.cases, given_arguments.records / f"{run_seed}.json")
    return 1 if run_all(run, given_arguments.only) else 0


if __name__ == "__main__":
    sys.exit(main())
