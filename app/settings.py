"""The settings of the service, read from the environment with the prefix `KAIROS_`."""

import difflib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from model.bundle.signature import NO_KEYS, BundleKeys
from model.errors import KairosError
from model.store.location import DEFAULT_CACHE, is_url, open_bundle_store

if TYPE_CHECKING:
    from model.store.store import BundleStore

MEBIBYTE = 1024 * 1024
HISTORY_CAP = 1000
LEAST_RATE = 0.001
MOST_RATE = 1e9
"""Bounds of a limit of requests a second: below, the time until the next one is no number."""

# Bounds beyond which clocks, thread pools and queues fail later, with errors that name no setting.
_Seconds = Annotated[float, Field(ge=0.001, le=86_400)]
_SecondsOrNone = Annotated[float, Field(ge=0, le=86_400)]
_Threads = Annotated[int, Field(ge=1, le=1024)]
_Queue = Annotated[int, Field(ge=0, le=1_000_000)]
_Connections = Annotated[int, Field(ge=1, le=1_000_000)]
_Workers = Annotated[int, Field(ge=1, le=256)]
_Days = Annotated[int, Field(ge=1, le=36_500)]


_PREFIX = "KAIROS_"
_FILE_SUFFIX = "_FILE"
_SECRETS = ("database_url", "bundle_key")
"""Settings that may be given as a file: the variable's name with `_FILE` holds its path."""

# Variables that other programs read: the Python client, and docker-compose.yml.
_FOREIGN = frozenset({"API_KEY", "API_KEY_FILE", "PUBLISH", "RECIPE", "RETRAIN_SECONDS", "VERSION"})
# Kubernetes describes every service to every container, also one that is named kairos-something.
_SERVICE_LINK = re.compile(
    r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)"
)


class SettingsError(KairosError):
    """The environment has a variable that no part of Kairos reads, or a file that is unreadable."""

    code = "settings"


class _SecretFiles(PydanticBaseSettingsSource):
    """Reads secrets from the files that variables name, and refuses misspelt variables."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        """Read the file of a setting; None if no variable names one."""
        variable = f"{_PREFIX}{field_name.upper()}"
        path = os.environ.get(variable + _FILE_SUFFIX)
        if path is None:
            return None, field_name, False
        # An empty one is how a container unsets what its image sets.
        if os.environ.get(variable):
            raise SettingsError(
                f"a setting has one source, but {variable} and {variable}{_FILE_SUFFIX} are both "
                "set; unset one"
            )
        try:
            value = Path(path).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"{variable}{_FILE_SUFFIX} must name a text file, but {path!r} cannot be read "
                f"({type(error).__name__}); correct the name or the permissions"
            ) from error
        if not value:
            raise SettingsError(
                f"{variable}{_FILE_SUFFIX} must name a file with a value, but {path!r} is empty; "
                "write the value into it"
            )
        return value, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the settings that files hold.

        Raises:
            SettingsError: if a variable is misspelt, or a file cannot be read.
        """
        fields = self.settings_cls.model_fields
        _require_known_variables({*fields, *(f"{name}{_FILE_SUFFIX}" for name in _SECRETS)})
        found = {name: self.get_field_value(fields[name], name)[0] for name in _SECRETS}
        return {name: value for name, value in found.items() if value is not None}


def _require_known_variables(names: set[str]) -> None:
    """Check that each variable of the prefix is one that something reads: a typo must not pass."""
    known = {name.upper() for name in names} | _FOREIGN
    for variable in sorted(os.environ):
        name = variable.upper().removeprefix(_PREFIX)
        if name == variable.upper() or name in known or _SERVICE_LINK.fullmatch(name):
            continue
        nearest = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.0)[0]
        raise SettingsError(
            f"a variable that begins with {_PREFIX} is one that Kairos reads, but {variable} is "
            f"not; did you mean {_PREFIX}{nearest}? docs/operations.md lists them"
        )


class Settings(BaseSettings):
    """The settings of one process of the service.

    Raises:
        SettingsError: if a variable of the environment is misspelt, or a file cannot be read.
    """

    model_config = SettingsConfigDict(
        env_prefix="KAIROS_", frozen=True, extra="forbid", use_attribute_docstrings=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read arguments, then the files that the environment names, then the environment."""
        return init_settings, _SecretFiles(settings_cls), env_settings

    @field_validator(
        "bundle_store", "bundle_cache", "erasure_log", "runtime_directory", mode="before"
    )
    @classmethod
    def _require_path(cls, value: object) -> object:
        # An empty path is the working directory, which nobody means.
        if value == "":
            raise ValueError("a path is not empty; unset the variable for its default")
        return Path(value) if isinstance(value, str) and not is_url(value) else value

    host: str = "127.0.0.1"
    """Address to listen on. The default accepts connections from this machine only."""

    port: int = Field(default=8000, ge=0, le=65535)
    """TCP port to listen on; 0 takes any free one."""

    workers: _Workers = 1
    """Processes that serve on the address: one for each core that the service may use. Connections
    to the database are of each worker, and so are limits, except those of keys with PostgreSQL."""

    database_url: str = "sqlite:///var/kairos.db"
    """The database: `sqlite:///path` or `postgresql://user:password@host/name`. As a
    secret: `KAIROS_DATABASE_URL_FILE` names a file that holds it."""

    database_threads: _Threads = 8
    """Threads with which requests read from the database, and as many connections. Probes and keys
    have two more of their own."""

    database_write_threads: _Threads = 4
    """Threads for writes to PostgreSQL, and as many connections; slow reads do not delay them. For
    SQLite there is one, as it has one writer at a time."""

    database_queue: _Queue = 256
    """Most reads, and as many writes, that wait for a thread in a burst; beyond it requests get
    status 503. While no thread is ever free, only as many wait as a fifth of the timeout allows."""

    database_timeout_seconds: _Seconds = 5.0
    """Longest that a request waits for the database, one of its locks or a database thread; then it
    gets status 503."""

    erasure_log: Path | None = None
    """File outside the database that records erasures, so that a restored backup does not undo
    them. By default `.erasures` after the path of an SQLite file, `var/HOST-PORT-NAME.erasures` for
    a PostgreSQL database. It must be on a lasting disk."""

    migrate_on_start: bool = True
    """Whether to bring the database schema up to date at start. Switch it off if
    `kairos migrate` runs as a separate step."""

    bundle_store: Path | str = Path("var/bundles")
    """Directory of published bundles and their `CURRENT` pointer, or for replicas on several
    machines a prefix of an S3 bucket: `s3://bucket/prefix`. Credentials and endpoint are those of
    the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, or the role of the machine)."""

    bundle_cache: Path = DEFAULT_CACHE
    """Directory of the local copy of a store in an object store, from which the processes of this
    machine serve. Of one store only."""

    bundle_key: SecretStr | None = None
    """Key of at least 32 characters with which bundles must be signed, or several, separated by
    commas: the first signs, all are accepted. Without one, signatures are not verified. As a
    secret: `KAIROS_BUNDLE_KEY_FILE` names a file that holds it."""

    poll_interval_seconds: _Seconds = 1.0
    """Interval at which the process reads the store's pointers, the keys and the items."""

    popularity_interval_seconds: _SecondsOrNone = 60.0
    """Interval at which models with a wide part count the events that were stored since; 0 keeps
    the popularity of their training."""

    requests_per_second: float = Field(default=200.0, ge=LEAST_RATE, le=MOST_RATE)
    """Requests a second that are accepted from one API key, twice as many in a burst; beyond it
    they get status 429. With PostgreSQL by all processes together, with SQLite by each. A key may
    have its own limit."""

    open_to_loopback: bool = False
    """Whether requests from this machine with the local token need no key even once keys exist.
    Until a first key is created, only such requests are accepted."""

    runtime_directory: Path | None = None
    """Directory of the files with the local tokens of running processes, for the command line and
    the Python client of the same user. Default: `kairos` in `$XDG_RUNTIME_DIR`, or else
    `~/.local/state/kairos`."""

    pinned_versions: int = Field(default=2, ge=1, le=1024)
    """Versions that stay open because requests name them by `model_version`, beside the active
    ones."""

    max_connections: _Connections = 2000
    """Most open connections of the process, and no more than half of its open files (`ulimit -n`).
    Beyond it a new connection replaces the one that has waited for its client for longest, of the
    network with the most such connections; if none waits, the new one gets status 503."""

    max_connections_per_address: _Connections = 1000
    """Most open connections of one IPv4 address, or one IPv6 /64 network. Behind a proxy, all
    connections come from the proxy's address."""

    headers_timeout_seconds: _Seconds = 10.0
    """Longest time from a connection, or the first byte of a later request, to the end of the
    headers; then status 408. A connection that sent nothing is closed without a response."""

    body_timeout_seconds: _Seconds = 30.0
    """Longest time from there to the end of the body; then status 408."""

    response_timeout_seconds: _Seconds = 20.0
    """Time in which a client must read 64 KiB of a response, or the rest of it; then its connection
    is closed."""

    keep_alive_seconds: int = Field(default=5, ge=1, le=86_400)
    """Time for which a connection may be idle after a response; then it is closed."""

    max_body_bytes: int = Field(default=MEBIBYTE, ge=1, le=1024 * MEBIBYTE)
    """Largest request body, in bytes; a larger one gets status 413."""

    max_history: int = Field(default=HISTORY_CAP, ge=1, le=HISTORY_CAP)
    """Most events of one history: longer inline histories are refused, of stored ones the most
    recent events are used."""

    recommendation_buffer: _Queue = 10_000
    """Most impressions that wait to be recorded while the database is slow or down; beyond it the
    oldest are dropped. 0 records none, and clicks are then not attributed to model versions."""

    recommendation_days: _Days = 90
    """Days for which recorded impressions are kept."""

    audit_days: _Days = 1095
    """Days for which the records of erasures, keys, bulk reads, imports and backups are kept.
    Changes of the served models are kept for ever."""

    inference_threads: _Threads = 1
    """Threads that run the model. One is cheapest per request: the event loop then runs short calls
    itself while the thread is idle. Add processes before threads."""

    inference_queue: _Queue = 40
    """Most requests that wait for the model in a burst; beyond it they get status 503. Long ones,
    such as sweeps, take at most half of the places."""

    inference_patience_seconds: _Seconds = 0.075
    """Longest expected wait of a request for the model while requests of its caller have been
    waiting without a break; beyond it requests get status 503, or 429 if the caller has
    its share of the model, which bounds the latency of the others."""

    inference_long_patience_seconds: _Seconds = 5.0
    """The same for requests that take the model long, such as a sweep over many instants: they run
    in slices between the others."""

    drain_seconds: _SecondsOrNone = 2.0
    """Seconds for which a process reports not ready after SIGTERM, before it stops accepting
    connections: longer than the load balancer takes to notice."""

    log_format: Literal["console", "json"] = "console"
    """`console` for people, `json` (one object per line) for log collectors."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is logged. User ids and histories appear at no level above debug."""

    def open_bundle_store(self, *, patience_seconds: float | None = None) -> "BundleStore":
        """Open the store of bundles; connect to nothing yet.

        Args:
            patience_seconds: see `model.store.location.open_bundle_store`.

        Raises:
            KairosError: if its location or a key is not valid.
        """
        return open_bundle_store(
            self.bundle_store,
            self.load_bundle_keys(),
            cache=self.bundle_cache,
            patience_seconds=patience_seconds,
        )

    @property
    def bundle_directory(self) -> Path:
        """The directory from which bundles are read: the store itself, or its local copy."""
        return self.bundle_cache if is_url(self.bundle_store) else Path(self.bundle_store)

    def load_bundle_keys(self) -> BundleKeys:
        """Return the keys that bundles are signed with; none without the setting.

        Raises:
            BundleKeyError: if a key is too short.
        """
        if self.bundle_key is None:
            return NO_KEYS
        return BundleKeys.parse(self.bundle_key.get_secret_value())


def format_settings_error(error: ValidationError) -> str:
    """Describe invalid settings by the names of their environment variables."""
    return "; ".join(
        f"{_PREFIX}{'_'.join(map(str, problem['loc'])).upper()}: "
        f"{problem['msg'][:1].lower()}{problem['msg'][1:]}, but got {problem['input']!r}"
        for problem in error.errors()
    )
