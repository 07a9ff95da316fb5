"""What the files of deploy/ name exists, and what reads them would take them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from sameface.api.settings import PREFIX, Settings
from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
MANIFEST = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "sameface.yaml").read_text("utf-8")))
UNIT = DEPLOY / "systemd" / "sameface.service"
GRACE = 5  # seconds beyond draining and the longest request, for the connections to close


def find(kind: str) -> dict[str, Any]:
    [found] = [each for each in MANIFEST if each["kind"] == kind]
    return found


POD = find("Deployment")["spec"]["template"]["spec"]
[CONTAINER] = POD["containers"]


def default(name: str) -> float:
    return Settings.model_fields[name].default


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_settings_are_named(path: Path) -> None:
    text = path.read_text("utf-8").replace("SAMEFACE_NAME", "")  # which stands for all of them
    known = {name.upper() for name in Settings.model_fields} | {"SECRET_KEY_FILE"}
    assert set(re.findall(rf"{PREFIX}(\w+)", text)) <= known
    for line in re.findall(r"sameface serve (.+)", text):
        assert {flag[2:].replace("-", "_").upper() for flag in re.findall(r"--[\w-]+", line)} <= known


@pytest.mark.parametrize("each", MANIFEST, ids=lambda each: each["kind"])
def test_kubernetes_takes_the_manifest(each: dict[str, Any]) -> None:
    kubernetes_validate.validate(each, "1.33", strict=True)


def test_a_misspelt_manifest_would_be_noticed() -> None:
    misspelt = {**find("Service"), "spec": {"selectors": {"app": "sameface"}}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(misspelt, "1.33", strict=True)


def test_the_pod_has_time_to_stop_and_asks_for_health_where_it_is(client) -> None:
    variables = {each["name"].removeprefix(PREFIX).lower(): each["value"] for each in CONTAINER["env"]}
    settings = Settings(**{name: value for name, value in variables.items() if name != "config"})
    assert POD["terminationGracePeriodSeconds"] >= settings.drain_seconds + settings.request_seconds + GRACE
    readiness = CONTAINER["readinessProbe"]
    assert readiness["periodSeconds"] * readiness["failureThreshold"] < settings.drain_seconds
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert client.get(CONTAINER[probe]["httpGet"]["path"]).status_code == 200


def test_the_pod_may_do_no_more_than_it_must() -> None:
    security = CONTAINER["securityContext"]
    assert (security["readOnlyRootFilesystem"], security["allowPrivilegeEscalation"]) == (True, False)
    assert security["capabilities"] == {"drop": ["ALL"]}
    user = POD["securityContext"]["runAsUser"]
    assert f"--uid {user} sameface" in (ROOT / "Dockerfile").read_text("utf-8")
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in POD["volumes"]}
    assert (mounts["data"], mounts["tmp"]) == ("/data", "/tmp")
    assert find("PersistentVolumeClaim")["metadata"]["name"] == "sameface"


def test_no_service_sets_a_setting_of_the_pod() -> None:
    assert POD["enableServiceLinks"] is False  # SAMEFACE_PORT=tcp://10.0.0.1:80 is what Kubernetes would set


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd on this machine")
    here = str(Path(sys.executable).with_name("sameface"))
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text("utf-8").replace("/opt/sameface/bin/sameface", here))
    verified = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (verified.returncode, [line for line in verified.stderr.splitlines() if unit.name in line]) == (
        0,
        [],
    )


def test_the_unit_leaves_time_to_stop_and_reloads_by_sighup() -> None:
    lines = dict(
        line.split("=", 1) for line in UNIT.read_text("utf-8").splitlines() if re.match(r"\w+=", line)
    )
    stop = int(lines["TimeoutStopSec"].removesuffix("s"))
    assert stop >= default("drain_seconds") + default("request_seconds") + GRACE
    assert lines["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert lines["KillMode"] == "mixed"
    assert (lines["ProtectSystem"], lines["User"]) == ("strict", "sameface")


def test_traefik_asks_for_health_often_enough_and_reads_batches_to_their_end(client) -> None:
    static = yaml.safe_load((DEPLOY / "traefik" / "traefik.yml").read_text("utf-8"))
    dynamic = yaml.safe_load((DEPLOY / "traefik" / "sameface.yml").read_text("utf-8"))
    router = dynamic["http"]["routers"]["sameface"]
    assert set(router["entryPoints"]) <= static["entryPoints"].keys()
    timeouts = static["entryPoints"]["websecure"]["transport"]["respondingTimeouts"]
    assert timeouts == {"readTimeout": "0s"}
    health = dynamic["http"]["services"][router["service"]]["loadBalancer"]["healthCheck"]
    assert int(health["interval"].removesuffix("s")) < default("drain_seconds")
    assert client.get(health["path"]).status_code == 200
