"""A disk that is full, as far as SQLite can tell."""

from sqlalchemy import event

from sameface.model.store.store import Store


def leave_no_room(store: Store) -> None:
    """From now on the database file may not grow, whichever connection of `store` writes to it."""
    writer = store._database._writer  # type: ignore[attr-defined]
    with writer.begin() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    event.listen(writer, "connect", lambda opened, _: opened.execute(f"PRAGMA max_page_count = {pages}"))
    writer.dispose()  # the limit is a connection's own
