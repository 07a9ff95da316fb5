"""The options of CompreFace's requests: in the address, or as fields of the form."""

import re
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from sameface.api.body.read_body import validate
from sameface.api.compreface.errors import BadPredictionCount, BadSubject, FieldEmpty, ParameterMissing

LONGEST_SUBJECT = 50
UNFIT_FOR_SUBJECTS = re.compile(r"[;/\\\x00-\x1f]")
MOST_PREDICTIONS = 100
# One client joins options by a second question mark; in a value it would be written %3F.
SECOND_QUESTION_MARK = re.compile(
    r"\?(?=(subject|limit|det_prob_threshold|prediction_count|face_plugins|status)=)"
)


def split_plugins(value: Any) -> Any:
    """The plug-ins of a comma list."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def check_prediction_count(value: int) -> int:
    """Refuse a count below 1, and lower one above `MOST_PREDICTIONS` to it."""
    if value < 1:
        raise BadPredictionCount("prediction_count should be equal or greater than 1")
    return min(value, MOST_PREDICTIONS)


class Options(BaseModel):
    """What a client may ask for; unknown options and plug-ins are ignored, as CompreFace does."""

    model_config = ConfigDict(extra="ignore")

    limit: int = Field(0, ge=0)  # of faces; 0: all
    det_prob_threshold: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    prediction_count: Annotated[int, AfterValidator(check_prediction_count)] = 1
    face_plugins: Annotated[list[str], BeforeValidator(split_plugins)] = []
    status: bool = False
    page: int = Field(0, ge=0, le=10**9)
    size: int = Field(20, ge=1, le=10_000)
    subject: str | None = None

    @property
    def named_subject(self) -> str:
        """The subject, which must be named."""
        if self.subject is None:
            raise ParameterMissing("Missing parameter: subject")
        return check_subject(self.subject)


def read_options(request: Request, fields: dict[str, Any] | None = None) -> Options:
    """The options of a request, in its address or among the `fields` of its form; empty ones are left out."""
    query = SECOND_QUESTION_MARK.sub("&", request.url.query)
    sent = (fields or {}) | dict(parse_qsl(query, keep_blank_values=True))
    return validate(Options, {name: value for name, value in sent.items() if value or name == "subject"})


async def get_options(request: Request) -> Options:
    """The options in the address of a request."""
    return read_options(request)


def check_subject(subject: str) -> str:
    """Refuse a subject that is empty, too long, or not fit for a path."""
    if not subject.strip():
        raise FieldEmpty("Subject name cannot be empty")
    if len(subject) > LONGEST_SUBJECT or UNFIT_FOR_SUBJECTS.search(subject):
        raise BadSubject(f"Subject name should have 1 to {LONGEST_SUBJECT} characters, and none of ; / \\")
    return subject


Chosen = Annotated[Options, Depends(get_options)]
