"""The checks of the settings."""

import pytest

from tests.cli.doctor.checks import Environment, run_doctor, warnings


def test_an_invalid_setting_is_named(environment: Environment) -> None:
    environment(port="http")
    found = run_doctor(1)
    assert found.keys() == {"settings"}
    assert "KAIROS_PORT" in found["settings"]["finding"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"inference_threads": "1000"}, "settings.threads"),
        ({"open_to_loopback": "true", "host": "0.0.0.0"}, "settings.open_to_loopback"),
        ({"poll_interval_seconds": "3600"}, "settings.poll_interval"),
        ({"log_level": "debug"}, "settings.log_level"),
    ],
)
def test_unsafe_settings_are_a_warning(
    database: str, environment: Environment, settings: dict[str, str], name: str
) -> None:
    environment(**settings)
    found = run_doctor(0)
    assert warnings(found) == {name}
    assert found[name]["remedy"]
