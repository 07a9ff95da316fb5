"""Requests that are made up from the contract: each is answered as the contract says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.collections import enrol
from tests.api.keys import make_key
from tests.attack.contract_hooks import COLLECTION, PERSON
from tests.pictures import photo_of

HERE = Path(__file__).parent
CASES = os.environ.get("SAMEFACE_FUZZ_CASES")  # of every operation; without it, always the same few
SECONDS = 3600 if CASES else 300


@pytest.mark.timeout(SECONDS + 30)
def test_every_answer_is_one_of_the_contract(serve, data: Path, tmp_path: Path) -> None:
    models = {"recognizer": data / "models" / "recogniser", "detector": data / "models" / "detector"}
    secret, key = make_key("read+write")
    with serve(data=tmp_path / "data", api_keys=[key], **models) as client:
        client.headers["Authorization"] = f"Bearer {secret}"
        client.put(f"/v1/collections/{COLLECTION}")
        enrol(client, f"/v1/collections/{COLLECTION}", photo_of(1), person_id=PERSON)
        fuzzed = attack(str(client.base_url.join("/openapi.json")), secret, tmp_path)
        assert client.get("/health/ready").status_code == 200
    assert fuzzed.returncode == 0, fuzzed.stdout + fuzzed.stderr


def attack(address: str, secret: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Let schemathesis try the server, in a process of its own."""
    how = ["--max-examples", CASES] if CASES else ["--max-examples", "4", "--generation-deterministic"]
    return subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "schemathesis.cli",
                "--no-color",
                "--config-file",
                HERE / "schemathesis.toml",
            ),
            *("run", address, "--header", f"Authorization: Bearer {secret}", *how),
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ
        | {"SCHEMATHESIS_HOOKS": "tests.attack.contract_hooks", "PYTHONPATH": str(HERE.parents[1])},
        timeout=SECONDS,
        check=False,
    )
