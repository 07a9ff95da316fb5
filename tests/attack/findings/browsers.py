"""What a web page, a log and a contract tell or allow."""

import base64
import json
import re
from typing import Any

from tests.attack.findings.outcome import Outcome
from tests.attack.findings.values import STAFF, join, one_person
from tests.attack.ground import Ground

OWN_STATUSES = {"PUT /v1/collections/{collection}": "201", "DELETE /v1/collections/{collection}": "507"}


def call_from_a_page(ground: Ground) -> Outcome:
    """Without keys: another name as Host, and a form that a page of another site posts."""
    with ground.serve(keys=False) as server, server.client() as client:
        client.put(STAFF)
        renamed = [
            client.get(path, headers={"Host": "evil.example"}).status_code
            for path in ("/v1/collections", "/health/live", "/docs")
        ]
        foreign = {"Origin": "https://evil.example"}
        written = [
            client.post(f"{STAFF}/people", files={"images": ground.photo}, headers=foreign).status_code,
            client.delete(STAFF, headers={"Origin": "null"}).status_code,
        ]
        people = client.get(STAFF).json()["people"]
    return Outcome(
        set(renamed) == {421} and set(written) == {403} and people == 0,
        f"another Host is {join(renamed)}, a foreign page's writes are {join(written)}, nobody is enrolled",
    )


def read_the_log(ground: Ground) -> Outcome:
    """Ids, cursors and a key in addresses."""
    with one_person(ground) as (server, client):
        client.get(f"{STAFF}/people/ada-lovelace?key=secret-in-query")
        client.get(f"{STAFF}/people?cursor=ada-lovelace")
        client.get("/v1/nowhere/ada-lovelace")
        log = server.log
    found = [word for word in ("lovelace", "secret", "/ada", "staff") if word in log]
    return Outcome(
        not found and "/v1/collections/{collection}/people/{person_id}" in log,
        "the log has the templates of routes" + (f", and {found}" if found else " and none of these"),
    )


def read_the_contract(ground: Ground) -> Outcome:
    """The OpenAPI document against what the server answers."""
    with one_person(ground) as (_, client):
        contract = client.get("/openapi.json").json()
        allowed = client.post(f"{STAFF}/people/ada").headers["allow"]
    faults = [*find_missing_statuses(contract), *find_bad_base64(contract)]
    if "307" in json.dumps(contract):
        faults.append("307 is documented")
    for path, methods in contract["paths"].items():
        invalid = methods.get("delete", {}).get("responses", {}).get("422")
        if invalid and "application/problem+json" not in invalid.get("content", {}):
            faults.append(f"DELETE {path}: 422 of the wrong type")
    if not {"GET", "PATCH", "DELETE"} <= set(re.split(r", *", allowed)):
        faults.append(f"Allow lists {allowed}")
    return Outcome(not faults, "; ".join(faults) or f"all of it is documented, Allow lists {allowed}")


def find_missing_statuses(contract: dict[str, Any]) -> list[str]:
    """The statuses that routes have and the contract should name."""
    missing = []
    for route, status in OWN_STATUSES.items():
        method, path = route.split(" ")
        if status not in contract["paths"][path][method.lower()]["responses"]:
            missing.append(f"{route}: no {status}")
    return missing


def find_bad_base64(part: Any) -> list[str]:
    """The examples of base64 that are none."""
    if isinstance(part, list):
        return [fault for each in part for fault in find_bad_base64(each)]
    if not isinstance(part, dict):
        return []
    text = part.get("base64")
    if isinstance(text, str):
        try:
            base64.b64decode(text, validate=True)
        except ValueError:
            return [f"{text[:20]} is no base64"]
    return [fault for each in part.values() for fault in find_bad_base64(each)]
