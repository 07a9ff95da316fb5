"""nginx with the configuration of deploy/, in front of a real server: a prefix, TLS, streams both ways."""

import http.client
import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import trustme

from tests.api.collections import make_collection
from tests.api.lines import people, to_line
from tests.conftest import wait_for
from tests.docs.pages import ROOT
from tests.model.people import random_units
from tests.networks import DIMENSION
from tests.pictures import photo_of

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
NDJSON = {"Content-Type": "application/x-ndjson"}
AROUND = """
pid nginx.pid;
error_log stderr warn;
events {{}}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy;
    fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    include {example};
}}
"""


@dataclass(frozen=True)
class Proxied:
    """The address that users type, and what they trust."""

    port: int
    context: ssl.SSLContext

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"https://localhost:{self.port}/faces", verify=self.context, timeout=30)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@pytest.fixture
def proxied(serve, tmp_path: Path) -> Iterator[Proxied]:
    if NGINX is None:
        pytest.skip("there is no nginx on this machine")
    authority, port, context = trustme.CA(), free_port(), ssl.create_default_context()
    authority.configure_trust(context)
    issued = authority.issue_cert("localhost")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "certificate.pem")
    with serve(root_path="/faces", trusted_proxies="127.0.0.1") as direct:
        replacements = {
            "127.0.0.1:8000": f"127.0.0.1:{direct.base_url.port}",
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "server_name faces.example.org": "server_name localhost",
            "/etc/nginx/tls/fullchain.pem": str(tmp_path / "certificate.pem"),
            "/etc/nginx/tls/privkey.pem": str(tmp_path / "key.pem"),
        }
        example = (ROOT / "deploy" / "nginx" / "sameface.conf").read_text("utf-8")
        for shown, here in replacements.items():
            assert shown in example
            example = example.replace(shown, here)
        (tmp_path / "sameface.conf").write_text(example)
        (tmp_path / "nginx.conf").write_text(AROUND.format(example=tmp_path / "sameface.conf"))
        command = [NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-g", "daemon off;"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                proxied = Proxied(port, context)
                with proxied.client() as client:
                    wait_for(lambda: client.get("/health/ready").status_code == 200)
                yield proxied
            finally:
                process.terminate()
                process.wait(timeout=20)
                assert "[emerg]" not in process.stderr.read()


def test_two_photos_are_verified_behind_tls_and_a_prefix(proxied: Proxied) -> None:
    with proxied.client() as client:
        answer = client.post("/v1/verify", files={"probe": photo_of(1), "reference": photo_of(1)})
        assert answer.json()["same_person"] is True
        assert client.get("/").headers["location"] == "/faces/docs"
        assert client.get("/docs").status_code == 200
        assert client.get("/openapi.json").json()["servers"] == [{"url": "/faces"}]
        assert client.get("/metrics").status_code == 403


def test_a_refusal_of_a_large_photo_is_the_servers_own(proxied: Proxied) -> None:
    with proxied.client() as client:
        refused = client.post("/v1/detect", files={"image": photo_of(1) + bytes(12_000_000)})
    assert (refused.status_code, refused.json()["code"]) == (413, "image_too_large")


def test_a_batch_is_answered_while_it_is_sent(proxied: Proxied) -> None:
    with proxied.client() as client:
        staff = make_collection(client)
        client.post(f"{staff}/people/batch", content=b"".join(people(3)), headers=NDJSON).raise_for_status()
    connection = http.client.HTTPSConnection("localhost", proxied.port, context=proxied.context, timeout=20)
    connection.putrequest("POST", f"/faces{staff}/identify/batch")
    connection.putheader("Content-Type", "application/x-ndjson")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    probes = [
        to_line(str(number), embedding=embedding)
        for number, embedding in enumerate(random_units(3, DIMENSION, 3))
    ]
    send_chunk(connection, probes[0])
    answer = connection.getresponse()
    assert json.loads(answer.readline())["id"] == "0"  # before the second probe is sent
    for number, probe in enumerate(probes[1:], 1):
        send_chunk(connection, probe)
        assert json.loads(answer.readline())["id"] == str(number)
    send_chunk(connection, b"")
    assert answer.read() == b""
    connection.close()


def send_chunk(connection: http.client.HTTPSConnection, content: bytes) -> None:
    connection.sock.sendall(b"%x\r\n%s\r\n" % (len(content), content))
