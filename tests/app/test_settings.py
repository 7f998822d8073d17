"""Every setting is described, bounded and read from the environment."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import Settings


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_is_described(name: str) -> None:
    description = Settings.model_fields[name].description
    assert description
    assert description.endswith(".")


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIROS_PORT", "9000")
    monkeypatch.setenv("KAIROS_BUNDLE_STORE", "/srv/bundles")
    monkeypatch.setenv("KAIROS_LOG_FORMAT", "json")
    settings = Settings()
    assert (settings.port, settings.bundle_store) == (9000, Path("/srv/bundles"))
    assert settings.log_format == "json"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "65536"),
        ("POLL_INTERVAL_SECONDS", "0"),
        ("MAX_HISTORY", "1001"),
        ("INFERENCE_THREADS", "0"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_a_setting_out_of_bounds_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"KAIROS_{name}", value)
    with pytest.raises(ValidationError):
        Settings()


def test_the_default_host_is_loopback() -> None:
    assert Settings().host == "127.0.0.1"
