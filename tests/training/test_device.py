from types import SimpleNamespace

import pytest
import torch

from model.errors import KairosError
from training.device import parse_device


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two GPUs, as far as torch is asked about them."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    def allocate(*_: object, device: torch.device) -> SimpleNamespace:
        """A tensor is on a device with a number."""
        return SimpleNamespace(device=torch.device(device.type, device.index or 0))

    monkeypatch.setattr(torch, "empty", allocate)


def test_auto_is_the_cpu_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert parse_device("auto") == torch.device("cpu")


def test_auto_is_a_gpu_where_there_is_one(gpus: None) -> None:
    assert parse_device("auto") == torch.device("cuda:0")


def test_the_device_is_that_of_the_tensors_on_it(gpus: None) -> None:
    assert parse_device("cuda") == torch.empty(0, device=torch.device("cuda")).device


def test_each_process_of_a_machine_has_its_own_gpu(gpus: None) -> None:
    assert parse_device("auto", local_rank=1) == torch.device("cuda:1")
    assert parse_device("cuda", local_rank=1) == torch.device("cuda:1")


def test_a_gpu_with_a_number_is_that_one(gpus: None) -> None:
    assert parse_device("cuda:0", local_rank=1) == torch.device("cuda:0")


def test_a_device_that_is_not_there_is_refused_with_a_remedy() -> None:
    with pytest.raises(KairosError, match="'cuda:99' is not; use cpu or auto"):
        parse_device("cuda:99")
