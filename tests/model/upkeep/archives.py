"""Archives line by line, and the collections beside them."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from sameface.model.photo.image import encode_png
from sameface.model.store.drafts import list_drafts
from sameface.model.store.records import Binding
from sameface.model.store.store import Store

DIMENSION = 8
BINDING = Binding(bundle="tiny", identity="abc", dimension=DIMENSION)
CROP = encode_png(np.zeros((4, 4, 3), np.uint8))


def names(store: Store, *, drafts: bool = False) -> list[str]:
    if drafts:
        return [f"{draft.draft_of} {draft.draft}" for draft in list_drafts(store)]
    return [collection.name for collection in store.collections.page()]


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write_lines(path: Path, lines: list[Any]) -> None:
    """An archive of these lines, the last of them with the right checksum."""
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines[:-1])
    last = lines[-1] | {"sha256": hashlib.sha256(content).hexdigest()}
    path.write_bytes(gzip.compress(content + json.dumps(last).encode() + b"\n"))
