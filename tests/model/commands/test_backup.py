"""`sameface backup` and `sameface restore`, run as a user runs them, beside a server."""

import json
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess

import httpx
import pytest

from sameface.model.store.store import Store
from tests.api.collections import enrol, identify
from tests.conftest import Serve, wait_for
from tests.networks import build_recogniser
from tests.pictures import photo_of

pytestmark = pytest.mark.sqlite  # PostgreSQL has tools of its own

Command = Callable[..., "CompletedProcess[str]"]


STAFF = "/v1/collections/staff"


def fill(client: httpx.Client, *people: str) -> None:
    client.put(STAFF)
    for number, person in enumerate(people, 1):
        assert enrol(client, STAFF, photo_of(number), person_id=person).status_code == 201


def test_a_gallery_moves_to_another_machine_while_it_is_served(
    serve: Serve, run: Command, data: Path, tmp_path: Path
) -> None:
    here, there, file = tmp_path / "here", tmp_path / "there", tmp_path / "all.backup"
    shutil.copytree(data / "models", there / "models")
    with serve(data=here) as client:
        fill(client, "ada", "bob")
        made = run("backup", file, "--json", SAMEFACE_DATA=str(here))
        assert made.returncode == 0, made.stdout
        refused = run("restore", file, "--replace", "--json", SAMEFACE_DATA=str(here))
        assert (refused.returncode, json.loads(refused.stdout)["code"]) == (2, "store_refused")
    counted = {"collections": 1, "people": 2, "faces": 2}
    assert json.loads(made.stdout).items() >= counted.items()
    restored = run("restore", file, SAMEFACE_DATA=str(there))
    assert (restored.returncode, restored.stderr) == (0, "")
    assert "1 collection, 2 people, 2 faces" in restored.stdout
    with serve(data=there) as client:
        found = identify(client, STAFF, photo_of(2))
        assert found["results"][0]["match"]["person_id"] == "bob"


def test_what_is_there_already_is_replaced_only_if_told_to(run: Command, tmp_path: Path) -> None:
    Store(tmp_path / "gallery.db").close()
    file = tmp_path / "b"
    for words in (("backup", file), ("restore", file)):
        assert run("backup", file, "--replace", SAMEFACE_DATA=str(tmp_path)).returncode == 0
        refused = run(*words, SAMEFACE_DATA=str(tmp_path))
        assert (refused.returncode, refused.stderr.partition(":")[0]) == (2, "backup_refused")
        assert run(*words, "--replace", SAMEFACE_DATA=str(tmp_path)).returncode == 0


def test_no_gallery_is_made_where_there_is_none(run: Command, tmp_path: Path) -> None:
    refused = run("backup", tmp_path / "b", SAMEFACE_DATA=str(tmp_path / "typo"))
    assert (refused.returncode, "There is no gallery" in refused.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_collections_of_another_recogniser_are_named(serve: Serve, run: Command, tmp_path: Path) -> None:
    with serve(data=tmp_path / "here") as client:
        fill(client, "ada")
    with closing(Store(tmp_path / "here" / "gallery.db")) as store:
        bundle = store.collections.get("staff").bundle
    assert run("backup", tmp_path / "b", SAMEFACE_DATA=str(tmp_path / "here")).returncode == 0
    (tmp_path / "another").mkdir()
    build_recogniser(tmp_path / "another", seed=9)
    restored = run(
        "restore", tmp_path / "b", "--recognizer", tmp_path / "another", SAMEFACE_DATA=str(tmp_path / "there")
    )
    assert restored.returncode == 0
    assert re.search(f"warning: staff: made with the recogniser {bundle}", restored.stderr)


def test_a_server_backs_up_by_itself(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    with serve(data=tmp_path / "data", backup_folder=folder) as client:
        wait_for(lambda: "sameface_last_backup_timestamp_seconds 1." in client.get("/metrics").text)
        assert "sameface_failed_backups_total 0.0" in client.get("/metrics").text
    assert [path.suffix for path in folder.iterdir()] == [".backup"]
