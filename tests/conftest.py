"""What holds for every test: the same random numbers, one thread, no deadline on a slow machine."""

import numpy as np
import pytest
import torch
from hypothesis import settings

# The same examples every time: a change that passed here passes everywhere. Fresh ones are drawn
# with `--hypothesis-profile=explore`.
settings.register_profile("kairos", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("kairos")

torch.set_num_threads(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one option of these tests."""
    parser.addoption(
        "--full-strength",
        action="store_true",
        help="try the promises in earnest: half an hour, on an idle machine",
    )


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
