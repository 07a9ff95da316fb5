"""`gallery check` finds what Milvus lacks, has too much or has otherwise, and has it sent again."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from sameface.model.bundles.bundle import load_bundle
from sameface.model.data_folder import MilvusAddress, SharedGallery, folder_of
from sameface.model.gallery.gallery import Gallery
from sameface.model.gallery.index.milvus import feeder as feeder_module
from sameface.model.store.records import FaceBlock
from sameface.model.upkeep.check_gallery import Finding, check_gallery
from tests.milvus_server import wait_until_fed
from tests.model.people import newcomer, random_units
from tests.networks import DIMENSION
from tests.postgres_server import connect_to, gallery_in


@pytest.fixture
def gallery(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gallery]:
    """Three people in Milvus, and then nobody who feeds it."""
    for name in ("BOUND_SECONDS", "LEASE_SECONDS", "PAUSE_SECONDS", "VERIFY_SECONDS", "WAIT_SECONDS"):
        monkeypatch.setattr(feeder_module, name, 0.1)
    address = MilvusAddress(str(tmp_path / "milvus.db"))
    bundle = load_bundle(data / "models" / "recogniser")
    with closing(Gallery(gallery_in(tmp_path), bundle, milvus=address)) as gallery:
        staff, _ = gallery.create_collection("staff")
        people = [newcomer(f"p{number}", random_units(2, DIMENSION, number)) for number in range(3)]
        gallery.enroll(staff, people)
        gallery.load()
        wait_until_fed(gallery, "staff")
        gallery.indexes.feeder.close()
        yield gallery


def check(gallery: Gallery, *, repair: bool = False) -> list[Finding]:
    return check_gallery(gallery.place, milvus=gallery.milvus, repair=repair)


def test_what_milvus_has_not_seen_is_no_fault(gallery: Gallery) -> None:
    staff = gallery.get_collection("staff")
    gallery.enroll(staff, [newcomer("new", random_units(1, DIMENSION, 9))])
    gallery.forget_person(staff, "p0")
    assert check(gallery) == []


def test_faces_that_milvus_lacks_has_too_many_or_has_otherwise_are_counted_and_sent_again(
    gallery: Gallery,
) -> None:
    staff, faces = gallery.get_collection("staff"), gallery.indexes.faces
    [block] = gallery.store.changes.all_faces(staff)
    foreign = FaceBlock(np.array([999]), np.array([0]), random_units(1, DIMENSION, 5))
    other = FaceBlock(block.faces[:1], block.people[:1], random_units(1, DIMENSION, 6))
    faces.delete(block.faces[:2].tolist())
    faces.add(staff.key, other)
    faces.add(staff.key, foreign)
    detail = "Milvus lacks 1 faces, has 1 that are gone, has 1 that differ"
    assert check(gallery) == [Finding("staff", "index", detail)]
    assert check(gallery, repair=True) == [Finding("staff", "index", detail, repaired=True)]
    assert check(gallery) == []
    assert faces.count(staff.key) == 6


def test_an_embedding_of_another_length_is_found_as_with_faiss(
    gallery: Gallery,
) -> None:
    longer = (random_units(1, DIMENSION) * 1.01).astype(np.float32).tobytes()
    with connect_to(gallery.place) as connection, connection:
        mark = "?" if isinstance(gallery.place, Path) else "%s"
        connection.execute(f"UPDATE faces SET embedding = {mark} WHERE face_id = 'p1-0'", [longer])
    found, differs = check(gallery)
    assert (found.collection, found.code) == ("staff", "embeddings")
    assert "1 faces have no unit embedding of the right length, of p1" in found.detail
    assert differs.detail == "Milvus has 1 that differ"


def test_embeddings_that_nothing_can_read_do_not_keep_other_collections_from_being_compared(
    gallery: Gallery,
) -> None:
    first, _ = gallery.create_collection("a")
    gallery.enroll(first, [newcomer("odd", random_units(1, DIMENSION, 9))])
    with connect_to(gallery.place) as connection, connection:
        mark = "?" if isinstance(gallery.place, Path) else "%s"
        connection.execute(f"UPDATE faces SET embedding = {mark} WHERE face_id = 'odd-0'", [b"abcd"])
    [block] = gallery.store.changes.all_faces(gallery.get_collection("staff"))
    gallery.indexes.faces.delete(block.faces[:1].tolist())
    found = [(finding.collection, finding.code) for finding in check(gallery)]
    assert found == [("a", "embeddings"), ("staff", "index")]


def test_a_mark_that_milvus_has_lost_is_a_finding(gallery: Gallery) -> None:
    gallery.indexes.faces.delete([gallery.store.feeds.get(gallery.get_collection("staff")).mark])
    [finding] = check(gallery)
    assert finding.detail == "Milvus has lost what it was fed: the servers of this gallery send it again"


def test_milvus_that_is_away_ends_the_command_without_its_address(gallery: Gallery, run) -> None:
    said = run(
        *("gallery", "check", "--index", "milvus", "--milvus-uri", "http://root:hunter2@127.0.0.1:1"),
        *("--database", gallery.place.url) if isinstance(gallery.place, SharedGallery) else (),
        SAMEFACE_DATA=str(folder_of(gallery.place)),
    )
    assert said.returncode == 2
    assert said.stderr.startswith("index_unavailable: The search engine Milvus cannot be reached")
    assert "hunter2" not in said.stderr + said.stdout
