"""The schemas of the health routes."""

from typing import Literal

from sameface.api.schemas.fields import Response


class Live(Response):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Ready(Response):
    """The networks are warm; what they run on."""

    status: Literal["ready"] = "ready"
    device: str
    provider: str
    recognizer: str
    detector: str
    index: Literal["faiss", "milvus"]
    index_fault: str | None = None
