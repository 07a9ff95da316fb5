"""An import out of CompreFace's own database."""

import json
import subprocess
import sys
import uuid
from contextlib import closing
from pathlib import Path

import pytest

import sameface
from sameface.model.access.keys import hash_secret
from sameface.model.errors import CollectionNotFound
from sameface.model.upkeep.compreface.database import ComprefaceDatabase
from sameface.model.upkeep.compreface.import_services import PHOTOS_AT_ONCE, import_services
from sameface.model.upkeep.compreface.report import ServiceReport
from sameface.model.upkeep.errors import ComprefaceRefused
from tests.conftest import wait_for
from tests.model.upkeep.compreface.foreign import ForeignDatabase
from tests.pictures import photo_of
from tests.postgres_server import ON_POSTGRES, the_server

pytestmark = pytest.mark.skipif(not ON_POSTGRES, reason="`make postgres` has a server")


def move_in(faces: sameface.Faces, foreign: ForeignDatabase, **options: bool) -> list[ServiceReport]:
    with closing(ComprefaceDatabase(foreign.url)) as source:
        return import_services(faces.engine, source, **options)


def test_services_become_collections_which_their_own_keys_open(faces, foreign) -> None:
    first, second = foreign.add_service("Front door"), foreign.add_service("Front door")
    foreign.add_service("boxes", "D")
    foreign.add_subject(first, "ada", photo_of(1))
    foreign.add_subject(second, "bob", photo_of(2))
    reports = move_in(faces, foreign)
    assert [report.collection for report in reports] == ["Front-door", "Front-door-2"]
    keys = {key.sha256: key for key in faces.engine.people.store.keys.page()}
    assert len(keys) == 2
    assert keys[hash_secret(second)].collections == ("Front-door-2",)
    assert keys[hash_secret(second)].scopes == {"search", "write"}
    assert [person.person_id for person in faces.collection("Front-door-2").people()] == ["bob"]


def test_subjects_become_people_and_examples_their_faces_with_the_same_ids(faces, foreign) -> None:
    service = foreign.add_service("family")
    examples = foreign.add_subject(service, "José", photo_of(1), photo_of(1, noise=3))
    foreign.add_subject(service, "Jose", photo_of(2))
    foreign.add_subject(service, "nobody yet")
    [report] = move_in(faces, foreign, store_crops=True)
    assert (report.people, report.enrolled, report.not_enrolled, report.complete) == (3, 3, 0, True)
    family = faces.collection("family")
    assert {person.person_id: person.name for person in family.people()} == {
        "Jose": "Jose",
        "Jose-2": "José",
        "nobody-yet": "nobody yet",
    }
    assert {face.face_id for face in family.person("Jose-2").faces} == set(examples)
    assert family.identify(photo_of(1, noise=5)).results[0].match.person_id == "Jose-2"
    assert family.describe().store_crops


def test_the_report_tells_what_is_odd_also_after_a_second_run(faces, foreign) -> None:
    service = foreign.add_service("family")
    foreign.add_subject(service, "ada", photo_of(1))
    foreign.add_subject(service, "eve", photo_of(1))
    [group] = foreign.add_subject(service, "group", photo_of(5, 6))
    [room, lost, text] = foreign.add_subject(service, "room", photo_of(), None, b"no picture")
    [first], [second] = move_in(faces, foreign), move_in(faces, foreign)
    assert (first.enrolled, first.already_there, first.not_enrolled) == (3, 0, 3)
    assert (second.enrolled, second.already_there, second.not_enrolled) == (0, 3, 3)
    for report in (first, second):
        found = {(item.image_id, item.code) for item in report.items if item.code}
        assert found == {(room, "no_face_found"), (lost, "unreadable_image"), (text, "unsupported_image")}
        warned = {item.image_id: {each.code for each in item.warnings} for item in report.items}
        assert warned[group] == {"several_faces"}
        twins = {
            item.subject: warned[item.image_id] for item in report.items if item.subject in ("ada", "eve")
        }
        assert {"same_photo", "looks_like_another_person"} in twins.values()


def test_a_service_of_the_demo_is_left_out_and_said_so(faces, foreign) -> None:
    foreign.add_service("demo", api_key=str(uuid.UUID(int=2)))
    foreign.add_service("family")
    reports = {report.service: report for report in move_in(faces, foreign)}
    assert "demo" in (reports["demo"].refused or "")
    assert not reports["demo"].complete
    assert reports["family"].collection == "family"


def test_a_key_that_is_in_the_store_leads_to_its_collection_unless_it_is_revoked(faces, foreign) -> None:
    service = foreign.add_service("family")
    move_in(faces, foreign)
    keys = faces.engine.people.store.keys
    assert move_in(faces, foreign)[0].collection == "family"
    keys.revoke(keys.page()[0].key_id)
    with pytest.raises(ComprefaceRefused, match="was revoked"):
        move_in(faces, foreign)
    assert service not in str(keys.page())


def test_what_is_no_database_of_compreface_is_told_as_such_without_its_password(tmp_path) -> None:
    with pytest.raises(ComprefaceRefused, match="takes the URL"):
        ComprefaceDatabase("postgresql://user:secret word@host")
    with pytest.raises(ComprefaceRefused, match="cannot be read") as refusal:
        ComprefaceDatabase(f"postgresql://user:secret@/frs?host={tmp_path}")
    assert "secret" not in refusal.value.detail
    empty = closing(ComprefaceDatabase(the_server().url_of(tmp_path / "empty")))
    with empty as source, pytest.raises(ComprefaceRefused, match="no tables of CompreFace"):
        source.list_services()


def test_an_import_that_was_killed_is_finished_by_the_same_command(
    run, data: Path, home: Path, faces, foreign
) -> None:
    service = foreign.add_service("family")
    everybody = {
        name: foreign.add_subject(service, name, photo_of(number))
        for number, name in enumerate(f"subject {number}" for number in range(2 * PHOTOS_AT_ONCE))
    }
    last = max(image_id for [image_id] in everybody.values())
    foreign.close_gate(last)
    words = ["import-compreface", "--database", foreign.url, "--data", str(home)]
    models = data / "models"
    networks = ["--recognizer", str(models / "recogniser"), "--detector", str(models / "detector")]
    gallery = ["--gallery", str(faces.engine.folder.database)]
    process = subprocess.Popen([sys.executable, "-m", "sameface", *words, *networks, *gallery])
    try:
        wait_for(lambda: count_faces(faces) == PHOTOS_AT_ONCE, 60)
    finally:
        process.kill()
        process.wait()
        foreign.open_gate()
    done = run(*words, *gallery, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    [report] = json.loads(done.stdout)["items"]
    assert (report["enrolled"], report["already_there"]) == (PHOTOS_AT_ONCE, PHOTOS_AT_ONCE)
    family = faces.collection("family")
    assert {person.name: [face.face_id for face in person.faces] for person in family.people()} == everybody
    for number, name in enumerate(everybody):
        assert family.identify(photo_of(number)).results[0].candidates[0].name == name


def count_faces(faces: sameface.Faces) -> int:
    try:
        return faces.collection("family").describe().faces
    except CollectionNotFound:
        return 0
