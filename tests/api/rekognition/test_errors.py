"""Every error has the shape of AWS, and none is an internal one."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from sameface.api.errors import PROBLEMS
from sameface.api.rekognition.errors import ANSWERS
from sameface.model.store.access.api_key import KeyLimits
from tests.api.problems import expect as expect_problem
from tests.api.rekognition.conftest import Signer, open_signer, sign
from tests.conftest import Serve
from tests.pictures import photo_of

PHOTO = {"Bytes": photo_of(1)}


def expect(answer: httpx.Response, kind: str, status: int = 400) -> None:
    assert (answer.status_code, answer.json().get("__type")) == (status, kind), answer.text
    assert answer.json().keys() == {"__type", "Message"}
    assert answer.headers["content-type"] == "application/x-amz-json-1.1"
    assert answer.headers["x-amzn-requestid"] == answer.headers["x-request-id"]


def test_every_problem_has_an_answer() -> None:
    assert ANSWERS.keys() == PROBLEMS.keys()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"this is no photo", "InvalidImageFormatException"),
        (photo_of(1)[:500], "InvalidImageFormatException"),
        (b"", "InvalidImageFormatException"),
        (b"\xff\xd8\xff" + bytes(10_000_001), "ImageTooLargeException"),
    ],
    ids=["text", "broken", "empty", "large"],
)
def test_bad_photos_are_refused_and_nobody_is_enrolled(signer: Signer, content: bytes, kind: str) -> None:
    expect(signer.call("IndexFaces", CollectionId=signer.collection, Image={"Bytes": content}), kind)
    assert signer.ask("DescribeCollection")["FaceCount"] == 0


@pytest.mark.parametrize(
    ("operation", "body", "kind"),
    [
        ("SearchFacesByImage", {"Image": PHOTO, "MaxFaces": 0}, "InvalidParameterException"),
        ("SearchFacesByImage", {"Image": PHOTO, "FaceMatchThreshold": 101}, "InvalidParameterException"),
        ("SearchFacesByImage", {"Image": {"Bytes": photo_of()}}, "InvalidParameterException"),
        ("SearchFacesByImage", {"Image": {"Bytes": "?"}}, "InvalidParameterException"),
        ("SearchFacesByImage", {"Image": {}}, "InvalidParameterException"),
        ("SearchFacesByImage", {}, "InvalidParameterException"),
        ("IndexFaces", {"Image": PHOTO, "ExternalImageId": "a b"}, "InvalidParameterException"),
        ("SearchFaces", {"FaceId": "nothing"}, "InvalidParameterException"),
        ("ListFaces", {"MaxResults": 5000}, "InvalidParameterException"),
        ("ListFaces", {"NextToken": "eA=="}, "InvalidPaginationTokenException"),
        ("ListFaces", {"UserId": "nobody"}, "ResourceNotFoundException"),
        ("DeleteFaces", {"FaceIds": []}, "InvalidParameterException"),
        ("CreateUser", {"UserId": "a b"}, "InvalidParameterException"),
        ("AssociateFaces", {"UserId": "nobody", "FaceIds": ["a"]}, "ResourceNotFoundException"),
        ("DetectLabels", {}, "UnknownOperationException"),
    ],
    ids=str,
)
def test_bad_options_and_unknown_operations_are_refused(
    signer: Signer, operation: str, body: dict, kind: str
) -> None:
    expect(signer.call(operation, CollectionId=signer.collection, **body), kind)


def test_what_is_no_json_is_refused(signer: Signer) -> None:
    headers = sign(signer, "RekognitionService.ListFaces", b"{")
    expect(signer.client.post("/", content=b"{", headers=headers), "InvalidParameterException")


def test_other_paths_keep_their_own_errors(signer: Signer) -> None:
    expect_problem(signer.client.get("/v1/nothing"), 404, "not_found")
    expect_problem(signer.client.post("/v1/verify"), 401, "unauthorized")
    assert signer.client.get("/", follow_redirects=False).status_code == 307
    expect(signer.client.put("/"), "UnknownOperationException")


def test_limits_are_told_as_clients_know_them(compatible: httpx.Client) -> None:
    limited = open_signer(compatible, limits=KeyLimits(requests_per_minute=2, faces=1))
    two = {"Bytes": photo_of(1, 2)}
    answer = limited.call("IndexFaces", CollectionId=limited.collection, Image=two)
    expect(answer, "ServiceQuotaExceededException")
    assert limited.ask("DescribeCollection")["FaceCount"] == 0
    expect(limited.call("ListCollections"), "ProvisionedThroughputExceededException")


def test_whoever_cannot_sign_uses_up_no_limit(compatible: httpx.Client) -> None:
    limited = open_signer(compatible, limits=KeyLimits(requests_per_minute=1))
    for _ in range(3):
        expect(replace(limited, secret="wrong").call("ListCollections"), "InvalidSignatureException")
    assert limited.call("ListCollections").status_code == 200


def test_what_takes_too_long_has_the_same_shape(serve: Serve, tmp_path: Path) -> None:
    with serve(data=tmp_path, compatible="rekognition", request_seconds=0.3) as client:

        def drip() -> Iterator[bytes]:
            yield b"{"
            time.sleep(1)
            yield b"}"

        signer = open_signer(client)
        headers = sign(signer, "RekognitionService.ListCollections", b"{}")
        answer = client.post("/", content=drip(), headers=headers)
        expect(answer, "ServiceUnavailableException", 503)


def test_the_family_is_off_unless_it_is_switched_on_and_not_in_the_contract(
    client: httpx.Client, compatible: httpx.Client
) -> None:
    expect_problem(client.post("/"), 405, "method_not_allowed")
    assert "/" not in compatible.get("/openapi.json").json()["paths"]
