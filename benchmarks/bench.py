"""Has anything become slower since the baseline? Fails if so; `make bench` runs it.

The baseline is the commit named in `benchmarks/baseline` or, without that file, the last tag. It and this
checkout serve at the same time in this environment, and are measured by turns. A figure is lost if the median
of its ratios is below 0.9 and three quarters of them are below 1: what one round alone has is noise. Figures
that seem lost are measured as many times again before they are judged. The table is kept in
docs/results/bench.md, one per kind of machine.

    python -m benchmarks.bench [--lfw FOLDER] [--data ~/.sameface] [--rounds 6] [--faces 20000]
"""

import argparse
import io
import itertools
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

from PIL import Image
from rich.console import Console

from benchmarks.shared.lfw import read_lfw
from benchmarks.shared.load import form_request, verify_request
from benchmarks.shared.machine import describe_machine, name_kind
from benchmarks.versions import HERE, Version, compare, open_versions, prepare_work, show, take_turns
from sameface.model.data_folder import DataFolder

BASELINE = HERE / "benchmarks" / "baseline"
RESULTS = HERE / "docs" / "results" / "bench.md"
LOSS = 0.9  # times as fast as the baseline: what is below is lost
SIDE = 250  # of a photo, as in LFW


def main() -> None:
    """Measure, keep the table, and exit with 1 if something is lost."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--lfw", type=Path, help="photos of LFW instead of the portraits of `sameface demo`"
    )
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--faces", type=int, default=20_000)
    arguments.add_argument("--rounds", type=int, default=6)
    arguments.add_argument("--seconds", type=float, default=2.0)
    arguments.add_argument("--no-keep", action="store_true", help="leave docs/results as it is")
    options = arguments.parse_args()
    commit, machine = find_baseline(), describe_machine()
    photos = read_photos(options.lfw, DataFolder(options.data))
    work = prepare_work(photos, options.faces, options.seconds)
    with tempfile.TemporaryDirectory() as folder:
        check_out(commit, Path(folder))
        with open_versions(Path(folder), options.data, work) as (other, this):
            take_turns(other, this, work, options.rounds)
            if find_losses(other, this):
                take_turns(other, this, work, options.rounds)
    lost = find_losses(other, this)
    Console(width=110).print(machine, show(other, this), f"baseline: {commit}", judge(lost))
    if not options.no_keep:
        keep(commit, machine, other, this, lost)
    sys.exit(bool(lost))


def find_baseline() -> str:
    """The commit to compare with: the one in `benchmarks/baseline`, else that of the last tag."""
    named = BASELINE.read_text("ascii").split() if BASELINE.exists() else []
    return (
        ask_git("rev-parse", f"{named[0]}^{{commit}}")
        if named
        else ask_git("rev-list", "-n", "1", ask_git("describe", "--tags", "--abbrev=0"))
    )


def ask_git(*arguments: str) -> str:
    """What git answers to a question about this checkout; exits with its complaint if it cannot."""
    said = subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False)
    if said.returncode:
        sys.exit(f"The baseline cannot be found: {said.stderr.strip()}")
    return said.stdout.strip()


def check_out(commit: str, folder: Path) -> None:
    """Put the files of `commit` into `folder`; it is run with this checkout's environment."""
    packed = subprocess.run(["git", "archive", commit], cwd=HERE, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(folder, filter="data")


def read_photos(lfw: Path | None, data: DataFolder) -> list[bytes]:
    """Verifications of LFW's pairs or, without that folder, of the portraits of `sameface demo`."""
    if lfw:
        return [verify_request(pair.probe, pair.reference) for pair in read_lfw(lfw)[::15]]
    portraits = [shrink(path) for path in sorted(data.demo.glob("*.jpg"))]
    if len(portraits) < 2:
        sys.exit(f"There are no portraits in {data.demo}: run `sameface demo`, or name a folder of LFW.")
    return [
        form_request("/v1/verify", {"probe": probe, "reference": reference})
        for probe, reference in itertools.permutations(portraits, 2)
    ]


def shrink(path: Path) -> bytes:
    """A photo as a JPEG of at most `SIDE` x `SIDE` pixels."""
    content = io.BytesIO()
    with Image.open(path) as photo:
        photo.thumbnail((SIDE, SIDE))
        photo.save(content, "JPEG", quality=90)
    return content.getvalue()


def find_losses(other: Version, this: Version) -> list[str]:
    """The names of the figures that are lost."""
    return [name for name in this.figures if is_lost(compare(name, other, this))]


def is_lost(ratios: Sequence[float]) -> bool:
    """Whether these ratios, a round each, are a loss and not noise; one round alone says nothing."""
    return len(ratios) > 1 and median(ratios) < LOSS and quantiles(ratios, n=4, method="inclusive")[2] < 1


def judge(lost: Sequence[str]) -> str:
    """The verdict, as a sentence."""
    if not lost:
        return f"Nothing is below {LOSS} times the speed of the baseline."
    return f"Below {LOSS} times the speed of the baseline: {'; '.join(lost)}."


def keep(commit: str, machine: str, other: Version, this: Version, lost: Sequence[str]) -> None:
    """Put the table into the page of results, in place of the last one of this kind of machine."""
    rounds = len(next(iter(this.figures.values())))
    lines = [
        f"`make bench`, {datetime.now(UTC):%Y-%m-%d}: {machine}.",
        f"Baseline {commit[:12]}, medians of {rounds} rounds by turns. {judge(lost)}",
        "",
        "| | baseline | this | times as fast | least to most |",
        "|---|---|---|---|---|",
    ]
    for name, values in this.figures.items():
        ratios = compare(name, other, this)
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        middles = f"{median(other.figures[name]):.2f} | {median(values):.2f} | {median(ratios):.2f}"
        lines.append(f"| {name} | {middles} | {spread} |")
    page = RESULTS.read_text("utf-8")
    RESULTS.write_text(replace_section(page, name_kind(), "\n".join(lines)), "utf-8")


def replace_section(page: str, kind: str, text: str) -> str:
    """The page with `text` in the section of this kind of machine, which is added if there is none."""
    opening, *sections = page.split("\n## ")
    by_kind = {section.partition("\n")[0]: section.partition("\n")[2].strip() for section in sections}
    by_kind[kind] = text
    return opening.rstrip() + "".join(f"\n\n## {name}\n\n{by_kind[name]}" for name in sorted(by_kind)) + "\n"


if __name__ == "__main__":
    main()
