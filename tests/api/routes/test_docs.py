"""The page to try the server out: behind any prefix, and without anything from elsewhere."""

import re

import httpx

from tests.api.problems import expect


def test_the_page_loads_nothing_from_elsewhere_and_works_behind_any_prefix(client: httpx.Client) -> None:
    page = client.get("/docs").text
    loaded = re.findall(r'(?:src|href)="([^"]+)"|fetch\("([^"]+)"\)', page)
    addresses = [link or fetched for link, fetched in loaded]
    assert len(addresses) == 4
    assert "openapi.json" in addresses
    for address in addresses:
        assert re.match(r"\w+[/.]", address), "relative, so that TLS and prefixes are the proxy's business"
        assert client.get(f"/{address}").status_code == 200


def test_the_root_leads_to_the_page_by_a_relative_address(client: httpx.Client) -> None:
    answer = client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (307, "docs")


def test_nothing_but_the_files_of_the_page_is_served(client: httpx.Client) -> None:
    for name in ("__init__.py", "%2E%2E", "..%2Fmain.py", "%2Fetc%2Fpasswd"):
        expect(client.get(f"/swagger/{name}"), 404, "not_found")
