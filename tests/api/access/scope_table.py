"""Asks every route with a key of every scope, and writes down who is let in: `make openapi`."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx

from sameface.model.access.keys import SCOPES
from tests.api.keys import add_key, bearer, store_of
from tests.api.openapi.contract import CONTRACT
from tests.pictures import photo_of

PAGE = Path(__file__).parents[3] / "docs" / "access.md"
BEGINS, ENDS = "<!-- the table of scopes, written by `make openapi` -->\n", "<!-- its end -->\n"
REFUSED = {401: "unauthorized", 403: "forbidden"}

PROBE = {"files": {"probe": photo_of(1)}}
VERIFYING = {
    "POST /v1/verify, two photos": {"files": {"probe": photo_of(1), "reference": photo_of(1)}},
    "POST /v1/verify, an enrolled person": {**PROBE, "data": {"collection": "any", "person_id": "any"}},
}


def list_routes() -> Iterator[tuple[str, str, str, dict]]:
    """Every route: how the table names it, its method, an address of it, and a request."""
    for path, methods in CONTRACT["paths"].items():
        for method in methods:
            address = re.sub(r"{\w+}", "any", path)
            named = f"{method.upper()} {path}"
            several = {name: sent for name, sent in VERIFYING.items() if name.startswith(f"{named},")}
            for name, sent in several.items() or [(named, {})]:
                yield name, method.upper(), address, sent


def write_table(client: httpx.Client) -> str:
    """The table of who is let in, as the server behind `client` answers."""
    store = store_of(client)
    callers = {scope: bearer(add_key(store, scope)[0]) for scope in SCOPES}
    client.app.state.keys.expect_change()
    lines = [
        f"| route | no key | {' | '.join(f'`{scope}`' for scope in SCOPES)} |",
        "|---|---|---|---|---|---|",
    ]
    for name, method, address, sent in list_routes():
        answers = [
            client.request(method, address, headers=headers, **sent) for headers in ({}, *callers.values())
        ]
        cells = ["no" if answer.status_code in REFUSED else "yes" for answer in answers]
        for answer in answers:
            code = REFUSED.get(answer.status_code)
            assert code is None or answer.json()["code"] == code, f"{name}: {answer.text}"
        route, comma, which = name.partition(",")
        lines.append(f"| `{route}`{comma}{which} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def replace_table(page: str, table: str) -> str:
    """The page with another table."""
    before, _, rest = page.partition(BEGINS)
    return f"{before}{BEGINS}{table}{ENDS}{rest.partition(ENDS)[2]}"
