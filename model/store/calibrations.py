"""Calibrations that users made, in the store: by the identity of the bundle that they were measured with."""

import time
from collections.abc import Mapping
from typing import Any, TypeAlias

from sqlalchemy import Connection, delete, insert, select

from sameface.model.data_folder import GalleryPlace
from sameface.model.errors import AlreadyExists, CalibrationNotFound
from sameface.model.store.access.audit import Entry, record_entry
from sameface.model.store.databases.database import Database
from sameface.model.store.databases.opening import peeking
from sameface.model.store.databases.tables import about, calibrations, chosen_calibrations

Contents: TypeAlias = dict[str, dict[str, Any]]  # calibrations as JSON objects, by name


class OwnCalibrations:
    """The calibrations of all bundles, and for each bundle the one that was chosen to decide by."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, identity: str) -> tuple[Contents, str | None]:
        """The calibrations of a bundle, and the name of the one that was chosen, which may be a file's."""
        with self._database.reading() as connection:
            return read_calibrations(connection, identity)

    def save(self, identity: str, name: str, content: dict[str, Any], *, replacing: bool) -> None:
        """Keep a calibration; raises if there is one of this name, unless `replacing`."""
        same = (calibrations.c.identity == identity) & (calibrations.c.name == name)
        with self._database.writing(alone=True) as connection:
            if connection.execute(select(calibrations.c.name).where(same)).first() and not replacing:
                raise AlreadyExists(f"There is a calibration {name!r} already.")
            connection.execute(delete(calibrations).where(same))
            row = {"identity": identity, "name": name, "content": content, "created_at": time.time()}
            connection.execute(insert(calibrations).values(row))
            record_entry(connection, describe("save_calibration", identity, name))

    def remove(self, identity: str, name: str) -> None:
        """Delete a calibration, and the choice of it."""
        with self._database.writing(alone=True) as connection:
            for table in (chosen_calibrations, calibrations):
                same = (table.c.identity == identity) & (table.c.name == name)
                removed = connection.execute(delete(table).where(same)).rowcount
            if not removed:
                raise CalibrationNotFound(f"There is no calibration {name!r}.")
            record_entry(connection, describe("remove_calibration", identity, name))

    def choose(self, identity: str, name: str) -> None:
        """Let a bundle decide by the calibration `name`, of the store or of a file."""
        with self._database.writing(alone=True) as connection:
            connection.execute(delete(chosen_calibrations).where(chosen_calibrations.c.identity == identity))
            connection.execute(insert(chosen_calibrations).values(identity=identity, name=name))
            record_entry(connection, describe("choose_calibration", identity, name))

    def note_files(self, identity: str, hashes: Mapping[str, str], *, replacing: bool) -> list[str]:
        """Note the hashes of a bundle's files by name; returns the names already noted with another hash.

        Only with `replacing` are those noted anew.
        """
        keys = {f"file {identity} {name}": name for name in hashes}
        with self._database.writing(alone=True) as connection:
            noted = {
                row.key: row.value for row in connection.execute(select(about).where(about.c.key.in_(keys)))
            }
            others = sorted(keys[key] for key, value in noted.items() if value != hashes[keys[key]])
            changed = keys.keys() if replacing else keys.keys() - noted.keys()
            connection.execute(delete(about).where(about.c.key.in_(changed)))
            for key in sorted(changed):
                connection.execute(insert(about).values(key=key, value=hashes[keys[key]]))
        return others


def describe(action: str, identity: str, name: str) -> Entry:
    """An entry of the audit about the calibration `name` of a bundle."""
    return Entry(action=action, details={"calibration": name, "identity": identity})


def read_calibrations(connection: Connection, identity: str) -> tuple[Contents, str | None]:
    """The calibrations of a bundle and the chosen one, in the caller's transaction."""
    own = select(calibrations.c.name, calibrations.c.content).where(calibrations.c.identity == identity)
    chosen = select(chosen_calibrations.c.name).where(chosen_calibrations.c.identity == identity)
    found = {row.name: row.content for row in connection.execute(own)}
    return found, connection.execute(chosen).scalar_one_or_none()


def peek_calibrations(place: GalleryPlace, identity: str) -> tuple[Contents, str | None]:
    """The calibrations of a bundle and the chosen one, in a database that may not exist or be older."""
    with peeking(place, calibrations.name) as connection:
        return read_calibrations(connection, identity) if connection else ({}, None)
