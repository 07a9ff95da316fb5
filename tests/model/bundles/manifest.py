"""A contract to vary, and a way to change a manifest by hand."""

import json
from pathlib import Path
from typing import Any

from sameface.model.bundles.bundle import Bundle
from sameface.model.bundles.contract import Contract
from sameface.model.bundles.published import ARCFACE_TEMPLATE

CONTRACT = Contract(
    name="a-model",
    kind="recogniser",
    input_size=(112, 112),
    colour_order="rgb",
    template=ARCFACE_TEMPLATE,
    dimension=128,
)


def rewrite(bundle: Bundle, **changes: Any) -> Path:
    """Change the manifest by hand; None drops a key."""
    path = bundle.folder / "bundle.json"
    fields = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in fields.items() if value is not None}))
    return bundle.folder
