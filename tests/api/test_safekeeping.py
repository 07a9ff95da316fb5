"""What must not happen to what a server was given."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from tests.api.collections import enrol, identify
from tests.api.keys import make_key
from tests.api.problems import expect
from tests.model.store.full_disk import leave_no_room
from tests.pictures import draw_photo, encode, photo_of


def test_crops_are_kept_only_where_the_owner_asked(client: httpx.Client, staff: str) -> None:
    client.put(f"{staff}-crops", json={"store_crops": True})
    database = client.app.state.gallery.store._database
    for address, kept in ((staff, False), (f"{staff}-crops", True)):
        person_id = f"of-{address.rpartition('/')[2]}"
        enrol(client, address, photo_of(1), person_id=person_id)
        with database.reading() as connection:
            wanted = text("SELECT crop FROM faces JOIN people ON people.key = person WHERE person_id = :id")
            [crop] = connection.execute(wanted, {"id": person_id}).scalars()
        assert (crop is not None) is kept


def test_reading_and_writing_are_two_scopes(serve) -> None:
    keys = {scopes: make_key(scopes) for scopes in ("read", "write")}
    with serve(api_keys=",".join(entry for _, entry in keys.values())) as client:
        headers = {scopes: {"Authorization": f"Bearer {secret}"} for scopes, (secret, _) in keys.items()}
        expect(client.put("/v1/collections/guarded", headers=headers["read"]), 403, "forbidden")
        assert client.put("/v1/collections/guarded", headers=headers["write"]).status_code in (200, 201)
        expect(client.get("/v1/collections/guarded", headers=headers["write"]), 403, "forbidden")
        assert client.get("/v1/collections/guarded", headers=headers["read"]).status_code == 200


@pytest.mark.sqlite
def test_a_full_disk_refuses_writes_and_answers_searches(serve, data, tmp_path) -> None:
    models = {"recognizer": data / "models" / "recogniser", "detector": data / "models" / "detector"}
    with serve(data=tmp_path, **models) as client:
        client.put("/v1/collections/small")
        enrol(client, "/v1/collections/small", photo_of(1), person_id="ada")
        leave_no_room(client.app.state.gallery.store)
        big = json.dumps({"a": "x" * 15_000})
        refused = enrol(client, "/v1/collections/small", photo_of(2), metadata=big)
        expect(refused, 507, "storage_full")
        assert (
            identify(client, "/v1/collections/small", photo_of(1))["results"][0]["match"]["person_id"]
            == "ada"
        )


def test_what_was_enrolled_is_there_after_a_restart(serve, data, tmp_path) -> None:
    models = {"recognizer": data / "models" / "recogniser", "detector": data / "models" / "detector"}
    with serve(data=tmp_path, **models) as client:
        client.put("/v1/collections/kept")
        enrol(client, "/v1/collections/kept", encode(draw_photo(1), "WEBP", lossless=True), person_id="ada")
    with serve(data=tmp_path, **models) as client:
        assert (
            identify(client, "/v1/collections/kept", photo_of(1))["results"][0]["match"]["person_id"] == "ada"
        )


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.sqlite
def test_a_database_that_is_taken_away_takes_no_writes(serve, data, tmp_path, caplog, replaced: bool) -> None:
    models = {"recognizer": data / "models" / "recogniser", "detector": data / "models" / "detector"}
    path, aside = tmp_path / "gallery.db", tmp_path / "aside.db"
    with serve(data=tmp_path, **models) as client:
        client.put("/v1/collections/kept")
        enrol(client, "/v1/collections/kept", photo_of(1), person_id="ada")
        path.rename(aside)
        if replaced:
            shutil.copy(aside, path)
        for answer in (
            enrol(client, "/v1/collections/kept", photo_of(2), person_id="bob"),
            client.delete("/v1/collections/kept/people/ada"),
            client.put("/v1/collections/other"),
            client.get("/v1/collections/kept/people"),
        ):
            assert "put it back" in expect(answer, 503, "store_refused")["detail"]
        assert client.post("/v1/detect", files={"image": photo_of(1)}).status_code == 200
        aside.replace(path)
        assert [person["person_id"] for person in list_people(client, "kept")] == ["ada"]
        assert enrol(client, "/v1/collections/kept", photo_of(2), person_id="bob").status_code == 201
        path.rename(aside)  # and so it is stopped
    assert "deleted or replaced" in caplog.text
    assert "Traceback" not in caplog.text


def list_people(client: httpx.Client, collection: str) -> list[dict]:
    return client.get(f"/v1/collections/{collection}/people").json()["items"]


def flip_pages(content: bytes) -> bytes:
    """Other bytes at the beginning of each page that holds metadata."""
    pages = [content[start : start + 4096] for start in range(0, len(content), 4096)]
    return b"".join(b"\xa5" * 64 + page[64:] if b"patient 4711" in page else page for page in pages)


def break_text(content: bytes) -> bytes:
    return content.replace(b"patient 4711", b"\xfe\xfftient 4711")


@pytest.mark.parametrize("damage", [flip_pages, break_text])
@pytest.mark.sqlite
def test_a_damaged_database_is_said_and_not_quoted(
    serve, data, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes]
) -> None:
    models = {"recognizer": data / "models" / "recogniser", "detector": data / "models" / "detector"}
    with serve(data=tmp_path, **models) as client:
        client.put("/v1/collections/kept")
        metadata = json.dumps({"who": "patient 4711"})
        enrol(client, "/v1/collections/kept", photo_of(1), person_id="ada", metadata=metadata)
    path = tmp_path / "gallery.db"
    path.write_bytes(damage(path.read_bytes()))
    caplog.set_level(logging.DEBUG)
    with serve(data=tmp_path, **models) as client:
        problem = expect(client.get("/v1/collections/kept/people"), 503, "store_damaged")
        assert "restore a backup" in problem["detail"]
        assert client.post("/v1/detect", files={"image": photo_of(1)}).status_code == 200
    assert "restore a backup" in caplog.text
    assert "ient 4711" not in caplog.text
