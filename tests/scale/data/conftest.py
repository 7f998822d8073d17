"""A Ray cluster whose nodes are processes, and an object store."""

import logging
import os
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    """One node with one CPU; the engine of this process runs its tasks on the cluster.

    It ends with the tests of this folder: its client prints that a node was lost to the standard
    output, also while others read it.
    """
    import ray  # noqa: PLC0415 - slow to import
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    head = {"num_cpus": 1, "include_dashboard": False}
    started = Cluster(initialize_head=True, head_node_args=head)
    ray.init(address=started.address, log_to_driver=False)
    yield started
    ray.shutdown()
    started.shutdown()


@pytest.fixture
def second_node(cluster: Any) -> Iterator[Any]:
    """A second node, which a test may kill."""
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield node
    if node in cluster.worker_nodes:
        cluster.remove_node(node, allow_graceful=False)


@pytest.fixture
def bucket() -> Iterator[str]:
    """The URL of an empty bucket of an S3-compatible server in this process."""
    import s3fs  # noqa: PLC0415 - slow to import
    from moto.server import ThreadedMotoServer  # noqa: PLC0415

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "tests")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        name = f"events-{uuid4().hex}"  # what a server holds is one for all of a process
        s3fs.S3FileSystem().mkdir(name)
        yield f"s3://{name}"
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()
