"""What was exported is what is imported, all of it or nothing, whatever happens meanwhile."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.errors import AlreadyExists, CollectionNotFound, InvalidId, UpkeepRunning
from sameface.model.store.drafts import drafting, list_drafts
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from sameface.model.upkeep import export_import as transfer
from sameface.model.upkeep.errors import ArchiveRefused
from sameface.model.upkeep.export_import import export_collection, import_collection
from tests.model.people import everybody, newcomer, random_units
from tests.model.upkeep.archives import DIMENSION, names, read_lines, write_lines
from tests.postgres_server import gallery_in


def test_what_was_exported_is_imported_with_ids_times_and_crops(
    store: Store, staff: Collection, archive: Path, tmp_path: Path
) -> None:
    with closing(Store(gallery_in(tmp_path / "other"))) as other:
        imported = import_collection(other, archive)
        assert everybody(other, "staff") == everybody(store, "staff")
    kept = ("name", "store_crops", "bundle", "identity", "dimension", "people", "faces")
    assert [getattr(imported, field) for field in kept] == [getattr(staff, field) for field in kept]
    assert (imported.people, imported.faces, imported.revision) == (4, 4, 4)


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


def test_an_export_is_of_one_moment(
    store: Store, staff: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PEOPLE_AT_ONCE", 1)
    before = everybody(store, "staff")

    def write_meanwhile(_what: str, done: int, _total: int | None) -> None:
        with closing(Store(gallery_in(tmp_path))) as other:
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
        with closing(Store(gallery_in(tmp_path))) as other:
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


@pytest.mark.sqlite
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
