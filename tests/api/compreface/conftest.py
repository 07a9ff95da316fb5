"""A server for clients of CompreFace, and such a client."""

from collections.abc import Iterator

import httpx
import pytest

from sameface.model.access.keys import COMPREFACE_SERVICES, SCOPES, draft_key, draw_secret
from tests.api.collections import NUMBERS
from tests.api.keys import store_of
from tests.conftest import Serve


class Service:
    """Calls the routes with the key of a service, as clients do."""

    def __init__(self, client: httpx.Client, secret: str, collection: str) -> None:
        self.client = client
        self.secret = secret
        self.collection = collection

    def call(self, method: str, path: str, headers: dict | None = None, **options: object) -> httpx.Response:
        sent = {"x-api-key": self.secret} if headers is None else headers
        return self.client.request(method, f"/api/v1{path}", headers=sent, **options)

    def add(self, subject: str, photo: bytes) -> str:
        """The id of a face that is added to a subject."""
        answer = self.call(
            "POST", "/recognition/faces", params={"subject": subject}, files={"file": ("a.png", photo)}
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["image_id"]

    def recognize(self, photo: bytes, **options: object) -> list[dict]:
        answer = self.call("POST", "/recognition/recognize", params=options, files={"file": ("a.png", photo)})
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]


def open_service(
    client: httpx.Client,
    service: str = "recognition",
    *,
    scopes: tuple[str, ...] = SCOPES,
    store_crops: bool = False,
) -> Service:
    """A new collection, and a key of CompreFace for it."""
    gallery = client.app.state.gallery
    name = f"subjects-{next(NUMBERS)}"
    gallery.create_collection(name, store_crops=store_crops)
    bound = COMPREFACE_SERVICES[service]
    secret = draw_secret(bound)
    store_of(client).keys.add(draft_key(secret, "test", scopes, [name], service=bound))
    client.app.state.keys.expect_change()
    return Service(client, secret, name)


@pytest.fixture(scope="module")
def compatible(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with serve(data=tmp_path_factory.mktemp("compreface"), compatible="compreface") as client:
        yield client


@pytest.fixture
def recognition(compatible: httpx.Client) -> Service:
    return open_service(compatible)


@pytest.fixture
def detection(compatible: httpx.Client) -> Service:
    return open_service(compatible, "detection")


@pytest.fixture
def verification(compatible: httpx.Client) -> Service:
    return open_service(compatible, "verification")
