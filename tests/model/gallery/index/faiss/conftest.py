"""What tests of the indexes of a store share."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.gallery.index.faiss import candidates as candidates_module
from sameface.model.gallery.index.faiss import face_index as index_module
from sameface.model.gallery.index.faiss import loaded_index as loaded_module
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from tests.model.gallery.index.faiss.staff import BINDING, DIMENSION
from tests.model.people import newcomer, people_like
from tests.postgres_server import gallery_in


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(gallery_in(tmp_path))) as store:
        yield store


@pytest.fixture
def staff(store: Store, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """A collection of 300 people, large enough for codes and snapshots."""
    monkeypatch.setattr(candidates_module, "EXACT_ROWS", 200)
    monkeypatch.setattr(index_module, "DEAD_ROWS", 10)
    monkeypatch.setattr(loaded_module, "SAVE_CHANGES", 20)
    staff, _ = store.collections.create("staff", BINDING)
    embeddings = people_like(300, 1, DIMENSION)
    store.people.enroll(staff, [newcomer(f"p{number}", faces) for number, faces in enumerate(embeddings)])
    return store.collections.get("staff")
