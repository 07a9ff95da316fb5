"""Batches as lines of NDJSON: what is sent, and the answers."""

import base64
import json

import httpx
import numpy as np

from tests.model.people import random_units
from tests.networks import DIMENSION


def to_line(id: object, **fields: object) -> bytes:  # noqa: A002
    if isinstance(fields.get("image"), bytes):
        fields["image"] = {"base64": base64.b64encode(fields["image"]).decode()}
    if isinstance(fields.get("embedding"), np.ndarray):
        fields["embedding"] = fields["embedding"].tolist()
    return json.dumps({"id": id, **fields}).encode() + b"\n"


def send(client: httpx.Client, address: str, content: object, **others: object) -> list[dict]:
    headers = {"Content-Type": "application/x-ndjson", **others.pop("headers", {})}
    response = client.post(address, content=content, headers=headers, **others)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def people(count: int) -> list[bytes]:
    embeddings = random_units(count, DIMENSION, 3)
    return [to_line(str(n), person_id=f"p{n}", embedding=row) for n, row in enumerate(embeddings)]
