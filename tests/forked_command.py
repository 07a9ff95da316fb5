"""Runs `sameface` in a process of its own that need not import everything anew.

Python's fork server imports the modules once; each command is then a fork of it, with its own environment,
output and exit code. An interpreter that starts from nothing takes a second or two, and tests run hundreds.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sameface.cli import main

# What commands import and takes long; their own modules look at the environment, so they are not among it.
PRELOADED = ["sameface.api.app", "sameface.in_process", __name__]

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(PRELOADED)


def run_command(words: Sequence[object], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """What `sameface` prints for these words and variables, and its exit code."""
    typed = ["sameface", *map(str, words)]
    with tempfile.TemporaryDirectory() as folder:
        outputs = Path(folder) / "said", Path(folder) / "complained"
        environment = {**os.environ, **variables}
        process = _processes.Process(target=_type, args=(typed, environment, Path.cwd(), outputs))
        process.start()
        process.join()
        said, complained = (output.read_text() for output in outputs)
    return subprocess.CompletedProcess(typed, process.exitcode or 0, said, complained)


def _type(typed: list[str], environment: dict[str, str], folder: Path, outputs: tuple[Path, Path]) -> None:
    """Be `sameface`, in a process that does nothing else."""
    for stream, output in zip((1, 2), outputs, strict=True):
        os.dup2(os.open(output, os.O_CREAT | os.O_WRONLY), stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = typed
    main()
