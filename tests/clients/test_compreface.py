"""CompreFace's own clients, which nobody here wrote, work unchanged."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.compreface.conftest import open_service
from tests.clients.conftest import HERE, Run
from tests.conftest import Serve
from tests.pictures import photo_of

NETWORKS = {"detector": "tiny-detector", "calculator": "tiny-recogniser"}


@pytest.fixture
def compatible(serve: Serve, tmp_path: Path) -> Iterator[httpx.Client]:
    with serve(data=tmp_path, compatible="compreface") as client:
        yield client


@pytest.fixture
def keys(compatible: httpx.Client) -> list[str]:
    return [open_service(compatible, name).secret for name in ("recognition", "detection", "verification")]


def save_photos(folder: Path) -> list[Path]:
    """Two photos of one person, and one of two people."""
    drawn = {"one.png": photo_of(1), "another.png": photo_of(1, noise=1), "two.png": photo_of(1, 2)}
    for name, photo in drawn.items():
        (folder / name).write_bytes(photo)
    return [folder / name for name in drawn]


@pytest.mark.timeout(600)
def test_every_method_of_the_python_client_works(
    with_compreface: Run, compatible: httpx.Client, keys: list[str], tmp_path: Path
) -> None:
    photos = save_photos(tmp_path)
    address = str(compatible.base_url).rstrip("/")
    said = json.loads(with_compreface("python", HERE / "use_compreface_sdk.py", address, *keys, *photos))
    refused = {name: answer["code"] for name, answer in said.items() if "message" in answer}
    assert refused == {
        "taken": 43,
        "two faces": 31,
        "no photo": 21,
        "verified unknown": 44,
        "wrong service": 10,
        "no such key": 10,
        "renamed nobody": 42,
        "deleted unknown": 44,
        "deleted nobody": 42,
    }
    assert said["added"] == {"subject": "Grace Hopper"}
    assert said["faces"]["total_elements"] == 2
    assert said["subjects"] == {"subjects": ["Ada", "Grace Hopper"]}
    [face] = said["recognized"]["result"]
    assert face["subjects"][0]["subject"] == "Ada"
    assert face["subjects"][0]["similarity"] > 0.6
    assert face.keys() == {"box", "landmarks", "embedding", "execution_time", "subjects"}
    assert said["recognized"]["plugins_versions"] == NETWORKS
    assert said["with the options of the start"]["plugins_versions"] == NETWORKS
    assert said["verified face"]["result"][0]["similarity"] > 0.6
    assert len(said["detected"]["result"][0]["landmarks"]) == 5
    [verified] = said["verified"]["result"]
    assert verified["face_matches"][0]["similarity"] > 0.6
    assert said["renamed"] == {"updated": True}
    assert said["deleted face"] == {"image_id": said["face"]["image_id"], "subject": "Grace Hopper"}
    assert said["deleted faces"] == {"deleted": 1}
    assert said["left"] == {"subjects": []}
    assert said["deleted subject"] == {"subject": "alan"}
    assert said["deleted all"] == {"deleted": 1}


@pytest.mark.timeout(600)
def test_every_method_of_the_javascript_client_works(
    in_node: Run, compatible: httpx.Client, keys: list[str]
) -> None:
    folder = Path(in_node("node", "-p", "process.cwd()").strip())
    save_photos(folder)
    script = shutil.copy(HERE / "use_compreface_js_sdk.mjs", folder)
    address = str(compatible.base_url).rstrip("/")
    said = json.loads(in_node("node", script, address, *keys))
    assert said["face"].keys() == {"image_id", "subject"}
    assert (said["faces"], said["second"]["subject"]) == (2, "Ada")
    assert said["subjects"] == {"subjects": ["Ada", "Grace Hopper"]}
    assert said["recognized"]["result"][0]["subjects"][0]["subject"] == "Ada"
    assert said["recognized"]["plugins_versions"] == NETWORKS
    assert said["verifiedFace"]["result"][0]["similarity"] > 0.6
    assert [face.keys() for face in said["detected"]["result"]] == [{"box", "landmarks"}]
    assert [face.keys() for face in said["detectedWithoutLimit"]["result"]] == [{"box", "pose"}] * 2
    assert said["verified"]["result"][0]["face_matches"][0]["similarity"] > 0.6
    assert said["verifiedBase64"]["result"][0]["face_matches"][0]["similarity"] > 0.99
    assert said["refused"] == [[400, 43], [400, 31], [404, 44], [404, 10]]
    assert said["renamed"] == {"updated": True}
    assert said["deletedFace"]["subject"] == "Countess"
    assert [face["image_id"] for face in said["deletedSeveral"]] == [said["second"]["image_id"]]
    assert said["deletedOfSubject"] == {"deleted": 0}
    assert said["deletedAllFaces"] == {"deleted": 1}
    assert said["deletedSubject"] == {"subject": "bob"}
    assert said["deletedAll"] == {"deleted": 1}
