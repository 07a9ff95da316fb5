"""Calls every operation of Rekognition about faces by boto3, and prints what it returned as JSON."""

import json
import sys
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

address, folder = sys.argv[1:]
keys = json.loads((Path(folder) / "keys.json").read_text())
one, another, stranger, two, nobody = (
    {"Bytes": (Path(folder) / f"{name}.png").read_bytes()}
    for name in ("one", "another", "stranger", "two", "nobody")
)


def connect(key_id: str, secret: str) -> object:
    """A client that sends what it is given, also what boto3 itself would refuse, and tries once."""
    config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    return boto3.client(
        "rekognition",
        endpoint_url=address,
        region_name="eu-west-1",
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        config=config,
    )


client, said = connect(*keys["all"]), {}
reader, limited = connect(*keys["reader"]), connect(*keys["limited"])
errors = client.exceptions


def refused(call: object, **options: object) -> list[object]:
    """The class, code and status of the error that a call raises, and whether it has an id and words."""
    try:
        call(**options)
    except ClientError as error:
        found, about = error.response["Error"], error.response["ResponseMetadata"]
        whole = bool(about["RequestId"]) and bool(found["Message"])
        return [type(error).__name__, found["Code"], about["HTTPStatusCode"], whole]
    return []


# Collections.
said["created"] = client.create_collection(CollectionId="staff")
for name in ("visitors-1", "visitors-2"):
    client.create_collection(CollectionId=name)
pages = client.get_paginator("list_collections").paginate(PaginationConfig={"PageSize": 2})
said["collections"] = [page["CollectionIds"] for page in pages]
said["deleted collection"] = client.delete_collection(CollectionId="visitors-2")["StatusCode"]

# Faces.
staff = {"CollectionId": "staff"}
indexed = client.index_faces(**staff, Image=one, ExternalImageId="ada:1", DetectionAttributes=["ALL"])
said["indexed"] = indexed["FaceRecords"]
ada = indexed["FaceRecords"][0]["Face"]["FaceId"]
again = client.index_faces(**staff, Image=another, ExternalImageId="ada:2")["FaceRecords"][0]["Face"][
    "FaceId"
]
crowd = client.index_faces(**staff, Image=two, MaxFaces=1, QualityFilter="NONE")
said["left out"] = [face["Reasons"] for face in crowd["UnindexedFaces"]]
said["indexed nobody"] = client.index_faces(**staff, Image=nobody)["FaceRecords"]
bob = client.index_faces(**staff, Image=stranger)["FaceRecords"][0]["Face"]["FaceId"]
pages = client.get_paginator("list_faces").paginate(**staff, PaginationConfig={"PageSize": 3})
said["faces"] = [len(page["Faces"]) for page in pages]
said["two of them"] = client.list_faces(**staff, FaceIds=[ada, bob])["Faces"]
found = client.search_faces_by_image(**staff, Image=another)
said["searched box"] = found["SearchedFaceBoundingBox"]
said["found"] = [match["Face"].get("ExternalImageId") for match in found["FaceMatches"]]
said["similarities"] = [match["Similarity"] for match in found["FaceMatches"]]
said["one alone"] = len(client.search_faces_by_image(**staff, Image=another, MaxFaces=1)["FaceMatches"])
similar = client.search_faces(**staff, FaceId=ada)
said["similar"] = [match["Face"].get("ExternalImageId") for match in similar["FaceMatches"]]
compared = client.compare_faces(SourceImage=one, TargetImage=two)
said["compared"] = [match["Similarity"] for match in compared["FaceMatches"]]
said["unmatched"] = len(compared["UnmatchedFaces"])
said["detected"] = client.detect_faces(Image=two, Attributes=["ALL"])["FaceDetails"]

# Users.
token = {"ClientRequestToken": "once"}
client.create_user(**staff, UserId="Ada:L", **token)
client.create_user(**staff, UserId="Ada:L", **token)
said["token of another"] = refused(client.create_user, **staff, UserId="other", **token)
client.create_user(**staff, UserId="bob")
said["new users"] = client.list_users(**staff)["Users"]
said["associated"] = client.associate_faces(**staff, UserId="Ada:L", FaceIds=[ada, again, bob, "nothing"])
client.associate_faces(**staff, UserId="bob", FaceIds=[bob])
said["of another"] = client.associate_faces(**staff, UserId="bob", FaceIds=[ada])
pages = client.get_paginator("list_users").paginate(**staff, PaginationConfig={"PageSize": 1})
said["users"] = [page["Users"] for page in pages]
said["described"] = client.describe_collection(**staff)
said["faces of ada"] = [face["FaceId"] == ada for face in client.list_faces(**staff, UserId="Ada:L")["Faces"]]
matches = client.search_users_by_image(**staff, Image=another)
said["user found"] = [match["User"] for match in matches["UserMatches"]]
found = client.search_faces_by_image(**staff, Image=another)["FaceMatches"]
said["faces of users found"] = [
    [match["Face"]["ExternalImageId"], match["Face"]["UserId"]] for match in found
]
said["unsearched"] = [
    face["Reasons"] for face in client.search_users_by_image(**staff, Image=two)["UnsearchedFaces"]
]
said["deletion refused"] = client.delete_faces(**staff, FaceIds=[ada, "nothing"])
said["disassociated"] = client.disassociate_faces(**staff, UserId="Ada:L", FaceIds=[ada, bob, "nothing"])
client.delete_user(**staff, UserId="bob")
said["users left"] = [user["UserId"] for user in client.list_users(**staff)["Users"]]
said["faces left"] = client.describe_collection(**staff)["FaceCount"]
said["deleted"] = client.delete_faces(**staff, FaceIds=[ada, bob])["DeletedFaces"] == [ada, bob]
said["found no more"] = client.search_faces_by_image(**staff, Image=stranger)["FaceMatches"]

# What is refused, by the classes of boto3.
by_image = client.search_faces_by_image
garbage, cut = {"Bytes": b"this is no photo"}, {"Bytes": one["Bytes"][:500]}
large = {"Bytes": b"\xff\xd8\xff" + bytes(10_000_001)}
said["refused"] = {
    "taken": refused(client.create_collection, **staff),
    "no such collection": refused(client.list_faces, CollectionId="nothing"),
    "no such face": refused(client.search_faces, **staff, FaceId="nothing"),
    "no such user": refused(client.delete_user, **staff, UserId="nobody"),
    "user of a face": refused(client.delete_user, **staff, UserId=again),
    "user taken": refused(client.create_user, **staff, UserId="Ada:L"),
    "no face": refused(by_image, **staff, Image=nobody),
    "no face to compare": refused(client.compare_faces, SourceImage=nobody, TargetImage=one),
    "text": refused(client.detect_faces, Image=garbage),
    "broken": refused(client.index_faces, **staff, Image=cut),
    "too large": refused(client.detect_faces, Image=large),
    "far too large": refused(client.detect_faces, Image={"Bytes": bytes(20_000_000)}),
    "bucket": refused(client.detect_faces, Image={"S3Object": {"Bucket": "a", "Name": "b"}}),
    "bad option": refused(by_image, **staff, Image=one, MaxFaces=0),
    "bad filter": refused(by_image, **staff, Image=one, QualityFilter="BEST"),
    "bad name": refused(client.create_collection, CollectionId="a b"),
    "bad page": refused(client.list_faces, **staff, NextToken="??"),
    "unknown operation": refused(client.detect_labels, Image=one),
    "no such key": refused(connect("nobody", "secret").list_collections),
    "wrong secret": refused(connect(keys["all"][0], "wrong").list_collections),
    "key of another type": refused(connect(*keys["native"]).list_collections),
    "scope": refused(reader.create_collection, CollectionId="visitors-3"),
    "collection of another": refused(reader.describe_collection, **staff),
    "quota": refused(limited.index_faces, **staff, Image=one),
    "limit": refused(limited.list_collections),
}
said["caught"] = []
for call, kind in (
    (lambda: client.describe_collection(CollectionId="nothing"), errors.ResourceNotFoundException),
    (lambda: client.detect_faces(Image=garbage), errors.InvalidImageFormatException),
    (lambda: client.detect_faces(Image=large), errors.ImageTooLargeException),
    (lambda: by_image(**staff, Image=nobody), errors.InvalidParameterException),
):
    try:
        call()
    except kind:
        said["caught"].append(kind.__name__)
print(json.dumps(said, default=str))
