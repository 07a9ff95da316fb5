"""Collections on a server, filled and searched over HTTP."""

import itertools

import httpx

NUMBERS = itertools.count()


def make_collection(client: httpx.Client) -> str:
    """The address of a new collection."""
    address = f"/v1/collections/staff-{next(NUMBERS)}"
    assert client.put(address).status_code == 201
    return address


def enrol(
    client: httpx.Client, staff: str, *photos: bytes, headers: dict | None = None, **fields: str
) -> httpx.Response:
    files = [("images", photo) for photo in photos]
    return client.post(f"{staff}/people", files=files, data=fields, headers=headers)


def identify(client: httpx.Client, staff: str, photo: bytes, **fields: object) -> dict:
    return client.post(f"{staff}/identify", files={"image": photo}, data=fields).json()


def embedding_of(client: httpx.Client, photo: bytes) -> list[float]:
    return client.post("/v1/embed", files={"image": photo}).json()["faces"][0]["embedding"]
