"""Processes that are killed, replaced, stopped early or never end."""

import json
import os
import resource
import signal
import time
from contextlib import suppress
from pathlib import Path

import httpx

from tests.attack.findings.outcome import Outcome
from tests.attack.ground import Ground, Server
from tests.attack.watch import list_processes
from tests.model.commands.test_bundles import HURRIED, build_endless

FEW_DESCRIPTORS = 24


def kill_a_worker(ground: Ground) -> Outcome:
    """Kill one of two workers, thrice, and ask for readiness on new connections meanwhile."""
    statuses: list[int] = []
    with ground.serve(workers=2) as server:
        for _ in range(3):
            os.kill(list_processes(server.process.pid)[1], signal.SIGKILL)
            until = time.monotonic() + 4
            while time.monotonic() < until:
                with suppress(httpx.TransportError):  # those that the killed worker had accepted
                    statuses.append(httpx.get(f"{server.address}/health/ready", timeout=10).status_code)
        workers = len(list_processes(server.process.pid)) - 1
    bad = len(statuses) - statuses.count(200)
    return Outcome(
        not bad and workers == 2 and len(statuses) > 50,
        f"{len(statuses):,} newcomers while three workers are replaced, {bad} of them not 200",
    )


def leave_things_behind(ground: Ground) -> Outcome:
    """Kill a supervisor, stop a server that loads, and start one with few file descriptors."""
    said = [kill_a_supervisor(ground), stop_while_loading(ground), start_without_descriptors(ground)]
    return Outcome(all(each.held for each in said), "; ".join(each.now for each in said))


def kill_a_supervisor(ground: Ground) -> Outcome:
    """The metric folders after a supervisor was killed and another server has started."""
    temporary = ground.folder / "temporary"
    temporary.mkdir()
    server = ground.start(workers=2, TMPDIR=temporary)
    workers = list_processes(server.process.pid)[1:]
    server.process.kill()
    server.process.wait()
    server.process.stdout.close()
    until = time.monotonic() + 20
    while any(map(is_running, workers)) and time.monotonic() < until:
        time.sleep(0.1)
    orphans = sum(map(is_running, workers))
    with ground.serve(workers=2, TMPDIR=temporary):
        folders = len(list(temporary.glob("sameface-metrics-*")))
    left = len(list(temporary.glob("sameface-metrics-*")))
    return Outcome(
        not orphans and folders == 1 and not left, f"killed: {orphans} orphans and {left} folders are left"
    )


def is_running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text("ascii")
    except OSError:
        return False


def stop_while_loading(ground: Ground) -> Outcome:
    """Ten servers that are told to stop, each a little later than the one before."""
    faults: list[str] = []
    codes = set()
    for number in range(10):
        log_file = ground.folder / f"stopped-{number}.log"
        process = ground.launch(log_file)
        time.sleep(0.2 + 0.15 * number)
        process.send_signal(signal.SIGTERM)
        codes.add(process.wait(30))
        process.stdout.close()
        faults += [line for line in log_file.read_text("utf-8").splitlines() if "Traceback" in line]
    return Outcome(not faults, f"stopped while loading, ten times: {len(faults)} tracebacks")


def limit_descriptors() -> None:
    """Give a process fewer file descriptors than it wants."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW_DESCRIPTORS, FEW_DESCRIPTORS))


def start_without_descriptors(ground: Ground) -> Outcome:
    """A server with a handful of file descriptors: it says so, or it serves."""
    try:
        server: Server | None = ground.start(prepare=limit_descriptors)
    except RuntimeError as refusal:
        return Outcome("Traceback" not in str(refusal), "with 24 file descriptors it refuses in a sentence")
    answers = [ask_live(server) for _ in range(40)]
    alive = server.process.poll() is None
    server.stop()
    server.process.stdout.close()
    return Outcome(
        alive and 200 in answers and "Traceback" not in server.log,
        f"with {FEW_DESCRIPTORS} file descriptors it serves ({answers.count(200)} of 40)",
    )


def ask_live(server: Server) -> int | None:
    """The status of a newcomer, None if it is not let in."""
    try:
        return httpx.get(f"{server.address}/health/live", timeout=5).status_code
    except httpx.TransportError:
        return None


def bring_an_endless_network(ground: Ground) -> Outcome:
    """A network with a loop that never ends, and three seconds for its trial instead of two minutes."""
    network = build_endless(ground.folder / "endless.onnx")
    fields = json.loads((ground.networks.recognizer / "bundle.json").read_text("utf-8"))
    contract = {key: value for key, value in fields.items() if key not in ("file", "sha256", "calibration")}
    (ground.folder / "contract.json").write_text(json.dumps(contract | {"name": "endless", "dimension": 4}))
    program = ground.folder / "pull.py"
    program.write_text(HURRIED)
    started = time.monotonic()
    ran = ground.run(program, "pull", "--from", network, "--contract", ground.folder / "contract.json")
    waited = time.monotonic() - started
    kept = (ground.data / "models" / "endless").exists()
    return Outcome(
        ran.refused and "did not finish" in ran.complained and not kept and waited < 60,
        f"refused in a sentence after its time, {waited:.0f} s in all, and nothing of it is kept",
    )
