"""The index follows the store, and a search ranks people."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.decision.thresholds import Rule
from sameface.model.errors import CalibrationNotFound, ModelMismatch
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.records import Binding, Collection
from tests.model.people import newcomer, random_units
from tests.networks import DIMENSION, build_recogniser
from tests.postgres_server import gallery_in


@pytest.fixture(scope="module")
def bundle(data: Path) -> Bundle:
    return load_bundle(data / "models" / "recogniser")


@pytest.fixture
def gallery(bundle: Bundle, tmp_path: Path) -> Iterator[Gallery]:
    gallery = Gallery(gallery_in(tmp_path), bundle)
    yield gallery
    gallery.close()


@pytest.fixture
def staff(gallery: Gallery) -> Collection:
    return gallery.create_collection("staff")[0]


def find(gallery: Gallery, collection: Collection, *probes: np.ndarray, limit: int = 5) -> list[list[str]]:
    now = gallery.get_collection(collection.name)
    found = gallery.search(now, np.array(probes), limit).by_probe()
    return [[candidate.person_id for candidate in candidates] for candidates in found]


def test_people_are_ranked_by_their_best_face_and_named_once(gallery: Gallery, staff: Collection) -> None:
    ada, bob = random_units(3, DIMENSION, 1), random_units(3, DIMENSION, 2)
    gallery.enroll(staff, [newcomer("ada", ada, name="Ada"), newcomer("bob", bob)])
    staff = gallery.get_collection("staff")
    [candidates] = gallery.search(staff, bob[2:], 5).by_probe()
    assert (candidates[0].person_id, candidates[0].face_id) == ("bob", "bob-2")
    assert candidates[0].similarity == pytest.approx(1, abs=1e-5)
    assert sorted(found.person_id for found in candidates) == ["ada", "bob"]
    assert candidates[1].name == "Ada"
    assert candidates[1].similarity == pytest.approx(float((ada @ bob[2]).max()), abs=1e-5)


def test_a_search_agrees_with_comparing_everything(gallery: Gallery, staff: Collection) -> None:
    embeddings = random_units(400, DIMENSION).reshape(80, 5, DIMENSION)
    gallery.enroll(staff, [newcomer(f"p{number:02}", faces) for number, faces in enumerate(embeddings)])
    probes = random_units(20, DIMENSION, 9)
    best = np.einsum("pfd,nd->npf", embeddings, probes).max(axis=2)
    expected = [[f"p{number:02}" for number in np.argsort(-row)[:7]] for row in best]
    assert find(gallery, staff, *probes, limit=7) == expected


def test_a_forgotten_person_is_gone_from_the_next_search(gallery: Gallery, staff: Collection) -> None:
    ada, bob = random_units(2, DIMENSION)
    gallery.enroll(staff, [newcomer("ada", ada[None]), newcomer("bob", bob[None])])
    assert find(gallery, staff, ada)[0][0] == "ada"
    gallery.store.people.delete(staff, "ada")
    assert find(gallery, staff, ada) == [["bob"]]


def test_what_one_process_writes_the_next_search_of_another_finds(
    gallery: Gallery, staff: Collection, bundle: Bundle, tmp_path: Path
) -> None:
    other = Gallery(gallery_in(tmp_path), bundle)
    [ada] = random_units(1, DIMENSION)
    assert find(other, staff, ada) == [[]]
    gallery.enroll(staff, [newcomer("ada", ada[None])])
    assert find(other, staff, ada) == [["ada"]]
    gallery.store.people.delete(staff, "ada")
    assert find(other, staff, ada) == [[]]
    other.close()


def test_searches_and_writes_at_the_same_time_never_miss_their_own_write(
    gallery: Gallery, staff: Collection
) -> None:
    missed: list[str] = []

    def write_and_search(worker: int) -> None:
        for number in range(15):
            name, values = f"w{worker}-{number}", random_units(1, DIMENSION, 100 * worker + number)[0]
            gallery.enroll(staff, [newcomer(name, values[None])])
            if find(gallery, staff, values)[0][0] != name:
                missed.append(f"{name} enrolled")
            gallery.store.people.delete(staff, name)
            if name in find(gallery, staff, values, limit=50)[0]:
                missed.append(f"{name} deleted")

    threads = [threading.Thread(target=write_and_search, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missed == []


def test_a_collection_of_another_model_is_refused(
    gallery: Gallery, staff: Collection, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    other = Gallery(gallery_in(tmp_path), build_recogniser(folder, name="other", seed=7))
    with pytest.raises(ModelMismatch, match="tiny-recogniser"):
        other.get_collection("staff")
    assert gallery.get_collection("staff") == staff
    other.close()


def test_a_collection_whose_calibration_is_not_here_says_so(gallery: Gallery) -> None:
    """As after an import from a server that had it."""
    moved, _ = gallery.store.collections.create(
        "moved",
        Binding(
            calibration="tiny-recogniser/cameras",
            bundle=gallery.bundle.contract.name,
            identity=gallery.bundle.identity,
            dimension=DIMENSION,
        ),
    )
    with pytest.raises(CalibrationNotFound, match="'tiny-recogniser/cameras'; there are: none"):
        gallery.choose_threshold(moved, Rule(rate=0.01))
    assert gallery.choose_threshold(gallery.create_collection("own")[0], Rule()).value == 0.5
