"""What clients of CompreFace send: photos as parts of a form or as base64 in JSON, names, and embeddings."""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, model_validator

from sameface.api.compreface.errors import NotBase64, PartMissing
from sameface.api.schemas.fields import MAX_NUMBERS, read_photo

MOST_EMBEDDINGS = 1000
MOST_IDS = 10_000


def read_file(value: Any) -> Any:
    """The bytes of a photo: a form has them as they are, JSON as base64, alone or in a data URL."""
    try:
        return read_photo(value if isinstance(value, bytes) else {"base64": value})
    except ValueError:
        raise NotBase64("Provided value is not Base64") from None


File = Annotated[bytes, BeforeValidator(read_file)]


class Photos(BaseModel):
    """A body with photos; its other fields may be options."""

    model_config = ConfigDict(extra="allow")
    parts: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def need_parts(cls, sent: Any) -> Any:
        """Refuse a body that lacks a photo."""
        missing = [part for part in cls.parts if not isinstance(sent, dict) or not sent.get(part)]
        if missing:
            raise PartMissing(f"Required part {missing[0]} is missing")
        return sent

    @property
    def fields(self) -> dict[str, Any]:
        """The fields beside the photos."""
        return {name: str(value) for name, value in (self.model_extra or {}).items()}


class OnePhoto(Photos):
    """A photo."""

    parts = ("file",)
    file: File


class TwoPhotos(Photos):
    """A photo of one person, and one to look for that person in."""

    parts = ("source_image", "target_image")
    source_image: File
    target_image: File


class SubjectBody(BaseModel):
    """A subject's name."""

    subject: str = ""


class ImageIds(RootModel[list[str]]):
    """The ids of faces."""

    root: list[str] = Field(max_length=MOST_IDS)


Numbers = Annotated[list[float], Field(max_length=MAX_NUMBERS)]


class Embeddings(BaseModel):
    """Embeddings to look for."""

    embeddings: list[Numbers] = Field(max_length=MOST_EMBEDDINGS)


class EmbeddingPairs(BaseModel):
    """An embedding, and those that it is compared with."""

    source: Numbers
    targets: list[Numbers] = Field(max_length=MOST_EMBEDDINGS)
