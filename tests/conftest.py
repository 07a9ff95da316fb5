"""Real parts, made small: bundles of tiny networks, a pipeline on them, and a server on a free port."""

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
import uvicorn

from sameface.api.app import create_app
from sameface.api.server.connections import limit_connections
from sameface.api.settings import Settings
from sameface.model.bundles.pull import pull_model, pull_portraits
from sameface.model.data_folder import DataFolder
from sameface.model.errors import PullFailed
from sameface.model.pipeline import Pipeline, PipelineOptions, open_pipeline
from tests.api.collections import make_collection
from tests.forked_command import ForkedCommand, run_command
from tests.networks import build_detector, build_recogniser
from tests.postgres_server import ON_POSTGRES, database_of, remove_server

Serve = Callable[..., "contextmanager[httpx.Client]"]
TEST_DATA = Path("~/.cache/sameface-tests").expanduser()


@pytest.fixture(scope="session", autouse=True)
def _forget_settings_of_the_developer() -> Iterator[None]:
    """The environment of whoever runs the tests is not part of them."""
    with pytest.MonkeyPatch.context() as patch:
        kept = (
            "SAMEFACE_LFW_TAR",
            "SAMEFACE_KILLS",
            "SAMEFACE_SECONDS",
            "SAMEFACE_FUZZ_CASES",
        )
        for name in [name for name in os.environ if name.startswith("SAMEFACE_") and name not in kept]:
            patch.delenv(name)
        if ON_POSTGRES:  # where none is drawn
            patch.setenv("SAMEFACE_SECRET_KEY", secrets.token_hex(32))
        yield


def pytest_configure() -> None:
    """A shell lets what it starts in the background ignore SIGINT, and so would all that tests interrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Two workers per core: tests that wait for servers and clocks leave a third of a core idle."""
    return 2 * len(os.sched_getaffinity(0))


@pytest.fixture(scope="session", autouse=True)
def _remove_postgres() -> Iterator[None]:
    yield
    remove_server()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the tiny networks."""
    root = tmp_path_factory.mktemp("data")
    for build in (build_recogniser, build_detector):
        folder = root / "models" / build.__name__.removeprefix("build_")
        folder.mkdir(parents=True)
        build(folder)
    return root


@pytest.fixture(scope="session")
def options(data: Path) -> PipelineOptions:
    models = data / "models"
    return PipelineOptions(
        recognizer=models / "recogniser", detector=models / "detector", cache=data / "cache"
    )


@pytest.fixture(scope="session")
def pipeline(options: PipelineOptions) -> Iterator[Pipeline]:
    pipeline = open_pipeline(options)
    yield pipeline
    pipeline.close()


@pytest.fixture(scope="session")
def serve(data: Path) -> Serve:
    """Starts a server with the tiny networks and these settings, and stops it."""

    @contextmanager
    def start(*, wait_until_ready: bool = True, **settings: object) -> Iterator[httpx.Client]:
        models = data / "models"
        defaults = {"data": data, "recognizer": models / "recogniser", "detector": models / "detector"}
        given = {**defaults, **settings}
        chosen = Settings(**{"database": database_of(Path(str(given["data"]))), **given})
        app = create_app(chosen)
        connections = limit_connections(chosen, app.state.metrics)
        server = uvicorn.Server(
            uvicorn.Config(app, log_config=None, lifespan="on", http=connections, ws="none")
        )
        listener = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with httpx.Client(base_url=address, timeout=30) as client:
                if wait_until_ready:
                    wait_for(lambda: client.get("/health/ready").status_code == 200)
                client.app = app  # for tests that look behind the interface
                yield client
        finally:
            server.should_exit = True
            thread.join()
            listener.close()

    return start


@pytest.fixture(scope="session")
def client(serve: Serve) -> Iterator[httpx.Client]:
    """A client of a server with the default settings."""
    with serve() as client:
        yield client


@pytest.fixture
def staff(client: httpx.Client) -> str:
    """The address of a new collection on that server."""
    return make_collection(client)


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Return as soon as the condition holds; fail if it never does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except httpx.TransportError:
            pass
        time.sleep(0.01)
    pytest.fail("waited in vain")


@pytest.fixture(scope="session")
def real_data() -> DataFolder:
    """A data folder with the published networks and portraits, pulled once."""
    folder = DataFolder(TEST_DATA)
    try:
        for name in ("yunet", "sface"):
            pull_model(name, folder.models)
        pull_portraits(folder.demo)
    except PullFailed as error:
        pytest.skip(f"the published files cannot be pulled here: {error.detail}")
    return folder


@pytest.fixture(scope="session")
def real_pipeline(real_data: DataFolder) -> Iterator[Pipeline]:
    """The pipeline that `make serve` serves."""
    pipeline = open_pipeline(
        PipelineOptions(recognizer=real_data.recognizer, detector=real_data.detector, cache=real_data.cache)
    )
    yield pipeline
    pipeline.close()


@pytest.fixture
def start(data: Path) -> Iterator:
    """Starts `sameface serve` with the tiny networks; one with a `stdin` is a fresh interpreter."""
    processes = []

    def command(
        *flags: str, stdin: int | None = None, **variables: str
    ) -> "subprocess.Popen[str] | ForkedCommand":
        models = data / "models"
        environment = {
            "SAMEFACE_DATA": str(data),
            "SAMEFACE_RECOGNIZER": str(models / "recogniser"),
            "SAMEFACE_DETECTOR": str(models / "detector"),
            "SAMEFACE_DRAIN_SECONDS": "0",
        } | database_for(flags, variables.get("SAMEFACE_DATA", data))
        words = "serve", "--port", "0", *flags
        if stdin is None:
            process = ForkedCommand(words, environment | variables)
        else:
            process = subprocess.Popen(
                [sys.executable, "-m", "sameface", *words],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=os.environ | environment | {"PYTHONUNBUFFERED": "1"} | variables,
            )
        processes.append(process)
        return process

    yield command
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def run(data: Path):
    """Runs `sameface` with the tiny networks."""
    environment = {
        "SAMEFACE_DATA": str(data),
        "SAMEFACE_RECOGNIZER": str(data / "models" / "recogniser"),
        "SAMEFACE_DETECTOR": str(data / "models" / "detector"),
        "COLUMNS": "200",
    }

    def command(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
        database = database_for(words, variables.get("SAMEFACE_DATA", data))
        return run_command(words, environment | database | variables)

    return command


def database_for(words: Sequence[object], data: Path | str) -> dict[str, str]:
    """The variable that gives a command the database of its data folder, where tests are to have one."""
    flags = dict(pairwise(words))
    url = database_of(Path(str(flags.get("--data", data))))
    return {"SAMEFACE_DATABASE": url} if url else {}


def address_of(process: subprocess.Popen[str]) -> httpx.URL:
    """The address that the server announces once it is ready."""
    said = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"curl .*(https?://[\w.:-]+)/v1/verify", line):
            return httpx.URL(found[1])
    return pytest.fail(f"the server never got ready: {''.join(said)}")
