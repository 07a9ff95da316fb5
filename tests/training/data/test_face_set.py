"""Faces to learn from: three forms of the same images give the same set."""

import io
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")

from sameface.training.data.batches import BatchOrder, Loader
from sameface.training.data.blend import blend
from sameface.training.data.face_set import NOBODY, FaceSet, open_faces
from sameface.training.data.recordio import HEADER, MAGIC, PREFIX
from sameface.training.errors import DatasetRefused


def draw(person: int, number: int) -> bytes:
    random = np.random.default_rng((person, number))
    content = io.BytesIO()
    Image.fromarray(random.integers(0, 256, (112, 112, 3), np.uint8)).save(content, "PNG")
    return content.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three people with 2, 3 and 1 images."""
    for person, images in ((1, 2), (2, 3), (3, 1)):
        (tmp_path / "faces" / f"p{person}").mkdir(parents=True)
        for number in range(images):
            (tmp_path / "faces" / f"p{person}" / f"{number}.png").write_bytes(draw(person, number))
    (tmp_path / "faces" / "p1" / "notes.txt").write_text("no image")
    return tmp_path / "faces"


def write_records(path: Path, folder: Path) -> None:
    """As InsightFace writes them: record 0 says where the images end."""
    images = [
        (label, file)
        for label, name in enumerate(("p1", "p2", "p3"))
        for file in sorted((folder / name).glob("*.png"))
    ]
    payloads = [HEADER.pack(2, 0, 0, 0) + struct.pack("<2f", len(images) + 1, len(images) + 4)]
    payloads += [HEADER.pack(0, label, n, 0) + file.read_bytes() for n, (label, file) in enumerate(images, 1)]
    payloads += [HEADER.pack(2, 0, 9, 0) + struct.pack("<2f", 1, 3)]  # an identity's range, no image
    index = []
    with path.open("wb") as file:
        for key, payload in enumerate(payloads):
            index.append(f"{key}\t{file.tell()}")
            file.write(PREFIX.pack(MAGIC, len(payload)) + payload + b"\0" * (-len(payload) % 4))
    path.with_suffix(".idx").write_text("\n".join(index) + "\n")


def contents(faces: FaceSet) -> list[tuple[int, int]]:
    return [(label, int(crop.sum())) for crop, label in (faces.read(index) for index in range(len(faces)))]


def test_folders_shards_and_records_are_the_same_set(folder: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "faces.tar", "w") as shard:
        shard.add(folder, "faces")
    write_records(tmp_path / "train.rec", folder)
    forms = [open_faces(path) for path in (folder, tmp_path / "faces.tar", tmp_path / "train.rec")]
    assert [len(faces) for faces in forms] == [6, 6, 6]
    assert contents(forms[0]) == contents(forms[1]) == contents(forms[2])
    assert forms[0].identities == ["p1", "p2", "p3"]


def test_an_identity_with_one_image_is_left_out_and_counted(folder: Path) -> None:
    faces = open_faces(folder, min_images=2)
    assert (faces.identities, faces.left_out, len(faces)) == (["p1", "p2"], 1, 5)
    with pytest.raises(DatasetRefused, match="Nobody has 9"):
        open_faces(folder, min_images=9)


@pytest.mark.parametrize("damage", [b"", b"no image", draw(1, 0)[:300]])
def test_a_damaged_image_is_skipped_and_counted(folder: Path, damage: bytes) -> None:
    (folder / "p1" / "1.png").write_bytes(damage)
    faces = open_faces(folder)
    assert contents(faces)[1] == contents(faces)[2]  # the next one in its place
    assert faces.unreadable == {1}


def test_what_is_no_set_of_faces_is_refused(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "nothing", "no folder"), (tmp_path, "neither folders")):
        with pytest.raises(DatasetRefused, match=said):
            open_faces(path)
    (tmp_path / "a.rec").write_bytes(b"x" * 40)
    with pytest.raises(DatasetRefused, match=r"a\.idx cannot be read"):
        open_faces(tmp_path / "a.rec")
    (tmp_path / "a.idx").write_text("0\t0\n")
    with pytest.raises(DatasetRefused, match="no whole record"):
        open_faces(tmp_path / "a.rec")


def test_every_image_comes_once_per_epoch_and_the_same_way_after_a_restart(folder: Path) -> None:
    faces = open_faces(folder)
    order = BatchOrder(faces, 2, seed=5)
    epochs = [[order[step].tolist() for step in range(3 * epoch, 3 * epoch + 3)] for epoch in (0, 1)]
    assert all(sorted(np.concatenate(epoch).tolist()) == list(range(6)) for epoch in epochs)
    assert epochs[0] != epochs[1]
    assert BatchOrder(faces, 2, seed=5)[4].tolist() == epochs[1][1]


def test_processes_share_a_batch(folder: Path) -> None:
    faces = open_faces(folder)
    whole, *parts = (Loader(faces, BatchOrder(faces, 4, seed=1), *of) for of in ((0, 1), (0, 2), (1, 2)))
    [batch] = whole.batches(0, 1)
    halves = [next(iter(part.batches(0, 1))) for part in parts]
    assert batch.crops.shape == (4, 3, 112, 112)
    assert np.concatenate([half.indices for half in halves]).tolist() == batch.indices.tolist()
    assert [label for half in halves for label in half.labels.tolist()] == batch.labels.tolist()
    for loader in (whole, *parts):
        loader.close()


def test_pairs_get_batches_of_people(folder: Path) -> None:
    order = BatchOrder(open_faces(folder), 4, seed=1, people=2)
    labels = open_faces(folder).labels
    assert sorted(np.unique(labels[order[0]], return_counts=True)[1].tolist()) == [2, 2]


def test_blends_follow_the_images_and_are_the_same_ones_every_time(folder: Path) -> None:
    plain, faces, again = open_faces(folder), open_faces(folder, blends=2), open_faces(folder, blends=2)
    assert contents(faces)[:6] == contents(plain)
    assert len(faces) == 18
    blends = [faces.read(index) for index in range(6, 18)]
    assert {label for _, label in blends} == {NOBODY}
    assert len({crop.tobytes() for crop, _ in blends}) == 12
    assert contents(again) == contents(faces)
    assert len({each.fingerprint() for each in (plain, faces, again)}) == 2


def test_a_blend_shows_both_crops() -> None:
    dark, light = np.full((112, 112, 3), 20, np.uint8), np.full((112, 112, 3), 220, np.uint8)
    blends = [blend(dark, light, np.random.default_rng(seed)) for seed in range(30)]
    assert all(80 < crop.mean() < 160 for crop in blends)
    corners = {(crop[0, -1, 0], crop[-1, 0, 0]) for crop in blends}  # with the dark one at the upper left
    assert {(220, 20), (20, 220)} < corners  # it lies left of the light one, or above it
    assert any((crop == crop[0, 0]).all() for crop in blends)  # or shines through
