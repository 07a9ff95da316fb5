"""A search by Milvus finds whom FAISS would find, whatever Milvus has seen, and nobody who is deleted."""

import threading
from collections.abc import Callable
from contextlib import closing

import numpy as np
import pytest

from sameface.model.data_folder import MilvusAddress
from sameface.model.errors import IndexUnavailable, InvalidArgument
from sameface.model.gallery.gallery import Gallery
from sameface.model.gallery.index.milvus import feeder as feeder_module
from sameface.model.gallery.index.milvus import milvus_engine as engine_module
from sameface.model.gallery.size import measure_size
from sameface.model.store import followers as followers_module
from sameface.model.store.records import Collection, Feed, NewFace, NewPerson
from tests.milvus_server import wait_until_fed
from tests.model.people import newcomer, people_like, random_units
from tests.networks import DIMENSION

OpenGallery = Callable[[MilvusAddress], Gallery]


def find(
    gallery: Gallery, *probes: np.ndarray, limit: int = 5, fusion: str = "max"
) -> list[list[tuple[str, float]]]:
    now = gallery.get_collection("staff")
    found = gallery.search(now, np.array(probes), limit, fusion).by_probe()
    return [[(each.person_id, each.similarity) for each in candidates] for candidates in found]


def names(gallery: Gallery, *probes: np.ndarray, limit: int = 5) -> list[list[str]]:
    return [[name for name, _ in found] for found in find(gallery, *probes, limit=limit)]


def enroll_many(gallery: Gallery, staff: Collection, people: np.ndarray) -> None:
    gallery.enroll(staff, [newcomer(f"p{number:02}", faces) for number, faces in enumerate(people)])


@pytest.mark.parametrize("fusion", ["max", "mean"])
def test_milvus_and_its_tail_agree_with_faiss(gallery: Gallery, staff: Collection, fusion: str) -> None:
    people = people_like(60, 5, DIMENSION)
    probes = people[:8, 0] + 0.3 * random_units(8, DIMENSION, 9)
    probes = (probes / np.linalg.norm(probes, axis=1, keepdims=True)).astype(np.float32)
    enroll_many(gallery, staff, people[:40])
    with closing(Gallery(gallery.place, gallery.bundle)) as exact:
        assert find(gallery, *probes, fusion=fusion) == find(exact, *probes, fusion=fusion)  # all in the tail
        wait_until_fed(gallery, "staff")
        tail = gallery.indexes._follow(gallery.get_collection("staff"))[1]
        assert tail.size <= 200
        threading.Event().wait(0.3)
        first = [found[0] for found in find(gallery, *probes, fusion=fusion)]
        assert first == [found[0] for found in find(exact, *probes, fusion=fusion)]
        assert gallery.indexes._follow(gallery.get_collection("staff"))[1].size == 0  # all in Milvus
        gallery.enroll(staff, [newcomer(f"q{n:02}", faces) for n, faces in enumerate(people[40:])])
        probes = np.concatenate([probes, people[40:44, 1]])
        first = [found[0] for found in find(gallery, *probes, fusion=fusion)]
        assert first == [found[0] for found in find(exact, *probes, fusion=fusion)]  # some in each


def test_a_person_is_found_once_by_the_best_face_wherever_it_is(gallery: Gallery, staff: Collection) -> None:
    ada = random_units(3, DIMENSION, 1)
    gallery.enroll(staff, [newcomer("ada", ada[:2])])
    find(gallery, ada[0])
    wait_until_fed(gallery, "staff")
    gallery.enroll(staff, [NewPerson("ada", [NewFace("third", ada[2])], may_exist=True)])
    for probe in ada:
        [[(name, similarity)]] = find(gallery, probe)
        assert (name, similarity) == ("ada", pytest.approx(1, abs=1e-5))


def test_who_is_deleted_is_gone_although_milvus_still_has_them(gallery: Gallery, staff: Collection) -> None:
    ada, bob = random_units(2, DIMENSION)
    gallery.enroll(staff, [newcomer("ada", ada[None]), newcomer("bob", bob[None])])
    assert names(gallery, ada)[0][0] == "ada"
    wait_until_fed(gallery, "staff")
    gallery.indexes.feeder.close()  # from here on Milvus is told nothing
    gallery.store.people.delete(staff, "ada")
    assert gallery.indexes.faces.count(staff.key) == 2
    assert names(gallery, ada) == [["bob"]]
    gallery.enroll(staff, [newcomer("eve", ada[None])])
    assert names(gallery, ada)[0][0] == "eve"


def test_what_one_process_writes_the_next_search_of_another_finds(
    gallery: Gallery, staff: Collection, address: MilvusAddress, open_gallery: OpenGallery
) -> None:
    other = open_gallery(address)
    [ada] = random_units(1, DIMENSION)
    for fed in (False, True):
        assert names(other, ada) == [[]]
        gallery.enroll(staff, [newcomer("ada", ada[None])])
        assert names(other, ada) == [["ada"]]
        if fed:
            wait_until_fed(gallery, "staff")
            assert names(other, ada) == [["ada"]]
        gallery.store.people.delete(staff, "ada")
        assert names(other, ada) == [[]]


def test_searches_and_writes_at_the_same_time_never_miss_their_own_write(
    gallery: Gallery, staff: Collection
) -> None:
    missed: list[str] = []

    def write_and_search(worker: int) -> None:
        for number in range(12):
            name, values = f"w{worker}-{number}", random_units(1, DIMENSION, 100 * worker + number)[0]
            gallery.enroll(staff, [newcomer(name, values[None])])
            if names(gallery, values)[0][0] != name:
                missed.append(f"{name} enrolled")
            if number % 3:
                continue
            gallery.store.people.delete(staff, name)
            if name in names(gallery, values, limit=50)[0]:
                missed.append(f"{name} deleted")

    threads = [threading.Thread(target=write_and_search, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missed == []
    wait_until_fed(gallery, "staff")
    assert gallery.indexes.faces.count(staff.key) == gallery.get_collection("staff").faces == 24


def test_a_deleted_collection_leaves_milvus(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeder_module, "LATE_SECONDS", 0)
    gallery.enroll(staff, [newcomer("ada", random_units(2, DIMENSION))])
    find(gallery, *random_units(1, DIMENSION))
    wait_until_fed(gallery, "staff")
    assert gallery.indexes.faces.count(staff.key) == 2
    gallery.delete_collection("staff")
    for _ in range(200):
        if not gallery.store.feeds.all_of(gallery.bundle.identity):
            break
        threading.Event().wait(0.05)
    assert gallery.indexes.faces.count(staff.key) == 0
    assert not gallery.store.feeds.all_of(gallery.bundle.identity)


def test_milvus_far_behind_is_said_and_caught_up_with(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "MOST_TAIL", 10)
    people = random_units(40, DIMENSION)
    enroll_many(gallery, staff, people[:, None])
    with pytest.raises(IndexUnavailable, match="is 40 changes behind") as raised:
        find(gallery, people[0])
    assert raised.value.facts == {"retry_after_seconds": 2}
    wait_until_fed(gallery, "staff")
    threading.Event().wait(0.2)
    assert names(gallery, people[7])[0][0] == "p07"


def test_the_engine_says_what_it_is_and_how_far_behind(gallery: Gallery, staff: Collection) -> None:
    assert gallery.index_kind(staff) == "milvus"
    enroll_many(gallery, staff, random_units(3, DIMENSION)[:, None])
    assert measure_size(gallery).lag == 3
    gallery.load()
    wait_until_fed(gallery, "staff")
    assert measure_size(gallery).lag == 0
    assert gallery.indexes.find_fault() is None


def test_who_was_enrolled_long_ago_is_found_among_many_who_were_just_deleted(
    gallery: Gallery, staff: Collection
) -> None:
    """Milvus still has the others, who are more similar to the probe."""
    probe, *others = random_units(52, DIMENSION)
    people = np.array([probe + 0.001 * (number + 1) * other for number, other in enumerate(others)])
    people = (people / np.linalg.norm(people, axis=1, keepdims=True)).astype(np.float32)
    enroll_many(gallery, staff, people[:, None])
    gallery.load()
    wait_until_fed(gallery, "staff")
    gallery.indexes.feeder.close()
    for number in range(50):
        gallery.store.people.delete(staff, f"p{number:02}")
    assert names(gallery, probe) == [["p50"]]


def test_a_search_that_took_longer_than_its_look_holds_is_made_again(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile Milvus had lost its marks, and whoever feeds has cleared the collection."""
    [ada] = random_units(1, DIMENSION)
    gallery.enroll(staff, [newcomer("ada", ada[None])])
    gallery.load()
    wait_until_fed(gallery, "staff")
    gallery.indexes.feeder.close()
    faces, feeds = gallery.indexes.faces, gallery.store.feeds
    search = faces.search

    def search_late(*asked: object) -> np.ndarray:
        feeds.advance(feeds.get(staff), Feed(staff.key))
        threading.Event().wait(engine_module.LEASE_SECONDS)
        faces.clear(staff.key)
        return search(*asked)

    monkeypatch.setattr(faces, "search", search_late)
    assert names(gallery, ada) == [["ada"]]


def test_changes_that_were_deleted_since_the_last_look_are_no_reason_to_refuse(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The feed has moved on by then, and this process has not seen it yet."""
    monkeypatch.setattr(followers_module, "FEWEST", 1)
    monkeypatch.setattr(engine_module, "TRUST_SECONDS", 60)
    ada, bob = random_units(2, DIMENSION)
    gallery.enroll(staff, [newcomer("ada", ada[None])])
    gallery.load()
    wait_until_fed(gallery, "staff")
    engine, store = gallery.indexes, gallery.store
    assert names(gallery, ada) == [["ada"]]
    gallery.enroll(staff, [newcomer("bob", bob[None])])
    wait_until_fed(gallery, "staff")
    engine.feeder.close()
    engine._tails.clear()
    now = gallery.get_collection("staff")
    store.followers.note(f"milvus-{now.identity[:16]}", now, now.revision)
    assert store.followers.compact(now)
    assert names(gallery, bob) == [["bob", "ada"]]


def test_an_exact_search_is_refused(gallery: Gallery, staff: Collection) -> None:
    enroll_many(gallery, staff, people_like(2, 1, DIMENSION))
    with pytest.raises(InvalidArgument, match="Milvus"):
        gallery.search(gallery.get_collection("staff"), random_units(1, DIMENSION), 1, exact=True)
