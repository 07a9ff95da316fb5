"""The page to try the server out: behind any prefix, and without anything from elsewhere."""

import re

import httpx
import pytest
from pydantic import ValidationError

from sameface.api.settings import Settings
from tests.api.problems import expect
from tests.pictures import photo_of


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


def test_behind_a_prefix_links_and_contract_have_it_whether_or_not_the_proxy_strips_it(serve) -> None:
    with serve(root_path="/faces") as client:
        for path in ("/", "/faces/", "/faces"):
            assert client.get(path).headers["location"] == "/faces/docs"
        for path in ("/openapi.json", "/faces/openapi.json"):
            assert client.get(path).json()["servers"] == [{"url": "/faces"}]
        for prefix in ("", "/faces"):
            assert client.get(f"{prefix}/docs").status_code == 200
            answer = client.post(f"{prefix}/v1/detect", files={"image": photo_of(1)})
            assert len(answer.json()["faces"]) == 1
        expect(client.get("/facesv1/models"), 404, "not_found")
        metrics = client.get("/metrics").text
    assert 'sameface_requests_total{caller="anonymous",route="/v1/detect",status="200"} 2.0' in metrics


def test_without_a_prefix_the_contract_names_no_server(client: httpx.Client) -> None:
    assert "servers" not in client.get("/openapi.json").json()


@pytest.mark.parametrize(
    "wrong", ["faces", "/faces/", "/", "//faces", "/a b", "/a?b", "https://a.example/faces"]
)
def test_a_prefix_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError):
        Settings(root_path=wrong)


def test_nothing_but_the_files_of_the_page_is_served(client: httpx.Client) -> None:
    for name in ("__init__.py", "%2E%2E", "..%2Fmain.py", "%2Fetc%2Fpasswd"):
        expect(client.get(f"/swagger/{name}"), 404, "not_found")
