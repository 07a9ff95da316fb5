"""Every failure of a call, an exception per code of docs/errors.md."""

from typing import Any

from sameface_client.errors import of_requests, of_servers
from sameface_client.errors.failure import SamefaceError
from sameface_client.errors.of_requests import *  # noqa: F403
from sameface_client.errors.of_servers import *  # noqa: F403

__all__ = ["SamefaceError"]
__all__ += of_requests.__all__
__all__ += of_servers.__all__

BY_CODE = {kind.code: kind for kind in SamefaceError.__subclasses__()}
ENVELOPE = {"type", "title", "status", "code", "detail", "request_id"}  # of a problem; the rest are facts


def to_error(problem: dict[str, Any]) -> SamefaceError:
    """The exception of a problem+json; a code that a newer server has invented is a plain SamefaceError."""
    code = str(problem["code"])
    error = BY_CODE.get(code, SamefaceError)(
        str(problem.get("detail", code)),
        status=problem.get("status"),
        request_id=problem.get("request_id"),
        **{name: value for name, value in problem.items() if name not in ENVELOPE},
    )
    error.code = code
    return error
