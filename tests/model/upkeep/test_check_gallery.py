"""The check finds what is wrong, the repair mends what can be made again and says what cannot."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from sameface.model.data_folder import GalleryPlace
from sameface.model.errors import CollectionNotFound
from sameface.model.gallery.index.faiss import candidates as candidates_module
from sameface.model.gallery.index.faiss import loaded_index as loaded_module
from sameface.model.gallery.index.faiss.collection_indexes import open_indexes
from sameface.model.store import changes as changes_module
from sameface.model.store.drafts import drafting, list_drafts, open_draft
from sameface.model.store.records import Binding, Collection
from sameface.model.store.store import Store
from sameface.model.upkeep.check_gallery import Comparison, check_gallery
from tests.model.people import newcomer, random_units
from tests.postgres_server import connect_to, gallery_in

DIMENSION = 16
BINDING = Binding(bundle="tiny", identity="abc", dimension=DIMENSION)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three hundred faces are many: they are searched by codes, saved, and read in several blocks."""
    monkeypatch.setattr(candidates_module, "EXACT_ROWS", 200)
    monkeypatch.setattr(loaded_module, "SAVE_CHANGES", 20)
    monkeypatch.setattr(changes_module, "ROWS_AT_ONCE", 70)


@pytest.fixture
def path(tmp_path: Path) -> GalleryPlace:
    return gallery_in(tmp_path)


@pytest.fixture
def store(path: GalleryPlace) -> Iterator[Store]:
    with closing(Store(path)) as store:
        yield store


@pytest.fixture
def staff(store: Store) -> Collection:
    """Three hundred people whose index has a snapshot, ten who came and two who went since."""
    staff, _ = store.collections.create("staff", BINDING)
    embeddings = random_units(310, DIMENSION)
    store.people.enroll(staff, [newcomer(f"p{n}", values[None]) for n, values in enumerate(embeddings[:300])])
    with closing(open_indexes(store)) as indexes:
        indexes.renew(store.collections.get("staff"))
    store.people.enroll(
        staff, [newcomer(f"p{n + 300}", values[None]) for n, values in enumerate(embeddings[300:])]
    )
    store.people.delete(staff, "p7")
    store.people.delete_face(staff, "p8", "p8-0")
    return store.collections.get("staff")


@pytest.fixture
def snapshot(store: Store, staff: Collection) -> Path:
    return store.folder / "indexes" / f"{staff.key}.index"


def execute(path: GalleryPlace, statement: str, *values: object) -> None:
    """Behind everybody's back."""
    with connect_to(path) as connection, connection:
        connection.execute(statement if isinstance(path, Path) else statement.replace("?", "%s"), values)


def codes(path: GalleryPlace, *, repair: bool = False) -> list[tuple[str | None, str, bool]]:
    findings = check_gallery(path, repair=repair)
    return [(finding.collection, finding.code, finding.repaired) for finding in findings]


def test_a_sound_gallery_has_no_findings_and_is_left_as_it_is(
    path: GalleryPlace, store: Store, staff: Collection, snapshot: Path
) -> None:
    store.collections.create("empty", replace(BINDING, dimension=3, identity="other"))
    written = snapshot.stat().st_mtime_ns
    assert check_gallery(path) == []
    assert check_gallery(path, "staff") == []
    assert snapshot.stat().st_mtime_ns == written
    assert store.collections.get("staff") == staff
    with pytest.raises(CollectionNotFound):
        check_gallery(path, "nobody")


def test_a_counter_that_is_off_is_found_and_recounted(
    path: GalleryPlace, store: Store, staff: Collection
) -> None:
    execute(path, "UPDATE collections SET people = 5, faces = faces + 1 WHERE name = ?", staff.name)
    [finding] = check_gallery(path)
    assert finding.code == "counters"
    assert "5 people and 309 faces, and has 309 and 308" in finding.detail
    assert codes(path, repair=True) == [("staff", "counters", True)]
    assert check_gallery(path) == []
    assert store.collections.get("staff") == staff


@pytest.mark.parametrize("place", [0, 1024, -1])
def test_a_damaged_snapshot_is_found_and_written_anew(path: GalleryPlace, snapshot: Path, place: int) -> None:
    content = bytearray(snapshot.read_bytes())
    content[place] ^= 1
    snapshot.write_bytes(content)
    assert codes(path) == codes(path) == [("staff", "snapshot", False)]  # a check changes nothing
    assert codes(path, repair=True) == [("staff", "snapshot", True)]
    assert check_gallery(path) == []
    assert snapshot.exists()


def test_the_snapshot_of_another_gallery_is_found(path: GalleryPlace, snapshot: Path, tmp_path: Path) -> None:
    with closing(Store(gallery_in(tmp_path / "other"))) as other:
        theirs, _ = other.collections.create("staff", BINDING)
        other.people.enroll(theirs, [newcomer("ada", random_units(1, DIMENSION, 4))])
        with closing(open_indexes(other)) as indexes:
            indexes.renew(other.collections.get("staff"))
            snapshot.write_bytes(indexes.path_of(theirs).read_bytes())
    assert codes(path) == [("staff", "snapshot", False)]
    assert codes(path, repair=True) == [("staff", "snapshot", True)]


@pytest.mark.parametrize(("key", "code"), [(10, "index"), (290, "snapshot")])  # a server notices the newest
def test_a_row_changed_behind_the_indexs_back_is_found_and_repaired(
    path: GalleryPlace, snapshot: Path, key: int, code: str
) -> None:
    assert snapshot.exists()
    execute(
        path, "UPDATE faces SET embedding = (SELECT embedding FROM faces WHERE key = 20) WHERE key = ?", key
    )
    assert codes(path) == [("staff", code, False)]
    assert codes(path, repair=True) == [("staff", code, True)]
    assert check_gallery(path) == []


def test_a_row_deleted_behind_the_indexs_back_is_found_and_repaired(
    path: GalleryPlace, snapshot: Path
) -> None:
    assert snapshot.exists()
    execute(path, "DELETE FROM faces WHERE key = 10")
    assert codes(path) == [("staff", "counters", False), ("staff", "index", False)]
    assert codes(path, repair=True) == [("staff", "counters", True), ("staff", "index", True)]
    assert check_gallery(path) == []


@pytest.mark.usefixtures("staff")
def test_a_row_that_no_change_speaks_of_is_found_and_mended(path: GalleryPlace) -> None:
    fields = "collection, person, embedding, bundle, identity, created_at"
    execute(
        path, f"INSERT INTO faces (face_id, {fields}) SELECT 'sneaked', {fields} FROM faces WHERE key = 20"
    )
    [_, finding] = check_gallery(path)
    assert "lacks 1 faces" in finding.detail
    assert codes(path, repair=True) == [("staff", "counters", True), ("staff", "index", True)]
    assert check_gallery(path) == []


def test_a_search_structure_that_lacks_rows_is_found(store: Store, staff: Collection) -> None:
    with closing(open_indexes(store)) as indexes:
        index = indexes.load(staff).index
    assert index.kind == "codes"
    index.faiss_index.ntotal -= 2
    comparison = Comparison(index)
    for block in store.changes.all_faces(staff):
        comparison.add(block)
    assert "searches 308 of 310 rows" in comparison.describe()


def test_a_gap_in_the_change_sequence_is_found_and_not_called_repaired(
    path: GalleryPlace, snapshot: Path
) -> None:
    assert snapshot.exists()
    execute(path, "DELETE FROM changes WHERE sequence = 100")
    assert codes(path, repair=True) == [("staff", "changes", False)]


def test_faces_of_another_recogniser_are_found(path: GalleryPlace, snapshot: Path) -> None:
    assert snapshot.exists()
    execute(path, "UPDATE faces SET identity = 'other' WHERE key < 4")
    [finding] = check_gallery(path, repair=True)
    assert (finding.code, finding.repaired) == ("identity", False)
    assert "3 faces" in finding.detail


@pytest.mark.parametrize(
    "embedding",
    [
        b"abcd",
        random_units(1, DIMENSION + 1).tobytes(),
        np.full(DIMENSION, np.nan, np.float32).tobytes(),
        (random_units(1, DIMENSION) * 1.01).astype(np.float32).tobytes(),
        bytes(4 * DIMENSION),
    ],
)
def test_an_embedding_that_cannot_be_compared_is_found_and_forgetting_its_person_helps(
    path: GalleryPlace, store: Store, staff: Collection, embedding: bytes
) -> None:
    execute(path, "UPDATE faces SET embedding = ? WHERE face_id = 'p305-0'", embedding)
    [finding] = check_gallery(path, repair=True)
    assert (finding.code, finding.repaired) == ("embeddings", False)
    assert "of p305: forget" in finding.detail
    store.people.delete(staff, "p305")
    assert check_gallery(path) == []


@pytest.mark.sqlite
def test_rows_that_belong_to_nothing_are_found(path: GalleryPlace, snapshot: Path) -> None:
    assert snapshot.exists()
    execute(path, "INSERT INTO answers VALUES (77, 'key', 'hash', '{}', 0)")
    assert codes(path, repair=True) == [(None, "orphans", False)]


@pytest.mark.sqlite
def test_a_damaged_page_is_found_and_a_backup_asked_for(
    path: GalleryPlace, store: Store, staff: Collection
) -> None:
    assert staff.faces > 300
    store.close()
    content = bytearray(path.read_bytes())
    for page in range(8, len(content) // 4096, 3):
        content[page * 4096 : page * 4096 + 200] = b"\xa5" * 200
    path.write_bytes(content)
    findings = check_gallery(path, repair=True)
    assert {(finding.code, finding.repaired) for finding in findings} == {("database", False)}
    assert "restore a backup" in findings[0].detail
    path.write_bytes(b"this is no database at all" * 1000)
    assert codes(path) == [(None, "database", False)]


@pytest.mark.sqlite
def test_a_command_on_a_damaged_gallery_says_so(
    run: Callable[..., CompletedProcess[str]],
    path: GalleryPlace,
    store: Store,
    staff: Collection,
    tmp_path: Path,
) -> None:
    store.close()
    path.write_bytes(path.read_bytes().replace(b"p30", b"\xff\xfe\xfd"))
    for words in (
        ("people", "--collection", staff.name),
        ("gallery", "export", staff.name, tmp_path / "out.gz"),
    ):
        refused = run(*words, "--json", SAMEFACE_DATA=str(tmp_path))
        said = json.loads(refused.stdout)
        assert (refused.returncode, said["code"]) == (2, "store_damaged")
        assert "restore a backup" in said["detail"]
    assert not (tmp_path / "out.gz").exists()


def test_what_a_stopped_command_left_is_found_unless_it_still_runs(path: GalleryPlace, store: Store) -> None:
    draft = open_draft(store, "staff", "importing", BINDING)
    store.people.enroll(draft, [newcomer("ada", random_units(2, DIMENSION))])
    with drafting(store):
        assert check_gallery(path) == []
    [finding] = check_gallery(path)
    assert (finding.collection, finding.code) == ("staff", "leftover")
    assert codes(path, repair=True) == [("staff", "leftover", True)]
    assert list_drafts(store) == []


def test_a_check_beside_a_busy_writer_finds_nothing(
    path: GalleryPlace, store: Store, staff: Collection
) -> None:
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            store.people.enroll(staff, [newcomer(f"w{number}", random_units(3, DIMENSION, number))])
            store.people.delete_face(staff, f"w{number}", f"w{number}-1")
            if number % 2:
                store.people.delete(staff, f"w{number}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert [check_gallery(path, repair=True) for _ in range(10)] == [[]] * 10
    finally:
        done.set()
        writer.join()
    assert store.collections.get("staff").revision > staff.revision + 10
