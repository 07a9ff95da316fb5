"""Every path and name on the map of the code exists, and every room is on it."""

import ast
import re
import tomllib
from collections.abc import Iterator
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
