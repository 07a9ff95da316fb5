"""What only a client has, because it is about a server: its keys, its networks, reviews of decisions."""

import asyncio
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

import sameface_client
from sameface_client.answers import audit, server
from tests.conftest import Serve, wait_for
from tests.pictures import photo_of

SCHEMAS = {"Calibration": "CalibrationResponse", "Key": "KeyResponse", "KeyLimits": "Limits"}


@pytest.fixture
def address(serve: Serve, tmp_path: Path) -> Iterator[str]:
    with serve(data=tmp_path) as client:
        yield str(client.base_url)


def test_keys_are_made_looked_up_rotated_and_revoked(address: str) -> None:
    tomorrow = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    limits = sameface_client.KeyLimits(requests_per_minute=600)
    with sameface_client.connect(address) as faces:
        assert faces.keys.own().name == "anonymous"
        admin = faces.keys.create("admin", ["admin", "read"])
    with sameface_client.connect(address, admin.secret) as faces:
        door = faces.keys.create(
            "door", ["read"], collections=["staff-*"], limits=limits, expires_at=tomorrow
        )
        assert (door.limits, door.collections, door.expires_at) == (limits, ["staff-*"], tomorrow)
        assert door.secret not in repr(door)
        assert {key.name for key in faces.keys.list()} == {"admin", "door"}
        assert faces.keys.get(door.key_id).scopes == ["read"]
        rotated = faces.keys.rotate(door.key_id, grace_seconds=0)
        with sameface_client.connect(address, rotated.secret) as visitor:
            assert visitor.keys.own().key_id == door.key_id
            with pytest.raises(sameface_client.Forbidden):
                visitor.keys.create("more", ["admin"])
        faces.keys.revoke(door.key_id)
        assert faces.keys.get(door.key_id).revoked_at is not None
        with pytest.raises(sameface_client.KeyNotFound):
            faces.keys.get("nobody")


def test_the_networks_and_their_calibrations_are_listed(address: str) -> None:
    async def list_them() -> list[str]:
        async with sameface_client.connect_async(address) as faces:
            assert isinstance(await faces.calibrations(), list)
            return [model.kind for model in await faces.models()]

    assert asyncio.run(list_them()) == ["recogniser", "detector"]


def test_a_decision_is_reviewed(address: str) -> None:
    with sameface_client.connect(address) as faces:
        staff = faces.collection("staff")
        staff.enroll("ada", [photo_of(1)])
        staff.verify("ada", photo_of(1, noise=3))
        wait_for(lambda: any(entry.action == "verify" for entry in faces.audit()))
        [decision] = [entry for entry in faces.audit(person_id="ada") if entry.action == "verify"]
        reviewed = faces.review(decision.entry_id, reviewer="officer-17", confirmed=False)
        assert [(each.reviewer, each.confirmed) for each in reviewed.reviews] == [("officer-17", False)]
        assert reviewed.review_status == "rejected"
        with pytest.raises(sameface_client.AlreadyExists):
            faces.review(decision.entry_id, reviewer="officer-17", confirmed=True)


def test_answers_have_the_fields_of_the_contract(client: httpx.Client) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    for module in (server, audit):
        for name, kind in vars(module).items():
            if is_dataclass(kind):
                written = schemas[SCHEMAS.get(name, name)]["properties"]
                assert [each.name for each in fields(kind)] == list(written), name
