"""Every example of the docs works as it is written."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.docs.pages import DOCS, ROOT, console_lines, python_blocks, run_python
from tests.networks import DIMENSION


@pytest.fixture
def real_client(home: Path, real_data, serve) -> Iterator[httpx.Client]:
    """A client of the server that `make serve` starts."""
    data = home / ".sameface"
    with serve(data=data, recognizer=real_data.recognizer, detector=real_data.detector) as client:
        yield client


def run_curl(line: str, client: httpx.Client, home: Path) -> str:
    """What a line of the docs gets, with the address and the home replaced by the test's own."""
    line = line.replace("$HOME", str(home)).replace("http://127.0.0.1:8000", str(client.base_url).rstrip("/"))
    command = ["curl", *shlex.split(line)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=home).stdout


def test_the_curl_lines_of_the_readme_verify_enrol_and_identify(real_client, home: Path) -> None:
    lines = console_lines("curl", ROOT / "README.md")
    verified, made, enrolled, identified = (json.loads(run_curl(line, real_client, home)) for line in lines)
    assert verified["same_person"] is True
    assert made["name"] == "staff"
    assert (enrolled["person_id"], len(enrolled["faces"]), enrolled["rejected"]) == ("obama", 1, [])
    assert [result["match"]["name"] for result in identified["results"]] == ["Obama"]
    stranger = json.loads(run_curl(lines[-1].replace("obama2", "biden"), real_client, home))
    assert [result["match"] for result in stranger["results"]] == [None]


def test_the_curl_lines_of_the_docs_are_answered(real_client, home: Path) -> None:
    real_client.put("/v1/collections/staff")
    probe = {"id": "1", "embedding": [1.0] + [0.0] * 127}
    (home / "probes.ndjson").write_text(json.dumps(probe))
    verified, identified, batch = (
        json.loads(run_curl(line, real_client, home)) for line in console_lines("curl", DOCS / "http.md")
    )
    assert (verified["same_person"], verified["target_fmr"]) == (True, 0.001)
    assert (len(identified["results"]), identified["target_fpir"]) == (1, 0.001)
    assert batch["id"] == "1"


def test_the_curl_line_of_the_docs_sends_a_batch(client, tmp_path: Path) -> None:
    client.put("/v1/collections/staff")
    probe = {"id": "1", "embedding": [1.0] + [0.0] * (DIMENSION - 1)}
    (tmp_path / "probes.ndjson").write_text(json.dumps(probe))
    [line] = [line for line in console_lines("curl") if line.endswith("/identify/batch")]
    assert '{"id":"1","results":[' in run_curl(line, client, tmp_path)


def test_the_python_of_the_readme_runs_as_it_is_written(home: Path) -> None:
    [program] = python_blocks("README.md")
    same_person, results = run_python(program, home)
    assert same_person == "True"
    assert "Obama" in results


def test_the_command_line_of_the_readme_verifies_two_portraits(home: Path) -> None:
    [line] = [line for line in console_lines("sameface", ROOT / "README.md") if line.startswith("verify")]
    command = f"{shlex.quote(sys.executable)} -m sameface {line}"
    said = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=True,
        cwd=home,
        env=os.environ | {"HOME": str(home)},
    )
    assert said.stdout.startswith("the same person")
