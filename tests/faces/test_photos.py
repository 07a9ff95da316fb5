"""Photos are verified, detected and embedded the same way by both."""

import asyncio
import json
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.faces.library import Faces, Library
from tests.networks import DIMENSION
from tests.pictures import draw_photo, draw_speck, encode, photo_of


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


def test_an_answer_is_json_with_the_names_of_its_attributes(faces: Faces) -> None:
    decision = faces.verify(photo_of(1), photo_of(1, noise=3))
    written = json.loads(json.dumps(decision.to_dict()))
    assert written["probe"]["face"]["box"]["left"] == decision.probe.face.box.left
    assert written["reference"]["face"]["landmarks"][0] == list(decision.reference.face.landmarks[0])
    [face] = faces.embed(photo_of(1)).to_dict()["faces"]
    assert len(face["embedding"]) == DIMENSION
