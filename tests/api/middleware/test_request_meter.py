"""The access log says what was asked and how it went, and about nobody."""

import logging

import httpx
import pytest

from tests.api.collections import enrol
from tests.pictures import photo_of


def test_a_line_has_route_status_and_id_and_no_path(
    client: httpx.Client, staff: str, caplog: pytest.LogCaptureFixture
) -> None:
    enrol(client, staff, photo_of(1), person_id="ada-lovelace")
    with caplog.at_level(logging.INFO, "sameface.access"):
        client.get(f"{staff}/people/ada-lovelace?key=secret", headers={"x-request-id": "mine"})
        client.get("/v1/nowhere/ada-lovelace")
    lines = [record.getMessage() for record in caplog.records if record.name == "sameface.access"]
    assert lines[0].startswith("GET /v1/collections/{collection}/people/{person_id} 422 ")
    assert lines[0].endswith(" ms anonymous mine")
    assert lines[1].startswith("GET none 404 ")
    assert not any("lovelace" in line or "secret" in line for line in lines)
