"""The contract: committed, and exact enough to make clients of it."""

import re
from importlib.metadata import version

import httpx
import pytest

from tests.api.openapi.contract import CONTRACT, OPERATIONS, SCHEMAS, walk
from tests.api.openapi.write import OPENAPI, describe_api


def test_the_committed_contract_is_the_served_one(client: httpx.Client) -> None:
    assert OPENAPI.read_text("utf-8") == describe_api(), "run `make openapi` and look at the difference"
    assert client.get("/openapi.json").json() == CONTRACT


def test_two_applications_have_the_same_contract() -> None:
    assert describe_api() == describe_api()  # the first leaves the routes, which both share, as they are


def test_the_version_is_that_of_the_package() -> None:
    assert CONTRACT["info"]["version"] == version("sameface")


def test_an_operation_is_called_as_a_method_would_be() -> None:
    assert {"verify", "detect", "embed", "identify", "enroll_person", "list_people"} <= OPERATIONS.keys()
    for name in OPERATIONS:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)?", name)
    count = sum(len(methods) for methods in CONTRACT["paths"].values())
    assert len(OPERATIONS) == count, "two operations share a name"


def test_every_schema_of_a_body_has_a_name() -> None:
    for name, operation in OPERATIONS.items():
        for kind, body in operation.get("requestBody", {}).get("content", {}).items():
            schema = body["schema"].get("contentSchema", body["schema"])
            assert schema.keys() == {"$ref"}, f"{name} takes {kind} of an unnamed schema"


def test_every_reference_leads_somewhere() -> None:
    referred = {
        node["$ref"].removeprefix("#/components/schemas/") for _, node in walk(CONTRACT) if "$ref" in node
    }
    assert referred == SCHEMAS.keys()


def test_nothing_is_always_null() -> None:
    for place, node in walk(CONTRACT):
        assert node != {"type": "null"} or "/anyOf/" in place, place
        assert node.get("type") != "null" or node == {"type": "null"}, place


def test_an_address_or_a_header_never_takes_null() -> None:
    for name, operation in OPERATIONS.items():
        for parameter in operation.get("parameters", []):
            assert "anyOf" not in parameter["schema"], f"{parameter['name']} of {name}"
            assert parameter["schema"].get("default", "") is not None


def test_parameters_come_as_in_the_path() -> None:
    for name, operation in OPERATIONS.items():
        in_path = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
        assert in_path == re.findall(r"{(\w+)}", operation["path"]), name
        assert [each["in"] for each in operation["parameters"][: len(in_path)]] == ["path"] * len(in_path)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_has_a_description_and_examples(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation["description"]
    bodies = operation.get("requestBody", {}).get("content", {})
    answers = [response for status, response in operation["responses"].items() if status < "300"]
    for answer in answers:
        assert "content" not in answer or any("example" in shown for shown in answer["content"].values())
    assert not bodies or any("example" in body for body in bodies.values())


def test_every_link_leads_to_an_operation_with_all_it_needs() -> None:
    links = [
        (name, link)
        for name, operation in OPERATIONS.items()
        for response in operation["responses"].values()
        for link in response.get("links", {}).values()
    ]
    reached = {link["operationId"] for _, link in links}
    assert reached >= {"enroll_person", "get_person", "update_person", "forget_person", "forget_face"}
    for name, link in links:
        parameters = {each["name"]: each for each in OPERATIONS[link["operationId"]].get("parameters", [])}
        needed = {name for name, parameter in parameters.items() if parameter["in"] == "path"}
        assert needed <= link["parameters"].keys() <= parameters.keys(), f"{name} -> {link['operationId']}"
