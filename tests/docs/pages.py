"""The pages of the documentation, their tables, and the commands and programs that they show."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def read_page(name: str) -> str:
    """A page by its path from the root of the repository."""
    return (ROOT / name).read_text("utf-8")


def table_rows(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading, without its header."""
    section = re.split(
        r"^#+ ", read_page(page).partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE
    )[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    assert len(rows) > 2, f"{page} has no table under {heading}"
    return [[cell.strip() for cell in row] for row in rows[2:]]


def console_lines(program: str, *pages: Path) -> list[str]:
    """The lines of the pages' console blocks that call a program, without its name and their comments."""
    blocks = [
        block
        for page in pages or PAGES
        for block in re.findall(r"```console\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    ]
    lines = re.findall(rf"^{program} (.+)$", "\n".join(blocks), re.MULTILINE)
    assert lines
    return [re.sub(r"\s+# .*$", "", line) for line in lines]


def python_blocks(page: str) -> list[str]:
    """The programs that a page shows."""
    return re.findall(r"```python\n(.*?)```", read_page(page), re.DOTALL)


def run_python(program: str, home: Path) -> list[str]:
    """Run a program in a process of its own, with this home and in it; returns the lines that it prints."""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env=os.environ | {"HOME": str(home)},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()
