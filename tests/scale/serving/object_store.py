"""A real S3-compatible server in this process, which a test may stop and start."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import s3fs
from moto.server import ThreadedMotoServer

from tests.processes import free_port

BUCKET = "bundles"


@dataclass
class ObjectStore:
    """The server. What it holds stays while it is stopped.

    Attributes:
        environment: the variables by which clients find it.
    """

    port: int
    environment: dict[str, str]
    _server: ThreadedMotoServer | None = field(default=None)

    @property
    def url(self) -> str:
        """The URL of an S3 bucket of it."""
        return f"s3://{BUCKET}"

    def start(self) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def open(self) -> s3fs.S3FileSystem:
        """Open a client of its own, to look at and damage objects."""
        return s3fs.S3FileSystem(
            skip_instance_cache=True,
            use_listings_cache=False,
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
        )


@contextmanager
def run_object_store() -> Iterator[ObjectStore]:
    """Run a server for the duration of the block, and name it in the environment."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    port = free_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    previous = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    store = ObjectStore(port, environment)
    store.start()
    try:
        store.open().mkdir(BUCKET)
        yield store
    finally:
        store.stop()
        for name, value in previous.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
