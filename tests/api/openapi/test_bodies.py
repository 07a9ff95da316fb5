"""The bodies that the contract describes are the ones that the server takes."""

import httpx
import pytest

from tests.api.openapi.contract import OPERATIONS, SCHEMAS, body_of
from tests.pictures import photo_of

FILE = {"type": "string", "format": "binary"}
FORMS = [
    name
    for name, operation in OPERATIONS.items()
    if "multipart/form-data" in operation.get("requestBody", {}).get("content", {})
]
PHOTOS = {"probe", "reference", "image", "images"}


def test_every_body_can_be_sent_as_a_form_and_as_json() -> None:
    bodies = [
        operation["requestBody"]["content"] for operation in OPERATIONS.values() if "requestBody" in operation
    ]
    assert len(bodies) >= 8
    for body in bodies:
        [first, second, *others] = body
        assert first in ("application/json", "application/x-ndjson")
        assert second == "multipart/form-data"
        assert set(others) <= {"application/x-npy", "application/vnd.apache.arrow.stream"}


@pytest.mark.parametrize("name", FORMS)
def test_a_photo_of_a_form_is_a_file(name: str) -> None:
    fields = body_of(name, "multipart/form-data")["properties"]
    for field, schema in fields.items():
        file = schema["items"] if schema["type"] == "array" else schema
        assert (file.items() >= FILE.items()) == (field in PHOTOS), field
        assert (schema["type"] == "array") == (field == "images"), field


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_the_fields_of_the_json_as_plain_text(name: str) -> None:
    form = body_of(name, "multipart/form-data")
    if name.endswith("_batch"):
        assert form["properties"].keys() == {"images"}
        return
    fields = body_of(name, "application/json")
    assert form["properties"].keys() == fields["properties"].keys()
    assert form.get("required") == fields.get("required")
    for field in form["properties"].keys() - PHOTOS:
        assert form["properties"][field]["type"] in ("string", "number", "integer", "boolean")


def test_a_photo_in_json_has_a_name_of_its_own() -> None:
    assert body_of("verify", "application/json")["properties"]["probe"]["$ref"].endswith("/Base64Photo")
    assert SCHEMAS["Base64Photo"]["required"] == ["base64"]


def test_a_body_that_may_be_left_out_is_documented_so(client: httpx.Client, staff: str) -> None:
    optional = {name for name in FORMS if not OPERATIONS[name]["requestBody"]["required"]}
    assert optional == {"create_collection", "update_person", "rotate_key"}
    client.post(f"{staff}/people", files={"images": photo_of(1)}, data={"person_id": "ada", "name": "Ada"})
    for kind in ({}, {"Content-Type": "application/json"}, {"Content-Type": "multipart/form-data"}):
        assert client.put(staff, headers=kind).status_code == 200
        assert client.patch(f"{staff}/people/ada", headers=kind).json()["name"] == "Ada"


def test_a_change_of_a_person_shows_no_defaults_that_would_undo_something() -> None:
    for schema in (SCHEMAS["PersonUpdate"], SCHEMAS["PersonUpdateForm"]):
        assert all("default" not in field for field in schema["properties"].values())


@pytest.mark.parametrize(
    ("name", "path", "photos"),
    [
        ("verify", "/v1/verify", ["probe", "reference"]),
        ("detect", "/v1/detect", ["image"]),
        ("embed", "/v1/embed", ["image"]),
        ("enroll_person", "{staff}/people", ["images", "images"]),
        ("identify", "{staff}/identify", ["image"]),
    ],
)
def test_photos_and_all_defaults_are_a_whole_request(
    client: httpx.Client, staff: str, name: str, path: str, photos: list[str]
) -> None:
    fields = body_of(name, "multipart/form-data")["properties"]
    defaults = {field: schema["default"] for field, schema in fields.items() if "default" in schema}
    assert not any("example" in schema or "examples" in schema for schema in fields.values())
    files = [(photo, photo_of(1)) for photo in photos]
    answer = client.post(path.format(staff=staff), files=files, data=defaults)
    assert answer.is_success, answer.text
