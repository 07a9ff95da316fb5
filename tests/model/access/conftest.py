"""What tests of the audit share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sameface.model.access.secret_key import load_secret_key
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from tests.model.store.staff import BINDING
from tests.postgres_server import gallery_in


@pytest.fixture(autouse=True)
def _no_key_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SAMEFACE_SECRET_KEY", "SAMEFACE_SECRET_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    load_secret_key(tmp_path)  # none is drawn for a gallery in PostgreSQL
    store = Store(gallery_in(tmp_path))
    yield store
    store.close()


@pytest.fixture
def staff(store: Store) -> Collection:
    return store.collections.create("staff", BINDING)[0]
