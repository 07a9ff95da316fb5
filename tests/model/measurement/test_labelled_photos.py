"""A folder of labelled photos: what is in it, what has no face, and what must not be in it twice."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sameface.model.measurement.embed_photos import choose_embed
from sameface.model.measurement.errors import LabelsRefused
from sameface.model.measurement.labelled_photos import find_lookalikes, read_labelled
from sameface.model.pipeline import Pipeline
from tests.model.calibrated import draw_faces
from tests.pictures import draw_photo, encode, photo_of


def write(folder: Path, photos: dict[str, bytes]) -> Path:
    for name, content in photos.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(
        tmp_path,
        {
            "ada/1.png": photo_of(1, noise=1),
            "ada/2.png": photo_of(1, noise=2),
            "bob/1.png": photo_of(2, noise=3),
            "bob/empty.png": photo_of(),
            "bob/cut.png": photo_of(2)[:100],
            "bob/notes.txt": b"not a photo",
            "nobody/notes.txt": b"nor here",
            "stray.png": photo_of(3),
        },
    )


def read(folder: Path, pipeline: Pipeline, *, aligned: bool = False):
    return read_labelled(folder, choose_embed(pipeline, aligned=aligned), threads=2)


def test_faces_belong_to_the_people_of_their_folders(folder: Path, pipeline: Pipeline) -> None:
    faces = read(folder, pipeline)
    assert (faces.names, faces.files) == (["ada", "bob"], ["ada/1.png", "ada/2.png", "bob/1.png"])
    assert faces.embedded.people.tolist() == [0, 0, 1]
    similarities = faces.embedded.embeddings @ faces.embedded.embeddings.T
    assert similarities[0, 1] > 0.9 > similarities[0, 2]


def test_photos_without_a_face_are_counted_by_why(folder: Path, pipeline: Pipeline) -> None:
    faces = read(folder, pipeline)
    assert {failure.file: failure.code for failure in faces.failed} == {
        "bob/empty.png": "no_face_found",
        "bob/cut.png": "unreadable_image",
    }
    assert faces.photos == 5


def test_aligned_crops_are_embedded_as_they_are(tmp_path: Path, pipeline: Pipeline) -> None:
    looks = {person: pipeline.find_faces(photo_of(person), "prominent") for person in (1, 2)}
    crops = {f"{person}/1.png": encode(Image.fromarray(look.faces[0].crop)) for person, look in looks.items()}
    folder = write(tmp_path, crops | {"2/large.png": encode(draw_photo(2))})
    faces = read(folder, pipeline, aligned=True)
    expected = [pipeline.add_embeddings(look).faces[0].embedding.values for look in looks.values()]
    assert np.allclose(faces.embedded.embeddings, expected)
    assert [failure.file for failure in faces.failed] == ["2/large.png"]


def test_a_photo_of_two_people_at_once_is_refused_and_named(folder: Path, pipeline: Pipeline) -> None:
    write(folder, {"eve/copy.png": photo_of(1, noise=1), "ada/again.png": photo_of(1, noise=1)})
    with pytest.raises(LabelsRefused) as refused:
        read(folder, pipeline)
    assert refused.value.facts["duplicates"] == ["ada/1.png = ada/again.png = eve/copy.png"]


def test_the_same_photo_twice_of_one_person_is_no_fault(folder: Path, pipeline: Pipeline) -> None:
    write(folder, {"ada/again.png": photo_of(1, noise=1)})
    assert len(read(folder, pipeline).files) == 4


@pytest.mark.parametrize("photos", [{}, {"ada/1.png": b"x"}, {"1.png": b"x", "2.png": b"x"}])
def test_a_folder_without_folders_of_photos(tmp_path: Path, pipeline: Pipeline, photos: dict) -> None:
    with pytest.raises(LabelsRefused, match="two people or more"):
        read(write(tmp_path, photos), pipeline)


def test_a_folder_that_is_not_there(tmp_path: Path, pipeline: Pipeline) -> None:
    with pytest.raises(LabelsRefused, match="cannot be read"):
        read(tmp_path / "gone", pipeline)


def test_a_folder_without_any_face(tmp_path: Path, pipeline: Pipeline) -> None:
    folder = write(tmp_path, {"ada/1.png": photo_of(), "bob/1.png": encode(draw_photo(width=100))})
    with pytest.raises(LabelsRefused, match="has a face"):
        read(folder, pipeline)


def test_one_person_under_two_names_is_noticed() -> None:
    faces = draw_faces(50, likeness=0.9)
    faces.embedded.embeddings[7] = faces.embedded.embeddings[90]
    closest = find_lookalikes(faces)[0]
    assert (closest.file, closest.other) == ("p3/7", "p45/90")
    assert closest.similarity == pytest.approx(1)
    assert find_lookalikes(draw_faces(50, likeness=0.9)) == []
