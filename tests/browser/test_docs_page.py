"""/docs as a newcomer uses it: choose files, press Execute, and nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page

from tests.browser.proxy import proxy_to
from tests.pictures import photo_of


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    """Two photos of one person."""
    files = [tmp_path / "one.png", tmp_path / "another.png"]
    for noise, file in enumerate(files):
        file.write_bytes(photo_of(1, noise=noise))
    return files


@pytest.fixture(params=["directly", "behind TLS and a prefix"])
def address(client: httpx.Client, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of the server, as the browser reaches it."""
    if request.param == "directly":
        yield str(client.base_url).rstrip("/")
        return
    with proxy_to(client.base_url, "/faces") as address:
        yield address


def open_operation(page: Page, address: str, name: str) -> Locator:
    """The form of an operation on /docs."""
    page.goto(f"{address}/docs")
    operation = page.locator(f".opblock[id$='-{name}']")
    operation.locator(".opblock-summary-control").click()
    return operation


def execute(operation: Locator) -> tuple[int, dict]:
    """Press Execute; returns the status and the body that the page shows."""
    operation.get_by_role("button", name="Execute").click()
    live = operation.locator(".live-responses-table .response")
    status = int(live.locator(".response-col_status").inner_text().split()[0])
    return status, json.loads(live.locator("code").first.inner_text())


def test_two_photos_are_verified(page: Page, address: str, photos: list[Path]) -> None:
    operation = open_operation(page, address, "verify")
    files = operation.locator("input[type=file]")
    files.nth(len(photos) - 1).wait_for(state="attached")  # `all` does not wait for the page
    for field, photo in zip(files.all(), photos, strict=True):
        field.set_input_files(photo)
    status, answer = execute(operation)
    assert (status, answer["same_person"]) == (200, True)


def test_a_collection_is_made_and_somebody_enrolled(page: Page, address: str, photos: list[Path]) -> None:
    status, _ = execute(open_operation(page, address, "create_collection"))
    assert status in (200, 201)
    operation = open_operation(page, address, "enroll_person")
    operation.locator("input[type=file]").first.set_input_files(photos[0])
    status, answer = execute(operation)
    assert (status, len(answer["faces"]), answer["rejected"]) == (201, 1, [])
