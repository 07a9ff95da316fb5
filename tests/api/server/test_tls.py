"""TLS of the server itself: certificates that are served, refused, and replaced while it serves."""

import datetime
import http.client
import os
import shlex
import signal
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import httpx
import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from sameface.api.server.tls import Certificate, load_certificate
from sameface.api.settings import Settings
from sameface.model.errors import CannotServe
from tests.conftest import address_of, wait_for
from tests.pictures import photo_of
from tests.processes.test_workers import workers_of

LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


class Files:
    """A certificate authority, and the files of the certificate that it issued last."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.certificate, self.key = folder / "certificate.pem", folder / "key.pem"
        self.flags = ("--tls-certificate", str(self.certificate), "--tls-key", str(self.key))
        self.context = ssl.create_default_context()
        self.authority.configure_trust(self.context)

    def issue(self, *names: str, **options: object) -> "Files":
        issued = self.authority.issue_cert(*(names or ("127.0.0.1", "localhost")), **options)
        issued.private_key_pem.write_to_path(self.key)
        for number, pem in enumerate(issued.cert_chain_pems):
            pem.write_to_path(self.certificate, append=number > 0)
        return self

    def serial_at(self, address: httpx.URL) -> str:
        """The serial number of the certificate that a new connection is answered with."""
        with (
            socket.create_connection((address.host, address.port), timeout=20) as plain,
            self.context.wrap_socket(plain, server_hostname="localhost") as secured,
        ):
            return secured.getpeercert()["serialNumber"]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path).issue()


def test_it_announces_https_and_answers(start, files: Files) -> None:
    process = start(*files.flags)
    address = address_of(process)
    assert address.scheme == "https"
    photos = {"probe": photo_of(1), "reference": photo_of(1)}
    answer = httpx.post(f"{address}/v1/verify", files=photos, verify=files.context)
    assert answer.json()["same_person"] is True


def announced_command(process: subprocess.Popen[str]) -> list[str]:
    """The words of the curl command that the server announces."""
    said = next(line for line in process.stdout if "curl" in line)
    return shlex.split(said)


@pytest.mark.parametrize("name", ["faces.example.org", "127.0.0.1", "::1"])
@pytest.mark.parametrize("on", ["a port", "a Unix socket"])
def test_the_announced_command_works_whatever_the_certificate_is_for(
    start, files: Files, tmp_path: Path, name: str, on: str
) -> None:
    files.issue(name)
    for photo in ("one.jpg", "another.jpg"):
        (tmp_path / photo).write_bytes(photo_of(1))
    where = () if on == "a port" else ("--unix-socket", str(tmp_path / "faces.sock"))
    command = announced_command(start(*files.flags, *where))
    asked = subprocess.run(
        [command[0], "-fsS", *command[1:]], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert asked.returncode == 0, asked.stderr
    assert '"same_person":true' in asked.stdout


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sighup_changes_the_certificate_under_load_and_loses_no_request(
    start, files: Files, workers: str
) -> None:
    process = start(*files.flags, "--workers", workers, "--log-level", "warning")
    address = address_of(process)
    failures: list[httpx.HTTPError] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            try:
                with httpx.Client(verify=files.context, timeout=30) as client:  # a handshake of its own
                    for _ in range(3):
                        client.get(f"{address}/health/ready").raise_for_status()
            except httpx.HTTPError as error:
                failures.append(error)

    kept = http.client.HTTPSConnection(address.host, address.port, context=files.context, timeout=30)
    wait_for(lambda: status_of(kept) == 200)
    connection = kept.sock
    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    try:
        for _ in range(5):
            before = files.serial_at(address)
            files.issue()
            process.send_signal(signal.SIGHUP)
            wait_for(lambda before=before: before not in {files.serial_at(address) for _ in range(8)})
            assert status_of(kept) == 200
    finally:
        done.set()
        for asker in askers:
            asker.join()
    assert kept.sock is connection
    kept.close()
    assert failures == []


def status_of(connection: http.client.HTTPSConnection) -> int:
    connection.request("GET", "/health/ready")
    answer = connection.getresponse()
    answer.read()
    return answer.status


def test_a_worker_that_is_started_later_has_the_certificate_of_now(start, files: Files) -> None:
    process = start(*files.flags, "--workers", "2", "--log-level", "warning")
    address = address_of(process)
    before = files.serial_at(address)
    files.issue()
    process.send_signal(signal.SIGHUP)
    wait_for(lambda: before not in {files.serial_at(address) for _ in range(8)})
    files.certificate.write_text("broken meanwhile")
    for worker in workers_of(process):
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: files.serial_at(address) != before, 60)


def test_a_bad_file_at_reload_keeps_the_certificate_and_is_an_error_in_the_log(start, files: Files) -> None:
    process = start(*files.flags)
    address = address_of(process)
    before = files.serial_at(address)
    files.certificate.write_text("no certificate")
    process.send_signal(signal.SIGHUP)
    assert any("ERROR sameface.tls: the certificate in use stays" in line for line in process.stdout)
    assert files.serial_at(address) == before
    files.issue()
    process.send_signal(signal.SIGHUP)
    wait_for(lambda: files.serial_at(address) != before)


def test_sighup_ends_no_server_without_a_certificate(start) -> None:
    process = start()
    address = address_of(process)
    process.send_signal(signal.SIGHUP)
    assert any("there is none: nothing is done" in line for line in process.stdout)
    assert httpx.get(f"{address}/health/live").status_code == 200


def test_an_expired_certificate_is_served_with_a_warning(start, files: Files) -> None:
    files.issue(not_before=LONG_AGO, not_after=LONG_AGO + datetime.timedelta(days=90))
    process = start(*files.flags)
    assert any("has expired: clients will refuse it" in line for line in process.stdout)
    address = address_of(process)
    assert httpx.get(f"{address}/health/live", verify=False).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/health/live", verify=files.context)


def encrypt(files: Files) -> None:
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files.key.write_bytes(key.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"secret")))


def mismatch(files: Files) -> None:
    kept = files.certificate.read_bytes()
    files.issue()
    files.certificate.write_bytes(kept)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (encrypt, "is encrypted. Decrypt it"),
        (mismatch, "the key does not belong to the certificate"),
        (lambda files: files.key.write_text(""), "both must be PEM files"),
        (lambda files: files.certificate.write_bytes(b"\x30\x82"), "both must be PEM files"),
        (lambda files: files.certificate.write_bytes(files.key.read_bytes()), "both must be PEM files"),
        (lambda files: files.key.unlink(), "key.pem for TLS: No such file or directory"),
        (lambda files: (files.key.unlink(), files.key.mkdir()), "key.pem for TLS: Is a directory"),
    ],
)
def test_files_that_cannot_serve_are_refused_in_a_sentence(files: Files, spoil, said: str) -> None:
    spoil(files)
    with pytest.raises(CannotServe) as refusal:
        Certificate(files.certificate, files.key)
    assert said in str(refusal.value)


@pytest.mark.parametrize("half", ["tls_certificate", "tls_key"])
def test_a_certificate_without_its_key_is_refused(half: str) -> None:
    with pytest.raises(CannotServe, match="TLS needs both"):
        load_certificate(Settings(**{half: "file.pem"}))


def test_a_server_that_cannot_have_its_certificate_does_not_start(start, files: Files) -> None:
    encrypt(files)
    process = start(*files.flags)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 2
    assert said.startswith(f"cannot_serve: The key {files.key} is encrypted.")
    assert "Traceback" not in said


def test_tls_opens_no_door_without_keys(start, files: Files) -> None:
    process = start(*files.flags, "--host", "0.0.0.0")
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "API keys" in said


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_without_a_certificate_ends_with_its_terminal(start, workers: str) -> None:
    ours, terminal = os.openpty()
    before = signal.signal(
        signal.SIGHUP, signal.SIG_DFL
    )  # whoever runs the tests may ignore it, as nohup does
    process = start("--workers", workers, stdin=terminal)
    signal.signal(signal.SIGHUP, before)
    address_of(process)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=30) == -signal.SIGHUP
    os.close(ours)
    os.close(terminal)
