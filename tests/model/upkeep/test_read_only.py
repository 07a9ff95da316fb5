"""A gallery that may only be read is read: on a mounted backup, or where the modes of files say so."""

import ctypes
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.gallery.index.faiss.collection_indexes import open_indexes
from sameface.model.store.records import Binding
from sameface.model.store.store import Store
from sameface.model.upkeep.export_import import export_collection
from tests.forked_command import run_command
from tests.model.people import newcomer, random_units

pytestmark = pytest.mark.sqlite  # they look into its file

BINDING = Binding(bundle="tiny", identity="abc", dimension=8)
CAPABILITY_VERSION_3 = 0x20080522
LIBC = ctypes.CDLL(None)

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def obey_modes() -> None:
    """Root may write whatever the modes say, unless it gives that up; nobody else has it to give up."""
    this_process, none = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    assert LIBC.capset(this_process, none) == 0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A data folder with a collection of two people, whose index has a snapshot."""
    home = tmp_path / "home"
    with closing(Store(home / "gallery.db")) as store:
        staff, _ = store.collections.create("staff", BINDING)
        people = [newcomer(name, random_units(2, 8, seed)) for seed, name in enumerate(("ada", "bob"))]
        store.people.enroll(staff, people)
        with closing(open_indexes(store)) as indexes:
            indexes.renew(store.collections.get("staff"))
    yield home
    for path in (home, *home.rglob("*")):
        path.chmod(0o700)


@pytest.fixture
def sameface(home: Path) -> Command:
    """Makes the data folder read-only, and runs `sameface` on it."""

    def command(*words: object) -> "subprocess.CompletedProcess[str]":
        for path in (*home.rglob("*"), home):
            path.chmod(0o500 if path.is_dir() else 0o400)
        run = run_command(words, {"SAMEFACE_DATA": str(home)}, prepare=obey_modes)
        assert "Traceback" not in run.stderr
        return run

    return command


def test_people_export_and_check_only_read(sameface: Command, home: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (home, *home.rglob("*"))}
    listed = sameface("people", "--collection", "staff", "--json")
    assert listed.returncode == 0, listed.stdout
    assert [person["person_id"] for person in json.loads(listed.stdout)["items"]] == ["ada", "bob"]
    exported = sameface("gallery", "export", "staff", tmp_path / "staff.gz", "--json")
    assert (exported.returncode, json.loads(exported.stdout)["faces"]) == (0, 4)
    for words in ((), ("--repair",), ("--collection", "staff")):
        checked = sameface("gallery", "check", *words)
        assert (checked.returncode, "agree" in checked.stdout) == (0, True)
    assert {path: path.stat().st_mtime_ns for path in (home, *home.rglob("*"))} == before


def test_commits_that_are_still_in_the_log_are_read_too(
    sameface: Command, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "left").mkdir()
    with closing(Store(home / "gallery.db")) as store:
        store.people.enroll(store.collections.get("staff"), [newcomer("cyd", random_units(1, 8, 9))])
        for path in home.glob("gallery.db*"):  # as a killed server leaves them
            shutil.copy(path, tmp_path / "left")
    for path in (tmp_path / "left").iterdir():
        shutil.copy(path, home)
    assert (home / "gallery.db-wal").stat().st_size
    listed = sameface("people", "--collection", "staff", "--json")
    assert [person["person_id"] for person in json.loads(listed.stdout)["items"]] == ["ada", "bob", "cyd"]
    assert sameface("gallery", "check").returncode == 0
    home.chmod(0o700)
    (home / "gallery.db-shm").unlink()  # without it SQLite would have to make one
    refused = sameface("people", "--collection", "staff", "--json")
    assert (refused.returncode, json.loads(refused.stdout)["code"]) == (2, "store_refused")


def test_what_would_write_is_refused_in_a_sentence(sameface: Command, home: Path, tmp_path: Path) -> None:
    with closing(Store(home / "gallery.db")) as store:
        export_collection(store, "staff", tmp_path / "staff.gz")
        with store.writing() as connection:
            connection.exec_driver_sql("UPDATE collections SET people = 7")
    for words in (
        ("forget", "ada", "--collection", "staff"),
        ("gallery", "import", tmp_path / "staff.gz", "--collection", "copy"),
        ("gallery", "check", "--repair"),
    ):
        refused = sameface(*words, "--json")
        said = json.loads(refused.stdout)
        assert (refused.returncode, said["code"]) == (2, "store_refused")
        assert "may only be read" in said["detail"]
    assert sameface("gallery", "check").returncode == 1
    home.chmod(0o700)
    with closing(Store(home / "gallery.db")) as store:
        assert [collection.name for collection in store.collections.page()] == ["staff"]


def test_an_older_gallery_cannot_be_brought_to_this_version(sameface: Command, home: Path) -> None:
    with closing(sqlite3.connect(home / "gallery.db")) as connection, connection:
        connection.execute("UPDATE about SET value = '2' WHERE key = 'version'")
    refused = sameface("people", "--collection", "staff", "--json")
    said = json.loads(refused.stdout)
    assert (refused.returncode, said["code"]) == (2, "store_refused")
    assert "its version is 2" in said["detail"]


@pytest.mark.usefixtures("pipeline")  # its graphs are prepared in `data`
def test_a_server_needs_to_write(sameface: Command, home: Path, data: Path) -> None:
    shutil.copytree(data / "cache", home / "cache")
    models = data / "models"
    words = ("--port", 0, "--recognizer", models / "recogniser", "--detector", models / "detector")
    refused = sameface("serve", *words)
    assert refused.returncode == 2
    assert "store_refused" in refused.stderr
    assert "may only be read" in refused.stderr


def test_the_doctor_looks_at_it_and_says_that_nobody_can_serve_from_it(sameface: Command) -> None:
    said = sameface("doctor", "--json")
    found = {f"{each['part']}.{each['name']}": each for each in json.loads(said.stdout)["observations"]}
    assert said.returncode == 1
    assert "cannot be written" in found["data.folder"]["fault"]
    assert found["store.content"]["value"] == "collections: 1, people: 2, faces: 4"
    assert found["store.soundness"]["fault"] is None
    assert found["store.snapshots"]["value"].startswith("1, ")
