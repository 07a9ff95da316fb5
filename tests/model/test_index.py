"""The index: whatever finds the candidates, the answers are those of comparing everything."""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import faiss
import numpy as np
import pytest

from model import candidates as candidates_module
from model import index as index_module
from model import indexes as indexes_module
from model.bundle import load_bundle
from model.candidates import select_search_device
from model.errors import DeviceUnavailable
from model.faces import Embedding, Floats
from model.gallery import Gallery
from model.index import FaceIndex
from model.indexes import Indexes
from model.locks import SharedLock
from model.records import Changes, Collection, FaceBlock
from model.store import Store
from tests.model.people import newcomer, random_units

DIMENSION = 16


def people_like(count: int, faces: int, seed: int = 0) -> Floats:
    """Embeddings (people, faces, dimension) that resemble their own person most."""
    centres = random_units(count, DIMENSION, seed)[:, None]
    noise = random_units(count * faces, DIMENSION, seed + 1).reshape(count, faces, DIMENSION)
    values = centres + 0.4 * noise
    return values / np.linalg.norm(values, axis=2, keepdims=True)


def to_changes(sequence: int, embeddings: Floats, first_face: int = 1, gone: tuple[int, ...] = ()) -> Changes:
    """Person n has the faces n * faces + first_face ..."""
    people, faces, _ = embeddings.shape
    keys = np.arange(people * faces) + first_face
    rows = FaceBlock(keys, np.repeat(np.arange(people), faces), embeddings.reshape(-1, DIMENSION))
    return Changes(sequence, rows, np.array(gone, np.int64))


def filled(embeddings: Floats, gone: tuple[int, ...] = ()) -> FaceIndex:
    index = FaceIndex(DIMENSION)
    index.follow(1, lambda _: [to_changes(1, embeddings, gone=gone)])
    return index


def best_people(embeddings: Floats, probes: Floats, limit: int) -> list[list[int]]:
    best = np.einsum("pfd,nd->npf", embeddings, probes).max(axis=2)
    return np.argsort(-best, axis=1)[:, :limit].tolist()


@pytest.fixture(autouse=True)
def _small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every gallery of more than 200 faces is searched in cells."""
    monkeypatch.setattr(candidates_module, "EXACT_ROWS", 200)
    monkeypatch.setattr(index_module, "DEAD_ROWS", 10)


def test_cells_find_the_same_people_with_the_same_similarities() -> None:
    embeddings = people_like(300, 3)
    index, probes = filled(embeddings), people_like(60, 1, seed=0)[:, 0]
    exact = index.search(probes, 5)
    assert index.needs_rebuilding
    index.rebuild()
    assert index.kind == "ivf"
    assert not index.needs_rebuilding
    found = index.search(probes, 5)
    assert [hits[0].person for hits in found] == [hits[0].person for hits in exact]
    for hit in (hit for hits in found for hit in hits):  # exact, not of half-precision copies
        [probe] = [probes[place] for place, hits in enumerate(found) if hit in hits][:1]
        row = embeddings.reshape(-1, DIMENSION)[hit.face - 1]
        assert hit.similarity == pytest.approx(float(row @ probe), abs=1e-6)


def test_a_search_for_more_people_than_cells_hold_compares_everything() -> None:
    embeddings = people_like(300, 1)
    index, probes = filled(embeddings), random_units(3, DIMENSION, 5)
    index.rebuild()
    found = index.search(probes, 300)
    assert [[hit.person for hit in hits] for hits in found] == best_people(embeddings, probes, 300)


def test_one_person_with_many_faces_does_not_hide_the_others() -> None:
    many = people_like(1, 900)
    index = filled(many)
    index.rebuild()
    other = random_units(1, DIMENSION, 77)
    index.follow(
        2, lambda _: [Changes(2, FaceBlock(np.array([5000]), np.array([1]), other), np.array([], int))]
    )
    [hits] = index.search(many[0, :1], 2)
    assert [hit.person for hit in hits] == [0, 1]


def test_changes_after_the_cells_were_built_are_found() -> None:
    embeddings = people_like(300, 1)
    index = filled(embeddings[:250])
    index.rebuild()
    late = to_changes(2, embeddings[250:], first_face=1000, gone=(1, 2, 3))
    index.follow(2, lambda _: [late])
    assert index.size == 297
    assert not index.columns.embeddings[~index.columns.alive].any()  # zeroed at once
    [hits] = index.search(embeddings[260], 1)
    assert hits[0].face == 1010
    assert all(hit.face != 1 for hit in index.search(embeddings[0], 50)[0])


def test_rows_that_die_or_come_during_a_rebuild_are_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embeddings = people_like(300, 1)
    index = filled(embeddings[:250])
    build = index_module.build_candidates

    def build_while_the_world_goes_on(*arguments: object) -> object:
        index.follow(2, lambda _: [to_changes(2, embeddings[250:], first_face=1000, gone=(7,))])
        return build(*arguments)

    monkeypatch.setattr(index_module, "build_candidates", build_while_the_world_goes_on)
    index.rebuild()
    assert (index.sequence, index.size, index.kind) == (2, 299, "ivf")
    assert index.search(embeddings[270], 1)[0][0].face == 1020
    assert all(hit.face != 7 for hit in index.search(embeddings[6], 50)[0])
    assert index.candidates.ntotal == len(index.columns)


def test_dead_rows_are_cleared_away_in_batches() -> None:
    embeddings = people_like(100, 1)
    index = filled(embeddings, gone=tuple(range(1, 11)))
    assert not index.needs_rebuilding
    index.follow(2, lambda _: [Changes(2, to_changes(0, embeddings[:0]).came, np.array([11]))])
    assert index.needs_rebuilding
    index.rebuild()
    assert len(index.columns) == index.size == 89
    found = index.search(embeddings[11:, 0], 1)
    assert [hits[0].face for hits in found] == list(range(12, 101))


def test_means_follow_every_change() -> None:
    embeddings = people_like(40, 4)
    index = filled(embeddings)

    def expect_means(faces: dict[int, list[int]]) -> None:
        flat = embeddings.reshape(-1, DIMENSION)
        probe = random_units(1, DIMENSION, 3)
        sums = {person: flat[[face - 1 for face in held]].sum(0) for person, held in faces.items()}
        exact = {person: float(probe[0] @ total / np.linalg.norm(total)) for person, total in sums.items()}
        [hits] = index.search_means(probe, 100)
        assert {hit.person for hit in hits} == set(exact)
        for hit in hits:
            assert hit.similarity == pytest.approx(exact[hit.person], abs=1e-5)
            assert hit.face % 1000 in faces[hit.person]

    faces = {person: [person * 4 + place + 1 for place in range(4)] for person in range(40)}
    expect_means(faces)
    gone = (1, 2, 5, 6, 7, 8)
    index.follow(2, lambda _: [Changes(2, to_changes(0, embeddings[:0]).came, np.array(gone))])
    faces[0] = [3, 4]
    del faces[1]
    expect_means(faces)
    for sequence, (person, face) in enumerate([(1, 5), (100, 8), (50, 6), (50, 7)], 3):
        row = FaceBlock(
            np.array([face]), np.array([person]), embeddings.reshape(-1, DIMENSION)[face - 1 : face]
        )
        came = Changes(sequence, FaceBlock(row.faces + 1000, row.people, row.embeddings), np.array([], int))
        index.follow(sequence, lambda _, came=came: [came])
        faces.setdefault(person, []).append(face)
        expect_means(faces)


def test_a_gpu_is_taken_reported_and_where_required_insisted_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert select_search_device("cpu", "auto") == "cpu"
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    with caplog.at_level(logging.WARNING):
        assert select_search_device("gpu", "auto") == "cpu"
    assert "no GPU" in caplog.text
    with pytest.raises(DeviceUnavailable, match=r"sameface\[gpu\]"):
        select_search_device("gpu", "gpu")
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu", None, raising=False)
    assert select_search_device("gpu", "gpu") == "gpu"


def test_on_a_gpu_the_rows_are_copied_there_and_ranked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """With FAISS's own flat index in the GPU's place: what is copied there and how it is used."""

    class Options:
        useFloat16 = False  # noqa: N815 (FAISS's name)

    copied = []

    def copy(_resources: object, gpu: int, index: faiss.Index, options: Options) -> faiss.Index:
        copied.append((gpu, index.ntotal, options.useFloat16))
        return index

    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(faiss, "GpuClonerOptions", Options, raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu", copy, raising=False)
    embeddings, probes = people_like(50, 2), random_units(4, DIMENSION, 8)
    index = FaceIndex(DIMENSION, "gpu")
    index.follow(1, lambda _: [to_changes(1, embeddings)])
    index.rebuild()
    assert (index.kind, copied) == ("exact on gpu", [(0, 0, True)])
    assert [[hit.person for hit in hits] for hits in index.search(probes, 3)] == best_people(
        embeddings, probes, 3
    )


# Snapshots and upkeep.


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "gallery.db")) as store:
        yield store


@pytest.fixture
def staff(store: Store, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """A collection of 300 people, large enough for cells and snapshots."""
    monkeypatch.setattr(indexes_module, "SAVE_CHANGES", 20)
    fields = {"calibration": None, "bundle": "tiny", "identity": "abc", "dimension": DIMENSION}
    staff, _ = store.create_collection("staff", store_crops=False, **fields)
    embeddings = people_like(300, 1)
    store.enrol(staff, [newcomer(f"p{number}", faces) for number, faces in enumerate(embeddings)])
    return store.get_collection("staff")


def tended(store: Store, folder: Path, collection: Collection) -> FaceIndex:
    """The index after its upkeep, closed and saved."""
    with closing(Indexes(store, folder, "cpu")) as indexes:
        return indexes.follow(collection)


def test_a_restart_takes_the_snapshot_and_replays_the_rest(
    store: Store, staff: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Indexes(store, tmp_path / "indexes", "cpu")) as indexes:
        indexes.follow(staff)
        indexes._upkeep.submit(lambda: None).result()
        assert indexes.kind_of(staff) == "ivf"
    store.delete_person(staff, "p0")
    store.enrol(staff, [newcomer("late", random_units(1, DIMENSION, 99))])
    asked = []
    read = store.changes_since
    monkeypatch.setattr(store, "changes_since", lambda *what: asked.append(what[1]) or read(*what))
    index = tended(store, tmp_path / "indexes", store.get_collection("staff"))
    assert asked == [300]
    assert (index.kind, index.size, index.sequence) == ("ivf", 300, 302)
    assert len(index.search(random_units(1, DIMENSION, 99), 1)[0]) == 1
    assert all(hit.face != 1 for hit in index.search(people_like(300, 1)[0], 300)[0])


def damage(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (lambda path: damage(path, 2000), "checksum"),
        (lambda path: damage(path, 1024 + 300 * 17 + 40), "checksum"),
        (lambda path: damage(path, -1), "checksum"),
        (lambda path: damage(path, 0), "header"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "checksum"),
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b'"version": 2', b'"version": 9')),
            "version",
        ),
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b'"rows": 300', b'"rows": 200')),
            "checksum",
        ),
        (lambda path: path.write_bytes(path.read_bytes().replace(b'"sequence"', b'"sequencf"')), "checksum"),
        (lambda path: path.write_bytes(b"[]" + path.read_bytes()[2:]), "header"),
        (lambda path: path.write_bytes(b"[]" + b" " * 5000), "header"),
        (lambda path: path.write_bytes(b""), "header"),
    ],
)
def test_a_damaged_snapshot_is_noticed_said_and_made_again(
    store: Store, staff: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture, what, reason: str
) -> None:
    tended(store, tmp_path / "indexes", staff)
    [path] = (tmp_path / "indexes").glob("*.index")
    what(path)
    with caplog.at_level(logging.WARNING):
        index = tended(store, tmp_path / "indexes", staff)
    assert reason in caplog.text
    assert index.size == 300
    caplog.clear()
    tended(store, tmp_path / "indexes", staff)
    assert caplog.text == ""


def test_a_snapshot_of_another_store_is_not_taken(
    store: Store, staff: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tended(store, tmp_path / "indexes", staff)
    with closing(Store(tmp_path / "other.db")) as other:
        fields = {"calibration": None, "bundle": "tiny", "identity": "abc", "dimension": DIMENSION}
        theirs, _ = other.create_collection("staff", store_crops=False, **fields)
        assert theirs.key == staff.key
        with caplog.at_level(logging.WARNING):
            index = tended(other, tmp_path / "indexes", theirs)
    assert "another store" in caplog.text
    assert index.size == 0


@pytest.mark.parametrize("written_since", [0, 40])
def test_a_backup_that_was_put_back_is_noticed(
    store: Store, staff: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture, written_since: int
) -> None:
    with closing(sqlite3.connect(tmp_path / "gallery.db")) as connection:
        connection.execute("VACUUM INTO ?", [str(tmp_path / "backup.db")])
    store.enrol(staff, [newcomer(f"new{n}", random_units(1, DIMENSION, n)) for n in range(30)])
    tended(store, tmp_path / "indexes", store.get_collection("staff"))
    with closing(Store(tmp_path / "backup.db")) as backup:
        others = [newcomer(f"x{n}", random_units(1, DIMENSION, 100 + n)) for n in range(written_since)]
        backup.enrol(staff, others) if others else None
        with caplog.at_level(logging.WARNING):
            index = tended(backup, tmp_path / "indexes", backup.get_collection("staff"))
        assert ("ahead of the store" if not written_since else "not those of the store") in caplog.text
        assert index.size == 300 + written_since


def test_the_snapshot_of_a_deleted_collection_is_deleted(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    with closing(Indexes(store, tmp_path / "indexes", "cpu")) as indexes:
        indexes.follow(staff)
        indexes._upkeep.submit(lambda: None).result()
        assert list((tmp_path / "indexes").glob("*.index"))
        store.delete_collection("staff")
        indexes.forget_deleted()
        assert not list((tmp_path / "indexes").glob("*.index"))
        assert not indexes._held


def test_a_process_that_is_behind_does_not_write_over_a_newer_snapshot(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    behind, ahead = (Indexes(store, tmp_path / "indexes", "cpu") for _ in range(2))
    with closing(behind), closing(ahead):
        behind.follow(staff)
        store.enrol(staff, [newcomer(f"new{n}", random_units(1, DIMENSION, n)) for n in range(30)])
        ahead.follow(store.get_collection("staff"))
        ahead._upkeep.submit(lambda: None).result()
    [path] = (tmp_path / "indexes").glob("*.index")
    assert b'"sequence": 330' in path.read_bytes()[:1024]


def test_who_was_deleted_is_not_in_the_snapshot_of_a_server_that_stopped(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    tended(store, tmp_path / "indexes", staff)
    [path] = (tmp_path / "indexes").glob("*.index")
    embedding = people_like(300, 1)[7, 0].tobytes()
    assert embedding in path.read_bytes()
    with closing(Indexes(store, tmp_path / "indexes", "cpu")) as indexes:
        indexes.follow(staff)
        store.delete_person(staff, "p7")  # and no search after it
    assert embedding not in path.read_bytes()


def test_a_collection_that_another_process_deleted_is_not_written_again(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    folder = tmp_path / "indexes"
    with closing(Indexes(store, folder, "cpu")) as indexes:
        held = indexes._held[staff.key] = indexes.build(staff)
        store.delete_collection("staff")
        indexes.save(held)
        assert not list(folder.glob("*.index"))
    assert not list(folder.glob("*.index"))


def test_what_a_killed_process_was_writing_is_removed(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    left = tmp_path / "indexes" / f"{staff.key}.index.4711.part"
    left.parent.mkdir()
    left.write_bytes(b"embeddings")
    (left.parent / "99.index.4711.part").write_bytes(b"of a collection that is gone")
    tended(store, left.parent, staff)
    assert not list(left.parent.glob("*.part"))


def test_a_snapshot_that_another_process_wrote_just_now_is_not_taken_for_a_broken_one(
    store: Store, staff: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.enrol(staff, [newcomer(f"new{n}", random_units(1, DIMENSION, n)) for n in range(30)])
    tended(store, tmp_path / "indexes", store.get_collection("staff"))
    with caplog.at_level(logging.WARNING):
        index = tended(store, tmp_path / "indexes", staff)  # as it was read before
    assert (index.sequence, caplog.text) == (330, "")


def test_a_writer_is_not_kept_waiting_by_readers_that_come_and_go() -> None:
    lock, done, written = SharedLock(), threading.Event(), threading.Event()

    def read() -> None:
        while not done.is_set():
            with lock.shared():
                time.sleep(0.01)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()

    def write() -> None:
        with lock.alone():
            written.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert written.wait(5)
    done.set()
    for thread in (*readers, writer):
        thread.join()


def test_more_people_than_there_are_do_not_make_a_search_compare_everything(
    store: Store, staff: Collection, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(
        FaceIndex, "search", lambda _, probes, limit: asked.append(limit) or [[] for _ in probes]
    )
    gallery = Gallery(store.path, load_bundle(data / "models" / "recogniser"))
    with closing(gallery):
        gallery.search(staff, [Embedding(random_units(1, DIMENSION)[0], "abc")], 1000)
    assert asked == [300]
