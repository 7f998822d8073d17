"""Every setting is described, bounded and read from the environment."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.server import main
from app.settings import Settings, SettingsError


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


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("KAIROS_PORT", "http", "error KAIROS_PORT: input should be a valid integer"),
        ("KAIROS_PROT", "80", "error a variable .*, but KAIROS_PROT is not"),
    ],
)
def test_a_process_that_cannot_start_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SystemExit, match=message):
        main()


def test_the_default_host_is_loopback() -> None:
    assert Settings().host == "127.0.0.1"


@pytest.mark.parametrize(
    ("misspelt", "nearest"),
    [
        ("KAIROS_DATABSE_URL", "KAIROS_DATABASE_URL"),
        ("KAIROS_MAX_BODY", "KAIROS_MAX_BODY_BYTES"),
        ("kairos_opentoloopback", "KAIROS_OPEN_TO_LOOPBACK"),
        ("KAIROS_PORT_FILE", "KAIROS_PORT"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, misspelt: str, nearest: str
) -> None:
    monkeypatch.setenv(misspelt, "1")
    with pytest.raises(SettingsError, match=rf"{misspelt} is not; did you mean {nearest}\?"):
        Settings()


@pytest.mark.parametrize(
    "name",
    [
        *("KAIROS_API_KEY", "KAIROS_API_KEY_FILE", "KAIROS_PUBLISH", "KAIROS_RETRAIN_SECONDS"),
        *("KAIROS_SERVICE_HOST", "KAIROS_SERVICE_PORT_HTTP", "KAIROS_PORT_8000_TCP_ADDR"),
        *("KAIROS_API_SERVICE_PORT", "KAIROS_API_PORT_8000_TCP", "KAIROSX", "MY_KAIROS_PORT"),
    ],
)
def test_variables_of_other_programs_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    Settings()


def test_the_variables_of_compose_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    files = ("docker-compose.yml", ".env.example")
    text = "".join((Path(__file__).parents[2] / file).read_text() for file in files)
    named = set(re.findall(r"KAIROS_\w+", text))
    assert len(named) > 5
    settings = {f"KAIROS_{name.upper()}" for name in Settings.model_fields}
    for name in named - settings:
        monkeypatch.setenv(name, "1")
    Settings()


def test_a_secret_may_be_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://kairos:s3cret@database/kairos\n")
    monkeypatch.setenv("KAIROS_DATABASE_URL_FILE", str(file))
    assert Settings().database_url == "postgresql://kairos:s3cret@database/kairos"
    assert Settings(database_url="sqlite:///x.db").database_url == "sqlite:///x.db"
    monkeypatch.setenv("KAIROS_DATABASE_URL", "sqlite:///y.db")
    with pytest.raises(SettingsError, match="are both set; unset one"):
        Settings()


def test_an_empty_variable_leaves_the_setting_to_its_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A container can set a variable of its image to nothing, but cannot unset it."""
    file = tmp_path / "url"
    file.write_text("postgresql://kairos@database/kairos")
    monkeypatch.setenv("KAIROS_DATABASE_URL", "")
    monkeypatch.setenv("KAIROS_DATABASE_URL_FILE", str(file))
    assert Settings().database_url == "postgresql://kairos@database/kairos"


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff"])
def test_an_unusable_secret_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "url"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("KAIROS_DATABASE_URL_FILE", str(file))
    with pytest.raises(SettingsError, match="KAIROS_DATABASE_URL_FILE must name a"):
        Settings()


@pytest.mark.parametrize("name", ["BUNDLE_STORE", "ERASURE_LOG", "RUNTIME_DIRECTORY"])
def test_a_path_is_not_empty(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"KAIROS_{name}", "")
    with pytest.raises(ValidationError, match="a path is not empty"):
        Settings()


NUMBERS = sorted(
    name for name, field in Settings.model_fields.items() if field.annotation in {int, float}
)


@pytest.mark.parametrize("value", ["-1", "1e308", "inf", "nan", "99999999999999999999"])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_has_bounds(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"KAIROS_{name.upper()}", value)
    with pytest.raises(ValidationError, match=name):
        Settings()


@pytest.mark.parametrize("name", NUMBERS)
def test_a_tiny_number_is_refused_or_means_none(name: str) -> None:
    """The reciprocal of a tiny interval or rate is infinite."""
    try:
        settings = Settings(**{name: 1e-320})
    except ValidationError:
        return
    assert name in {"popularity_interval_seconds", "drain_seconds"}
    assert getattr(settings, name) < 1e-300
