"""A server that searches with Milvus says so, and while Milvus is away everything but searching goes on."""

from pathlib import Path

import httpx
import pytest
from pymilvus import MilvusClient

from sameface.model.data_folder import MilvusAddress
from sameface.model.gallery.index.milvus import faces_in_milvus as faces_module
from sameface.model.gallery.index.milvus import feeder as feeder_module
from sameface.model.upkeep.check_gallery import check_gallery
from tests.api.collections import enrol, make_collection
from tests.api.problems import expect
from tests.conftest import Serve, wait_for
from tests.milvus_server import LiteServer, wait_until_fed
from tests.pictures import photo_of


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BOUND_SECONDS", "PAUSE_SECONDS", "WAIT_SECONDS", "VERIFY_SECONDS"):
        monkeypatch.setattr(feeder_module, name, 0.2)
    monkeypatch.setattr(faces_module, "SECONDS", 1.0)


def identify(client: httpx.Client, staff: str, number: int) -> httpx.Response:
    return client.post(f"{staff}/identify", files={"image": photo_of(number)})


def whom(client: httpx.Client, staff: str, number: int) -> str | None:
    [found] = identify(client, staff, number).json()["results"]
    return found["match"] and found["match"]["person_id"]


def identify_until_refused(client: httpx.Client, staff: str) -> httpx.Response:
    """The first refusal: for a second after Milvus was looked at, what is in memory may be enough."""
    answers: list[httpx.Response] = []
    wait_for(lambda: answers.append(identify(client, staff, 1)) or answers[-1].status_code != 200)
    return answers[-1]


def test_while_milvus_is_away_searches_are_told_to_come_back_and_everything_else_goes_on(
    serve: Serve, tmp_path: Path
) -> None:
    milvus = LiteServer(tmp_path / "milvus")
    try:
        with serve(data=tmp_path, index="milvus", milvus_uri=milvus.address.uri) as client:
            staff = make_collection(client)
            assert client.get(staff).json()["index"] == "milvus"
            assert enrol(client, staff, photo_of(1), person_id="ada").status_code == 201
            assert whom(client, staff, 1) == "ada"
            wait_until_fed(client.app.state.gallery, staff.rpartition("/")[2])
            assert whom(client, staff, 1) == "ada"
            ready = client.get("/health/ready").json()
            assert (ready["index"], ready["index_fault"]) == ("milvus", None)
            milvus.kill()
            away = identify_until_refused(client, staff)
            expect(away, 503, "index_unavailable")
            assert int(away.headers["Retry-After"]) > 0
            assert str(milvus.port) not in away.text
            [line] = client.post(
                f"{staff}/identify/batch",
                content=b'{"id": "1", "model": "tiny-recogniser", "embedding": %s}'
                % str([1.0] + [0.0] * 31).encode(),
                headers={"Content-Type": "application/x-ndjson"},
            ).text.splitlines()
            assert '"index_unavailable"' in line
            assert enrol(client, staff, photo_of(2), person_id="bob").status_code == 201
            assert client.delete(f"{staff}/people/ada").status_code == 204
            both = {"probe": photo_of(1), "reference": photo_of(1)}
            assert client.post("/v1/verify", files=both).json()["same_person"]
            ready = client.get("/health/ready")
            assert ready.status_code == 200
            assert "cannot be reached" in ready.json()["index_fault"]
            milvus.start()
            wait_for(lambda: identify(client, staff, 2).status_code == 200)
            assert (whom(client, staff, 1), whom(client, staff, 2)) == (None, "bob")
            wait_until_fed(client.app.state.gallery, staff.rpartition("/")[2])
            assert check_gallery(client.app.state.gallery.place, milvus=milvus.address) == []
    finally:
        milvus.kill()


def test_a_collection_of_another_shape_under_its_name_is_index_refused(serve: Serve, tmp_path: Path) -> None:
    address = MilvusAddress(str(tmp_path / "milvus.db"))
    with serve(data=tmp_path, index="milvus", milvus_uri=address.uri) as client:
        staff = make_collection(client)
        enrol(client, staff, photo_of(1), person_id="ada")
        gallery = client.app.state.gallery
        wait_until_fed(gallery, staff.rpartition("/")[2])
        gallery.indexes.feeder.close()
        operator = MilvusClient(address.uri)
        operator.drop_collection(gallery.indexes.faces.name)
        operator.create_collection(gallery.indexes.faces.name, dimension=5)
        expect(identify_until_refused(client, staff), 503, "index_refused")
        assert enrol(client, staff, photo_of(2), person_id="bob").status_code == 201
