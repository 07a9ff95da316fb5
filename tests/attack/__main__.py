"""Attacks real servers for about an hour, and writes what happened: findings, hostile inputs, sieges.

python -m tests.attack --inputs 100000 --out docs/attacks.md
python -m tests.attack --only images:10000012    sends one input again
python -m tests.attack --only findings:4         does one finding again
"""

import argparse
import io
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from PIL import Image

from sameface.model.bundles.pull import pull_model, pull_portraits
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from tests.attack.besiegers import COSTLIEST, GRAVEST
from tests.attack.findings.outcome import Outcome
from tests.attack.findings.table import FINDINGS, Finding
from tests.attack.ground import Ground, Networks
from tests.attack.hostile.kinds import plan_inputs
from tests.attack.inputs import Attack, set_scene, wait_and_measure
from tests.attack.ordinary import Day, live_a_day
from tests.attack.report import Page
from tests.attack.siege import besiege
from tests.pictures import encode

ORDINARY = 1_000  # requests, after which memory has its ordinary level
MOST_GROWTH = 1.10  # of that level


class Field:
    """The networks, and a fresh ground for every attack."""

    def __init__(self, data: DataFolder) -> None:
        photos = [path.read_bytes() for path in sorted(data.demo.glob("*.jpg"))]
        self.networks = Networks(data.recognizer, data.detector, data.cache, tuple(vary(photos)))

    @contextmanager
    def ground(self) -> Iterator[Ground]:
        """A ground of its own."""
        with tempfile.TemporaryDirectory(prefix="sameface-attack-") as folder:
            yield Ground(self.networks, Path(folder) / "ground")


def vary(photos: list[bytes]) -> list[bytes]:
    """The photos, and others of them as people have: of other formats, of many megapixels, a group."""
    images = [Image.open(io.BytesIO(photo)).convert("RGB") for photo in photos]
    wide = Image.new("RGB", (sum(image.width for image in images), max(image.height for image in images)))
    for place, image in enumerate(images):
        wide.paste(image, (sum(before.width for before in images[:place]), 0))
    others = [(images[0].resize((800, 800)), "PNG"), (images[2].resize((640, 640)), "WEBP")]
    others += [(images[1].resize((3000, 4000)), "JPEG"), (wide, "JPEG")]
    return [*photos, *(encode(image, file_format) for image, file_format in others)]


def try_findings(field: Field, page: Page) -> None:
    """Every finding again."""
    for finding in FINDINGS:
        with field.ground() as ground:
            outcome = attempt(finding, ground)
        page.add_finding(finding, outcome, ground.measures)
        say(f"finding {finding.number}: {'held' if outcome.held else 'FAILS'}: {outcome.now}")


def attempt(finding: Finding, ground: Ground) -> Outcome:
    """The outcome of an attack; one that raises, or leaves errors in a log, has not held."""
    try:
        outcome = finding.attack(ground)
    except Exception as error:
        return Outcome(False, f"{type(error).__name__}: {error}")
    if ground.faults:
        return Outcome(False, f"{outcome.now}; the log has {len(ground.faults)} errors: {ground.faults[0]}")
    return outcome


def send_inputs(field: Field, page: Page, count: int, seed: int) -> None:
    """Many hostile inputs to one server, between two days of ordinary requests."""
    started = time.monotonic()
    with field.ground() as ground, ground.serve(request_seconds=10, log_level="warning") as server:
        scene = set_scene(ground, server)
        day, attack = Day(field.networks.photos, scene.embedding), Attack(ground, server, scene)
        statuses = live_a_day(server, day, ORDINARY)
        level = wait_and_measure(server)
        say(f"{ORDINARY:,} ordinary requests, then {level:.0f} MB")
        attack.send_all(
            plan_inputs(count, seed),
            lambda sent: say(
                f"{sent:,} inputs, {server.megabytes:.0f} MB, {len(attack.tally.faults)} faults"
            ),
        )
        statuses += live_a_day(server, day, ORDINARY)
        end = wait_and_measure(server)
        attack.read_log()
    faults = attack.tally.faults
    faults += [f"an ordinary request is {status}" for status in statuses if status >= 300]
    errors = len(faults)
    if end > MOST_GROWTH * level:
        faults.append(f"the memory has grown by more than {MOST_GROWTH - 1:.0%}")
    notes = [
        f"Seed {seed}. Statuses of 500 and above but 503, and errors in the log: {errors}.",
        f"RSS after {ORDINARY:,} ordinary requests: {level:.0f} MB; after the inputs and as many again:"
        f" {end:.0f} MB, {end / level:.2f} of it; the highest: {ground.measures.peak_megabytes:.0f} MB.",
        f"The slowest answer of `/health/live`: {ground.measures.slowest_ms:.0f} ms.",
    ]
    page.add_inputs(attack.tally, time.monotonic() - started, notes)
    for line in notes + faults:
        say(line)


def stand_sieges(field: Field, page: Page, attackers: int, seconds: float) -> None:
    """Ordinary clients beside those who repeat the gravest findings, then beside each of what costs most."""
    sieges = {"the five gravest findings": list(GRAVEST), "all that follows": list(COSTLIEST)}
    sieges |= {kind: [kind] for kind in COSTLIEST}
    for title, kinds in sieges.items():
        with field.ground() as ground:
            siege = besiege(ground, kinds, attackers, seconds)
        named = f"{attackers} attackers: {title}"
        page.add_siege(named, siege, ground.measures, must_hold=kinds == list(GRAVEST))
        say(f"{named}: share {siege.share:.2f}, p99 {siege.p99_seconds:.2f} s, {siege.answers}")


def attack_once(field: Field, kind: str, seed: int) -> bool:
    """Do one finding or send one input again, and say what happens; returns whether it held."""
    with field.ground() as ground:
        if kind == "findings":
            outcome = attempt(FINDINGS[seed - 1], ground)
            say(f"{'held' if outcome.held else 'FAILS'}: {outcome.now} {ground.measures}")
            return outcome.held
        with ground.serve(request_seconds=10) as server:
            attack = Attack(ground, server, set_scene(ground, server))
            say(f"the answer: {attack.send(kind, seed)}")
            attack.read_log()
            say("\n".join(attack.tally.faults) or "nothing is wrong")
        return not attack.tally.faults


def say(line: str) -> None:
    """Print at once, with the time: a run takes long."""
    print(time.strftime("%H:%M:%S"), line, flush=True)


def read_options() -> argparse.Namespace:
    """What the command line says."""
    options = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__.splitlines()[0])
    options.add_argument("--parts", nargs="+", default=["findings", "inputs", "sieges"])
    options.add_argument("--inputs", type=int, default=100_000, help="Hostile inputs to send.")
    options.add_argument("--seed", type=int, default=1, help="By which they are drawn.")
    options.add_argument("--attackers", type=int, default=64, help="In a siege.")
    options.add_argument(
        "--seconds", type=float, default=60, help="Of a siege, half of it without attackers."
    )
    options.add_argument("--data", type=Path, default=DEFAULT_DATA, help="For the published networks.")
    options.add_argument("--out", type=Path, default=Path("docs/attacks.md"), help="The page to write.")
    options.add_argument("--only", metavar="KIND:SEED", help="One input, or one finding, again.")
    return options.parse_args()


def main() -> None:
    """Run the parts, write the page as they go, and exit with 1 if anything failed."""
    options = read_options()
    data = DataFolder(options.data)
    for name in ("yunet", "sface"):
        pull_model(name, data.models)
    pull_portraits(data.demo)
    field = Field(data)
    if options.only:
        kind, _, seed = options.only.partition(":")
        sys.exit(0 if attack_once(field, kind, int(seed)) else 1)
    system = f"{platform.system()} on {platform.machine()}, Python {platform.python_version()}"
    page = Page(options.out, f"{datetime.now(UTC):%Y-%m-%d}, {system}.")
    if "sieges" in options.parts:  # first: they compare speeds, and a machine is quietest in the beginning
        stand_sieges(field, page, options.attackers, options.seconds)
    if "findings" in options.parts:
        try_findings(field, page)
    if "inputs" in options.parts:
        send_inputs(field, page, options.inputs, options.seed)
    say("everything held" if page.held else f"NOT everything held: see {options.out}")
    sys.exit(0 if page.held else 1)


if __name__ == "__main__":
    main()
