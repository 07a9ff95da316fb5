"""Attacks real servers for an hour, and writes what happened: every finding, many hostile inputs, a siege.

python -m tests.attack [--inputs 100000] [--parts findings inputs siege] [--out docs/attacks.md]
python -m tests.attack --only images:10000012
"""

import argparse
import io
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from PIL import Image

from sameface.model.bundles.pull import pull_model, pull_portraits
from sameface.model.data_folder import DataFolder
from tests.attack.findings.table import FINDINGS
from tests.attack.ground import Ground, Networks
from tests.attack.hostile.kinds import plan_inputs
from tests.attack.inputs import Attack, set_scene, show_answers, wait_and_measure
from tests.attack.ordinary import Day, live_a_day
from tests.attack.siege import besiege
from tests.pictures import encode

ORDINARY = 1_000  # requests, after which memory has its ordinary level
MOST_GROWTH = 1.10  # of that level
SEED = 1
HEAD = """# Attacks

What an attacker once found, and what happens now: written by `make attack`, which does all of it to real servers with the published
networks. [Security](security.md) says what is defended, and how.
"""

Page = list[str]
Part = Callable[["Field", Page], bool]


class Field:
    """The networks, and a fresh ground for every attack."""

    def __init__(self, data: DataFolder, inputs: int) -> None:
        self.inputs = inputs
        photos = [path.read_bytes() for path in sorted(data.demo.glob("*.jpg"))]
        self.networks = Networks(data.recognizer, data.detector, data.cache, tuple(vary(photos)))

    @contextmanager
    def ground(self) -> Iterator[Ground]:
        """A ground of its own."""
        with tempfile.TemporaryDirectory() as folder:
            yield Ground(self.networks, Path(folder) / "ground")


def vary(photos: list[bytes]) -> list[bytes]:
    """The photos, and others of them as people have: a square, a panorama, one of many megapixels, a group."""
    images = [Image.open(io.BytesIO(photo)).convert("RGB") for photo in photos]
    wide = Image.new("RGB", (sum(image.width for image in images), max(image.height for image in images)))
    for place, image in enumerate(images):
        wide.paste(image, (sum(before.width for before in images[:place]), 0))
    others = [
        images[0].resize((800, 800)),
        images[1].resize((3000, 4000)),
        images[2].resize((640, 640)),
        wide,
    ]
    return [*photos, *(encode(image, "JPEG", quality=90) for image in others)]


def try_findings(field: Field, page: Page) -> bool:
    """Every finding again; returns whether all of them hold."""
    page += ["## Findings", "", "| # | severity | what was sent | what happens now | peak MB | live, ms |"]
    page.append("|---|---|---|---|---|---|")
    held = True
    for finding in FINDINGS:
        with field.ground() as ground:
            outcome = finding.attack(ground)
        fine = outcome.held and not ground.faults
        held = held and fine
        now = outcome.now if fine else f"**FAILS**: {outcome.now} {' '.join(ground.faults[:3])}"
        slowest = f"{ground.measures.slowest_ms:.0f}" if ground.measures.slowest_ms else ""
        cells = (finding.number, finding.severity, finding.sent, now, f"{ground.measures.peak_megabytes:.0f}")
        page.append(f"| {' | '.join(map(str, cells))} | {slowest} |")
        say(page[-1])
    return held


def send_inputs(field: Field, page: Page) -> bool:
    """Many hostile inputs to one server; returns whether it went on as if nothing had happened."""
    started = time.monotonic()
    with field.ground() as ground, ground.serve(request_seconds=10, log_level="warning") as server:
        scene = set_scene(ground, server)
        day = Day(field.networks.photos, scene.embedding)
        live_a_day(server, day, ORDINARY)
        level = wait_and_measure(server)
        attack = Attack(ground, server, scene)
        attack.send_all(
            plan_inputs(field.inputs, SEED), lambda sent: say(f"{sent:,} inputs, {server.megabytes:.0f} MB")
        )
        live_a_day(server, day, ORDINARY)
        end = wait_and_measure(server)
    faults = attack.tally.faults + ground.faults
    page += [
        "## Hostile inputs",
        "",
        f"{sum(attack.tally.answers.values()):,} inputs in {(time.monotonic() - started) / 60:.0f} minutes, drawn by seeds;"
        " the answers by kind (`cut`: the connection was closed, `none`: no answer was due):",
        "",
        show_answers(attack.tally),
        "",
        f"Errors in answers or in the log: {len(faults)}. Memory after {ORDINARY:,} ordinary requests: {level:.0f} MB; after the"
        f" inputs and as many again: {end:.0f} MB, {end / level:.2f} of it; the highest: {ground.measures.peak_megabytes:.0f} MB."
        f" The slowest answer of `/health/live`: {ground.measures.slowest_ms:.0f} ms.",
        *(f"- **FAILS** {fault}" for fault in faults),
    ]
    say("\n".join(page[-8:]))
    return not faults and end <= MOST_GROWTH * level


def withstand(field: Field, page: Page) -> bool:
    """A siege; returns whether ordinary clients and the one who stops the server were served."""
    with field.ground() as ground:
        siege = besiege(ground)
    page += ["## A siege", "", siege.describe()]
    say(page[-1])
    return siege.held and not ground.faults


PARTS: dict[str, Part] = {"findings": try_findings, "inputs": send_inputs, "siege": withstand}


def send_one(field: Field, name: str) -> None:
    """Send one input again, by its kind and seed, and show the answer and the log."""
    kind, _, seed = name.partition(":")
    with field.ground() as ground, ground.serve() as server:
        attack = Attack(ground, server, set_scene(ground, server))
        say(attack.send(kind, int(seed)))
        attack.read_log()
        say("\n".join(attack.tally.faults) or "nothing is wrong")


def say(line: str) -> None:
    """Print at once: a run takes long."""
    print(line, flush=True)


def main() -> None:
    """Run the parts, write the page, and exit with 1 if anything failed."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--inputs", type=int, default=100_000)
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments.add_argument("--out", type=Path, help="The page to write.")
    arguments.add_argument("--only", metavar="KIND:SEED", help="Send this input alone.")
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    options = arguments.parse_args()
    data = DataFolder(options.data)
    for name in ("yunet", "sface"):
        pull_model(name, data.models)
    pull_portraits(data.demo)
    field = Field(data, options.inputs)
    if options.only:
        return send_one(field, options.only)
    cpu = f"{platform.machine()}, {len(field.networks.photos)} photos, Python {platform.python_version()}"
    page = [HEAD, f"{datetime.now(UTC):%Y-%m-%d}, {cpu}."]
    held = True
    for part in options.parts:
        page.append("")
        held = PARTS[part](field, page) and held
        if options.out:
            options.out.write_text("\n".join(page) + "\n", "utf-8")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
