"""`sameface.open()`: what the server does, in this process."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

import sameface
from sameface.model.bundles.bundle import load_bundle
from tests.api.collections import enrol as enroll_over_http
from tests.networks import DIMENSION, build_recogniser
from tests.pictures import draw_photo, draw_speck, encode, photo_of


@pytest.fixture
def faces(data: Path, tmp_path: Path) -> Iterator[sameface.Faces]:
    """A data folder of its own, with the tiny networks by folder."""
    models = data / "models"
    with sameface.open(tmp_path, recognizer=models / "recogniser", detector=models / "detector") as faces:
        yield faces


def test_two_photos_are_verified(faces: sameface.Faces) -> None:
    same, different = faces.verify(photo_of(1), photo_of(1, noise=3)), faces.verify(photo_of(1), photo_of(2))
    assert (same.same_person, different.same_person) == (True, False)
    assert same.threshold == 0.5
    assert faces.verify(photo_of(1), photo_of(2), threshold=-1).same_person


def test_a_photo_may_be_a_path_bytes_an_image_or_an_array(faces: sameface.Faces, tmp_path: Path) -> None:
    image = draw_photo(1)
    (tmp_path / "one.png").write_bytes(encode(image))
    photos = [tmp_path / "one.png", str(tmp_path / "one.png"), encode(image), image, np.asarray(image)]
    embeddings = [faces.embed(photo).faces[0].embedding for photo in photos]
    for embedding in embeddings:
        np.testing.assert_allclose(embedding, embeddings[0], atol=1e-6)
    grey = faces.detect(np.asarray(draw_photo(1).convert("L")))
    assert grey.faces_found == len(grey.faces)


@pytest.mark.parametrize(
    "pixels", [np.zeros((4, 4, 4), np.uint8), np.zeros((4, 4, 3), np.float32), np.zeros((0, 4, 3), np.uint8)]
)
def test_an_array_that_is_no_photo_is_refused(faces: sameface.Faces, pixels: np.ndarray) -> None:
    with pytest.raises(sameface.SamefaceError) as refusal:
        faces.detect(pixels)
    assert refusal.value.code == "unsupported_image"


def test_failures_carry_the_codes_of_the_server(faces: sameface.Faces, tmp_path: Path) -> None:
    for photo, code in (
        (tmp_path / "nowhere.jpg", "unreadable_image"),
        (b"text", "unsupported_image"),
        (photo_of(), "no_face_found"),
        (draw_speck(), "face_too_small"),
    ):
        with pytest.raises(sameface.SamefaceError) as failure:
            faces.verify(photo_of(1), photo)
        assert failure.value.code == code


def test_a_person_is_enrolled_identified_verified_and_forgotten(faces: sameface.Faces) -> None:
    staff = faces.collection("staff")
    enrolled = staff.enroll("ada", [photo_of(1), photo_of()], name="Ada", metadata={"room": 7})
    assert (enrolled.person_id, len(enrolled.faces), enrolled.rejected[0].code) == ("ada", 1, "no_face_found")
    [result] = staff.identify(photo_of(1, noise=4)).results
    assert (result.match.person_id, result.match.name) == ("ada", "Ada")
    assert staff.verify("ada", photo_of(1, noise=5)).same_person
    assert staff.identify(photo_of(2)).results[0].match is None
    [ada] = staff.people()
    assert (ada.name, ada.metadata, len(ada.faces)) == ("Ada", {"room": 7}, 1)
    assert staff.update("ada", name="Ada L.").name == "Ada L."
    assert faces.collections()[0].people == 1
    staff.forget("ada")
    assert staff.identify(photo_of(1)).results[0].candidates == []
    with pytest.raises(sameface.SamefaceError) as failure:
        staff.person("ada")
    assert failure.value.code == "person_not_found"


def test_a_known_id_is_an_error_and_gets_more_faces_when_asked(faces: sameface.Faces) -> None:
    staff = faces.collection("staff")
    staff.enroll("ada", [photo_of(1)])
    for attempt, code in (
        (lambda: staff.enroll("ada", [photo_of(1, noise=2)]), "already_exists"),
        (lambda: staff.add_faces("bob", [photo_of(2)]), "person_not_found"),
        (lambda: staff.enroll("no id", [photo_of(2)]), "invalid_request"),
        (lambda: faces.collection("no name").enroll("ada", [photo_of(1)]), "invalid_request"),
        (lambda: faces.collection("nobody").identify(photo_of(1)), "collection_not_found"),
        (lambda: staff.enroll("cleo", []), "invalid_request"),
        (lambda: staff.enroll("cleo", [photo_of(3)], name="\ud800"), "invalid_request"),
        (lambda: staff.enroll("cleo", [photo_of(3)], metadata={"a": float("nan")}), "invalid_request"),
        (lambda: staff.update("ada", metadata={"a": object()}), "invalid_request"),
        (lambda: staff.identify(photo_of(1), faces="nope"), "invalid_request"),
    ):
        with pytest.raises(sameface.SamefaceError) as failure:
            attempt()
        assert failure.value.code == code
    assert len(staff.add_faces("ada", [photo_of(1, noise=2)]).faces) == 1
    assert len(staff.person("ada").faces) == 2


def test_a_person_keeps_what_an_update_does_not_name(faces: sameface.Faces) -> None:
    staff = faces.collection("staff")
    staff.enroll("ada", [photo_of(1)], name="Ada", metadata={"room": 7})
    assert staff.update("ada", metadata={"room": 8}).name == "Ada"
    changed = staff.update("ada", name=None)
    assert (changed.name, changed.metadata) == (None, {"room": 8})


def test_many_photos_wait_for_each_other(faces: sameface.Faces) -> None:
    enrolled = faces.collection("staff").enroll("ada", [photo_of(1, noise=n) for n in range(1, 60)])
    assert len(enrolled.faces) == 59


def test_embeddings_go_in_and_out(faces: sameface.Faces) -> None:
    [face] = faces.embed(photo_of(1)).faces
    assert face.embedding.shape == (DIMENSION,)
    staff = faces.collection("staff")
    made = staff.enroll(None, embeddings=[face.embedding])
    assert staff.identify(face.embedding).results[0].match.person_id == made.person_id
    assert staff.identify(face.embedding.tolist()).results[0].face is None


def test_answers_have_the_names_and_the_shape_of_the_http_api(
    faces: sameface.Faces, client: httpx.Client, staff: str
) -> None:
    photos = {"probe": photo_of(1), "reference": photo_of(1, noise=3)}
    over_http = client.post("/v1/verify", files=photos).json()
    here = json.loads(json.dumps(faces.verify(*photos.values()).to_dict()))
    assert {**here, "timings_ms": {}} == {**over_http, "timings_ms": {}}
    for route, answer in (("detect", faces.detect(photo_of(1, 2))), ("embed", faces.embed(photo_of(1, 2)))):
        over_http = client.post(f"/v1/{route}", files={"image": photo_of(1, 2)}).json()
        here = json.loads(json.dumps(answer.to_dict()))
        assert {**here, "timings_ms": {}} == {**over_http, "timings_ms": {}}
    over_http = enroll_over_http(client, staff, photo_of(1), photo_of(), person_id="ada", name="Ada").json()
    mine = faces.collection("staff")
    here = mine.enroll("ada", [photo_of(1), photo_of()], name="Ada").to_dict()
    assert shape_of(here) == shape_of(over_http)
    over_http = client.post(f"{staff}/identify", files={"image": photo_of(1, 2)}).json()
    assert shape_of(mine.identify(photo_of(1, 2)).to_dict()) == shape_of(over_http)


def shape_of(value: object) -> object:
    """The keys at every depth, and the types of the values."""
    if isinstance(value, dict):
        return {key: shape_of(item) for key, item in value.items() if key != "timings_ms"}
    return [shape_of(item) for item in value] if isinstance(value, list) else type(value)


def test_it_works_where_an_event_loop_runs_already(faces: sameface.Faces) -> None:
    async def notebook() -> bool:
        return faces.verify(photo_of(1), photo_of(1)).same_person

    assert asyncio.run(notebook())


def test_threads_share_it(faces: sameface.Faces) -> None:
    found: dict[int, str | None] = {}
    staff = faces.collection("staff")
    for person in range(4):
        staff.enroll(f"p{person}", [photo_of(person)])

    def look_for(person: int) -> None:
        match = staff.identify(photo_of(person, noise=6)).results[0].match
        found[person] = match.person_id if match else None

    threads = [threading.Thread(target=look_for, args=(person,)) for person in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {person: f"p{person}" for person in range(4)}


def test_a_bundle_is_found_by_its_name_in_the_data_folder(data: Path) -> None:
    with sameface.open(data, recognizer="recogniser", detector="detector") as faces:
        expected = load_bundle(data / "models" / "recogniser").contract.name
        assert faces.embed(photo_of(1)).model == expected


def test_people_of_another_recogniser_can_be_listed_and_forgotten(
    faces: sameface.Faces, data: Path, tmp_path: Path
) -> None:
    faces.collection("staff").enroll("ada", [photo_of(1)])
    (tmp_path / "other").mkdir()
    build_recogniser(tmp_path / "other", name="other", seed=5)
    detector = data / "models" / "detector"
    with sameface.open(tmp_path, recognizer=tmp_path / "other", detector=detector) as others:
        staff = others.collection("staff")
        with pytest.raises(sameface.SamefaceError) as failure:
            staff.identify(photo_of(1))
        assert failure.value.code == "model_mismatch"
        assert [person.person_id for person in staff.people()] == ["ada"]
        staff.forget("ada")
    assert list(faces.collection("staff").people()) == []


def test_comparing_photos_leaves_no_gallery_behind(faces: sameface.Faces, tmp_path: Path) -> None:
    faces.verify(photo_of(1), photo_of(1))
    assert not (tmp_path / "gallery.db").exists()


def test_once_closed_it_stays_closed(faces: sameface.Faces) -> None:
    faces.verify(photo_of(1), photo_of(1))
    faces.close()
    with pytest.raises(ValueError, match="closed"):
        faces.verify(photo_of(1), photo_of(1))


def test_importing_it_loads_no_engine_and_shows_the_public_names() -> None:
    script = (
        "import sys, sameface; heavy = {'onnxruntime', 'torch', 'numpy', 'PIL', 'faiss', 'fastapi'};"
        "print(sorted(heavy & set(sys.modules)), sameface.__version__, len(dir(sameface)));"
        "assert all(hasattr(sameface, name) for name in sameface.__all__)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.startswith("[] 0.")


def test_an_image_is_turned_upright_before_anything_else(faces: sameface.Faces) -> None:
    turned = draw_photo(1).transpose(Image.Transpose.ROTATE_90)
    turned.getexif()[0x0112] = 6
    assert faces.verify(turned, photo_of(1)).same_person
