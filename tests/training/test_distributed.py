import pytest

from model.errors import KairosError
from training.distributed import ALONE, join_group


def test_without_a_launcher_a_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with join_group() as group:
        assert group == ALONE
        assert group.is_leader
        assert group.run_on_leader(lambda: 5) == 5


def test_a_single_process_of_a_launcher_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    with join_group() as group:
        assert group == ALONE


def test_restarts_on_several_machines_need_new_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    torchrun = {
        **{"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"},
        **{"GROUP_WORLD_SIZE": "2", "TORCHELASTIC_MAX_RESTARTS": "3"},
    }
    for name, value in torchrun.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", raising=False)
    with pytest.raises(KairosError, match="set it to 1 where torchrun is started"), join_group():
        pass
