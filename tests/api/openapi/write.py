"""Writes the `openapi.json` that is committed beside the code: `make openapi`."""

import json
from pathlib import Path

from sameface.api.app import create_app
from sameface.api.settings import Settings

OPENAPI = Path(__file__).parents[3] / "openapi.json"


def describe_api() -> str:
    """The contract as the server publishes it."""
    return json.dumps(create_app(Settings()).openapi(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    OPENAPI.write_text(describe_api(), "utf-8")
