"""Our client for browsers and Node: its types are current, and it works against a server."""

import json
import re
import shutil
from pathlib import Path

import pytest

from sameface.api.errors import PROBLEMS
from sameface.model.access.keys import SCOPES, draw_secret, write_entry
from tests.clients.conftest import HERE, OPENAPI, CommandFailed, run_command
from tests.conftest import Serve
from tests.pictures import photo_of

CLIENT = HERE.parents[1] / "clients" / "typescript"

NPM = ("npm", "--no-update-notifier", "--loglevel=error")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the client with its tools, beside a copy of openapi.json as in the repository."""
    if not shutil.which("npm"):
        pytest.skip("there is no node here")
    root = tmp_path_factory.mktemp("repository")
    shutil.copy(OPENAPI, root)
    folder = root / "clients" / "typescript"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
    try:
        run_command(*NPM, "install", "--no-audit", "--no-fund", cwd=folder)
    except CommandFailed as error:
        pytest.skip(f"npm cannot install here: {error}")
    run_command(*NPM, "run", "build", cwd=folder)
    return folder


@pytest.mark.timeout(600)
def test_the_types_are_those_of_the_contract(package: Path) -> None:
    run_command(*NPM, "run", "contract", cwd=package)
    committed, written = ((folder / "src" / "contract.ts").read_text("utf-8") for folder in (CLIENT, package))
    assert committed == written, "make openapi writes it"


@pytest.mark.timeout(600)
def test_its_own_tests_pass_against_a_server(package: Path, serve: Serve, tmp_path: Path) -> None:
    draw(tmp_path, {"ada.png": (1,), "bob.png": (2,), "nobody.png": ()})
    (tmp_path / "ada-again.png").write_bytes(photo_of(1, noise=3))
    secret = draw_secret()
    with serve(data=tmp_path / "served", api_keys=write_entry("tests", secret, SCOPES)) as client:
        variables = {"SAMEFACE_URL": str(client.base_url), "SAMEFACE_API_KEY": secret}
        variables |= {"SAMEFACE_PHOTOS": str(tmp_path)}
        said = run_command(*NPM, "test", cwd=package, **variables)
    assert re.search(r"^# pass \d\d$", said, re.MULTILINE)


@pytest.mark.timeout(600)
def test_the_blocks_of_the_page_run_as_one_program_and_print_what_their_comments_say(
    package: Path, serve: Serve, tmp_path: Path
) -> None:
    draw(tmp_path, {"one.jpg": (1,), "another.jpg": (1,), "ada.jpg": (3,), "group.jpg": (3,)})
    page = (HERE.parents[1] / "docs" / "clients.md").read_text("utf-8")
    program = "\n".join(re.findall(r"```ts\n(.*?)```", page, re.DOTALL))
    promised = re.findall(r"console\.log\(.+\); // (.+)$", program, re.MULTILINE)
    assert len(promised) == program.count("console.log(")
    run_command(*NPM, "install", "--no-audit", "--no-fund", package, cwd=tmp_path)
    with serve(data=tmp_path / "served") as client:
        program = program.replace("http://127.0.0.1:8000", str(client.base_url))
        (tmp_path / "program.mts").write_text(program, "utf-8")
        compiler = package / "node_modules" / ".bin" / "tsc"
        types = ("--typeRoots", package / "node_modules" / "@types", "--types", "node", "--skipLibCheck")
        run_command(
            compiler, *types, "--target", "es2022", "--module", "nodenext", "program.mts", cwd=tmp_path
        )
        printed = run_command("node", "program.mjs", cwd=tmp_path).splitlines()
    assert sorted(printed) == sorted(promised)


def draw(folder: Path, photos: dict[str, tuple[int, ...]]) -> None:
    """Write photos of these people into a folder."""
    for name, people in photos.items():
        (folder / name).write_bytes(photo_of(*people))


def test_it_knows_every_code_of_the_server() -> None:
    source = (CLIENT / "src" / "errors.ts").read_text("utf-8")
    [listed] = re.findall(r"CODES = \[(.*?)\] as const", source, re.DOTALL)
    assert PROBLEMS.keys() - set(re.findall(r'"(\w+)"', listed)) == set()


def test_it_has_no_dependencies() -> None:
    assert "dependencies" not in json.loads((CLIENT / "package.json").read_text("utf-8"))
