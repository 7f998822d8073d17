"""The cases of the benchmark: what is measured, on which service, with which requests."""

from dataclasses import dataclass

from benchmarks.speed.serving.databases import DatabaseKind
from benchmarks.speed.serving.request_source import RequestKind

INLINE_50 = RequestKind()


@dataclass(frozen=True)
class Setup:
    """What the service runs on.

    Attributes:
        items: size of the catalog.
        wide: whether the model has the whole wide part.
        database: the kind of database.
        workers: number of its processes.
    """

    items: int = 5_000
    wide: bool = False
    database: DatabaseKind = "sqlite"
    workers: int = 1


@dataclass(frozen=True)
class RateCase:
    """The sustained rate of one kind of request, open loop."""

    kind: RequestKind = INLINE_50
    setup: Setup = Setup()


@dataclass(frozen=True)
class EchoCase:
    """The sustained rate of a bare FastAPI that returns the parsed body, open loop."""

    kind: RequestKind = INLINE_50


@dataclass(frozen=True)
class PairCase:
    """The medians of two kinds of requests that alternate on one connection, closed loop."""

    first: RequestKind
    second: RequestKind
    setup: Setup = Setup()
    turns: int = 400


@dataclass(frozen=True)
class SwapCase:
    """The 99th percentile around the activation of a second version, under a steady load.

    Attributes:
        share: rate of the load, relative to that of a closed loop over four connections.
        seconds: duration; the activation is in the middle.
    """

    kind: RequestKind = INLINE_50
    setup: Setup = Setup()
    share: float = 0.5
    seconds: float = 24.0


@dataclass(frozen=True)
class PeersCase:
    """The rates of Kairos, RecTools and RePlay over four connections in turns, closed loop."""

    kind: RequestKind = INLINE_50
    setup: Setup = Setup()
    turns: int = 3


Case = RateCase | EchoCase | PairCase | SwapCase | PeersCase

ATTENTION_50 = RequestKind(explain="attention")
SWEEP_50 = RequestKind(instants=100)
STORED_50 = RequestKind(stored=True)
POSTGRESQL = Setup(database="postgresql")

CASES: dict[str, Case] = {
    "echo": EchoCase(),
    "inline-20": RateCase(RequestKind(events=20)),
    "inline-50": RateCase(),
    "inline-200": RateCase(RequestKind(events=200)),
    "inline-20-repeats": RateCase(RequestKind(events=20, repeats=True)),
    "inline-50-repeats": RateCase(RequestKind(repeats=True)),
    "inline-200-repeats": RateCase(RequestKind(events=200, repeats=True)),
    "inline-50-attention": RateCase(ATTENTION_50),
    "inline-50-wide": RateCase(setup=Setup(wide=True)),
    "inline-50-100k-items": RateCase(setup=Setup(items=100_000)),
    "inline-50-1m-items": RateCase(setup=Setup(items=1_000_000)),
    "inline-50-2-workers": RateCase(setup=Setup(workers=2)),
    "stored-50-sqlite": RateCase(STORED_50),
    "stored-50-postgresql": RateCase(STORED_50, POSTGRESQL),
    "stored-beside-inline-sqlite": PairCase(STORED_50, INLINE_50),
    "stored-beside-inline-postgresql": PairCase(STORED_50, INLINE_50, POSTGRESQL),
    "attention-beside-none": PairCase(ATTENTION_50, INLINE_50),
    "sweep-beside-attention": PairCase(SWEEP_50, ATTENTION_50, turns=60),
    "swap": SwapCase(),
    "swap-100k-items": SwapCase(setup=Setup(items=100_000)),
    "peers": PeersCase(),
}

QUICK = (
    "echo",
    "inline-50",
    "inline-200",
    "inline-50-repeats",
    "stored-beside-inline-sqlite",
    "attention-beside-none",
    "sweep-beside-attention",
    "swap",
)
