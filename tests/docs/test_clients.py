"""The page about the clients shows what they do."""

import inspect
import re
from pathlib import Path

import sameface_client
from sameface.model.data_folder import DataFolder
from tests.conftest import Serve
from tests.docs.pages import ROOT, python_blocks, read_page, run_python, table_rows

PAGE = "docs/clients.md"


def test_the_blocks_in_python_run_as_one_program_and_print_what_their_comments_say(
    home: Path, real_data: DataFolder, serve: Serve, tmp_path: Path
) -> None:
    program = f"import sys; sys.path.insert(0, {str(ROOT / 'clients' / 'python')!r})\n"
    program += "\n".join(python_blocks(PAGE))
    promised = re.findall(r"^ *print\(.+\)  # (.+)$", program, re.MULTILINE)
    assert len(promised) == program.count("print(")
    networks = {"recognizer": real_data.recognizer, "detector": real_data.detector}
    with serve(data=tmp_path / "served", **networks) as client:
        printed = run_python(program.replace("http://127.0.0.1:8000", str(client.base_url)), home)
    assert sorted(printed) == sorted(promised)  # a loop prints in another order than its branches stand


def test_the_options_of_connect_are_those_of_the_code() -> None:
    documented = {name.strip("`"): default.strip("`") for name, default, _ in table_rows(PAGE, "Python")}
    for function in (sameface_client.connect, sameface_client.connect_async):
        parameters = inspect.signature(function).parameters.values()
        assert documented == {parameter.name: str(parameter.default) for parameter in parameters}


def test_the_codes_of_the_client_alone_are_on_the_page() -> None:
    for kind in (sameface_client.ConnectionFailed, sameface_client.UnexpectedAnswer):
        assert f"`{kind.code}` (`{kind.__name__}`" in read_page(PAGE)
