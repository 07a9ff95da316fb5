"""The formats of a batch by their media types, and whether Arrow can be read here."""

from importlib.util import find_spec

from sameface.api.errors import UnsupportedMediaType

NDJSON = "application/x-ndjson"
FORM = "multipart/form-data"
NPY = "application/x-npy"
ARROW = "application/vnd.apache.arrow.stream"
LIKE_NDJSON = ("application/ndjson", "application/jsonl")


def require_arrow() -> None:
    """Raise UnsupportedMediaType if the extra `arrow` is not installed."""
    if find_spec("nanoarrow") is None:
        raise UnsupportedMediaType(
            "This server reads and writes no Arrow: install sameface with the extra arrow"
            " (pip install 'sameface[arrow]'), or use application/x-ndjson."
        )
