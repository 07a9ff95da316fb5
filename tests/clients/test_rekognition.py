"""Amazon's own client, which nobody here wrote, works unchanged."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sameface.model.store.access.api_key import KeyLimits
from tests.api.keys import add_key, store_of
from tests.api.rekognition.conftest import add_signer
from tests.clients.conftest import HERE, Run
from tests.conftest import Serve
from tests.pictures import photo_of

FACE = {"FaceId", "BoundingBox", "ImageId", "Confidence", "IndexFacesModelVersion"}
REFUSED = {
    "taken": "ResourceAlreadyExistsException",
    "no such collection": "ResourceNotFoundException",
    "no such face": "InvalidParameterException",
    "no such user": "ResourceNotFoundException",
    "user of a face": "ResourceNotFoundException",
    "user taken": "ConflictException",
    "no face": "InvalidParameterException",
    "no face to compare": "InvalidParameterException",
    "text": "InvalidImageFormatException",
    "broken": "InvalidImageFormatException",
    "too large": "ImageTooLargeException",
    "far too large": "ImageTooLargeException",
    "bucket": "InvalidS3ObjectException",
    "bad option": "InvalidParameterException",
    "bad filter": "InvalidParameterException",
    "bad name": "InvalidParameterException",
    "bad page": "InvalidPaginationTokenException",
    "unknown operation": "UnknownOperationException",
    "no such key": "UnrecognizedClientException",
    "wrong secret": "InvalidSignatureException",
    "key of another type": "UnrecognizedClientException",
    "scope": "AccessDeniedException",
    "collection of another": "ResourceNotFoundException",
    "limit": "ProvisionedThroughputExceededException",
    "quota": "ServiceQuotaExceededException",
}
PHOTOS = {"one": (1,), "stranger": (3,), "two": (1, 2), "nobody": ()}


@pytest.fixture
def compatible(serve: Serve, tmp_path: Path) -> Iterator[httpx.Client]:
    with serve(data=tmp_path, compatible="rekognition") as client:
        yield client


@pytest.mark.timeout(600)
def test_every_operation_works_by_boto3(with_boto3: Run, compatible: httpx.Client, tmp_path: Path) -> None:
    for name, people in PHOTOS.items():
        (tmp_path / f"{name}.png").write_bytes(photo_of(*people))
    (tmp_path / "another.png").write_bytes(photo_of(1, noise=1))
    native_secret, native = add_key(store_of(compatible), "search")
    keys = {
        "all": add_signer(compatible),
        "reader": add_signer(compatible, ("search",), collections=["visitors-*"]),
        "limited": add_signer(compatible, limits=KeyLimits(requests_per_minute=1, faces=1)),
        "native": (native.key_id, native_secret),
    }
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    address = str(compatible.base_url).rstrip("/")
    said = json.loads(with_boto3("python", HERE / "use_boto3.py", address, tmp_path))
    expect_collections_and_faces(said)
    expect_users(said)
    assert {name: answer[1] for name, answer in said["refused"].items()} == REFUSED
    assert all(answer[2:] == [400, True] for answer in said["refused"].values())
    assert said["caught"] == [
        "ResourceNotFoundException",
        "InvalidImageFormatException",
        "ImageTooLargeException",
        "InvalidParameterException",
    ]


def expect_collections_and_faces(said: dict) -> None:
    assert said["created"]["CollectionArn"] == "arn:aws:rekognition:::collection/staff"
    assert said["created"]["FaceModelVersion"] == "tiny-recogniser"
    assert said["collections"] == [["staff", "visitors-1"], ["visitors-2"]]
    assert said["deleted collection"] == 200
    [record] = said["indexed"]
    assert record["Face"].keys() == FACE | {"ExternalImageId"}
    assert str(uuid.UUID(record["Face"]["FaceId"])) == record["Face"]["FaceId"]
    assert record["FaceDetail"].keys() == {"BoundingBox", "Confidence", "Landmarks", "Pose", "Quality"}
    assert said["left out"] == [["EXCEEDS_MAX_FACES"]]
    assert said["indexed nobody"] == []
    assert said["faces"] == [3, 1]
    assert said["two of them"][0] == record["Face"]
    assert "ExternalImageId" not in said["two of them"][1]
    assert said["searched box"] == record["Face"]["BoundingBox"]
    assert said["found"] == ["ada:2", "ada:1"]
    assert said["similarities"] == sorted(said["similarities"], reverse=True)
    assert min(said["similarities"]) >= 80
    assert (said["one alone"], said["similar"]) == (1, ["ada:2"])
    assert len(said["compared"]) == said["unmatched"] == 1
    assert said["compared"][0] > 99
    assert [len(face["Landmarks"]) for face in said["detected"]] == [5, 5]


def expect_users(said: dict) -> None:
    assert said["token of another"][1] == "IdempotentParameterMismatchException"
    ada, bob = {"UserId": "Ada:L"}, {"UserId": "bob"}
    assert said["new users"] == [user | {"UserStatus": "CREATED"} for user in (ada, bob)]
    assert len(said["associated"]["AssociatedFaces"]) == 2
    assert reasons(said["associated"]["UnsuccessfulFaceAssociations"]) == [
        "LOW_MATCH_CONFIDENCE",
        "FACE_NOT_FOUND",
    ]
    assert said["associated"]["UserStatus"] == "ACTIVE"
    [refused] = said["of another"]["UnsuccessfulFaceAssociations"]
    assert (refused["UserId"], refused["Reasons"]) == ("Ada:L", ["ASSOCIATED_TO_A_DIFFERENT_USER"])
    assert said["users"] == [[user | {"UserStatus": "ACTIVE"}] for user in (ada, bob)]
    assert (said["described"]["FaceCount"], said["described"]["UserCount"]) == (4, 2)
    assert said["faces of ada"] == [True, False]
    assert said["user found"] == [ada | {"UserStatus": "ACTIVE"}]
    assert said["faces of users found"] == [["ada:2", "Ada:L"], ["ada:1", "Ada:L"]]
    assert said["unsearched"] == [["FACE_NOT_LARGEST"]]
    assert reasons(said["deletion refused"]["UnsuccessfulFaceDeletions"]) == [
        "ASSOCIATED_TO_AN_EXISTING_USER",
        "FACE_NOT_FOUND",
    ]
    assert len(said["disassociated"]["DisassociatedFaces"]) == 1
    assert reasons(said["disassociated"]["UnsuccessfulFaceDisassociations"]) == [
        "ASSOCIATED_TO_A_DIFFERENT_USER",
        "FACE_NOT_FOUND",
    ]
    assert (said["users left"], said["faces left"]) == (["Ada:L"], 4)
    assert said["deleted"]
    assert said["found no more"] == []


def reasons(refused: list[dict]) -> list[str]:
    """The reason of each face that stays as it is."""
    return [reason for face in refused for reason in face["Reasons"]]
