"""What deploys several machines: the manifest's second form, the profiles of compose, and their proxy."""

import re
from typing import Any

import kubernetes_validate
import pytest
import yaml

from sameface.api.compreface.routes import faces, recognize, services, subjects
from sameface.api.deepstack.routes import router as deepstack
from sameface.api.settings import PREFIX, Settings
from sameface.model.gallery.gallery import ROLES
from tests.docs.pages import ROOT

MANIFEST = list(yaml.safe_load_all((ROOT / "deploy" / "kubernetes" / "machines.yaml").read_text("utf-8")))
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
NGINX = (ROOT / "deploy" / "nginx" / "machines.conf").read_text("utf-8")
OF_MILVUS = {f"{PREFIX}INDEX", f"{PREFIX}MILVUS_URI"}  # which are empty unless they are set
SECRETS = {f"{PREFIX}SECRET_KEY_FILE", "PGPASSFILE"}


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [each for each in MANIFEST if each["kind"] == kind]


@pytest.mark.parametrize("each", MANIFEST, ids=lambda each: f"{each['kind']} {each['metadata']['name']}")
def test_kubernetes_takes_the_manifest(each: dict[str, Any]) -> None:
    kubernetes_validate.validate(each, "1.33", strict=True)


def test_each_service_leads_to_pods_of_its_role_and_the_ingress_to_both() -> None:
    pods = {}
    for deployment in of_kind("Deployment"):
        template = deployment["spec"]["template"]
        assert deployment["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
        [container] = template["spec"]["containers"]
        variables = {each["name"]: each.get("value") for each in container["env"]}
        assert variables["SAMEFACE_ROLE"] == template["metadata"]["labels"]["role"]
        assert variables["SAMEFACE_DATABASE"].startswith("postgresql://")
        assert "PASSWORD" not in variables["SAMEFACE_DATABASE"]
        assert all("persistentVolumeClaim" not in volume for volume in template["spec"]["volumes"])
        pods[deployment["metadata"]["name"]] = template["metadata"]["labels"]
    assert {labels["role"] for labels in pods.values()} == ROLES.keys() - {"all"}
    assert {each["metadata"]["name"]: each["spec"]["selector"] for each in of_kind("Service")} == pods
    [ingress] = of_kind("Ingress")
    paths = ingress["spec"]["rules"][0]["http"]["paths"]
    *searches, rest = [(path["path"], path["backend"]["service"]["name"]) for path in paths]
    assert {name for _, name in searches} == {"sameface-search"}
    assert rest == ("/", "sameface-write")


@pytest.mark.parametrize(
    "patterns",
    [
        re.findall(r"~(\^\S+) +searchers;", NGINX),
        [each["path"] for each in of_kind("Ingress")[0]["spec"]["rules"][0]["http"]["paths"][:-1]],
    ],
    ids=["nginx", "ingress"],
)
def test_searches_go_to_the_searchers_and_nothing_else_does(patterns: list[str], client) -> None:
    routers = [deepstack, *(module.router for module in (recognize, faces, subjects, services))]
    others = {route.path.rstrip("/") for router in routers for route in router.routes}
    paths = {*client.get("/openapi.json").json()["paths"], *others}
    filled = {path: path.replace("{collection}", "staff") for path in paths}
    assert {path for path in paths if any(re.match(each, filled[path]) for each in patterns)} == {
        "/v1/collections/{collection}/identify",
        "/v1/collections/{collection}/identify/batch",
        "/api/v1/recognition/recognize",
        "/api/v1/recognition/embeddings/recognize",
        "/v1/vision/face/recognize",
    }


@pytest.mark.parametrize("profile", ["postgres", "scale"])
def test_a_profile_has_all_that_it_needs(profile: str) -> None:
    services = {
        name: each for name, each in COMPOSE["services"].items() if profile in each.get("profiles", [])
    }
    machines = [each for each in services.values() if "build" in each]
    assert len(machines) == 2
    assert len({each["volumes"][0] for each in machines}) == 2
    assert {"proxy", "postgres"} <= services.keys()
    assert ({"milvus", "etcd", "minio"} <= services.keys()) is (profile == "scale")
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | OF_MILVUS | SECRETS
    for name, service in services.items():
        needed = service.get("depends_on", [])
        assert set(needed) <= services.keys(), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert (ROOT / source).is_file() if source.startswith("./") else source in COMPOSE["volumes"]
        assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys()
    for machine in machines:
        assert set(machine["environment"]) <= known
        host = re.search(r"@(\w+)/", machine["environment"]["SAMEFACE_DATABASE"])[1]
        assert host in services
    for server in re.findall(r"server ([\w-]+):8000", NGINX):
        assert server in services


def test_no_secret_is_in_the_compose_file() -> None:
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    assert not re.search(r"PASSWORD: \S", text)
    assert "secrets/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert "secrets/" in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
