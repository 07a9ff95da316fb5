"""A damaged file is called damaged, and no error quotes what was in it."""

import logging
import sqlite3
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.errors import StoreDamaged
from sameface.model.store.store import Store
from tests.model.people import newcomer, random_units
from tests.model.store.staff import BINDING, DIMENSION

pytestmark = pytest.mark.sqlite  # they look into its file

SECRET = "patient 4711"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed database with a hundred people, whose names and metadata are secret."""
    with closing(Store(tmp_path / "gallery.db")) as store:
        staff, _ = store.collections.create("staff", BINDING)
        people = [
            newcomer(f"p{n}", random_units(1, DIMENSION, n), name=SECRET, metadata={"who": [SECRET]})
            for n in range(100)
        ]
        store.people.enroll(staff, people)
    return tmp_path / "gallery.db"


def flip_pages(path: Path) -> None:
    """Bytes in the middle of each page that holds a secret."""
    content = bytearray(path.read_bytes())
    for start in range(4096, len(content), 4096):
        if SECRET.encode() in content[start : start + 4096]:
            content[start : start + 64] = b"\xa5" * 64
    path.write_bytes(content)


def break_names(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(SECRET.encode(), b"\xff\xfe" + SECRET.encode()[2:]))


def break_metadata(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'{"who": ["', b'{"who": [%'))


def execute(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)

    return change


@pytest.mark.parametrize(
    "damage",
    [
        flip_pages,
        break_names,
        break_metadata,
        execute("UPDATE people SET name = CAST(name AS BLOB)"),
        execute("UPDATE people SET created_at = 1e18"),
        execute("UPDATE faces SET embedding = x'0011'"),
        execute("ALTER TABLE people RENAME TO peoqle"),
    ],
    ids=["pages", "names", "metadata", "types", "times", "embeddings", "schema"],
)
def test_damage_is_said_and_what_was_damaged_is_not_quoted(
    path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    damage(path)
    with closing(Store(path)) as store, caplog.at_level(logging.DEBUG):
        staff = store.collections.get("staff")
        with pytest.raises(StoreDamaged, match="restore a backup") as raised:
            store.people.whole_page(staff, 100)
    said = "".join(traceback.format_exception(raised.value))
    assert SECRET[2:] not in said + caplog.text
    assert "SELECT" not in raised.value.detail


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM about", "UPDATE about SET value = 'x' WHERE key = 'version'"],
)
def test_a_file_that_does_not_say_its_version_is_damaged(path: Path, statement: str) -> None:
    execute(statement)(path)
    with pytest.raises(StoreDamaged):
        Store(path)
