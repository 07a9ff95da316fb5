"""Every table of the docs has the rows that the code has."""

import dataclasses
import importlib
import json
import re

from sameface.api.errors import PROBLEMS
from sameface.api.settings import PREFIX, Settings
from sameface.model.bundles.contract import Contract
from sameface.model.bundles.published import MODELS, SHIPPED
from sameface.model.errors import SamefaceError
from tests.docs.pages import ROOT, read_page, table_rows

for room in ("model.measurement", "model.upkeep", "training"):
    importlib.import_module(f"sameface.{room}.errors")  # whose codes are known once it is imported


def test_the_errors_are_those_of_the_table_in_the_code() -> None:
    documented = [
        (code.strip("`"), int(status)) for status, code, _ in table_rows("docs/errors.md", "Over HTTP")
    ]
    assert documented == [(code, status) for code, (status, _) in PROBLEMS.items()]


def test_the_settings_are_those_of_the_code() -> None:
    documented = {
        variable.strip("`"): (default.strip("`"), text)
        for variable, default, text in table_rows("docs/operations.md", "Settings")
    }
    expected = {
        f"{PREFIX}{name.upper()}": (str(field.default) if field.default else "", field.description)
        for name, field in Settings.model_fields.items()
    }
    assert documented == expected


def test_every_error_code_has_a_test() -> None:
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests" / "api").rglob("test_*.py"))
    untested = [code for code in PROBLEMS if f'"{code}"' not in tests]
    assert untested == []


def test_the_codes_of_the_command_line_are_those_of_the_code() -> None:
    documented = {code.strip("`") for code, _ in table_rows("docs/errors.md", "On the command line")}
    assert (
        documented - {"not_installed", "usage"}
        == {error.code for error in SamefaceError.__subclasses__()} - PROBLEMS.keys()
    )


def test_every_route_is_in_the_docs(client) -> None:
    documented = {route.strip("`") for route, *_ in table_rows("docs/http.md", "Routes")}
    for contract in (client.get("/openapi.json").json(), json.loads(read_page("openapi.json"))):
        assert documented == {
            f"{method.upper()} {path}" for path, methods in contract["paths"].items() for method in methods
        }


def test_the_warnings_of_an_enrolment_are_those_of_the_contract() -> None:
    documented = {code.strip("`") for code, _ in table_rows("docs/gallery.md", "Warnings")}
    schemas = json.loads(read_page("openapi.json"))["components"]["schemas"].values()
    codes = [schema.get("properties", {}).get("code", {}).get("enum", []) for schema in schemas]
    assert documented in [set(enum) for enum in codes]


def test_the_keys_of_a_contract_are_those_of_the_code() -> None:
    documented = {
        key
        for keys, _ in table_rows("docs/bundles.md", "Bring your own recogniser")
        for key in keys.split(", ")
    }
    assert documented == {f"`{field.name}`" for field in dataclasses.fields(Contract)}


def test_the_metrics_are_those_that_are_measured(client) -> None:
    documented = {name.strip("`") for name, _ in table_rows("docs/operations.md", "Metrics")}
    assert documented == set(re.findall(r"^# TYPE (\w+)", client.get("/metrics").text, re.MULTILINE))


def test_the_card_of_the_default_model_says_what_is_shipped() -> None:
    published = MODELS["sface"].contract
    shipped = json.loads((SHIPPED / published.name / f"{published.calibration}.json").read_text("utf-8"))
    card = read_page(f"docs/models/{published.name}.md")
    for place, decade in enumerate(shipped["decades"], 1):
        assert f"| 1e-{place} | {decade['threshold']:.4f} | {decade['fnmr']['value']:.2%} (" in card
    assert f"{shipped['evidence']['impostor_pairs']:,} impostor pairs" in card
    assert f"from {shipped['curve']['fmrs'][-1]:.1e} up" in card


def test_the_codes_of_evaluation_are_those_of_the_code() -> None:
    page = read_page("docs/evaluation.md")
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) - {"not_installed"}
    assert documented <= {error.code for error in SamefaceError.__subclasses__()}
