"""An archive is as the documentation says, and refused if it is damaged, cut short or does not fit."""

import base64
import gzip
import hashlib
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sameface.model.store.store import Store
from sameface.model.upkeep import export_import as transfer
from sameface.model.upkeep.errors import ArchiveRefused
from sameface.model.upkeep.export_import import import_collection
from tests.model.people import random_units
from tests.model.upkeep.archives import CROP, DIMENSION, names, read_lines, write_lines


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
        "reviewers": 0,
    }
    [bob] = [person for person in people if person["person_id"] == "bob"]
    [face] = bob["faces"]
    assert bob.keys() == {"person_id", "name", "metadata", "created_at", "faces"}
    assert face.keys() == {"face_id", "embedding", "quality", "photo", "crop", "created_at", "details"}
    assert (face["quality"], face["photo"], face["created_at"]) == (0.75, "f" * 64, 12.5)
    assert base64.b64decode(face["crop"]) == CROP
    np.testing.assert_array_equal(
        np.frombuffer(base64.b64decode(face["embedding"]), "<f4"), random_units(1, DIMENSION, 5)[0]
    )
    content = gzip.decompress(archive.read_bytes())
    before = content[: content[:-1].rindex(b"\n") + 1]
    assert last == {"people": 4, "faces": 4, "sha256": hashlib.sha256(before).hexdigest()}
    assert archive.stat().st_mode & 0o777 == 0o600


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
        ("person", {"person_id": 7}, "person_id"),
        ("person", {"person_id": ".."}, "person_id"),
        ("person", {"name": "\ud800"}, "name"),
        ("person", {"name": "x" * 201}, "name"),
        ("person", {"metadata": {"a": "\ud800"}}, "metadata"),
        ("person", {"metadata": {"a": "x" * 20_000}}, "metadata"),
        ("person", {"created_at": 1e18}, "created_at"),
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
        ("face", {"details": "door"}, "details"),
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
