"""`sameface doctor`: what it finds, also where nothing is as it should be, and what it never shows."""

import json
import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.store.store import Store
from tests.api.collections import enrol
from tests.api.keys import add_key, make_key
from tests.conftest import Serve
from tests.pictures import photo_of
from tests.postgres_server import ON_POSTGRES, gallery_in

PARTS = [
    "sameface",
    "machine",
    "engines",
    "networks",
    "data",
    "store",
    "index",
    "clock",
    "access",
    "traces",
    "settings",
]


@pytest.fixture
def examine(run):
    """The exit code of `sameface doctor --json`, and by part and name what it found."""

    def command(*words: object, **variables: str) -> tuple[int, dict[str, dict]]:
        said = run("doctor", "--json", *words, **variables)
        assert said.stderr == ""
        page = json.loads(said.stdout)
        assert page["healthy"] is (said.returncode == 0)
        assert page["healthy"] is not any(each["fault"] for each in page["observations"])
        return said.returncode, {f"{each['part']}.{each['name']}": each for each in page["observations"]}

    return command


@pytest.fixture
def inhabited(serve: Serve, tmp_path: Path) -> Path:
    """A data folder with a collection and somebody in it."""
    with serve(data=tmp_path) as client:
        staff = "/v1/collections/lovelace-family"
        client.put(staff)
        enrol(client, staff, photo_of(1), person_id="ada-lovelace", name="Ada Lovelace")
    return tmp_path


def test_a_sound_server_is_one_page_about_nobody(run, inhabited: Path) -> None:
    secret, entry = make_key("read")
    said = run("doctor", SAMEFACE_DATA=str(inhabited), SAMEFACE_API_KEYS=entry, HOME=str(inhabited.parent))
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.rstrip().endswith("Nothing was found wrong.")
    assert [word for word in PARTS if re.search(rf"^{word}  ", said.stdout, re.MULTILINE)] == PARTS
    store = "`sameface gallery check` looks into it" if ON_POSTGRES else "collections: 1, people: 1, faces: 1"
    assert store in said.stdout
    assert re.search(r"precision +✓  (no )?bf16: ", said.stdout)  # proved here, or why it is not to be had
    assert re.search(r"tiny-detector by CPUExecutionProvider, exact, [\d.]+ ms per photo", said.stdout)
    assert re.search(r"tiny-recogniser by \w+, \w+, [\d.]+ ms per face", said.stdout)
    assert "1 read+search in SAMEFACE_API_KEYS" in said.stdout
    assert f"~/{inhabited.name}" in said.stdout
    assert not re.search(rf"(?i)lovelace|{secret}|{entry[:12]}|{inhabited}", said.stdout)


@pytest.mark.sqlite
def test_nothing_pulled_and_no_folder_is_said_and_nothing_is_made(examine, tmp_path: Path) -> None:
    missing = {
        "SAMEFACE_DATA": str(tmp_path / "no" / "folder"),
        "SAMEFACE_RECOGNIZER": "",
        "SAMEFACE_DETECTOR": "",
    }
    code, found = examine(**missing)
    assert code == 1
    assert "sameface pull" in found["networks.both"]["fault"]
    assert "not there yet" in found["data.folder"]["value"]
    assert (found["store.file"]["value"], found["store.file"]["fault"]) == ("none yet", None)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_said(examine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, found = examine(SAMEFACE_DATA=str(tmp_path / "file"))
    assert code == 1
    assert "no folder" in found["data.folder"]["fault"]


@pytest.mark.sqlite
@pytest.mark.parametrize("damage", ["noise", "empty", "pages", "version"])
def test_a_damaged_database_is_said_and_the_rest_is_looked_at(examine, inhabited: Path, damage: str) -> None:
    database = inhabited / "gallery.db"
    content = database.read_bytes()
    if damage == "version":
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE about SET value = 'x' WHERE key = 'version'")
    else:
        pages = content[:4096] + bytes(len(content) - 4096)
        database.write_bytes({"noise": os.urandom(9000), "empty": b"", "pages": pages}[damage])
    code, found = examine(SAMEFACE_DATA=str(inhabited))
    assert code == 1
    faults = [each["fault"] for name, each in found.items() if name.startswith("store.") and each["fault"]]
    assert len(faults) == 1
    assert "backup" in faults[0]
    assert found["networks.recognizer"]["fault"] is None
    assert "clock.now" in found


@pytest.mark.sqlite
def test_a_store_of_an_older_version_is_not_migrated(examine, tmp_path: Path) -> None:
    old = next(Path(__file__).parents[2].glob("upgrades/0.1.0/**/gallery.db"))
    shutil.copy(old, tmp_path / "gallery.db")
    before = (tmp_path / "gallery.db").read_bytes()
    _, found = examine(SAMEFACE_DATA=str(tmp_path))
    assert "brings up to date" in found["store.file"]["value"]
    assert found["store.soundness"]["fault"] is None
    assert (tmp_path / "gallery.db").read_bytes() == before


@pytest.mark.sqlite
def test_a_clock_that_is_behind_the_data_is_said(examine, inhabited: Path) -> None:
    later = (inhabited / "gallery.db").stat().st_mtime + 86400
    os.utime(inhabited / "gallery.db", (later, later))
    code, found = examine(SAMEFACE_DATA=str(inhabited))
    assert code == 1
    assert "set it" in found["clock.now"]["fault"]


def test_keys_are_counted_by_their_scopes_and_looking_makes_no_gallery(examine, tmp_path: Path) -> None:
    _, found = examine("--data", tmp_path / "empty", "--host", "0.0.0.0")
    assert "without API keys" in found["access.keys"]["fault"]
    assert not (tmp_path / "empty" / "gallery.db").exists()
    with closing(Store(gallery_in(tmp_path))) as store:
        for scopes in (("read",), ("read",), ("admin", "write")):
            add_key(store, *scopes)
        store.keys.revoke(add_key(store, "search")[1].key_id)
    _, entry = make_key("read")
    _, found = examine("--data", tmp_path, "--host", "0.0.0.0", SAMEFACE_API_KEYS=entry)
    value = "1 read+search in SAMEFACE_API_KEYS; 1 admin+write, 2 read in the store"
    assert (found["access.keys"]["value"], found["access.keys"]["fault"]) == (value, None)


def test_an_open_door_an_unknown_variable_and_traces_that_cannot_be_sent_are_said(examine) -> None:
    code, found = examine(
        "--host",
        "0.0.0.0",
        SAMEFACE_MAX_FACE="3",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://user:password@collector:4317",
        OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
    )
    assert code == 1
    assert "without API keys" in found["access.keys"]["fault"]
    assert "SAMEFACE_MAX_FACES" in found["settings.SAMEFACE_MAX_FACE"]["fault"]
    assert "http/protobuf" in found["traces.state"]["fault"]
    assert found["settings.host"]["value"] == "0.0.0.0"
    assert "password" not in json.dumps(found)


def test_milvus_that_is_away_is_said_and_neither_its_address_nor_its_token_is_shown(
    examine, tmp_path: Path
) -> None:
    secret = tmp_path / "token"
    secret.write_text("root:hunter2\n")
    code, found = examine(
        SAMEFACE_DATA=str(tmp_path),
        SAMEFACE_INDEX="milvus",
        SAMEFACE_MILVUS_URI="http://milvus:hunter3@127.0.0.1:1",
        SAMEFACE_MILVUS_TOKEN_FILE=str(secret),
        SAMEFACE_DATABASE="postgresql://nobody:hunter4@127.0.0.1:1/x",
    )
    assert code == 1
    assert "cannot be reached" in found["index.engine"]["fault"]
    assert found["settings.index"]["value"] == "milvus"
    for name in ("milvus_uri", "milvus_token", "database"):
        assert found[f"settings.{name}"]["value"] == "set"
    assert "hunter" not in json.dumps(found)


def test_milvus_lite_is_named_with_its_version(examine, tmp_path: Path) -> None:
    uri = str(tmp_path / "milvus.db")
    _, found = examine(SAMEFACE_DATA=str(tmp_path), SAMEFACE_INDEX="milvus", SAMEFACE_MILVUS_URI=uri)
    assert re.match(r"Milvus \S+", found["index.engine"]["value"])
    assert found["index.engine"]["fault"] is None


def test_milvus_without_an_address_is_refused(run, tmp_path: Path) -> None:
    said = run("serve", "--index", "milvus", SAMEFACE_DATA=str(tmp_path))
    assert said.returncode == 2
    assert "cannot_serve: The index `milvus` needs the address of Milvus" in said.stderr
