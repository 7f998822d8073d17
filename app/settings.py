"""Every knob of the service, read from the environment with the prefix `KAIROS_`."""

from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict

MEBIBYTE = 1024 * 1024
HISTORY_CAP = 1000


class Settings(BaseSettings):
    """How one process of the service runs."""

    model_config = SettingsConfigDict(
        env_prefix="KAIROS_", frozen=True, extra="forbid", use_attribute_docstrings=True
    )

    host: str = "127.0.0.1"
    """Address to listen on. The default answers only this machine."""

    port: int = Field(default=8000, ge=0, le=65535)
    """TCP port to listen on; 0 takes any free one."""

    database_url: str = "sqlite:///var/kairos.db"
    """Where events and items live: `sqlite:///path` or `postgresql://user:password@host/name`."""

    database_threads: PositiveInt = 8
    """Threads that talk to the database, and as many connections."""

    database_queue: int = Field(default=256, ge=0)
    """Database calls that may wait for a thread in a burst; beyond it requests are answered 503.
    While no thread is ever free, only as many as wait for a fifth of the timeout."""

    database_timeout_seconds: PositiveFloat = 5.0
    """Longest that a request waits for the database, a lock or a thread that talks to it; then it
    is answered 503."""

    migrate_on_start: bool = True
    """Whether to bring the database schema up to date at start. Switch it off where
    `kairos migrate` runs as a step of its own."""

    bundle_store: Path = Path("var/bundles")
    """Directory of published bundles and their `CURRENT` pointer."""

    poll_interval_seconds: PositiveFloat = 1.0
    """How often `CURRENT` is looked at for a newly activated bundle."""

    requests_per_second: PositiveFloat = 200.0
    """Requests a second that one API key may send to one process, twice as many in a burst; beyond
    it they are answered 429. A key may have a limit of its own."""

    open_to_loopback: bool = False
    """Whether requests from this machine itself need no key even where keys were made. Where none
    was ever made, this machine is the only one that is answered."""

    pinned_versions: PositiveInt = 2
    """Versions that stay open because requests ask for them by `model_version`, beside those that
    answer by themselves."""

    max_body_bytes: PositiveInt = MEBIBYTE
    """Largest request body, in bytes; a larger one is answered 413."""

    max_history: int = Field(default=HISTORY_CAP, ge=1, le=HISTORY_CAP)
    """Most events of one history: inline histories beyond it are refused, stored ones cut to the
    most recent."""

    recommendation_buffer: int = Field(default=10_000, ge=0)
    """Answers that may wait to be recorded while the database is slow or down; beyond it the oldest
    go unrecorded. 0 records none, and no click can then be told by model version."""

    recommendation_days: PositiveInt = 90
    """Days for which it is kept what was shown."""

    inference_threads: PositiveInt = 1
    """Threads that run the model. One is cheapest per answer; add processes before threads."""

    inference_queue: int = Field(default=40, ge=0)
    """Requests that may wait for the model in a burst; beyond it they are answered 503 at once."""

    inference_patience_seconds: PositiveFloat = 0.075
    """Longest that a request may be expected to wait for the model while it is busy without a
    break; beyond it requests are answered 503 at once, so that the others are answered soon."""

    drain_seconds: float = Field(default=2.0, ge=0, allow_inf_nan=False)
    """How long a process that was told to stop (SIGTERM) says that it is not ready, before it takes
    no new connections: longer than whoever sends it traffic takes to notice."""

    log_format: Literal["console", "json"] = "console"
    """`console` for people, `json` (one object per line) for log collectors."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is logged. User ids and histories appear at no level above debug."""
