"""Every example in the contract is one of its schema, and could be an answer."""

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image
from pydantic import BaseModel

from sameface.api.openapi import examples
from sameface.api.schemas import (
    batch,
    calibrations,
    collections,
    faces,
    health,
    identify,
    keys,
    models,
    people,
    verify,
)
from tests.api.openapi.contract import CONTRACT, errors_of, walk


def find_examples() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """The examples of bodies and answers, and the examples and defaults of schemas."""
    for place, node in walk(CONTRACT):
        if "/example" in place:
            continue
        schema = node.get("schema", node)
        if "example" in node:
            yield place, node["example"], schema
        for number, example in enumerate(node.get("examples", [])):
            if isinstance(node["examples"], dict):
                example = node["examples"][example]["value"]
            yield f"{place}/{number}", example, schema
        if "default" in node and "properties" not in place.rpartition("/")[2]:
            yield place, node["default"], schema


EXAMPLES = list(find_examples())


def test_the_examples_are_found() -> None:
    assert len(EXAMPLES) > 200


@pytest.mark.parametrize(("place", "example", "schema"), EXAMPLES, ids=[place for place, *_ in EXAMPLES])
def test_an_example_fits_its_schema(place: str, example: Any, schema: dict[str, Any]) -> None:
    assert errors_of(example, schema) == [], place
    if "contentSchema" in schema:
        for line in example.splitlines():
            assert errors_of(json.loads(line), schema["contentSchema"]) == [], place


def test_every_photo_of_an_example_can_be_decoded() -> None:
    photos = [node["base64"] for _, node in walk(CONTRACT) if isinstance(node.get("base64"), str)]
    assert photos
    for photo in photos:
        assert Image.open(io.BytesIO(base64.b64decode(photo, validate=True))).size


@pytest.mark.parametrize(
    ("example", "schema"),
    [
        (examples.VERIFY, verify.VerifyResponse),
        (examples.DETECT, faces.DetectResponse),
        (examples.EMBED, faces.EmbedResponse),
        (examples.COLLECTION, collections.CollectionResponse),
        (examples.NEW_COLLECTION, collections.CollectionResponse),
        (examples.COLLECTIONS, collections.CollectionList),
        (examples.PERSON, people.PersonResponse),
        (examples.PEOPLE, people.PersonList),
        (examples.ENROLLED, people.EnrollResponse),
        (examples.IDENTIFIED, identify.IdentifyResponse),
        (examples.BATCH_IDENTIFIED[0], batch.BatchIdentified),
        (examples.BATCH_IDENTIFIED[1], batch.BatchFailed),
        (examples.BATCH_ENROLLED[0], batch.BatchEnrolled),
        (examples.MODELS, models.ModelList),
        (examples.CALIBRATIONS, calibrations.CalibrationList),
        (examples.KEY, keys.KeyResponse),
        (examples.KEYS, keys.KeyList),
        (examples.NEW_KEY, keys.KeyWithSecret),
        (examples.ROTATED_KEY, keys.KeyWithSecret),
        (examples.LIVE, health.Live),
        (examples.READY, health.Ready),
    ],
)
def test_an_example_is_what_the_schema_would_write(example: dict, schema: type[BaseModel]) -> None:
    assert schema.model_validate(example).model_dump(mode="json") == example
