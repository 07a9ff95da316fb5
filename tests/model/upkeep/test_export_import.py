"""Archives: what was exported is what is imported, all of it or nothing."""

import base64
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sameface.model.errors import AlreadyExists, ArchiveRefused, CollectionNotFound, InvalidId, UpkeepRunning
from sameface.model.photo.image import encode_png
from sameface.model.store.drafts import drafting, list_drafts
from sameface.model.store.records import Binding, Collection, NewFace, NewPerson
from sameface.model.store.store import Store
from sameface.model.upkeep import export_import as transfer
from sameface.model.upkeep.export_import import export_collection, import_collection
from tests.model.people import everybody, newcomer, random_units

DIMENSION = 8
BINDING = Binding(bundle="tiny", identity="abc", dimension=DIMENSION)
CROP = encode_png(np.zeros((4, 4, 3), np.uint8))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "gallery.db")) as store:
        yield store


@pytest.fixture
def staff(store: Store) -> Collection:
    """Four people: with two faces, with a crop, with none, and with an odd name."""
    staff, _ = store.collections.create("staff", replace(BINDING, store_crops=True))
    [values] = random_units(1, DIMENSION, 5)
    store.people.enroll(
        staff,
        [
            newcomer("ada", random_units(2, DIMENSION), name="Ada", metadata={"room": [1, None]}),
            NewPerson("bob", [NewFace("bob-0", values, 0.75, "f" * 64, CROP, created_at=12.5)]),
            newcomer("cleo", random_units(1, DIMENSION, 1)),
            newcomer("Dörte".encode().hex(), random_units(1, DIMENSION, 2), name="Dörte\n\u2028"),
        ],
    )
    store.people.delete_face(staff, "cleo", "cleo-0")
    return store.collections.get("staff")


@pytest.fixture
def archive(store: Store, staff: Collection, tmp_path: Path) -> Path:
    export_collection(store, staff.name, tmp_path / "staff.gz")
    return tmp_path / "staff.gz"


def names(store: Store, *, drafts: bool = False) -> list[str]:
    if drafts:
        return [f"{draft.draft_of} {draft.draft}" for draft in list_drafts(store)]
    return [collection.name for collection in store.collections.page()]


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write_lines(path: Path, lines: list[Any]) -> None:
    """An archive of these lines, the last of them with the right checksum."""
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines[:-1])
    last = lines[-1] | {"sha256": hashlib.sha256(content).hexdigest()}
    path.write_bytes(gzip.compress(content + json.dumps(last).encode() + b"\n"))


def test_what_was_exported_is_imported_with_ids_times_and_crops(
    store: Store, staff: Collection, archive: Path, tmp_path: Path
) -> None:
    with closing(Store(tmp_path / "other" / "gallery.db")) as other:
        imported = import_collection(other, archive)
        assert everybody(other, "staff") == everybody(store, "staff")
    kept = ("name", "store_crops", "bundle", "identity", "dimension", "people", "faces")
    assert [getattr(imported, field) for field in kept] == [getattr(staff, field) for field in kept]
    assert (imported.people, imported.faces, imported.revision) == (4, 4, 4)


def test_the_file_is_as_the_readme_says_and_for_its_owner_alone(archive: Path) -> None:
    header, *people, last = read_lines(archive)
    assert header == {
        "sameface": "collection",
        "version": 1,
        "name": "staff",
        "model": "tiny",
        "identity": "abc",
        "dimension": DIMENSION,
        "store_crops": True,
        "calibration": None,
    }
    [bob] = [person for person in people if person["person_id"] == "bob"]
    [face] = bob["faces"]
    assert bob.keys() == {"person_id", "name", "metadata", "created_at", "faces"}
    assert face.keys() == {"face_id", "embedding", "quality", "photo", "crop", "created_at"}
    assert (face["quality"], face["photo"], face["created_at"]) == (0.75, "f" * 64, 12.5)
    assert base64.b64decode(face["crop"]) == CROP
    np.testing.assert_array_equal(
        np.frombuffer(base64.b64decode(face["embedding"]), "<f4"), random_units(1, DIMENSION, 5)[0]
    )
    content = gzip.decompress(archive.read_bytes())
    before = content[: content[:-1].rindex(b"\n") + 1]
    assert last == {"people": 4, "faces": 4, "sha256": hashlib.sha256(before).hexdigest()}
    assert archive.stat().st_mode & 0o777 == 0o600


def test_a_collection_is_imported_under_another_name_beside_the_first(store: Store, archive: Path) -> None:
    import_collection(store, archive, "copy")
    assert names(store) == ["copy", "staff"]
    assert everybody(store, "copy") == everybody(store, "staff")


def test_a_name_that_is_taken_or_that_no_request_could_have_is_refused(store: Store, archive: Path) -> None:
    before = everybody(store, "staff")
    with pytest.raises(AlreadyExists, match="staff"):
        import_collection(store, archive)
    for name in ("", "my staff", "staff (importing)", "../staff", "x" * 129):
        with pytest.raises(InvalidId):
            import_collection(store, archive, name)
    assert everybody(store, "staff") == before
    assert (names(store), names(store, drafts=True)) == (["staff"], [])


def test_an_archive_of_a_collection_with_an_odd_name_needs_another(store: Store, archive: Path) -> None:
    header, *rest = read_lines(archive)
    write_lines(archive, [header | {"name": "my staff"}, *rest])
    with pytest.raises(InvalidId, match="my staff"):
        import_collection(store, archive)
    assert import_collection(store, archive, "mine").people == 4


def test_no_flipped_bit_changes_what_is_imported(store: Store, archive: Path) -> None:
    content = archive.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        archive.write_bytes(damaged)
        if unpack(damaged) == gzip.decompress(content):
            continue  # gzip can say the same in several ways, and its own header says little
        with pytest.raises(ArchiveRefused):
            import_collection(store, archive, "copy")
    assert (names(store), names(store, drafts=True)) == (["staff"], [])


def unpack(content: bytes) -> bytes | None:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return None


def test_a_file_that_is_cut_short_anywhere_is_refused(store: Store, archive: Path) -> None:
    content = archive.read_bytes()
    for length in range(len(content)):
        archive.write_bytes(content[:length])
        with pytest.raises(ArchiveRefused):
            import_collection(store, archive, "copy")
    lines = gzip.decompress(content).splitlines(keepends=True)
    for count in range(len(lines)):
        archive.write_bytes(gzip.compress(b"".join(lines[:count])))
        with pytest.raises(ArchiveRefused):
            import_collection(store, archive, "copy")
    archive.write_bytes(content + gzip.compress(lines[1]))
    with pytest.raises(ArchiveRefused):
        import_collection(store, archive, "copy")


def test_an_archive_of_a_newer_version_asks_for_a_newer_sameface(store: Store, archive: Path) -> None:
    header, *rest = read_lines(archive)
    write_lines(archive, [header | {"version": 2}, *rest])
    with pytest.raises(ArchiveRefused, match="install a newer one"):
        import_collection(store, archive, "copy")


def test_what_is_no_archive_is_refused(store: Store, tmp_path: Path) -> None:
    for content in (b"", b"not gzip", gzip.compress(b""), gzip.compress(b"[]\n"), gzip.compress(b"\xff\n")):
        (tmp_path / "x.gz").write_bytes(content)
        with pytest.raises(ArchiveRefused):
            import_collection(store, tmp_path / "x.gz", "copy")
    with pytest.raises(ArchiveRefused, match="No such file"):
        import_collection(store, tmp_path / "nowhere.gz", "copy")


def encode(values: np.ndarray) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode()


@pytest.mark.parametrize(
    ("where", "change", "reason"),
    [
        ("header", {"dimension": 0}, "no archive"),
        ("header", {"store_crops": "yes"}, "no archive"),
        ("header", {"sameface": "person"}, "no archive"),
        ("person", {"person_id": "no id"}, "person_id"),
        ("person", {"person_id": 7}, "string"),
        ("person", {"person_id": "ada"}, "order"),
        ("person", {"name": 7}, "name"),
        ("person", {"metadata": []}, "metadata"),
        ("person", {"created_at": None}, "created_at"),
        ("person", {"faces": None}, "iterable"),
        ("face", {"face_id": "../x"}, "face_id"),
        ("face", {"embedding": encode(random_units(1, DIMENSION + 1))}, "embedding"),
        ("face", {"embedding": encode(random_units(1, DIMENSION) * 2)}, "embedding"),
        ("face", {"embedding": encode(np.full(DIMENSION, np.nan))}, "embedding"),
        ("face", {"embedding": "AAA"}, "padding"),
        ("face", {"quality": float("inf")}, "quality"),
        ("face", {"photo": 7}, "photo"),
        ("face", {"crop": base64.b64encode(b"GIF89a").decode()}, "crop"),
        ("last", {"people": 3}, "checksum"),
        ("last", {"faces": 5}, "checksum"),
    ],
)
def test_a_line_that_does_not_fit_is_named_although_the_checksum_is_right(
    store: Store, archive: Path, where: str, change: dict[str, Any], reason: str
) -> None:
    lines = read_lines(archive)
    [bob] = [line for line in lines if line.get("person_id") == "bob"]
    {"header": lines[0], "person": bob, "face": bob["faces"][0], "last": lines[-1]}[where].update(change)
    write_lines(archive, lines)
    with pytest.raises(ArchiveRefused, match=reason):
        import_collection(store, archive, "copy")
    assert (names(store), names(store, drafts=True)) == (["staff"], [])


def test_two_faces_of_one_id_leave_nothing_behind(
    store: Store, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "FACES_AT_ONCE", 1)
    lines = read_lines(archive)
    for line in lines[1:-1]:
        for face in line["faces"]:
            face["face_id"] = "same"
    write_lines(archive, lines)
    with pytest.raises(ArchiveRefused, match="same id"):
        import_collection(store, archive, "copy")
    assert (names(store), names(store, drafts=True)) == (["staff"], [])


def test_an_export_is_of_one_moment(
    store: Store, staff: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PEOPLE_AT_ONCE", 1)
    before = everybody(store, "staff")

    def write_meanwhile(_what: str, done: int, _total: int | None) -> None:
        with closing(Store(tmp_path / "gallery.db")) as other:
            if done == 1:
                other.people.delete(staff, "cleo")
                other.people.enroll(staff, [newcomer("zoe", random_units(1, DIMENSION, 9))])

    export_collection(store, "staff", tmp_path / "staff.gz", write_meanwhile)
    import_collection(store, tmp_path / "staff.gz", "copy")
    assert everybody(store, "copy") == before
    assert everybody(store, "staff") != before


def test_an_export_that_fails_leaves_the_file_that_was_there(
    store: Store, archive: Path, tmp_path: Path
) -> None:
    content = archive.read_bytes()
    with pytest.raises(CollectionNotFound):
        export_collection(store, "nobody", archive)
    with pytest.raises(ArchiveRefused, match="cannot be written"):
        export_collection(store, "staff", tmp_path / "nowhere" / "staff.gz")
    assert archive.read_bytes() == content
    assert not list(tmp_path.glob("*.part"))


def test_others_write_while_a_collection_is_imported_and_nobody_sees_half_of_it(
    store: Store, staff: Collection, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "FACES_AT_ONCE", 1)
    seen = []

    def write_meanwhile(what: str, done: int, _total: int | None) -> None:
        with closing(Store(tmp_path / "gallery.db")) as other:
            other.people.enroll(staff, [newcomer(f"{what}-{done}", random_units(1, DIMENSION, done))])
            seen.append((names(other), names(other, drafts=True)))

    import_collection(store, archive, "copy", write_meanwhile)
    assert seen == [(["staff"], [])] * 4 + [(["staff"], ["copy importing"])] * 4
    assert store.collections.get("staff").people == 12
    assert (names(store), names(store, drafts=True)) == (["copy", "staff"], [])


def test_one_import_at_a_time(store: Store, archive: Path) -> None:
    with drafting(store), pytest.raises(UpkeepRunning, match="wait"):
        import_collection(store, archive, "copy")
    import_collection(store, archive, "copy")


IMPORTER = """
import sys
from pathlib import Path
from sameface.model.upkeep import export_import as transfer
from sameface.model.store.store import Store
transfer.FACES_AT_ONCE = 3
store, archive = Store(Path(sys.argv[1])), Path(sys.argv[2])
transfer.import_collection(store, archive, "copy", lambda *step: print(*step, flush=True))
"""


def start_import(tmp_path: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", IMPORTER, str(tmp_path / "gallery.db"), str(tmp_path / "staff.gz")],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )


def wait_for_line(process: "subprocess.Popen[str]", wanted: Callable[[str], bool]) -> None:
    for line in process.stdout:
        if wanted(line):
            return
    pytest.fail("the import ended without that line")


def test_an_import_that_is_killed_leaves_nothing_visible_and_the_next_one_clears_up(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    store.people.enroll(staff, [newcomer(f"p{n}", random_units(1, DIMENSION, n)) for n in range(400)])
    export_collection(store, "staff", tmp_path / "staff.gz")
    process = start_import(tmp_path)
    wait_for_line(process, lambda line: line.startswith("importing 20 "))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    [leftover] = list_drafts(store)
    assert 20 <= leftover.people < 404
    assert names(store) == ["staff"]
    with pytest.raises(CollectionNotFound):
        store.collections.get("copy")
    import_collection(store, tmp_path / "staff.gz", "copy")
    assert everybody(store, "copy") == everybody(store, "staff")
    assert names(store, drafts=True) == []
