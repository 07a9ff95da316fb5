"""A newcomer's terminal: types the lines of a page's section, as they are written, into one shell."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import read_page

SHELL = """
finish() { for job in $(jobs -p); do kill "$job"; done; wait; }
trap finish EXIT
"""


@dataclass(frozen=True, slots=True)
class Typed:
    """A line, and what came of it."""

    line: str
    code: int
    said: str
    complained: str


def read_lines(page: str, heading: str) -> list[str]:
    """The lines of the console blocks under a heading."""
    section = read_page(page).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = "".join(re.findall(r"```console\n(.*?)```", section, re.DOTALL)).splitlines()
    assert lines, f"{page} has no commands under {heading}"
    return lines


def type_lines(lines: list[str], home: Path) -> list[Typed]:
    """Type the lines one after another in `home`; a server runs on while the next lines are typed.

    The addresses of the page lead to the port of these servers, by the newcomer's own .curlrc.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (home / ".curlrc").write_text(f'silent\nconnect-to = "127.0.0.1:8000:127.0.0.1:{port}"\n')
    outputs = home / "outputs"
    outputs.mkdir()
    script = SHELL + "".join(to_script(line, outputs / str(place)) for place, line in enumerate(lines))
    variables = {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SAMEFACE_PORT": str(port),
        "SAMEFACE_DRAIN_SECONDS": "0",
    }
    shell = subprocess.Popen(
        ["bash", "-c", script], cwd=home, env=os.environ | variables, start_new_session=True
    )
    try:
        shell.wait(timeout=300)
    finally:
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    return [read_typed(line, outputs / str(place)) for place, line in enumerate(lines)]


def to_script(line: str, output: Path) -> str:
    """What the shell does with a line: it runs it, or starts it and waits until the server is ready."""
    said, complained, code = (shlex.quote(f"{output}.{kind}") for kind in ("said", "complained", "code"))
    if not line.startswith("sameface serve"):
        return f"{{ {line}\n}} >{said} 2>{complained}; echo $? >{code}\n"
    ready = "curl --fail http://127.0.0.1:8000/health/ready >/dev/null 2>&1"
    return (
        f"{{ exec {line}\n}} >{said} 2>{complained} & server=$!\n"  # the server itself is what is killed
        f"until {ready}; do kill -0 $server 2>/dev/null || break; sleep 0.1; done\n"
        f"{ready}; echo $? >{code}\n"
    )


def read_typed(line: str, output: Path) -> Typed:
    """What came of a line, from the files that the shell wrote."""
    code, said, complained = (Path(f"{output}.{kind}") for kind in ("code", "said", "complained"))
    assert code.exists(), f"the shell ended before: {line}"
    return Typed(line, int(code.read_text()), said.read_text(), complained.read_text())
