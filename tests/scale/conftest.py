"""Tests of several machines need more packages than others: `make test-scale` installs them."""

from importlib.util import find_spec

PACKAGES = ("kubernetes_validate", "moto", "ray", "s3fs")

collect_ignore_glob = [] if all(map(find_spec, PACKAGES)) else ["data", "serving", "test_*.py"]
