"""Every route with every scope: the table of docs/access.md is what a server answers."""

import os
from pathlib import Path

from tests.api.access.scope_table import PAGE, list_routes, replace_table, write_table
from tests.conftest import Serve


def test_the_table_of_scopes_is_what_the_server_answers(serve: Serve, tmp_path: Path) -> None:
    with serve(data=tmp_path) as client:
        table = write_table(client)
    page = PAGE.read_text("utf-8")
    if os.environ.get("WRITE_TABLES"):  # `make openapi`
        PAGE.write_text(replace_table(page, table), "utf-8")
        return
    assert page == replace_table(page, table), "run `make openapi` and look at the difference"


def test_every_route_is_asked() -> None:
    assert len(list(list_routes())) > 25
