"""Milvus killed, empty, of another dimension, behind or ahead of the store, or not to be had at all."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import grpc
import numpy as np
import pytest
from pymilvus import MilvusClient

from sameface.model.data_folder import MilvusAddress
from sameface.model.errors import IndexRefused, IndexUnavailable
from sameface.model.gallery.gallery import Gallery
from sameface.model.gallery.index.milvus import feeder as feeder_module
from sameface.model.store import followers as followers_module
from sameface.model.store.changes import ChangesCompacted
from sameface.model.store.records import Collection, FaceBlock
from tests.conftest import wait_for
from tests.milvus_server import LiteServer, wait_until_fed
from tests.model.gallery.index.milvus.searches import find_names, find_patiently
from tests.model.people import newcomer, random_units
from tests.networks import DIMENSION

OpenGallery = Callable[[MilvusAddress], Gallery]
SECRET = "root:hunter2"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiteServer]:
    server = LiteServer(tmp_path_factory.mktemp("lite") / "data")
    yield server
    server.kill()


def enroll(gallery: Gallery, *names: str) -> list[np.ndarray]:
    """Enrol people with one face each, which is a function of the name."""
    staff = gallery.get_collection("staff")
    probes = [random_units(1, DIMENSION, sum(name.encode()))[0] for name in names]
    gallery.enroll(staff, [newcomer(name, values[None]) for name, values in zip(names, probes, strict=True)])
    return probes


def test_killed_milvus_stops_searches_alone_and_what_was_written_meanwhile_is_found(
    server: LiteServer, open_gallery: OpenGallery
) -> None:
    gallery = open_gallery(server.address)
    staff, _ = gallery.create_collection("staff")
    gallery.load()
    ada, bob = enroll(gallery, "ada", "bob")
    wait_until_fed(gallery, "staff")
    server.kill()
    with pytest.raises(IndexUnavailable) as raised:
        find_names(gallery, ada)
    assert raised.value.facts["retry_after_seconds"] == 2
    assert str(server.port) not in raised.value.detail
    assert gallery.indexes.find_fault() == raised.value.detail
    [eve] = enroll(gallery, "eve")
    gallery.forget_person(staff, "bob")
    server.start()
    assert find_patiently(gallery, ada, bob, eve) == ["ada", None, "eve"]
    wait_until_fed(gallery, "staff")
    assert find_patiently(gallery, ada, bob, eve) == ["ada", None, "eve"]


def test_milvus_that_lost_everything_is_filled_again_and_misses_nobody(
    server: LiteServer, open_gallery: OpenGallery
) -> None:
    gallery = open_gallery(server.address)
    staff, _ = gallery.create_collection("staff")
    gallery.load()
    ada, bob = enroll(gallery, "ada", "bob")
    wait_until_fed(gallery, "staff")
    mark = gallery.store.feeds.get(staff).mark
    server.lose_everything()
    for _ in range(5):  # an answer is right from the first on, or there is none
        assert find_patiently(gallery, ada, bob) == ["ada", "bob"]
    wait_until_fed(gallery, "staff")
    assert gallery.store.feeds.get(staff).mark != mark
    assert gallery.indexes.faces.count(staff.key) == 2


def test_a_dropped_collection_is_noticed_before_it_is_made_again(
    gallery: Gallery, address: MilvusAddress
) -> None:
    gallery.create_collection("staff")
    gallery.load()
    [ada] = enroll(gallery, "ada")
    wait_until_fed(gallery, "staff")
    with closing(MilvusClient(address.uri)) as operator:
        operator.drop_collection(gallery.indexes.faces.name)
    for _ in range(20):
        assert find_patiently(gallery, ada) == ["ada"]
    wait_until_fed(gallery, "staff")
    assert find_patiently(gallery, ada) == ["ada"]


def test_changes_that_milvus_shows_are_deleted_and_later_ones_are_not(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followers_module, "FEWEST", 1)
    monkeypatch.setattr(feeder_module, "COMPACT_SECONDS", 0.1)
    ada, bob = enroll(gallery, "ada", "bob")
    gallery.load()
    wait_until_fed(gallery, "staff")
    wait_for(lambda: is_compacted(gallery, staff, 1))
    [eve] = enroll(gallery, "eve")
    assert find_patiently(gallery, ada, bob, eve) == ["ada", "bob", "eve"]


def test_milvus_that_was_away_longer_than_changes_are_kept_is_filled_again(
    open_gallery: OpenGallery, address: MilvusAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followers_module, "FEWEST", 1)
    with closing(open_gallery(address)) as before:
        staff, _ = before.create_collection("staff")
        before.load()
        ada, bob = enroll(before, "ada", "bob")
        wait_until_fed(before, "staff")
    gallery = open_gallery(address)
    [eve] = enroll(gallery, "eve")
    gallery.forget_person(staff, "bob")
    newest = gallery.get_collection("staff").revision
    followers = gallery.store.followers

    def compact_without_milvus() -> bool:
        with pytest.MonkeyPatch.context() as later:
            later.setattr(
                followers_module, "FLOOR_SECONDS", -1
            )  # whoever noted something before is forgotten
            followers.compact(staff)
        followers.note("another", staff, newest)
        followers.compact(staff)
        return is_compacted(gallery, staff, newest - 1)

    wait_for(compact_without_milvus)  # the feeder may note something in between
    assert find_patiently(gallery, ada, bob, eve) == ["ada", None, "eve"]
    wait_until_fed(gallery, "staff")
    assert find_patiently(gallery, ada, bob, eve) == ["ada", None, "eve"]


def test_a_face_that_came_back_after_it_was_deleted_does_not_stay(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a request of a feeder that was cut off, which arrives after those of its successor."""
    monkeypatch.setattr(feeder_module, "SWEEP_SECONDS", 0.1)
    gallery.load()
    ada, bob = enroll(gallery, "ada", "bob")
    wait_until_fed(gallery, "staff")
    [gone] = gallery.get_own_embeddings(staff, ["bob"])["bob"].values()
    blocks = list(gallery.store.changes.all_faces(gallery.get_collection("staff")))
    gallery.forget_person(staff, "bob")
    wait_until_fed(gallery, "staff")
    faces = gallery.indexes.faces
    wait_for(lambda: faces.count(staff.key) == 1)
    for block in blocks:
        came_back = np.array([np.allclose(row, gone) for row in block.embeddings])
        faces.add(
            staff.key, FaceBlock(*(part[came_back] for part in (block.faces, block.people, block.embeddings)))
        )
    assert find_patiently(gallery, ada, bob) == ["ada", None]
    wait_for(lambda: faces.count(staff.key) == 1)
    assert find_patiently(gallery, ada, bob) == ["ada", None]


def is_compacted(gallery: Gallery, staff: Collection, after: int) -> bool:
    """Whether changes after this number are no longer kept."""
    try:
        list(gallery.store.changes.since(staff, after))
    except ChangesCompacted:
        return True
    return False


@pytest.mark.sqlite
def test_milvus_ahead_of_a_store_that_was_put_back_is_filled_again(
    open_gallery: OpenGallery, address: MilvusAddress, tmp_path: Path
) -> None:
    with closing(open_gallery(address)) as gallery:
        gallery.create_collection("staff")
        gallery.load()
        [ada] = enroll(gallery, "ada")
        wait_until_fed(gallery, "staff")
    shutil.copy(tmp_path / "gallery.db", tmp_path / "backup.db")
    with closing(open_gallery(address)) as gallery:
        gallery.load()
        [bob] = enroll(gallery, "bob")
        wait_until_fed(gallery, "staff")
    for path in tmp_path.glob("gallery.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", tmp_path / "gallery.db")
    gallery = open_gallery(address)
    gallery.load()
    [eve] = enroll(gallery, "eve")  # under the keys and change numbers that bob had
    assert find_patiently(gallery, ada, bob, eve) == ["ada", None, "eve"]
    wait_until_fed(gallery, "staff")
    assert find_patiently(gallery, ada, bob, eve) == ["ada", None, "eve"]
    assert gallery.indexes.faces.count(gallery.get_collection("staff").key) == 2


def test_milvus_that_was_put_back_is_filled_again(open_gallery: OpenGallery, tmp_path: Path) -> None:
    address = MilvusAddress(str(tmp_path / "milvus.db"))
    with closing(open_gallery(address)) as gallery:
        gallery.create_collection("staff")
        gallery.load()
        [ada] = enroll(gallery, "ada")
        wait_until_fed(gallery, "staff")
    shutil.copytree(tmp_path / "milvus.db", tmp_path / "backup")
    with closing(open_gallery(address)) as gallery:
        gallery.load()
        [bob] = enroll(gallery, "bob")
        wait_until_fed(gallery, "staff")
    shutil.rmtree(tmp_path / "milvus.db")
    shutil.move(tmp_path / "backup", tmp_path / "milvus.db")
    gallery = open_gallery(address)
    gallery.load()
    assert find_patiently(gallery, ada, bob) == ["ada", "bob"]
    wait_until_fed(gallery, "staff")
    assert find_patiently(gallery, ada, bob) == ["ada", "bob"]


def test_a_collection_of_another_dimension_is_refused(
    gallery: Gallery, staff: Collection, address: MilvusAddress
) -> None:
    name = gallery.indexes.faces.name
    with closing(MilvusClient(address.uri)) as operator:
        operator.create_collection(name, dimension=DIMENSION + 1)
    with pytest.raises(IndexRefused, match=f"has a collection {name} of another shape or dimension: drop it"):
        gallery.load()
    [ada] = enroll(gallery, "ada")
    with pytest.raises(IndexRefused):
        find_names(gallery, ada)
    assert gallery.get_person(staff, "ada").person_id == "ada"


@pytest.mark.parametrize("uri", ["nonsense", "ftp://somewhere", ""])
def test_an_address_that_is_none_is_refused_without_being_said(open_gallery: OpenGallery, uri: str) -> None:
    with pytest.raises(IndexRefused, match="address of Milvus is none") as raised:
        open_gallery(MilvusAddress(uri, SECRET)).load()
    assert "hunter2" not in f"{raised.value.detail}{raised.value.__cause__}"
    assert not uri or uri not in raised.value.detail


def test_nobody_at_the_address_stops_searches_alone(open_gallery: OpenGallery) -> None:
    gallery = open_gallery(MilvusAddress("http://milvus:hunter2@127.0.0.1:1"))
    gallery.create_collection("staff")
    gallery.load()
    [ada] = enroll(gallery, "ada")
    with pytest.raises(IndexUnavailable, match="cannot be reached") as raised:
        find_names(gallery, ada)
    assert "hunter2" not in raised.value.detail


def test_a_wrong_token_is_said_without_the_token(
    open_gallery: OpenGallery, caplog: pytest.LogCaptureFixture
) -> None:
    with refusing_server() as port, pytest.raises(IndexRefused, match="refuses the token") as raised:
        open_gallery(MilvusAddress(f"http://127.0.0.1:{port}", SECRET)).load()
    assert "hunter2" not in raised.value.detail + caplog.text


@contextmanager
def refusing_server() -> Iterator[int]:
    """A port that says what Milvus 2.3.5 with authorization says to every call with a wrong token."""

    def refuse(_: bytes, context: grpc.ServicerContext) -> bytes:
        sentence = "auth check failure, please check username and password are correct"
        return context.abort(grpc.StatusCode.UNAUTHENTICATED, sentence)

    class Everything(grpc.GenericRpcHandler):
        def service(self, _: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(refuse)

    server = grpc.server(ThreadPoolExecutor(2), handlers=[Everything()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(None)
