"""The REST server of deepface, on the same weights, as its own script starts it."""

import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.shared.load import form_request
from benchmarks.shared.server import Server
from sameface.model.measurement.lfw_pairs import Pair

REQUIREMENTS = ("deepface[api]",)
FIELDS = {"model_name": "SFace", "detector_backend": "yunet"}
APP = "deepface.api.src.app:create_app()"
START_SECONDS = 120


def verify_request(pair: Pair) -> bytes:
    """POST /verify with two photos."""
    photos = {"img1": pair.probe.read_bytes(), "img2": pair.reference.read_bytes()}
    return form_request("/verify", photos, FIELDS)


@contextmanager
def serve_deepface(python: Path, home: Path, weights: list[Path], workers: int) -> Iterator[Server]:
    """Start the server of deepface, yield it once it is ready, and stop it."""
    place = home / ".deepface" / "weights"
    place.mkdir(parents=True, exist_ok=True)
    for file in weights:
        shutil.copy(file, place)
    host, port = "127.0.0.1", find_free_port()
    command = [str(python), "-m", "gunicorn", "--workers", str(workers), "--timeout", "3600"]
    command += ["--log-level", "error", "--bind", f"{host}:{port}", APP]
    environment = os.environ | {
        "DEEPFACE_HOME": str(home),
        "DEEPFACE_FACE_RECOGNITION_MODELS": FIELDS["model_name"],
        "DEEPFACE_FACE_DETECTION_MODELS": FIELDS["detector_backend"],
        "DEEPFACE_LOG_LEVEL": "50",
    }
    with subprocess.Popen(command, cwd=home, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            server = Server(process.pid, host, port)
            wait_until_ready(server, process)
            yield server
        finally:
            process.terminate()


def find_free_port() -> int:
    """A TCP port that nothing listens on at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def wait_until_ready(server: Server, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a worker has loaded its models and answers."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://{server.host}:{server.port}/").close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("deepface did not start")
