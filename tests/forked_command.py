"""Runs `sameface` in a process of its own that need not import everything anew.

Python's fork server imports the modules once; each command is then a fork of it, with its own environment,
output and exit code. An interpreter that starts from nothing takes seconds, and tests run hundreds.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sameface.cli import main

# What commands import and takes long; their own modules look at the environment, so they are not among it.
PRELOADED = ["sameface.api.app", "sameface.in_process", __name__]

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(PRELOADED)


class ForkedCommand:
    """A `sameface` that runs, with those attributes and methods of `subprocess.Popen` that tests use."""

    def __init__(self, words: Sequence[object], variables: Mapping[str, str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            said = Path(folder) / "said"
            os.mkfifo(said)
            self._process = fork(words, variables, (said, said))
            self.stdout = said.open()  # once the command has opened it, too
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, None while it runs."""
        return self._process.exitcode

    poll = returncode.fget

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("sameface", timeout)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Everything else that it prints until it has ended, as `Popen` returns it."""
        said = self.stdout.read()
        self.wait(timeout)
        return said, None

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def run_command(
    words: Sequence[object], variables: Mapping[str, str], prepare: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """What `sameface` prints for these words and variables, and its exit code; `prepare` runs before it."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = Path(folder) / "said", Path(folder) / "complained"
        process = fork(words, variables, outputs, prepare)
        process.join()
        said, complained = (output.read_text() for output in outputs)
    return subprocess.CompletedProcess(["sameface", *words], process.exitcode or 0, said, complained)


def fork(
    words: Sequence[object],
    variables: Mapping[str, str],
    outputs: tuple[Path, Path],
    prepare: Callable[[], None] | None = None,
) -> multiprocessing.process.BaseProcess:
    """Start `sameface` with these words and variables, whose two streams are written to `outputs`."""
    typed = ["sameface", *map(str, words)]
    environment = {**os.environ, **variables}
    process = _processes.Process(target=_type, args=(typed, environment, Path.cwd(), outputs, prepare))
    process.start()
    return process


def _type(
    typed: list[str],
    environment: dict[str, str],
    folder: Path,
    outputs: tuple[Path, Path],
    prepare: Callable[[], None] | None,
) -> None:
    """Be `sameface`, in a process that does nothing else."""
    opened = {output: os.open(output, os.O_CREAT | os.O_WRONLY) for output in set(outputs)}
    for stream, output in zip((1, 2), outputs, strict=True):
        os.dup2(opened[output], stream)
    for descriptor in opened.values():
        os.close(descriptor)
    sys.stdout.reconfigure(line_buffering=True)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = typed
    if prepare:
        prepare()
    main()
