"""Where a client finds its key."""

from pathlib import Path

import httpx
import pytest

from app.auth.local_token import LocalToken, write_token_file
from kairos_client import KairosClient
from kairos_client.credentials import find_key
from kairos_client.errors import InvalidError


@pytest.fixture(autouse=True)
def _no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KAIROS_API_KEY", "KAIROS_API_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KAIROS_RUNTIME_DIRECTORY", str(tmp_path / "runtime"))


def authorization(url: str, api_key: str | None = None) -> str | None:
    """The header of a request that a client would send."""
    sent: list[str | None] = []

    def handle(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers.get("Authorization"))
        return httpx.Response(200, json={"status": "ok"})

    with KairosClient(url, api_key=api_key, transport=httpx.MockTransport(handle)) as client:
        client.live()
    return sent[0]


def test_a_key_comes_from_argument_environment_or_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert find_key(None) is None
    file = tmp_path / "key"
    file.write_text("from-file\n")
    monkeypatch.setenv("KAIROS_API_KEY_FILE", str(file))
    assert find_key(None) == "from-file"
    assert find_key("given") == "given"
    monkeypatch.setenv("KAIROS_API_KEY", "from-environment")
    with pytest.raises(InvalidError, match="are both set; unset one"):
        find_key(None)
    monkeypatch.delenv("KAIROS_API_KEY_FILE")
    assert find_key(None) == "from-environment"


def test_an_unreadable_key_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAIROS_API_KEY_FILE", str(tmp_path / "nothing"))
    with pytest.raises(InvalidError, match="KAIROS_API_KEY_FILE must name a text file"):
        KairosClient("http://127.0.0.1:8000")


def test_a_client_follows_the_token_of_a_restarted_service(tmp_path: Path) -> None:
    url = "http://localhost:8000"
    assert authorization(url) is None
    for _ in range(2):
        token = LocalToken()
        file = write_token_file(tmp_path / "runtime", token, host="127.0.0.1", port=8000)
        assert authorization(url) == f"Bearer {token.secret}"
        assert authorization(url, api_key="own") == "Bearer own"
        assert authorization("http://kairos.example:8000") is None
        file.remove()
