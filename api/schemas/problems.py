"""The schema of every failure."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from sameface.api.schemas.people import Rejection


class InvalidField(TypedDict):
    """A field that does not fit, and what is wrong with it."""

    field: str
    problem: str


class Problem(TypedDict):
    """Why a request failed (RFC 9457), and the facts that help to act."""

    type: Annotated[str, Field(description="The code as a URI.")]
    title: Annotated[str, Field(description="What the code means.")]
    status: int
    code: Annotated[str, Field(description="Stable: decide by it, never by the text.")]
    detail: Annotated[str, Field(description="What exactly happened.")]
    request_id: Annotated[str, Field(description="The server's log has the request under it.")]
    errors: NotRequired[Annotated[list[InvalidField], Field(description="The fields that do not fit.")]]
    image: NotRequired[Annotated[str, Field(description="The field of the photo in question.")]]
    rejected: NotRequired[Annotated[list[Rejection], Field(description="Every photo that was rejected.")]]
    faces_found: NotRequired[int]
    issues: NotRequired[Annotated[list[str], Field(description="What is wrong with the face.")]]
    limit: NotRequired[Annotated[float, Field(description="The limit that was not kept.")]]
    lowest_supported: NotRequired[Annotated[float, Field(description="The lowest rate to ask for.")]]
    calibration: NotRequired[Annotated[str, Field(description="The calibration that does not support it.")]]
    model: NotRequired[Annotated[str, Field(description="The model whose embeddings are meant.")]]
    line: NotRequired[Annotated[int, Field(description="The number of the entry in a batch, from 1.")]]
    reason: NotRequired[Annotated[str, Field(description="Why the gallery's file is of no use.")]]
    retry_after_seconds: NotRequired[int]
