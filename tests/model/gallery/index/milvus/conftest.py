"""Galleries that are searched by Milvus Lite, whose waits are short."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.data_folder import MilvusAddress
from sameface.model.gallery.gallery import Gallery
from sameface.model.gallery.index.milvus import faces_in_milvus as faces_module
from sameface.model.gallery.index.milvus import feeder as feeder_module
from sameface.model.gallery.index.milvus import milvus_engine as engine_module
from sameface.model.store.records import Collection
from tests.postgres_server import gallery_in

SHORT = {
    "BOUND_SECONDS": 0.2,
    "LEASE_SECONDS": 1.0,
    "PAUSE_SECONDS": 0.05,
    "TRUST_SECONDS": 0.1,
    "VERIFY_SECONDS": 0.2,
    "WAIT_SECONDS": 0.1,
}


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in SHORT.items():
        monkeypatch.setattr(feeder_module, name, seconds)
    monkeypatch.setattr(faces_module, "SECONDS", 1.0)
    for name in ("LEASE_SECONDS", "TRUST_SECONDS"):
        monkeypatch.setattr(engine_module, name, SHORT[name])


@pytest.fixture(scope="module")
def bundle(data: Path) -> Bundle:
    return load_bundle(data / "models" / "recogniser")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> MilvusAddress:
    """A file of Milvus Lite, which serves it in this process."""
    return MilvusAddress(str(tmp_path_factory.mktemp("milvus") / "milvus.db"))


@pytest.fixture
def open_gallery(bundle: Bundle, tmp_path: Path) -> Iterator[Callable[[MilvusAddress], Gallery]]:
    """Opens the gallery of the test, as often as there are to be processes."""
    opened: list[Gallery] = []

    def open_gallery(address: MilvusAddress) -> Gallery:
        opened.append(Gallery(gallery_in(tmp_path), bundle, milvus=address))
        return opened[-1]

    yield open_gallery
    for gallery in opened:
        gallery.close()


@pytest.fixture
def gallery(open_gallery: Callable[[MilvusAddress], Gallery], address: MilvusAddress) -> Gallery:
    return open_gallery(address)


@pytest.fixture
def staff(gallery: Gallery) -> Collection:
    return gallery.create_collection("staff")[0]
