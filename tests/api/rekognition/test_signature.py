"""Signatures are those of AWS, and what does not fit them is refused as AWS refuses it."""

from dataclasses import replace

import httpx
import pytest

from sameface.api.rekognition.signature import Signature, SignedRequest, sign
from sameface.model.access.sealed_secrets import rotate_key
from tests.api.keys import add_key, bearer, store_of
from tests.api.problems import expect as expect_problem
from tests.api.rekognition.conftest import Signer, add_signer, open_signer
from tests.api.rekognition.test_errors import expect


def test_a_signature_is_the_one_that_aws_publishes_as_an_example() -> None:
    headers = {
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        "host": "iam.amazonaws.com",
        "x-amz-date": "20150830T123600Z",
    }
    scope = "20150830/us-east-1/iam/aws4_request"
    signature = Signature("AKIDEXAMPLE", scope, tuple(headers), "", "20150830T123600Z")
    request = SignedRequest("/", "Action=ListUsers&Version=2010-05-08", headers, b"", "GET")
    expected = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    assert sign("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", signature, request) == expected


def test_a_signature_is_the_one_that_botocore_computes() -> None:
    headers = {
        "content-type": "application/x-amz-json-1.1",
        "host": "127.0.0.1:8000",
        "x-amz-date": "20261118T090000Z",
        "x-amz-target": "RekognitionService.DescribeCollection",
    }
    scope = "20261118/eu-west-1/rekognition/aws4_request"
    signature = Signature("5b0c6c2f9d1e4a7788aa0113", scope, tuple(headers), "", "20261118T090000Z")
    request = SignedRequest("/", "", headers, b'{"CollectionId": "staff"}')
    expected = "6b2d6362e2c2de07017e94d10e5153f13d9ccc5464ab233467fde25621d84dca"
    assert sign("Zx0kq3v7nB4wQe9tYh2mUj6sLd8fRc1gPa5iXo7b", signature, request) == expected


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"secret": "wrong"}, "InvalidSignatureException"),
        ({"altered": {"body": '{"MaxResults": 1}'}}, "InvalidSignatureException"),
        ({"altered": {"x-amz-target": "RekognitionService.DetectFaces"}}, "InvalidSignatureException"),
        ({"altered": {"host": "example.org"}}, "InvalidSignatureException"),
        ({"seconds_ago": 16 * 60.0}, "InvalidSignatureException"),
        ({"seconds_ago": -16 * 60.0}, "InvalidSignatureException"),
        ({"altered": {"x-amz-date": "yesterday"}}, "IncompleteSignatureException"),
        ({"altered": {"authorization": "AWS4-HMAC-SHA256 Credential=a"}}, "IncompleteSignatureException"),
        ({"left_out": ("x-amz-date",)}, "IncompleteSignatureException"),
        ({"left_out": ("authorization",)}, "MissingAuthenticationTokenException"),
        ({"key_id": "nobody"}, "UnrecognizedClientException"),
    ],
    ids=str,
)
def test_what_was_not_signed_so_is_refused(signer: Signer, change: dict, kind: str) -> None:
    assert signer.call("ListCollections").status_code == 200
    expect(replace(signer, **change).call("ListCollections"), kind)


def test_a_signature_is_good_for_fifteen_minutes(signer: Signer) -> None:
    assert replace(signer, seconds_ago=14 * 60.0).call("ListCollections").status_code == 200


def test_a_rotated_secret_works_for_its_grace_and_a_revoked_key_no_more(signer: Signer) -> None:
    keys, store = signer.client.app.state.keys, store_of(signer.client)
    _, second = rotate_key(store, signer.key_id, 60)
    keys.expect_change()
    rotated = replace(signer, secret=second)
    assert [each.call("ListCollections").status_code for each in (signer, rotated)] == [200, 200]
    third = replace(signer, secret=rotate_key(store, signer.key_id, 0)[1])
    keys.expect_change()
    assert third.call("ListCollections").status_code == 200
    expect(rotated.call("ListCollections"), "UnrecognizedClientException")
    expect(signer.call("ListCollections"), "InvalidSignatureException")
    store.keys.revoke(signer.key_id)
    keys.expect_change()
    expect(third.call("ListCollections"), "UnrecognizedClientException")


def test_a_key_for_rekognition_opens_nothing_else_and_no_other_key_opens_it(signer: Signer) -> None:
    native = signer.client.get("/v1/models", headers=bearer(signer.secret))
    expect_problem(native, 401, "unauthorized")
    secret, key = add_key(store_of(signer.client), "search")
    signer.client.app.state.keys.expect_change()
    expect(
        replace(signer, key_id=key.key_id, secret=secret).call("ListCollections"),
        "UnrecognizedClientException",
    )


def test_an_administrator_rotates_such_a_key_over_http(signer: Signer) -> None:
    admin, _ = add_key(store_of(signer.client), "read", "search", "write", "admin")
    signer.client.app.state.keys.expect_change()
    answer = signer.client.post(f"/v1/keys/{signer.key_id}/rotate", headers=bearer(admin))
    rotated = replace(signer, secret=answer.json()["secret"])
    assert rotated.call("ListCollections").status_code == 200


def test_a_key_needs_the_scope_and_sees_its_collections_alone(compatible: httpx.Client) -> None:
    other = open_signer(compatible)
    key_id, secret = add_signer(compatible, ("search",), collections=[other.collection])
    reader = replace(other, key_id=key_id, secret=secret)
    assert reader.ask("ListCollections")["CollectionIds"] == [other.collection]
    expect(reader.call("CreateCollection", CollectionId="new"), "AccessDeniedException")
    expect(
        reader.call("ListFaces", CollectionId=open_signer(compatible).collection), "ResourceNotFoundException"
    )


def test_a_secret_of_another_secret_key_opens_nothing(
    signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAMEFACE_SECRET_KEY", "another" * 8)
    signer.client.app.state.keys.store.keys.note_used([signer.key_id], 0)
    add_signer(signer.client)  # a change, after which keys are read again
    expect(signer.call("ListCollections"), "InvalidSignatureException")
