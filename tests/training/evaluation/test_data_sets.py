"""Data to evaluate on, in the formats that people have it in."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sameface.model.measurement.embed_photos import choose_embed
from sameface.model.measurement.errors import PairsRefused
from sameface.model.measurement.labelled_photos import LabelledFaces
from sameface.model.observer import ignore_progress
from sameface.model.pipeline import Pipeline
from sameface.training.evaluation.data_sets import ListedFaces, open_data, unpickle_bin
from tests.model.measurement.test_labelled_photos import write
from tests.pictures import encode, photo_of


def read(path: Path, pipeline: Pipeline) -> LabelledFaces | ListedFaces:
    data = open_data(path)
    return data.read(choose_embed(pipeline, aligned=data.aligned), 2, ignore_progress)


def crop_of(pipeline: Pipeline, person: int, noise: int = 0) -> bytes:
    face = pipeline.find_faces(photo_of(person, noise=noise), "prominent").faces[0]
    return encode(Image.fromarray(face.crop))


@pytest.mark.parametrize("beside", ["", "images/"])
def test_pairs_as_lfw_lists_them(tmp_path: Path, pipeline: Pipeline, beside: str) -> None:
    people = {"Ada": 1, "Bob": 2}
    photos = {
        f"{beside}{name}/{name}_{n:04d}.png": photo_of(person, noise=n)
        for name, person in people.items()
        for n in (1, 2)
    }
    write(tmp_path, photos | {f"{beside}Bob/Bob_0003.png": photo_of()})
    first = ["Ada 1 2", "Bob 1 2", "Ada 1 Bob 1", "Ada 2 Bob 2"]
    second = ["Ada 1 2", "Bob 1 3", "Ada 1 Bob 2", "Ada 2 Bob 4"]
    (tmp_path / "pairs.txt").write_text("\n".join(["2\t2", *first, *second]))
    listed = read(tmp_path, pipeline)
    assert (listed.photos, listed.drawn_over) == (6, "people")
    assert {Path(failure.file).name: failure.code for failure in listed.failed} == {
        "Bob_0003.png": "no_face_found",
        "Bob_0004": "unreadable_image",
    }
    pairs = listed.pairs
    assert pairs.same.tolist() == [True, True, False, False] * 2
    assert pairs.folds.tolist() == [0] * 4 + [1] * 4
    assert np.isnan(pairs.similarities).tolist() == [False] * 5 + [True, False, True]
    assert pairs.similarities[0] > 0.9 > pairs.similarities[2]
    assert (pairs.probes != pairs.references).tolist() == (~pairs.same).tolist()
    genuine, impostor = pairs.score()
    assert (genuine.pairs, impostor.pairs) == (3, 3)


@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize("as_array", [True, False])
def test_verification_sets_of_insightface(
    tmp_path: Path, pipeline: Pipeline, protocol: int, as_array: bool
) -> None:
    crops = [crop_of(pipeline, *which) for which in ((1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (2, 6))]
    stored = [np.frombuffer(crop, np.uint8) for crop in crops] if as_array else crops
    content = pickle.dumps((stored, [True, False, np.True_]), protocol=protocol)
    (tmp_path / "lfw.bin").write_bytes(content)
    data = open_data(tmp_path / "lfw.bin")
    assert (data.name, data.kind, data.aligned) == ("lfw", "bin", True)
    listed = read(tmp_path / "lfw.bin", pipeline)
    assert (listed.photos, listed.failed, listed.drawn_over) == (6, [], "pairs")
    assert (listed.pairs.similarities > 0.9).tolist() == [True, False, True]
    assert listed.pairs.same.tolist() == [True, False, True]


class Harmful:
    def __reduce__(self):
        return (print, ("this ran",))


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(([Harmful()], [True])),
        pickle.dumps(([b"", b"", b""], [True])),
        pickle.dumps(([], [])),
        pickle.dumps("something else"),
        b"not a pickle",
        b"",
    ],
)
def test_a_file_that_is_no_verification_set_is_refused_and_nothing_of_it_runs(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(PairsRefused):
        unpickle_bin(tmp_path / "x.bin")
    assert capsys.readouterr().out == ""


def test_templates_of_several_pictures(tmp_path: Path, pipeline: Pipeline) -> None:
    write(
        tmp_path,
        {
            "loose_crop/1.png": photo_of(1, noise=1),
            "loose_crop/2.png": photo_of(1, noise=2),
            "loose_crop/3.png": photo_of(1, noise=3),
            "loose_crop/4.png": photo_of(2, noise=4),
            "loose_crop/5.png": photo_of(),
            "meta/ijbc_face_tid_mid.txt": b"1.png 10 1\n2.png 10 1\n3.png 11 2\n4.png 12 3\n5.png 13 4\n",
            "meta/ijbc_template_pair_label.txt": b"10 11 1\n10 12 0\n11 12 0\n12 13 1\n",
        },
    )
    listed = read(tmp_path, pipeline)
    assert open_data(tmp_path).kind == "templates"
    assert (listed.photos, [failure.file for failure in listed.failed]) == (5, ["5.png"])
    similarities = listed.pairs.similarities
    assert similarities[0] > 0.9 > similarities[1]
    assert np.isnan(similarities).tolist() == [False, False, False, True]
    assert listed.pairs.probes[0] == listed.pairs.references[0] != listed.pairs.references[1]


@pytest.mark.parametrize(
    ("faces", "pairs"),
    [
        (b"1.png 10\n", b"1 2 1\n"),
        (b"1.png ten 1\n", b"1 2 1\n"),
        (b"", b"1 2 1\n"),
        (b"1.png 1 1\n", b"\xff\n"),
    ],
)
def test_lists_that_are_none(tmp_path: Path, pipeline: Pipeline, faces: bytes, pairs: bytes) -> None:
    write(tmp_path, {"a_face_tid_mid.txt": faces, "a_template_pair_label.txt": pairs})
    with pytest.raises(PairsRefused):
        read(tmp_path, pipeline)


def test_a_folder_per_person(tmp_path: Path, pipeline: Pipeline) -> None:
    write(tmp_path, {"ada/1.png": photo_of(1), "bob/1.png": photo_of(2)})
    assert isinstance(read(tmp_path, pipeline), LabelledFaces)
