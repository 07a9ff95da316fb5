"""A server on a Unix socket: who may open it, when it is replaced, refused and removed."""

import json
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.conftest import wait_for
from tests.pictures import photo_of


def wait_until_announced(process: subprocess.Popen[str]) -> dict:
    """What the server says of its address with --json."""
    for line in process.stdout:
        if line.startswith("{"):
            return json.loads(line)
    return pytest.fail("the server never got ready")


def client_of(path: Path) -> httpx.Client:
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost", timeout=30)


@pytest.fixture(params=["1", "2"], ids=["one process", "two workers"])
def workers(request: pytest.FixtureRequest) -> tuple[str, str]:
    return "--workers", request.param


def test_it_answers_for_owner_and_group_and_is_removed_at_the_end(start, tmp_path: Path, workers) -> None:
    path = tmp_path / "faces.sock"
    process = start("--unix-socket", str(path), "--json", "--log-level", "error", *workers)
    announced = wait_until_announced(process)
    assert (announced["address"], announced["unix_socket"]) == ("http://localhost", str(path))
    assert path.stat().st_mode & 0o777 == 0o660
    with client_of(path) as client:
        photos = {"probe": photo_of(1), "reference": photo_of(1)}
        assert client.post("/v1/verify", files=photos).json()["same_person"] is True
        refused = client.get("/v1/models", headers={"Host": "rebound.example"})
        assert refused.json()["code"] == "host_not_allowed"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert not path.exists()


def test_the_socket_of_a_killed_server_is_replaced_and_that_of_a_living_one_refused(
    start, tmp_path: Path
) -> None:
    path = tmp_path / "faces.sock"
    killed = start("--unix-socket", str(path), "--json", "--log-level", "error")
    wait_until_announced(killed)
    killed.kill()
    killed.wait()
    assert path.is_socket()
    wait_until_announced(start("--unix-socket", str(path), "--json", "--log-level", "error"))
    second = start("--unix-socket", str(path))
    said, _ = second.communicate(timeout=30)
    assert second.returncode == 2
    assert f"Cannot listen on {path}: another server does." in said
    with client_of(path) as client:
        wait_for(lambda: client.get("/health/ready").status_code == 200)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "it is a folder"),
        ("file", "it is no socket"),
        ("gone/faces.sock", "No such file or directory"),
        ("x" * 120, "AF_UNIX path too long"),
    ],
)
def test_what_cannot_be_a_socket_is_said(start, tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")
    process = start("--unix-socket", str(tmp_path / name))
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 2
    assert output.splitlines()[-1].startswith(f"cannot_serve: Cannot listen on {tmp_path / name}: {said}")
    assert "Traceback" not in output
    assert (tmp_path / "file").read_text() == "kept"


def test_a_socket_that_answers_nothing_but_is_listened_on_is_not_stolen(start, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "other.sock"))
        other.listen()
        process = start("--unix-socket", str(tmp_path / "other.sock"))
        output, _ = process.communicate(timeout=30)
    assert "another server does" in output
