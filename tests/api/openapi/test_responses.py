"""The contract: committed, complete, and true."""

import json
import re

import httpx
import pytest
from pydantic import BaseModel

from sameface.api.openapi import examples
from sameface.api.schemas import batch, collections, faces, health, identify, models, people, verify
from tests.api.openapi.write import OPENAPI, describe_api

CONTRACT = json.loads(OPENAPI.read_text("utf-8"))
OPERATIONS = [
    (path, method, operation)
    for path, operations in CONTRACT["paths"].items()
    for method, operation in operations.items()
]


def test_the_committed_contract_is_the_served_one(client: httpx.Client) -> None:
    assert OPENAPI.read_text("utf-8") == describe_api(), "run `make openapi` and look at the difference"
    assert client.get("/openapi.json").json() == CONTRACT


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=lambda value: str(value)[:40])
def test_every_route_has_an_example_and_a_summary(path: str, method: str, operation: dict) -> None:
    assert operation["description"]
    success = next(response for status, response in operation["responses"].items() if status < "300")
    if method != "delete":
        [shown] = success["content"].values()
        assert "example" in shown, f"{method} {path} shows no example of its answer"
    if "requestBody" in operation:
        bodies = operation["requestBody"]["content"].values()
        assert any("example" in body for body in bodies)


@pytest.mark.parametrize(
    ("example", "schema"),
    [
        (examples.VERIFY, verify.VerifyResponse),
        (examples.DETECT, faces.DetectResponse),
        (examples.EMBED, faces.EmbedResponse),
        (examples.COLLECTION, collections.CollectionResponse),
        (examples.COLLECTIONS, collections.CollectionList),
        (examples.PERSON, people.PersonResponse),
        (examples.PEOPLE, people.PersonList),
        (examples.ENROLLED, people.EnrollResponse),
        (examples.IDENTIFIED, identify.IdentifyResponse),
        (examples.BATCH_IDENTIFIED[0], batch.BatchIdentified),
        (examples.BATCH_ENROLLED[0], batch.BatchEnrolled),
        (examples.MODELS, models.ModelList),
        (examples.LIVE, health.Live),
        (examples.READY, health.Ready),
    ],
)
def test_an_example_is_what_the_schema_would_write(example: dict, schema: type[BaseModel]) -> None:
    assert schema.model_validate(example).model_dump(mode="json") == example


def test_every_body_can_be_sent_as_a_form_and_as_json() -> None:
    bodies = [
        operation["requestBody"]["content"] for _, _, operation in OPERATIONS if "requestBody" in operation
    ]
    assert len(bodies) >= 8
    for body in bodies:
        assert body.keys() - {"application/json", "application/x-ndjson"} == {"multipart/form-data"}
        assert len(body) == 2


def test_the_documentation_page_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/docs").text
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(loaded) == 3
    for address in loaded:
        assert address.startswith(str(client.base_url))
        assert client.get(address).status_code == 200
