"""The settings of the service, read from the environment with the prefix `KAIROS_`."""

from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict

MEBIBYTE = 1024 * 1024
HISTORY_CAP = 1000


class Settings(BaseSettings):
    """The settings of one process of the service."""

    model_config = SettingsConfigDict(
        env_prefix="KAIROS_", frozen=True, extra="forbid", use_attribute_docstrings=True
    )

    host: str = "127.0.0.1"
    """Address to listen on. The default accepts connections from this machine only."""

    port: int = Field(default=8000, ge=0, le=65535)
    """TCP port to listen on; 0 takes any free one."""

    database_url: str = "sqlite:///var/kairos.db"
    """The database: `sqlite:///path` or `postgresql://user:password@host/name`."""

    database_threads: PositiveInt = 8
    """Threads with which requests read from the database, and as many connections. Probes and keys
    have two more of their own."""

    database_write_threads: PositiveInt = 4
    """Threads for writes to PostgreSQL, and as many connections; slow reads do not delay them. For
    SQLite there is one, as it has one writer at a time."""

    database_queue: int = Field(default=256, ge=0)
    """Most reads, and as many writes, that wait for a thread in a burst; beyond it requests get
    status 503. While no thread is ever free, only as many wait as a fifth of the timeout allows."""

    database_timeout_seconds: PositiveFloat = 5.0
    """Longest that a request waits for the database, one of its locks or a database thread; then it
    gets status 503."""

    migrate_on_start: bool = True
    """Whether to bring the database schema up to date at start. Switch it off if
    `kairos migrate` runs as a separate step."""

    bundle_store: Path = Path("var/bundles")
    """Directory of published bundles and their `CURRENT` pointer."""

    poll_interval_seconds: PositiveFloat = 1.0
    """Interval at which the process reads the store's pointers, the keys and the items."""

    popularity_interval_seconds: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    """Interval at which models with a wide part count the events that were stored since; 0 keeps
    the popularity of their training."""

    requests_per_second: PositiveFloat = 200.0
    """Requests a second that one process accepts from one API key, twice as many in a burst; beyond
    it they get status 429. A key may have its own limit."""

    open_to_loopback: bool = False
    """Whether requests from this machine itself need no key even once keys exist. Until a first key
    is created, only requests from this machine are accepted."""

    pinned_versions: PositiveInt = 2
    """Versions that stay open because requests name them by `model_version`, beside the active
    ones."""

    max_connections: PositiveInt = 2000
    """Most open connections of the process, and no more than half of its open files (`ulimit -n`).
    Beyond it a new connection replaces the one that has been idle or slow for longest."""

    max_connections_per_address: PositiveInt = 1000
    """Most open connections of one IPv4 address, or one IPv6 /64 network. Behind a proxy, all
    connections come from the proxy's address."""

    headers_timeout_seconds: PositiveFloat = 10.0
    """Longest time from a connection, or the first byte of a later request, to the end of the
    headers; then status 408."""

    body_timeout_seconds: PositiveFloat = 30.0
    """Longest time from there to the end of the body; then status 408."""

    response_timeout_seconds: PositiveFloat = 20.0
    """Time in which a client must read 64 KiB of a response, or the rest of it; then its connection
    is closed."""

    keep_alive_seconds: PositiveInt = 5
    """Time for which a connection may be idle after a response; then it is closed."""

    max_body_bytes: PositiveInt = MEBIBYTE
    """Largest request body, in bytes; a larger one gets status 413."""

    max_history: int = Field(default=HISTORY_CAP, ge=1, le=HISTORY_CAP)
    """Most events of one history: longer inline histories are refused, of stored ones the most
    recent events are used."""

    recommendation_buffer: int = Field(default=10_000, ge=0)
    """Most impressions that wait to be recorded while the database is slow or down; beyond it the
    oldest are dropped. 0 records none, and clicks are then not attributed to model versions."""

    recommendation_days: PositiveInt = 90
    """Days for which recorded impressions are kept."""

    inference_threads: PositiveInt = 1
    """Threads that run the model. One is cheapest per request; add processes before threads."""

    inference_queue: int = Field(default=40, ge=0)
    """Most requests that wait for the model in a burst; beyond it they get status 503 at once."""

    inference_patience_seconds: PositiveFloat = 0.075
    """Longest expected wait of a request for the model while every thread is busy without a break;
    beyond it requests get status 503 at once, which bounds the latency of the others."""

    drain_seconds: float = Field(default=2.0, ge=0, allow_inf_nan=False)
    """Seconds for which a process reports not ready after SIGTERM, before it stops accepting
    connections: longer than the load balancer takes to notice."""

    log_format: Literal["console", "json"] = "console"
    """`console` for people, `json` (one object per line) for log collectors."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is logged. User ids and histories appear at no level above debug."""
