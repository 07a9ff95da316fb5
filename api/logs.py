"""Log lines as text or as JSON, in one form for the server, uvicorn and all libraries."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from sameface.api.request_context import current_context

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonLines(logging.Formatter):
    """One JSON object per line; a line that is written for a request has its ids."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record: what was said, the record's `fields`, ids of request and trace, exception."""
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if context := current_context():
            line["request_id"] = context.request_id
            if context.trace:
                line["trace_id"] = context.trace.trace_id
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def start_logging(level: str, form: str) -> None:
    """Log sameface and uvicorn at `level`, all else from WARNING: below, libraries may quote a request."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level="WARNING", handlers=[handler], force=True)
    logging.captureWarnings(True)
    for name in ("sameface", "uvicorn"):
        logging.getLogger(name).setLevel(level.upper())
