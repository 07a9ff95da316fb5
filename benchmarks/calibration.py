"""Do calibrated thresholds keep their target rates, on people they have not seen?

Twenty times the people of the folder are split in two. One half fits a calibration; the other half measures
the FMR at the threshold for each target FMR, and in galleries of several sizes the FPIR at the threshold for
each target FPIR, next to fixed thresholds. Then scoring all pairs of the whole folder is timed.

    python -m benchmarks.calibration LFW_FOLDER [--data ~/.sameface] [--figure docs/figures/fpir]
"""

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.accuracy import open_from
from sameface.model.commands.console.terminal import report_counts
from sameface.model.decision.calibration import Curve, Rate
from sameface.model.decision.thresholds import share_out
from sameface.model.faces import Keys
from sameface.model.measurement.embed_photos import choose_embed
from sameface.model.measurement.fit_calibration import fit_curve
from sameface.model.measurement.intervals import measure_rates
from sameface.model.measurement.labelled_photos import read_labelled
from sameface.model.measurement.scores import LabelledEmbeddings, score_all_pairs
from sameface.training.evaluation.open_set import measure_probes

FMRS = (1e-2, 1e-3, 1e-4)
FPIRS = (0.1, 0.01)
SIZES = (50, 200, 800)
SPLITS = 20
PUBLISHED = 0.363
SHOWN = (0.01, 0.03, 0.1, 0.3, 1.0)

Threshold = Callable[[Curve, int], float]  # (curve, size of the gallery) -> threshold


@dataclass(frozen=True, slots=True)
class Split:
    """The calibration curve of one half of the people, and the unseen half to test it on."""

    curve: Curve
    unseen: LabelledEmbeddings
    gallery: Keys  # rows of `unseen`: one face per person, in random order


@dataclass(frozen=True, slots=True)
class Line:
    """The FPIR at every gallery size, for one way to choose thresholds."""

    name: str
    rates: list[Rate]


def main() -> None:
    """Embed, split, and print the tables."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--figure", type=Path, help="Write the figure to this name, as PNG and SVG.")
    options = arguments.parse_args()
    with closing(open_from(options.data)) as pipeline, report_counts() as progress:
        embed = choose_embed(pipeline, aligned=False)
        faces = read_labelled(options.lfw / "images", embed, pipeline.options.threads, progress).embedded
    console = Console(width=110)
    console.print(time_scoring(faces))  # first: the peak of memory never falls again
    splits = [split(faces, seed) for seed in range(SPLITS)]
    lines = compare_galleries(splits)
    console.print(compare_fmrs(splits), describe(lines))
    if options.figure:
        draw(lines, options.figure)


def split(faces: LabelledEmbeddings, seed: int) -> Split:
    """Calibrate on a random half of the people."""
    random = np.random.default_rng(seed)
    known, unseen = (
        faces.of_people(half) for half in np.array_split(random.permutation(faces.identities), 2)
    )
    _, impostor = score_all_pairs(known)
    _, first = np.unique(unseen.people, return_index=True)
    return Split(fit_curve([impostor]), unseen, random.permutation(first))


def compare_fmrs(splits: Sequence[Split]) -> Table:
    """A table of the FMR of the unseen half at every target FMR."""
    title = f"1:1, {SPLITS} splits: FMR of the other half"
    table = Table("target FMR", "median", "least", "most", title=title)
    impostors = [score_all_pairs(halves.unseen)[1] for halves in splits]
    for fmr in FMRS:
        seen = [
            impostor.share_from(halves.curve.similarity_at(fmr))
            for halves, impostor in zip(splits, impostors, strict=True)
        ]
        figures = float(np.median(seen)), min(seen), max(seen)
        table.add_row(f"{fmr:g}", *(f"{rate:.2e}, {rate / fmr:.2f} of it" for rate in figures))
    return table


def compare_galleries(splits: Sequence[Split]) -> list[Line]:
    """The FPIR by gallery size, of calibrated and of fixed thresholds."""

    def for_rate(rate: float) -> Threshold:
        return lambda curve, size: curve.similarity_at(share_out(rate, size))

    def for_fifty(rate: float) -> Threshold:
        return lambda curve, _: curve.similarity_at(share_out(rate, SIZES[0]))

    ways = {f"target_fpir = {rate:g}": for_rate(rate) for rate in FPIRS}
    ways |= {f"fixed, right for {rate:g} of {SIZES[0]} people": for_fifty(rate) for rate in FPIRS}
    ways[f"fixed at {PUBLISHED}, as published"] = lambda *_: PUBLISHED
    return [
        Line(name, [search_galleries(splits, size, threshold) for size in SIZES])
        for name, threshold in ways.items()
    ]


def search_galleries(splits: Sequence[Split], size: int, threshold: Threshold) -> Rate:
    """The FPIR with one face each of `size` people enrolled; all faces of everybody else are probes."""
    matched, owners = [], []
    for halves in splits:
        unseen, enrolled = halves.unseen, halves.gallery[:size]
        strangers = ~np.isin(unseen.people, unseen.people[enrolled])
        best = (unseen.embeddings[strangers] @ unseen.embeddings[enrolled].T).max(1)
        matched.append(best >= threshold(halves.curve, size))
        owners.append(unseen.people[strangers])
    return measure_probes(np.concatenate(matched), np.concatenate(owners))


def describe(lines: Sequence[Line]) -> Table:
    """A table with a row for every way to choose thresholds."""
    table = Table("threshold", *(f"FPIR, {size} people" for size in SIZES), title=f"1:N, {SPLITS} splits")
    for line in lines:
        table.add_row(line.name, *(f"{r.value:.2%} ({r.low:.2%} to {r.high:.2%})" for r in line.rates))
    return table


def time_scoring(faces: LabelledEmbeddings) -> Table:
    """A table of the seconds and the additional memory that scoring all pairs takes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    genuine, impostor = score_all_pairs(faces)
    scored = time.perf_counter()
    measure_rates(faces, [impostor.find_threshold(10.0**-decade) for decade in range(1, 7)])
    drawn = time.perf_counter()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table = Table("pairs", "counted", "intervals at six thresholds", "memory at its peak", title="all pairs")
    table.add_row(
        f"{genuine.pairs + impostor.pairs:,}",
        f"{scored - started:.2f} s",
        f"{drawn - scored:.2f} s",
        f"{(after - before) / 1000:.0f} MB more",
    )
    return table


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw the README's figure, FPIR by gallery size, and write it as PNG and SVG."""
    from sameface.training.evaluation.plots import COLOURS, GREY, encode, finish, start

    figure, axes = start("people in the gallery", "strangers who match someone (FPIR)", "")
    styles = [(COLOURS[0], "-"), (COLOURS[1], "-"), (COLOURS[0], ":"), (COLOURS[1], ":"), (GREY, ":")]
    for line, (colour, style) in zip(lines, styles, strict=True):
        values = [rate.value for rate in line.rates]
        spans = np.abs(np.array([[rate.low, rate.high] for rate in line.rates]).T - values)
        axes.errorbar(SIZES, values, spans, label=line.name, color=colour, capsize=3, linestyle=style)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.set_yticks(SHOWN, [f"{share:.0%}" for share in SHOWN])
    axes.minorticks_off()
    finish(figure, axes)
    for kind in ("png", "svg"):
        path.with_suffix(f".{kind}").write_bytes(encode(figure, kind))


if __name__ == "__main__":
    main()
