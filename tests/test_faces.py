"""What `sameface.open()` does, a client of a server does too: every test here runs on both."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import httpx
import numpy as np
import pytest
from PIL import Image

import sameface
import sameface_client
from tests.conftest import Serve
from tests.networks import DIMENSION
from tests.pictures import draw_photo, draw_speck, encode, photo_of

Library: TypeAlias = ModuleType  # sameface or sameface_client
Faces: TypeAlias = "sameface.Faces | sameface_client.Faces"


@pytest.fixture(params=[sameface, sameface_client], ids=["in process", "client"])
def library(request: pytest.FixtureRequest) -> Library:
    return request.param


@pytest.fixture(scope="module")
def server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with a gallery of its own."""
    with serve(data=tmp_path_factory.mktemp("server")) as client:
        yield client


@pytest.fixture
def faces(library: Library, server: httpx.Client, data: Path, tmp_path: Path) -> Iterator[Faces]:
    """An empty gallery: in this process, or on the server."""
    models = data / "models"
    if library is sameface:
        opened = sameface.open(tmp_path, recognizer=models / "recogniser", detector=models / "detector")
    else:
        opened = sameface_client.connect(str(server.base_url))
    with opened:
        yield opened
    for collection in server.get("/v1/collections").json()["items"]:
        server.delete(f"/v1/collections/{collection['name']}")


def test_two_photos_are_verified(faces: Faces) -> None:
    same, different = faces.verify(photo_of(1), photo_of(1, noise=3)), faces.verify(photo_of(1), photo_of(2))
    assert (same.same_person, different.same_person) == (True, False)
    assert same.threshold == 0.5
    assert faces.verify(photo_of(1), photo_of(2), threshold=-1).same_person


def test_a_photo_may_be_a_path_bytes_an_image_or_an_array(faces: Faces, tmp_path: Path) -> None:
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
def test_an_array_that_is_no_photo_is_refused(library: Library, faces: Faces, pixels: np.ndarray) -> None:
    with pytest.raises(library.SamefaceError) as refusal:
        faces.detect(pixels)
    assert refusal.value.code == "unsupported_image"


def test_failures_carry_the_codes_of_the_server(library: Library, faces: Faces, tmp_path: Path) -> None:
    for photo, code in (
        (tmp_path / "nowhere.jpg", "unreadable_image"),
        (b"text", "unsupported_image"),
        (photo_of(), "no_face_found"),
        (draw_speck(), "face_too_small"),
    ):
        with pytest.raises(library.SamefaceError) as failure:
            faces.verify(photo_of(1), photo)
        assert failure.value.code == code


def test_a_person_is_enrolled_identified_verified_and_forgotten(library: Library, faces: Faces) -> None:
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
    with pytest.raises(library.SamefaceError) as failure:
        staff.person("ada")
    assert failure.value.code == "person_not_found"


def test_a_known_id_is_an_error_and_gets_more_faces_when_asked(library: Library, faces: Faces) -> None:
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
        with pytest.raises(library.SamefaceError) as failure:
            attempt()
        assert failure.value.code == code
    assert len(staff.add_faces("ada", [photo_of(1, noise=2)]).faces) == 1
    assert len(staff.person("ada").faces) == 2


def test_a_person_keeps_what_an_update_does_not_name(faces: Faces) -> None:
    staff = faces.collection("staff")
    staff.enroll("ada", [photo_of(1)], name="Ada", metadata={"room": 7})
    assert staff.update("ada", metadata={"room": 8}).name == "Ada"
    changed = staff.update("ada", name=None)
    assert (changed.name, changed.metadata) == (None, {"room": 8})


def test_embeddings_go_in_and_out(faces: Faces) -> None:
    [face] = faces.embed(photo_of(1)).faces
    assert np.asarray(face.embedding).shape == (DIMENSION,)
    staff = faces.collection("staff")
    made = staff.enroll(None, embeddings=[face.embedding])
    assert staff.identify(face.embedding).results[0].match.person_id == made.person_id
    assert staff.identify(face.embedding.tolist()).results[0].face is None


def test_it_works_where_an_event_loop_runs_already(faces: Faces) -> None:
    async def notebook() -> bool:
        return faces.verify(photo_of(1), photo_of(1)).same_person

    assert asyncio.run(notebook())


def test_threads_share_it(faces: Faces) -> None:
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


def test_once_closed_it_stays_closed(faces: Faces) -> None:
    faces.verify(photo_of(1), photo_of(1))
    faces.close()
    with pytest.raises(ValueError, match="closed"):
        faces.verify(photo_of(1), photo_of(1))


def test_an_image_is_turned_upright_before_anything_else(faces: Faces) -> None:
    turned = draw_photo(1).transpose(Image.Transpose.ROTATE_90)
    turned.getexif()[0x0112] = 6
    assert faces.verify(turned, photo_of(1)).same_person


def test_a_photo_may_be_an_open_file(library: Library, faces: Faces, tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(photo_of(1))
    with (tmp_path / "one.png").open("rb") as file:
        assert faces.detect(file).faces_found == 1
    with (
        (tmp_path / "one.png").open(encoding="latin-1") as file,
        pytest.raises(library.SamefaceError) as failure,
    ):
        faces.detect(file)
    assert failure.value.code == "unsupported_image"


def test_an_image_of_any_mode_may_be_sent(faces: Faces) -> None:
    for mode in ("CMYK", "RGBA", "YCbCr", "P"):
        assert faces.detect(draw_photo(1).convert(mode)).faces_found == 1


def test_a_batch_of_probes_is_answered_one_by_one_and_in_order(library: Library, faces: Faces) -> None:
    staff = faces.collection("staff")
    [face] = faces.embed(photo_of(1)).faces
    staff.enroll("ada", [photo_of(1)], name="Ada")
    probes = [
        ("photo", photo_of(1, noise=4)),
        ("nobody", photo_of()),
        ("text", b"text"),
        ("gone", "nowhere.jpg"),
    ]
    probes += [("stranger", photo_of(2)), ("embedding", face.embedding), ("embedding", [0.0])]
    answers = list(staff.identify_many(iter(probes), limit=1))
    assert [answer.id for answer in answers] == [name for name, _ in probes]
    codes = [answer.error.code for answer in answers if isinstance(answer, library.BatchFailed)]
    assert codes == ["no_face_found", "unsupported_image", "unreadable_image", "invalid_request"]
    found = [answer.results[0].match for answer in answers if isinstance(answer, library.BatchIdentified)]
    assert [match and match.name for match in found] == ["Ada", None, "Ada"]
    assert list(answers[0].to_dict()) == ["id", "results"]
    assert answers[1].to_dict()["error"]["code"] == "no_face_found"


def test_a_batch_enrols_people_and_adds_faces_to_those_who_are_known(library: Library, faces: Faces) -> None:
    staff = faces.collection("staff")
    entries = [
        library.EnrollEntry("1", photo_of(1), "ada", "Ada", {"room": 7}),
        library.EnrollEntry("2", photo_of(1, noise=2), "ada"),
        library.EnrollEntry("3", photo_of(2)),
        library.EnrollEntry("4", photo_of()),
        library.EnrollEntry("5", photo_of(3), "no id"),
        library.EnrollEntry("6", photo_of(3), "cleo", metadata={"a": float("nan")}),
    ]
    answers = list(staff.enroll_many(entry for entry in entries))
    assert [answer.id for answer in answers] == ["1", "2", "3", "4", "5", "6"]
    assert [answer.person_id for answer in answers[:2]] == ["ada", "ada"]
    codes = [answer.error.code for answer in answers[3:]]
    assert codes == ["no_face_found", "invalid_request", "invalid_request"]
    assert (staff.describe().people, staff.describe().faces) == (2, 3)
    assert staff.person("ada").metadata == {"room": 7}


def test_a_batch_for_a_collection_that_is_not_there_or_a_rate_that_is_not_supported_fails_as_a_whole(
    library: Library, faces: Faces
) -> None:
    staff = faces.collection("staff")
    with pytest.raises(library.SamefaceError) as failure:
        list(staff.identify_many([("1", photo_of(1))]))
    assert failure.value.code == "collection_not_found"
    staff.enroll("ada", [photo_of(1)])
    with pytest.raises(library.SamefaceError) as failure:
        list(staff.identify_many([("1", photo_of(1))], target_fpir=0.1))
    assert failure.value.code == "not_calibrated"


def test_no_probes_are_no_answers(faces: Faces) -> None:
    assert list(faces.collection("staff").identify_many([])) == []


def test_somebody_is_enrolled_or_gets_more_faces(faces: Faces) -> None:
    staff = faces.collection("staff")
    staff.enroll_or_add("ada", [photo_of(1)], name="Ada")
    staff.enroll_or_add("ada", [photo_of(1, noise=2)], name="Somebody")
    assert (staff.person("ada").name, len(staff.person("ada").faces)) == ("Ada", 2)


def test_the_first_enrolment_makes_the_collection_as_it_was_asked_for(faces: Faces) -> None:
    faces.collection("staff", store_crops=True).enroll("ada", [photo_of(1)])
    described = faces.collection("staff").describe()
    assert (described.store_crops, described.people, described.index) == (True, 1, "exact")
    assert faces.collections() == [described]


def test_a_face_and_a_collection_are_forgotten(library: Library, faces: Faces) -> None:
    staff = faces.collection("staff")
    enrolled = staff.enroll("ada", [photo_of(1), photo_of(1, noise=2)])
    staff.forget_face("ada", enrolled.faces[0].face_id)
    assert [face.face_id for face in staff.person("ada").faces] == [enrolled.faces[1].face_id]
    with pytest.raises(library.SamefaceError) as failure:
        staff.forget_face("ada", enrolled.faces[0].face_id)
    assert failure.value.code == "face_not_found"
    staff.delete()
    with pytest.raises(library.SamefaceError) as failure:
        staff.delete()
    assert failure.value.code == "collection_not_found"


def test_people_are_listed_with_the_time_of_their_enrolment(faces: Faces) -> None:
    staff = faces.collection("staff")
    staff.enroll("ada", [photo_of(1)])
    [ada] = staff.people()
    assert ada.created_at.tzinfo is not None
    assert ada.to_dict()["created_at"].endswith("Z")
    assert abs(ada.faces[0].created_at - ada.created_at).total_seconds() < 5


def test_an_answer_is_json_with_the_names_of_its_attributes(faces: Faces) -> None:
    decision = faces.verify(photo_of(1), photo_of(1, noise=3))
    written = json.loads(json.dumps(decision.to_dict()))
    assert written["probe"]["face"]["box"]["left"] == decision.probe.face.box.left
    assert written["reference"]["face"]["landmarks"][0] == list(decision.reference.face.landmarks[0])
    [face] = faces.embed(photo_of(1)).to_dict()["faces"]
    assert len(face["embedding"]) == DIMENSION
