"""A server for clients of Rekognition, and such a client: it signs as AWS prescribes, in code of its own."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import httpx
import pytest

from sameface.model.access.keys import REKOGNITION, SCOPES, draft_key, draw_secret
from sameface.model.access.sealed_secrets import seal_secret
from tests.api.collections import NUMBERS
from tests.api.keys import store_of
from tests.conftest import Serve

CONTENT_TYPE = "application/x-amz-json-1.1"


@dataclass(frozen=True)
class Signer:
    """Calls operations with a key; what is called `altered` is exchanged after it was signed."""

    client: httpx.Client
    key_id: str
    secret: str
    collection: str
    seconds_ago: float = 0.0
    left_out: tuple[str, ...] = ()
    altered: dict[str, str] = field(default_factory=dict)

    def call(self, operation: str, **body: object) -> httpx.Response:
        content = json.dumps(body, default=encode).encode()
        headers = sign(self, f"RekognitionService.{operation}", content)
        altered = {name: value for name, value in self.altered.items() if name != "body"}
        sent = {name: value for name, value in (headers | altered).items() if name not in self.left_out}
        return self.client.post("/", content=self.altered.get("body", content), headers=sent)

    def ask(self, operation: str, **body: object) -> dict:
        """The answer of an operation on the signer's collection, which must succeed."""
        answer = self.call(operation, CollectionId=self.collection, **body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def index(self, photo: bytes, **options: object) -> list[str]:
        """The ids of the faces of a photo, which are enrolled."""
        found = self.ask("IndexFaces", Image={"Bytes": photo}, **options)
        return [record["Face"]["FaceId"] for record in found["FaceRecords"]]


def encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def sign(signer: Signer, target: str, content: bytes) -> dict[str, str]:
    """The headers of a signed request, step by step as AWS describes it."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - signer.seconds_ago))
    host = httpx.URL(signer.client.base_url).netloc.decode()
    signed = {"content-type": CONTENT_TYPE, "host": host, "x-amz-date": moment, "x-amz-target": target}
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    canonical = f"POST\n/\n\n{lines}\n{';'.join(signed)}\n{hashlib.sha256(content).hexdigest()}"
    scope = f"{moment[:8]}/eu-west-1/rekognition/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = ("AWS4" + signer.secret).encode()
    for part in (moment[:8], "eu-west-1", "rekognition", "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    said = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}"
    signature = hmac.new(key, said.encode(), "sha256").hexdigest()
    credential = f"Credential={signer.key_id}/{scope}, SignedHeaders={';'.join(signed)}"
    return signed | {"authorization": f"AWS4-HMAC-SHA256 {credential}, Signature={signature}"}


def add_signer(client: httpx.Client, scopes: tuple[str, ...] = SCOPES, **options: object) -> tuple[str, str]:
    """The id and the secret of a new key for Rekognition."""
    store, secret = store_of(client), draw_secret(REKOGNITION)
    draft = draft_key(secret, "test", scopes, service=REKOGNITION, **options)
    key = store.keys.add(replace(draft, sealed=seal_secret(store, REKOGNITION, secret)))
    client.app.state.keys.expect_change()
    return key.key_id, secret


def open_signer(client: httpx.Client, scopes: tuple[str, ...] = SCOPES, **options: object) -> Signer:
    """A new collection, and a key with which to call operations on it."""
    name = f"faces-{next(NUMBERS)}"
    client.app.state.gallery.create_collection(name)
    return Signer(client, *add_signer(client, scopes, **options), name)


@pytest.fixture(scope="module")
def compatible(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with serve(data=tmp_path_factory.mktemp("rekognition"), compatible="rekognition") as client:
        yield client


@pytest.fixture
def signer(compatible: httpx.Client) -> Signer:
    return open_signer(compatible)
