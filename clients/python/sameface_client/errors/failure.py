"""A failure of a call: what all of them have."""

from typing import Any


class SamefaceError(Exception):
    """A failure with a stable `code`, a sentence in `detail`, and `facts` that help to act.

    `status` and `request_id` are those of the response, or None where there was none.
    """

    code = "internal"

    def __init__(
        self, detail: str, *, status: int | None = None, request_id: str | None = None, **facts: Any
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.request_id = request_id
        self.facts = facts
