"""What the contract says about answers is what the server answers."""

import ast
import re
from collections import Counter
from pathlib import Path

import httpx
import pytest

from sameface.api import errors as api_errors
from sameface.api.errors import PROBLEMS
from sameface.model import errors as model_errors
from tests.api.collections import enrol
from tests.api.openapi.contract import CONTRACT, OPERATIONS, SCHEMAS, errors_of
from tests.api.problems import expect
from tests.pictures import photo_of

ROOT = Path(__file__).parents[3]
PROBLEM = {"$ref": "#/components/schemas/Problem"}
WRITES = [
    name for name, operation in OPERATIONS.items() if operation["method"] in ("PUT", "PATCH", "DELETE")
] + ["enroll_person", "add_faces", "create_key", "rotate_key"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_failure_is_a_problem_and_every_code_is_listed_once(name: str) -> None:
    listed: Counter[str] = Counter()
    for status, response in OPERATIONS[name]["responses"].items():
        if status < "300":
            continue
        [(kind, shown)] = response["content"].items()
        assert (kind, shown["schema"]) == ("application/problem+json", PROBLEM)
        assert response["description"] == ", ".join(f"`{code}`" for code in shown["examples"])
        assert all(PROBLEMS[code][0] == int(status) for code in shown["examples"])
        listed.update(list(shown["examples"]))
    assert set(listed.values()) == {1}


def test_a_new_collection_is_documented_as_such(client: httpx.Client) -> None:
    documented = OPERATIONS["create_collection"]["responses"]
    for status in (201, 200):
        answer = client.put("/v1/collections/documented")
        assert answer.status_code == status
        schema = documented[str(status)]["content"]["application/json"]["schema"]
        assert errors_of(answer.json(), schema) == []
    client.delete("/v1/collections/documented")


@pytest.mark.parametrize("name", WRITES)
def test_every_write_may_find_the_disk_full(name: str) -> None:
    assert "507" in OPERATIONS[name]["responses"]


def test_what_reads_the_gallery_may_find_its_file_damaged() -> None:
    without = {
        name
        for name, operation in OPERATIONS.items()
        if "`store_damaged`, `store_refused`" not in operation["responses"]["503"]["description"]
    }
    assert without == {"detect", "embed", "list_models", "list_calibrations", "get_self", "live", "ready"}


@pytest.mark.parametrize("path", ["", "/people/ada", "/people/ada/faces/f1"])
def test_an_address_that_cannot_be_is_the_problem_that_is_documented(client: httpx.Client, path: str) -> None:
    problem = expect(client.delete(f"/v1/collections/a b{path}"), 422, "invalid_request")
    assert errors_of(problem, PROBLEM) == []
    documented = [
        operation["responses"]["422"]["content"]
        for operation in OPERATIONS.values()
        if operation["method"] == "DELETE"
    ]
    assert len(documented) == 4
    assert all(content.keys() == {"application/problem+json"} for content in documented)


def test_what_has_no_content_has_no_content_type(client: httpx.Client, staff: str) -> None:
    person = enrol(client, staff, photo_of(1), photo_of(1, noise=1)).json()
    address = f"{staff}/people/{person['person_id']}"
    for path in (f"{address}/faces/{person['faces'][0]['face_id']}", address, staff):
        answer = client.delete(path)
        assert (answer.status_code, answer.content) == (204, b"")
        assert "content-type" not in answer.headers


@pytest.mark.parametrize("path", CONTRACT["paths"])
def test_a_refused_method_comes_with_all_that_are_allowed(client: httpx.Client, path: str) -> None:
    answer = client.request("TRACE", re.sub(r"{\w+}", "any", path))
    expect(answer, 405, "method_not_allowed")
    allowed = set(answer.headers["allow"].split(", "))
    same = [template for template in CONTRACT["paths"] if fits(path, template)]
    assert allowed == {method.upper() for template in same for method in CONTRACT["paths"][template]}


def fits(path: str, template: str) -> bool:
    """Whether an address of one path is one of the other too: `people/batch` may be a person's."""
    return re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), path) is not None


def test_every_fact_of_an_error_is_in_the_schema_of_problems() -> None:
    facts = {
        (str(path.relative_to(ROOT)), keyword.arg)
        for room in ("api", "model")
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for keyword in find_facts(node)
    }
    assert len(facts) > 15
    known = SCHEMAS["Problem"]["properties"].keys()
    assert sorted((path, name) for path, name in facts if name not in known) == []


def find_facts(node: ast.AST) -> list[ast.keyword]:
    """The facts that an expression gives to an error that has a status."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return []
    error = getattr(model_errors, node.func.id, None) or getattr(api_errors, node.func.id, None)
    return node.keywords if getattr(error, "code", None) in PROBLEMS else []
