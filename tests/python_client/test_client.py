"""What the client alone has: keys, errors, tasks, flat memory, and no imports that nobody asked for."""

import asyncio
import inspect
import io
import os
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest

import sameface
import sameface_client
from sameface.api.errors import PROBLEMS
from sameface.model import errors as in_process
from sameface.model.store.records import ID_PATTERN
from sameface_client.answers import server
from sameface_client.batches import write_array
from sameface_client.connection import VERSION
from sameface_client.errors import BY_CODE
from sameface_client.operations import collection
from sameface_client.operations import faces as about_faces
from sameface_client.operations.fields import ID
from tests.api.keys import make_key
from tests.conftest import Serve
from tests.model.people import random_units
from tests.networks import DIMENSION
from tests.pictures import photo_of
from tests.python_client.scripted import Reply, answer_with

CLIENT = Path(sameface_client.__file__).parents[1]


def test_every_problem_of_the_server_is_an_exception_of_its_code() -> None:
    assert PROBLEMS.keys() - BY_CODE.keys() == set()
    for kind in in_process.SamefaceError.__subclasses__():
        if (
            kind.code in PROBLEMS
            and kind.code != "invalid_request"
            and kind.__module__ == in_process.__name__
        ):
            assert BY_CODE[kind.code].__name__ == kind.__name__


def test_a_code_that_only_a_newer_server_has_is_an_error_with_that_code() -> None:
    with (
        answer_with(Reply(418, code="teapot")) as server,
        sameface_client.connect(server.url) as faces,
        pytest.raises(sameface_client.SamefaceError) as raised,
    ):
        faces.detect(b"photo")
    assert raised.value.code == "teapot"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [(sameface_client.Faces, sameface.Faces), (sameface_client.Collection, sameface.Collection)],
)
def test_the_methods_and_options_are_those_in_process(mine: type, theirs: type) -> None:
    def methods_of(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_") and not name.endswith("_many")
        }

    expected = methods_of(theirs)
    expected.pop("find_photos", None)  # it has no route
    found = methods_of(mine)
    for method in ("models", "calibrations"):  # they are about a server
        found.pop(method, None)
    assert found == expected


def test_every_answer_has_the_fields_of_the_same_answer_in_process() -> None:
    about_servers = [name for name, kind in vars(server).items() if is_dataclass(kind)]
    for name in set(sameface_client.answers.__all__) - set(about_servers):
        here, there = getattr(sameface, name), getattr(sameface_client, name)
        assert [each.name for each in fields(there)] == [each.name for each in fields(here)], name


def test_asynchronous_classes_have_all_methods_of_the_others() -> None:
    for blocking, asynchronous in (
        (sameface_client.Faces, sameface_client.AsyncFaces),
        (sameface_client.Collection, sameface_client.AsyncCollection),
        (sameface_client.Keys, sameface_client.AsyncKeys),
    ):
        names = [name for name in dir(blocking) if not name.startswith("_")]
        assert [name for name in dir(asynchronous) if not name.startswith("_")] == names


def test_the_version_is_that_of_the_package() -> None:
    assert tomllib.loads((CLIENT / "pyproject.toml").read_text("utf-8"))["project"]["version"] == VERSION


def test_ids_are_those_of_the_server() -> None:
    assert f"^{ID.pattern}$" == ID_PATTERN


@pytest.mark.parametrize("name", ["..", ".", "a/b", "", "ä", "a" * 129])
def test_an_id_that_would_change_the_address_is_refused_before_anything_is_sent(name: str) -> None:
    with (
        sameface_client.connect("http://127.0.0.1:1") as faces,
        pytest.raises(sameface_client.InvalidRequest),
    ):
        faces.collection("staff").forget(name)


def test_the_key_is_given_or_comes_from_the_environment(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, entry = make_key("read")
    with serve(api_keys=entry, data=tmp_path) as client:
        with (
            sameface_client.connect(str(client.base_url)) as faces,
            pytest.raises(sameface_client.Unauthorized),
        ):
            faces.collections()
        with sameface_client.connect(str(client.base_url), key=secret) as faces:
            faces.collections()
        monkeypatch.setenv("SAMEFACE_API_KEY", secret)
        with sameface_client.connect(str(client.base_url)) as faces:
            faces.collections()
            with pytest.raises(sameface_client.Forbidden):
                faces.collection("staff").enroll("ada", [photo_of(1)])


@pytest.mark.parametrize(
    ("url", "key"), [("127.0.0.1:8000", None), ("http://", None), ("http://a", "two words\n")]
)
def test_an_address_or_a_key_that_cannot_be_one_is_refused(url: str, key: str | None) -> None:
    with pytest.raises(ValueError, match=r"address|key") as refusal:
        sameface_client.connect(url, key)
    assert "two words" not in str(refusal.value)


def test_everything_works_in_tasks(serve: Serve, tmp_path: Path) -> None:
    async def entries() -> AsyncIterator[tuple[str, bytes]]:
        for number in range(3):
            yield str(number), photo_of(1, noise=number)

    async def use(url: str) -> None:
        async with sameface_client.connect_async(url) as faces:
            decisions = await asyncio.gather(*(faces.verify(photo_of(1), photo_of(n)) for n in (1, 2)))
            assert [decision.same_person for decision in decisions] == [True, False]
            staff = faces.collection("staff")
            await staff.enroll("ada", [photo_of(1)])
            found = [answer async for answer in staff.identify_many(entries())]
            assert [answer.results[0].match.person_id for answer in found] == ["ada"] * 3
            more = [sameface_client.EnrollEntry("1", photo_of(2), "bob")]
            assert [answer.person_id async for answer in staff.enroll_many(more)] == ["bob"]
            assert [person.person_id async for person in staff.people()] == ["ada", "bob"]
            with pytest.raises(sameface_client.PersonNotFound):
                await staff.person("nobody")
        with pytest.raises(ValueError, match="closed"):
            await faces.collections()

    with serve(data=tmp_path) as client:
        asyncio.run(use(str(client.base_url)))


@pytest.mark.parametrize(
    ("probes", "kind"),
    [
        ([[1.0, 2.0], (3.0, 4.0)], "application/x-npy"),
        ([[1.0, 2.0], [3.0]], "application/x-ndjson"),
        ([[1.0, 2.0], b"photo"], "application/x-ndjson"),
        ([[], []], "application/x-ndjson"),
    ],
)
def test_embeddings_of_one_length_are_sent_as_an_array(probes: list, kind: str) -> None:
    busy = {"id": None, "error": {"code": "overloaded", "detail": "As told.", "status": 429}}
    with answer_with(Reply(body=busy)) as server, sameface_client.connect(server.url) as faces:
        entries = ((str(number), probe) for number, probe in enumerate(probes))
        answers = list(faces.collection("staff").identify_many(entries))
    assert [answer.error.code for answer in answers] == ["overloaded", "overloaded"]
    [(_, _, headers)] = server.asked
    assert headers["content-type"] == kind


def test_an_array_is_written_as_numpy_reads_it() -> None:
    rows = np.arange(256 * 7, dtype="<f4").reshape(7, 256)
    assert np.array_equal(np.load(io.BytesIO(write_array([row.tobytes() for row in rows]))), rows)


def test_pages_of_people_and_collections_are_read_to_the_end(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (collection, about_faces):
        monkeypatch.setattr(module, "PAGE", 2)
    with serve(data=tmp_path) as client, sameface_client.connect(str(client.base_url)) as faces:
        for number in range(5):
            faces.collection("staff").enroll(f"p{number}", [photo_of(number)])
            faces.collection(f"c{number}").enroll("ada", [photo_of(1)])
        assert len(list(faces.collection("staff").people())) == 5
        assert [each.name for each in faces.collections()] == ["c0", "c1", "c2", "c3", "c4", "staff"]


def test_neither_numpy_nor_pillow_nor_sameface_is_imported(client: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(photo_of(1))
    program = (
        "import sys, sameface_client\n"
        "with sameface_client.connect(sys.argv[1]) as faces:\n"
        "    [face] = faces.embed(sys.argv[2]).faces\n"
        "print(len(face.embedding), sorted({'numpy', 'PIL', 'sameface'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(client.base_url), str(tmp_path / "one.png")],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(CLIENT)},
        cwd=tmp_path,
    )
    assert ran.stdout.split(maxsplit=1) == [str(DIMENSION), "[]\n"]


def test_memory_stays_flat_however_many_probes_there_are(serve: Serve, tmp_path: Path) -> None:
    probe = random_units(1, DIMENSION, 3)[0]
    program = (
        "import array, sys, sameface_client\n"
        "probe = array.array('f', map(float, sys.argv[2].split()))\n"
        "def memory():\n"
        "    [line] = [line for line in open('/proc/self/status') if line.startswith('VmRSS')]\n"
        "    return int(line.split()[1])\n"
        "with sameface_client.connect(sys.argv[1]) as faces:\n"
        "    for count, _ in enumerate(faces.collection('staff').identify_many(\n"
        "        (str(number), probe) for number in range(8000)), 1):\n"
        "        if count == 3000: early = memory()\n"
        "print(count, memory() - early)"
    )
    with serve(data=tmp_path) as client, sameface_client.connect(str(client.base_url)) as faces:
        faces.collection("staff").enroll("ada", embeddings=[np.asarray(probe)])
        ran = subprocess.run(
            [sys.executable, "-c", program, str(client.base_url), " ".join(map(str, probe))],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": str(CLIENT)},
        )
    count, growth = map(int, ran.stdout.split())
    assert count == 8000
    assert growth < 4000  # kilobytes; five blocks of answers would be more
