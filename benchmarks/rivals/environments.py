"""Installs a peer into its own virtual environment."""

import subprocess
import sys
from pathlib import Path


def build_environment(folder: Path, *requirements: str) -> Path:
    """The Python of the virtual environment `folder`, which is built if `requirements` have changed."""
    python, done = folder / "bin" / "python", folder / "installed.txt"
    wanted = "\n".join(requirements)
    if not done.exists() or done.read_text("utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        done.write_text(wanted, "utf-8")
    return python


def ask_version(python: Path, package: str) -> str:
    """The version of `package` in the environment of `python`."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
