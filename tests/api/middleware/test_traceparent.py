"""Which `traceparent` names a trace, and that it is passed on."""

import httpx
import pytest
from starlette.datastructures import Headers

from sameface.api.middleware.traceparent import TraceParent, read_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def read(*sent: str) -> TraceParent | None:
    return read_traceparent(Headers(raw=[(b"traceparent", each.encode("latin-1")) for each in sent]))


@pytest.mark.parametrize(
    ("sent", "flags"),
    [
        (f"00-{TRACE}-{SPAN}-01", 1),
        (f"00-{TRACE}-{SPAN}-00", 0),
        (f"00-{TRACE}-{SPAN}-ff", 3),
        (f"cc-{TRACE}-{SPAN}-01", 1),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-brings", 1),
    ],
)
def test_a_valid_one_names_trace_and_span(sent: str, flags: int) -> None:
    assert read(sent) == TraceParent(TRACE, SPAN, flags)


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "-",
        "nonsense",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"cc-{TRACE}-{SPAN}-01.more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}",
        f"0x-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\u00e9",
    ],
)
def test_an_invalid_one_is_ignored(sent: str) -> None:
    assert read(sent) is None


def test_two_are_as_good_as_none() -> None:
    assert read(f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01") is None


def test_without_traces_of_its_own_the_server_passes_it_on_as_it_came(client: httpx.Client) -> None:
    sent = f"00-{TRACE}-{SPAN}-01"
    assert client.get("/health/live", headers={"traceparent": sent}).headers["traceparent"] == sent
    assert "traceparent" not in client.get("/health/live").headers
    assert "traceparent" not in client.get("/health/live", headers={"traceparent": "00-x"}).headers
