"""What the Dockerfile, the compose file and the dashboard name exists."""

import json
import re

import pytest
import yaml

from sameface.api.settings import PREFIX, Settings
from tests.docs.pages import ROOT


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


def test_images_for_cpus_compute_in_bf16_where_the_cpu_does() -> None:
    """Without OpenVINO the precision `auto` would always be exact, and nobody would be told."""
    dockerfile, compose = ((ROOT / name).read_text("utf-8") for name in ("Dockerfile", "docker-compose.yml"))
    assert re.findall(r"^ARG EXTRA=(.+)$", dockerfile, re.MULTILINE) == ["cpu,openvino"]
    assert re.findall(r"EXTRA:-([\w,]+)", compose) == ["cpu,openvino"]


def test_the_image_runs_as_nobody_special_and_knows_its_health() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    assert re.search(r"^USER sameface$", dockerfile, re.MULTILINE)
    assert "HEALTHCHECK" in dockerfile
    assert set(re.findall(r"SAMEFACE_(\w+)=", dockerfile)) <= {name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize("file", ["Makefile", "Dockerfile"])
def test_arrow_needs_no_extra_that_a_user_would_have_to_know(file: str) -> None:
    installed = re.findall(r"""install .*["']\.\[(.*)\]["']""", (ROOT / file).read_text("utf-8"))
    assert installed
    assert all("arrow" in extras.replace("$(ENGINE)", "").split(",") for extras in installed)
