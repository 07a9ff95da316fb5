"""Every path and name on the map of the code exists, every room is on it, and the code keeps its shape."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, read_page, table_rows

MAP = "ARCHITECTURE.md"
LINES = 200
CONTRACTS = tomllib.loads(read_page("pyproject.toml"))["tool"]["importlinter"]["contracts"]
EDGE = {f"sameface.{name}" for name in ("__init__", "__main__", "cli")}  # which composes the rooms
PROSE = re.sub(r"```.*?```", "", read_page(MAP), flags=re.DOTALL)
# Whatever looks like a path: with a slash inside or a file's ending, and perhaps a name in the file.
PLACES = sorted(set(re.findall(r"`((?:[\w.-]+/[\w./-]*|[\w-]+\.\w+)(?::[\w.]+)?)`", PROSE)))

ROOMS = ("api", "model", "training", "sameface", "benchmarks", "clients/python")
MOST_LINES = 300  # of a file
MOST_FILES = 13  # of a folder, beside __init__.py
ROWS = {"api/routes", "api/schemas", "benchmarks", "training/losses"}  # of siblings, which may be longer


def list_code(*rooms: str) -> list[Path]:
    """The files of code in these rooms; the links in sameface/ are not followed."""
    return sorted(file for room in rooms for file in (ROOT / room).rglob("*.py"))


def name_module(file: Path) -> str:
    """What other modules import a file as."""
    place = file.relative_to(ROOT).with_suffix("")
    inside = place.parts[2:] if place.parts[0] == "clients" else place.parts
    inside = ("sameface", *inside) if inside[0] in ("api", "model", "training") else inside
    return ".".join(inside).removesuffix(".__init__")


def imports_of(file: Path) -> Iterator[str]:
    """What a file may import when it is imported itself, so neither for types nor in functions."""
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def names_in(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """The functions, classes, methods and constants that a module or class defines."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from names_in(node.body, f"{prefix}{node.name}.")
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            if isinstance(target, ast.Name):
                yield prefix + target.id


@pytest.mark.parametrize("place", PLACES)
def test_what_the_map_names_exists(place: str) -> None:
    path, _, name = place.partition(":")
    assert (ROOT / path).exists()
    if name:
        defined = set(names_in(ast.parse((ROOT / path).read_text("utf-8")).body))
        assert name in defined, f"{path} has no {name}"


def test_every_room_is_on_the_map() -> None:
    shown = {folder.strip("`").rstrip("/") for folder, _ in table_rows(MAP, "The rooms")}
    homes = [ROOT / name for name in ("api", "model", "training", "benchmarks", "sameface")]
    rooms = {init.parent for home in homes for init in Path(home).rglob("__init__.py")}
    real = {str(room.relative_to(ROOT)) for room in rooms if (ROOT / "sameface") not in room.parents}
    assert sorted(real - shown) == []


def test_the_layers_are_those_of_the_contract() -> None:
    [layers] = [contract["layers"] for contract in CONTRACTS if contract["type"] == "layers"]
    [shown] = re.findall(r"```text\n(.*?)```", read_page(MAP), re.DOTALL)
    assert shown.splitlines() == [layer.replace("sameface.", "") for layer in layers]


def test_every_module_of_model_and_of_the_public_api_is_in_a_layer_and_knows_no_http() -> None:
    [layers] = [contract["layers"] for contract in CONTRACTS if contract["type"] == "layers"]
    layered = {module for layer in layers for module in layer.split(" | ")}
    public = {f"sameface.{file.stem}" for file in (ROOT / "sameface").glob("*.py")} - EDGE
    places = [place for place in (ROOT / "model").iterdir() if place.is_dir() or place.suffix == ".py"]
    inside = {f"sameface.model.{place.stem}" for place in places if not place.name.startswith("_")}
    assert sorted(public | inside) == sorted(layered)
    for contract in CONTRACTS:
        if "fastapi" in contract.get("forbidden_modules", ()):
            assert sorted(public - set(contract["source_modules"])) == []


def test_the_map_stays_a_map() -> None:
    assert len(read_page(MAP).splitlines()) <= LINES


def test_no_file_of_code_is_too_long() -> None:
    long = {file for file in list_code(*ROOMS) if len(file.read_text("utf-8").splitlines()) > MOST_LINES}
    assert sorted(str(file.relative_to(ROOT)) for file in long) == []


def test_no_folder_of_code_is_too_full() -> None:
    files = Counter(file.parent for file in list_code(*ROOMS) if file.name != "__init__.py")
    full = {str(folder.relative_to(ROOT)) for folder, count in files.items() if count > MOST_FILES}
    assert sorted(full - ROWS) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    files = {name_module(file): file for file in list_code(*ROOMS)}
    graph = {name: set(imports_of(file)) & (files.keys() - {name}) for name, file in files.items()}
    assert len(graph["sameface.model.verify"]) > 5
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
