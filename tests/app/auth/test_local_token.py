"""The files of local tokens: who can read them, and which processes they are of."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.auth.key_cache import contains_key
from app.auth.local_token import (
    LocalToken,
    list_running_services,
    resolve_runtime_directory,
    write_token_file,
)
from kairos_client.credentials import read_local_token


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime directory that does not exist yet, known to the client, too."""
    monkeypatch.setenv("KAIROS_RUNTIME_DIRECTORY", str(tmp_path / "state" / "runtime"))
    return tmp_path / "state" / "runtime"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_tokens_are_random_and_recognised_as_secrets() -> None:
    one, other = LocalToken(), LocalToken()
    assert one.matches(one.secret)
    assert not one.matches(other.secret)
    assert not one.matches("")
    assert contains_key(f"token={one.secret}&x=1")


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o277])
def test_only_the_user_of_the_process_can_read_a_token(runtime: Path, mask: int) -> None:
    runtime.parent.mkdir()
    before = os.umask(mask)
    try:
        if mask == 0o277:
            runtime.mkdir(mode=0o700)
            runtime.chmod(0o700)
        file = write_token_file(runtime, LocalToken(), host="127.0.0.1", port=8000)
    finally:
        os.umask(before)
    assert (mode(runtime), mode(file.path)) == (0o700, 0o600)
    file.remove()


def test_a_directory_open_to_others_is_closed(runtime: Path) -> None:
    runtime.mkdir(parents=True)
    runtime.chmod(0o755)
    write_token_file(runtime, LocalToken(), host="127.0.0.1", port=8000).remove()
    assert mode(runtime) == 0o700


def test_a_directory_that_others_write_to_stays_as_it_is(runtime: Path) -> None:
    runtime.mkdir(parents=True)
    runtime.chmod(0o1777)
    with pytest.raises(PermissionError, match="has the mode 1777; set KAIROS_RUNTIME_DIRECTORY"):
        write_token_file(runtime, LocalToken(), host="127.0.0.1", port=8000)
    assert runtime.stat().st_mode & 0o7777 == 0o1777
    assert list(runtime.iterdir()) == []


def test_a_link_in_place_of_the_directory_is_refused(runtime: Path, tmp_path: Path) -> None:
    runtime.parent.mkdir()
    runtime.symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="is a link or another user's"):
        write_token_file(runtime, LocalToken(), host="127.0.0.1", port=8000)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(runtime: Path) -> None:
    runtime.mkdir(parents=True)
    os.chown(runtime, 65_534, 65_534)
    with pytest.raises(PermissionError, match="another user's"):
        write_token_file(runtime, LocalToken(), host="127.0.0.1", port=8000)


def test_a_link_in_place_of_a_file_is_replaced_not_followed(runtime: Path, tmp_path: Path) -> None:
    runtime.mkdir(parents=True, mode=0o700)
    target = tmp_path / "target"
    target.write_text("untouched")
    (runtime / "127.0.0.1_8000").symlink_to(target)
    file = write_token_file(runtime, LocalToken(), host="127.0.0.1", port=8000)
    assert target.read_text() == "untouched"
    assert not file.path.is_symlink()
    file.remove()


@pytest.mark.parametrize(
    ("listening", "called"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("127.0.0.1", "http://localhost:8000/"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("localhost", "http://localhost:8000"),
    ],
)
def test_the_client_reads_the_token_of_the_service_it_calls(
    runtime: Path, listening: str, called: str
) -> None:
    token = LocalToken()
    file = write_token_file(runtime, token, host=listening, port=8000)
    assert read_local_token(called) == token.secret
    for other in ("https://127.0.0.1:8000", "http://127.0.0.1:8001", "http://kairos.example:8000"):
        assert read_local_token(other) is None
    file.remove()
    assert read_local_token(called) is None


def test_client_and_service_agree_on_the_default_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAIROS_RUNTIME_DIRECTORY", raising=False)
    for variable in ("XDG_RUNTIME_DIR", "HOME"):
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        monkeypatch.setenv(variable, str(tmp_path / variable))
        token = LocalToken()
        file = write_token_file(resolve_runtime_directory(None), token, host="127.0.0.1", port=8000)
        assert file.path.is_relative_to(tmp_path / variable)
        assert read_local_token("http://127.0.0.1:8000") == token.secret
        file.remove()


def test_the_client_reads_no_links_and_no_other_files(runtime: Path, tmp_path: Path) -> None:
    runtime.mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_text(LocalToken().secret)
    file = runtime / "127.0.0.1_8000"
    file.symlink_to(secret)
    assert read_local_token("http://127.0.0.1:8000") is None
    file.unlink()
    file.write_text("ssh-rsa AAAA")
    assert read_local_token("http://127.0.0.1:8000") is None
    file.unlink()
    os.mkfifo(file)
    assert read_local_token("http://127.0.0.1:8000") is None


def test_processes_on_one_machine_have_files_of_their_own(runtime: Path) -> None:
    addresses = [("127.0.0.1", 8000), ("127.0.0.1", 8001), ("127.0.0.2", 8000)]
    files = [write_token_file(runtime, LocalToken(), host=h, port=p) for h, p in addresses]
    assert {each.url for each in list_running_services(runtime)} == {
        f"http://{host}:{port}" for host, port in addresses
    }
    for file in files:
        file.remove()
    assert list_running_services(runtime) == []
    assert [*runtime.iterdir()] == []


def test_the_file_of_a_killed_process_is_stale_and_removed(runtime: Path) -> None:
    script = (
        "import os, pathlib, sys; from app.auth.local_token import *;"
        "write_token_file(pathlib.Path(sys.argv[1]), LocalToken(), host='127.0.0.1', port=8000);"
        "os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(runtime)], check=False)
    assert killed.returncode == -9
    assert (runtime / "127.0.0.1_8000").exists()
    assert list_running_services(runtime) == []
    file = write_token_file(runtime, LocalToken(), host="127.0.0.1", port=8001)
    assert [path.name for path in runtime.iterdir()] == ["127.0.0.1_8001"]
    file.remove()


def test_a_process_that_ends_leaves_its_successors_file(runtime: Path) -> None:
    first = write_token_file(runtime, LocalToken(), host="127.0.0.1", port=8000)
    token = LocalToken()
    second = write_token_file(runtime, token, host="127.0.0.1", port=8000)
    first.remove()
    assert read_local_token("http://127.0.0.1:8000") == token.secret
    second.remove()


def test_the_link_carries_the_token_in_its_fragment(runtime: Path) -> None:
    token = LocalToken()
    file = write_token_file(runtime, token, host="::1", port=8000)
    assert file.service.dashboard_link == f"http://[::1]:8000/dashboard/#token={token.secret}"
    assert token.secret not in repr(file)
    file.remove()
