"""What the README and its neighbours say is what the code does."""

import json
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from sameface.api.errors import PROBLEMS
from sameface.api.settings import PREFIX, Settings
from sameface.cli import ROOMS, app
from sameface.model.bundles.published import MODELS, SHIPPED
from sameface.model.errors import SamefaceError
from tests.networks import DIMENSION

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
CONSOLE = "\n".join(re.findall(r"```console\n(.*?)```", README, re.DOTALL))


def table_rows(heading: str) -> list[list[str]]:
    """The rows of the first table under a heading, without its header."""
    section = re.split(r"^#+ ", README.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_the_errors_are_those_of_the_table_in_the_code() -> None:
    documented = [(code.strip("`"), int(status)) for status, code, _ in table_rows("Errors")]
    assert documented == [(code, status) for code, (status, _) in PROBLEMS.items()]


def test_the_settings_are_those_of_the_code() -> None:
    documented = {
        variable.strip("`"): (default.strip("`"), text) for variable, default, text in table_rows("Settings")
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


def test_nothing_is_left_to_fill_in() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        assert not re.search(r"^[A-Z]{5,}$|TODO|TBD", page.read_text("utf-8"), re.MULTILINE)


def test_every_route_is_in_the_readme(client) -> None:
    for path in client.get("/openapi.json").json()["paths"]:
        assert f"{path}`" in README


def test_every_command_of_the_readme_exists() -> None:
    shown = set(re.findall(r"^sameface ([\w-]+)", CONSOLE, re.MULTILINE))
    assert shown
    assert shown <= ROOMS.keys()


@cache
def help_of(*command: str) -> str:
    """What a command says of itself."""
    answer = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_every_flag_of_the_readme_exists() -> None:
    for line in re.findall(r"^sameface ([^#\n]*--[^#\n]*)", CONSOLE, re.MULTILINE):
        command, dashes, flags = line.partition(" --")
        help_text = help_of(*command.split())
        for flag in re.findall(r"--[\w-]+", dashes + flags):
            assert flag in help_text, f"{command} has no {flag}"


@pytest.mark.parametrize("target", re.findall(r"^make ([\w-]+)", CONSOLE, re.MULTILINE))
def test_every_make_target_of_the_readme_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def run_curl(route: str, client, folder: Path) -> str:
    """The README's line for a route, with the address and the demo's folder replaced by the test's own."""
    [line] = re.findall(rf"^curl .*{route}$", CONSOLE, re.MULTILINE)
    line = line.replace("$HOME/.sameface/demo", str(folder))
    line = line.replace("http://127.0.0.1:8000", str(client.base_url).rstrip("/"))
    return subprocess.run(shlex.split(line), capture_output=True, text=True, check=True, cwd=folder).stdout


def test_the_curl_line_of_the_readme_verifies_the_portraits(real_data, serve) -> None:
    with serve(recognizer=real_data.recognizer, detector=real_data.detector) as client:
        assert '"same_person":true' in run_curl("/v1/verify", client, real_data.demo)


def test_the_curl_line_of_the_readme_sends_a_batch(client, tmp_path: Path) -> None:
    client.put("/v1/collections/staff")
    probe = {"id": "1", "embedding": [1.0] + [0.0] * (DIMENSION - 1)}
    (tmp_path / "probes.ndjson").write_text(json.dumps(probe))
    assert '{"id":"1","results":[' in run_curl("/identify/batch", client, tmp_path)


def test_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_compose_sets_only_what_is_a_setting() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    for service in (services["sameface"], services["sameface-gpu"]):
        assert set(service["environment"]) <= known
        assert service["ports"] == ["127.0.0.1:8000:8000"]
        assert Settings(
            **{
                name.removeprefix(PREFIX).lower(): value
                for name, value in service["environment"].items()
                if not value.startswith("${")
            }
        )
    assert services["sameface-gpu"]["profiles"] == ["gpu"]


def test_what_watches_is_on_loopback_and_its_files_are_there() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    watching = [service for service in services.values() if service.get("profiles") == ["monitoring"]]
    assert len(watching) == 2
    for service in watching:
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        files = [volume.split(":")[0] for volume in service["volumes"] if volume.startswith("./")]
        assert files
        assert all((ROOT / file).is_file() for file in files)


def test_the_dashboard_shows_only_what_is_measured(client) -> None:
    text = (ROOT / "monitoring" / "dashboard.json").read_text("utf-8")
    assert json.loads(text)["panels"]
    client.get("/nowhere")
    measured = set(re.findall(r"^# TYPE (\w+)", client.get("/metrics").text, re.MULTILINE))
    for name in re.findall(r"sameface_\w+", text):
        assert re.sub(r"_(bucket|sum|count)$", "", name) in measured, name


def test_the_image_runs_as_nobody_special_and_knows_its_health() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    assert re.search(r"^USER sameface$", dockerfile, re.MULTILINE)
    assert "HEALTHCHECK" in dockerfile
    assert set(re.findall(r"SAMEFACE_(\w+)=", dockerfile)) <= {name.upper() for name in Settings.model_fields}


def test_the_card_of_the_default_model_says_what_is_shipped() -> None:
    published = MODELS["sface"].contract
    shipped = json.loads((SHIPPED / published.name / f"{published.calibration}.json").read_text("utf-8"))
    card = (ROOT / "docs" / "models" / f"{published.name}.md").read_text("utf-8")
    for place, decade in enumerate(shipped["decades"], 1):
        assert f"| 1e-{place} | {decade['threshold']:.4f} | {decade['fnmr']['value']:.2%} (" in card
    assert f"{shipped['evidence']['impostor_pairs']:,} impostor pairs" in card
    assert f"from {shipped['curve']['fmrs'][-1]:.1e} up" in card


def test_the_commands_of_evaluation_exist() -> None:
    page = (ROOT / "docs" / "evaluation.md").read_text("utf-8")
    for command, flags in re.findall(r"^sameface (\w+)(.*)$", page, re.MULTILINE):
        for flag in re.findall(r"--[\w-]+", flags):
            assert flag in help_of(command), f"{command} has no {flag}"


def test_the_codes_of_evaluation_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "evaluation.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) - {"not_installed"}
    assert documented <= {error.code for error in SamefaceError.__subclasses__()}
