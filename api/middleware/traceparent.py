"""The header `traceparent`: which trace a request belongs to, by the W3C's Trace Context."""

import re
from dataclasses import dataclass

from starlette.datastructures import Headers

VERSION = re.compile(r"(?!ff)[0-9a-f]{2}")
FIELDS = re.compile(r"(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>.*)")
PASSED_ON = 0b11  # the flags `sampled` and `random`: others are unknown to this version


@dataclass(frozen=True, slots=True)
class TraceParent:
    """A span within a trace: the caller's, or the server's own."""

    trace_id: str  # 32 digits, hexadecimal
    span_id: str  # 16
    flags: int

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"


def read_traceparent(headers: Headers) -> TraceParent | None:
    """The trace that the caller names; None without a header, or with an invalid one, which is ignored."""
    sent = headers.getlist("traceparent")
    version, _, rest = sent[0].partition("-") if len(sent) == 1 else ("", "", "")
    found = FIELDS.match(rest) if VERSION.fullmatch(version) else None
    if not found or not (int(found["trace"], 16) and int(found["span"], 16)):
        return None
    if found["more"] and (version == "00" or not found["more"].startswith("-")):
        return None
    return TraceParent(found["trace"], found["span"], int(found["flags"], 16) & PASSED_ON)
