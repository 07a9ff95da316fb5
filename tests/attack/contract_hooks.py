"""What schemathesis needs to know to get past the door, and what it checks beside its own.

Its process loads this file: photos are drawn people, batches are lines, and every answer is compared with
the codes and the lines that the contract has for it.
"""

import base64
import json
from typing import Any
from zlib import crc32

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation

from sameface.model.store.records import is_id
from tests.api.openapi.contract import SCHEMAS, errors_of
from tests.networks import DIMENSION
from tests.pictures import photo_of

COLLECTION, PERSON = "everybody", "kept"  # which nobody deletes
OF_ANY_COLLECTION = ("create_collection", "delete_collection")
BY_LINKS_ALONE = ("forget_person", "forget_face", "review_entry")  # which are followed by chance
PHOTO_FIELDS = {
    "verify": ("probe", "reference"),
    "detect": ("image",),
    "embed": ("image",),
    "identify": ("image",),
    "enroll_person": ("images",),
    "add_faces": ("images",),
}
# Fields that exclude each other or refuse most photos.
CHOICES = ("embedding", "embeddings", "model", "collection", "person_id", "threshold", "target_fmr")
PHOTOS = [photo_of(1), photo_of(2), photo_of(1, 2), photo_of()]
photos = st.sampled_from(PHOTOS)
base64_photos = photos.map(lambda photo: {"base64": base64.b64encode(photo).decode()})
embeddings = st.lists(st.floats(-1, 1, width=32), min_size=DIMENSION, max_size=DIMENSION)
ids = st.text("abc", min_size=1, max_size=2)
anything = st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), st.lists, max_leaves=5)
entries = st.one_of(
    st.fixed_dictionaries({"id": ids, "image": base64_photos}, optional={"person_id": ids}),
    st.fixed_dictionaries({"id": ids, "embedding": embeddings}, optional={"person_id": ids}),
    st.dictionaries(st.sampled_from(["id", "image", "embedding", "name", "metadata"]), anything),
)
lines = st.lists(entries.map(lambda entry: json.dumps(entry).encode()) | st.binary(max_size=20), max_size=5)

schemathesis.openapi.format("binary", photos)
schemathesis.openapi.media_type("application/x-ndjson", lines.map(b"\n".join))


@schemathesis.serializer("application/x-ndjson")
def send_lines(_: schemathesis.SerializationContext, value: Any) -> bytes:
    """Lines as they are: they were made as text."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@schemathesis.hook
def before_call(_: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:  # noqa: ARG001
    """Make cases that can succeed of most that are valid, and leave those that are not as they are."""
    name, sent = case.operation.definition.raw["operationId"], case.path_parameters
    follows_link = case.meta is None or case.meta.phase.name == "stateful"
    if name not in OF_ANY_COLLECTION and is_id(sent.get("collection")):
        sent["collection"] = COLLECTION
    if case.method != "DELETE" and not follows_link and is_id(sent.get("person_id")):
        sent["person_id"] = PERSON
    if case.method == "DELETE":  # not what the others ask for
        spared = COLLECTION if name == "delete_collection" else PERSON
        sent.update({key: "another" for key, value in sent.items() if value == spared})
    chance = crc32(repr(case.body).encode())
    if name in PHOTO_FIELDS and chance % 4 and is_valid_json(case):
        plain = {field: value for field, value in case.body.items() if field not in CHOICES}
        photo = {"base64": base64.b64encode(PHOTOS[chance % 2]).decode()}
        case.body = plain | {field: [photo] if field == "images" else photo for field in PHOTO_FIELDS[name]}


def is_valid_json(case: schemathesis.Case) -> bool:
    """Whether the body is JSON that was made to fit its schema."""
    made_to_fit = case.meta is not None and not case.meta.is_negative_at(ParameterLocation.BODY)
    return made_to_fit and case.media_type == "application/json" and isinstance(case.body, dict)


@schemathesis.check
def every_code_is_documented(_: Any, response: schemathesis.Response, case: schemathesis.Case) -> None:
    """A problem is one that the operation lists, and has no member that the schema does not have."""
    if response.status_code < 400 or response.status_code == 405:
        return
    problem = response.json()
    documented = case.operation.definition.raw["responses"].get(str(response.status_code), {})
    listed = documented.get("content", {}).get("application/problem+json", {}).get("examples", {})
    assert problem["code"] in {*listed, "not_found"}, f"{problem['code']} is not listed for this operation"
    assert problem.keys() <= SCHEMAS["Problem"]["properties"].keys()


@schemathesis.check
def every_line_fits(_: Any, response: schemathesis.Response, case: schemathesis.Case) -> None:
    """A line of a batch's answer is one of the schema of lines."""
    if response.headers.get("content-type") != ["application/x-ndjson"]:
        return
    schema = case.operation.definition.raw["responses"]["200"]["content"]["application/x-ndjson"]["schema"]
    for line in response.content.splitlines():
        assert errors_of(json.loads(line), schema["contentSchema"]) == []


@schemathesis.check
class EveryOperationSucceeds:
    """Every operation succeeds at least once: what is only refused is not tested."""

    def __init__(self) -> None:
        self.tried: set[str] = set()
        self.succeeded: set[str] = set()

    def after_response(self, _: Any, response: schemathesis.Response, case: schemathesis.Case) -> None:
        name = case.operation.definition.raw["operationId"]
        if name not in BY_LINKS_ALONE:
            self.tried.add(name)
        if response.status_code < 300:
            self.succeeded.add(name)

    def after_run(self, _: Any) -> None:
        assert not self.tried - self.succeeded, f"never succeeded: {sorted(self.tried - self.succeeded)}"
