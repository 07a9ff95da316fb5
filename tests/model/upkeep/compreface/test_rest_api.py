"""An import through CompreFace's REST API, which a server of ours speaks too."""

import json
from contextlib import closing

import pytest

from sameface.model.access.keys import draw_secret
from sameface.model.upkeep.compreface.import_services import import_services
from sameface.model.upkeep.compreface.rest_api import ComprefaceApi
from sameface.model.upkeep.errors import ComprefaceRefused
from tests.api.compreface.conftest import open_service
from tests.pictures import photo_of


def test_a_service_is_imported_with_its_ids_through_the_api(run, faces, home, speaker) -> None:
    service = open_service(speaker, store_crops=True)
    ids = {name: service.add(name, photo_of(number)) for number, name in enumerate(("Ada Byron", "bob"), 1)}
    service.call("POST", "/recognition/subjects", json={"subject": "nobody yet"})
    words = ("--url", speaker.base_url, "--api-key", service.secret, "--collection", "family", "--json")
    done = run("import-compreface", *words, "--data", home)
    [report] = json.loads(done.stdout)["items"]
    assert (done.returncode, report["people"], report["enrolled"]) == (0, 3, 2), done.stderr
    people = {person.name: person for person in faces.collection("family").people()}
    assert {name: people[name].faces[0].face_id for name in ids} == ids
    assert people["Ada Byron"].person_id == "Ada-Byron"


def test_what_was_not_kept_is_listed(faces, speaker) -> None:
    service = open_service(speaker)
    image_id = service.add("ada", photo_of(1))
    with closing(ComprefaceApi(str(speaker.base_url), service.secret, "family")) as source:
        [report] = import_services(faces.engine, source)
    assert (report.people, report.enrolled, report.not_enrolled) == (1, 0, 1)
    assert [(item.image_id, item.code) for item in report.items] == [(image_id, "unreadable_image")]


def test_an_api_that_cannot_be_read_is_told_as_such(speaker) -> None:
    key = draw_secret("compreface/recognition")
    for url, said in (
        ("host:8000", "takes CompreFace's address"),
        ("http://127.0.0.1:1", "cannot be reached"),
        (str(speaker.base_url), "answers 404: The server does not know this key"),
        (f"{speaker.base_url}/elsewhere", "answers 404: this is no CompreFace"),
    ):
        with pytest.raises(ComprefaceRefused, match=said):
            ComprefaceApi(url, key, "family").list_services()


def test_the_command_asks_where_compreface_is(run) -> None:
    done = run("import-compreface", "--url", "http://127.0.0.1:1")
    assert (done.returncode, done.stderr.partition(":")[0]) == (2, "invalid_request")
    assert "--database URL" in done.stderr
