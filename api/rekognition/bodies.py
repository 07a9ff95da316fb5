"""What clients of Rekognition send; names are theirs, in JSON `CollectionId` for `collection_id`."""

import base64
import binascii
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_pascal

from sameface.api.rekognition.errors import NoBucketHere
from sameface.api.schemas.fields import Id

MOST_FACES = 4096  # of one answer
MOST_OF_A_USER = 100  # faces that are given to a user at once, or taken away


def read_image(value: Any) -> Any:
    """The bytes of an image, which JSON has as base64."""
    if not isinstance(value, dict):
        raise ValueError("should have Bytes")
    if "Bytes" not in value and "S3Object" in value:
        raise NoBucketHere("There is no S3 here: send the image as Bytes.")
    try:
        return base64.b64decode(value["Bytes"], validate=True)
    except (KeyError, TypeError, binascii.Error) as error:
        raise ValueError("should have Bytes, which are base64") from error


Image = Annotated[bytes, BeforeValidator(read_image)]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
PageSize = Annotated[int, Field(ge=1, le=MOST_FACES)]
QualityFilter = Literal["NONE", "AUTO", "LOW", "MEDIUM", "HIGH"]
FaceIds = Annotated[list[str], Field(min_length=1, max_length=MOST_FACES)]
UserId = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.:-]+$", max_length=128)]
Token = Annotated[str, Field(min_length=1, max_length=64)]


class Body(BaseModel):
    """A request; what this server does not know is ignored, as AWS does."""

    model_config = ConfigDict(alias_generator=to_pascal, extra="ignore")

    collection_id: Id | None = None


class InCollection(Body):
    """A request about one collection."""

    collection_id: Id


class Page(Body):
    """Which page of a list."""

    max_results: PageSize = 1000
    next_token: str | None = Field(None, max_length=1000)


class CollectionPage(Page, InCollection):
    """Which page of a list in a collection."""


class OnePhoto(Body):
    """A photo."""

    image: Image


class TwoPhotos(Body):
    """A photo of one person, and one to look for that person in."""

    source_image: Image
    target_image: Image
    similarity_threshold: Percent = 80.0
    quality_filter: QualityFilter = "NONE"


class PhotoToIndex(InCollection):
    """A photo whose faces are enrolled."""

    image: Image
    external_image_id: str | None = Field(None, pattern=r"^[a-zA-Z0-9_.:-]+$", max_length=255)
    detection_attributes: list[str] = []
    max_faces: int | None = Field(None, ge=1)
    quality_filter: QualityFilter = "AUTO"


class FaceList(CollectionPage):
    """Which faces of a collection to list."""

    face_ids: FaceIds | None = None
    user_id: UserId | None = None


class SomeFaces(InCollection):
    """Faces of a collection."""

    face_ids: FaceIds


class FaceToSearch(InCollection):
    """A face of a collection, whose like are looked for."""

    face_id: Id
    max_faces: int = Field(80, ge=1, le=MOST_FACES)
    face_match_threshold: Percent = 80.0


class PhotoToSearch(InCollection):
    """A photo whose largest face is looked for among faces."""

    image: Image
    max_faces: int = Field(80, ge=1, le=MOST_FACES)
    face_match_threshold: Percent = 80.0
    quality_filter: QualityFilter = "NONE"


class PhotoOfUser(InCollection):
    """A photo whose largest face is looked for among users."""

    image: Image
    max_users: int = Field(80, ge=1, le=500)
    user_match_threshold: Percent = 80.0
    quality_filter: QualityFilter = "NONE"


class OneUser(InCollection):
    """A user; a retry with the same token makes nobody twice."""

    user_id: UserId
    client_request_token: Token | None = None


class FacesOfUser(OneUser):
    """A user, and faces to give to the user or to take away."""

    face_ids: list[str] = Field(min_length=1, max_length=MOST_OF_A_USER)
    user_match_threshold: Percent = 75.0
