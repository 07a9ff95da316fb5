"""The page about `sameface.open()` shows what it does, and all of it."""

import inspect
import re
from pathlib import Path

import pytest

import sameface
from sameface.collection import Collection
from sameface.in_process import Faces
from tests.conftest import Serve
from tests.docs.pages import python_blocks, read_page, run_python, table_rows
from tests.pictures import photo_of

PAGE = "docs/python.md"


def test_the_blocks_of_the_page_run_as_one_program_and_print_what_their_comments_say(home: Path) -> None:
    program = "\n".join(python_blocks(PAGE))
    promised = re.findall(r"^ *print\(.+\)  # (.+)$", program, re.MULTILINE)
    assert len(promised) == program.count("print(")
    assert run_python(program, home) == promised


def test_every_name_of_the_public_api_is_on_the_page() -> None:
    prose = re.sub(r"```.*?```", "", read_page(PAGE), flags=re.DOTALL)
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", prose))))
    assert [name for name in sameface.__all__ if name not in words] == []


def row_of(call: str) -> str:
    """The row of the page's tables that describes a call, and those that it refers to."""
    [row] = [line for line in read_page(PAGE).splitlines() if line.startswith(f"| `{call}(")]
    return row + "".join(row_of(other) for other in re.findall(r"those of `([\w.]+)`", row))


@pytest.mark.parametrize(("kind", "called"), [(Faces, "faces"), (Collection, "staff")])
def test_every_method_is_in_a_table_with_all_its_options(kind: type, called: str) -> None:
    methods = [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]
    assert len(methods) > 5
    for method in methods:
        told = re.findall(r"\w+", row_of(f"{called}.{method}"))
        _, *parameters = inspect.signature(getattr(kind, method)).parameters.values()
        options = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
        assert [option for option in options if option not in told] == [], method


def test_the_options_and_their_defaults_are_those_of_the_code() -> None:
    documented = {name.strip("`"): default.strip("`") for name, default, _ in table_rows(PAGE, "Open")}
    parameters = inspect.signature(sameface.open).parameters.values()
    assert documented == {parameter.name: str(parameter.default) for parameter in parameters}


def test_a_server_on_the_same_folder_finds_who_is_enrolled_here_and_nobody_who_is_forgotten(
    data: Path, tmp_path: Path, serve: Serve
) -> None:
    def ask() -> dict:
        answer = client.post("/v1/collections/staff/identify", files={"image": photo_of(1, noise=4)})
        return answer.json()["results"][0]

    models = data / "models"
    with (
        serve(data=tmp_path) as client,
        sameface.open(tmp_path, recognizer=models / "recogniser", detector=models / "detector") as faces,
    ):
        staff = faces.collection("staff")
        staff.enroll("ada", [photo_of(1)])
        assert ask()["match"]["person_id"] == "ada"
        staff.forget("ada")
        assert ask()["candidates"] == []


def test_people_are_listed_where_no_network_is_installed(tmp_path: Path) -> None:
    with sameface.open(tmp_path) as faces:
        assert faces.collections() == []
        with pytest.raises(sameface.SamefaceError) as failure:
            faces.detect(photo_of(1))
    assert failure.value.code == "bundle_refused"
