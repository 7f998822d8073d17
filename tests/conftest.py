"""What holds for every test: the same random numbers, one thread, no deadline on a slow machine."""

import numpy as np
import pytest
import torch
from hypothesis import settings

settings.register_profile("kairos", deadline=None)
settings.load_profile("kairos")

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
