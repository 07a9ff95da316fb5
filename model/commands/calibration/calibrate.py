"""The command that measures error rates on the user's own photos."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from sameface.model.commands.calibration.tables import show_calibration, show_next, write_serve_line
from sameface.model.commands.console.options import (
    Aligned,
    AsJson,
    BundleName,
    Data,
    Database,
    Detector,
    Device,
    Groups,
    InPrecision,
    PrecisionFaces,
    by_name,
    pipeline_for,
)
from sameface.model.commands.console.terminal import console, new_table, print_json, report_counts
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.decision.calibration import Calibration
from sameface.model.decision.calibration_files import refuse_name, save_calibration
from sameface.model.decision.rates import write_rate
from sameface.model.decision.thresholds import TARGET_FMR, Rule
from sameface.model.measurement.embed_photos import choose_embed
from sameface.model.measurement.fit_calibration import calibrate as measure
from sameface.model.measurement.fit_calibration import need_more
from sameface.model.measurement.groups import read_groups
from sameface.model.measurement.labelled_photos import (
    LabelledFaces,
    Lookalikes,
    find_lookalikes,
    read_labelled,
)

app = typer.Typer(callback=by_name)


@app.command()
def calibrate(
    bundle: BundleName,
    folder: Annotated[Path, typer.Argument(help="Photos of people, a folder for each.")],
    name: Annotated[str, typer.Option(help="Of the calibration.")] = "own",
    groups: Groups = None,
    by_worst_group: Annotated[
        bool, typer.Option("--by-worst-group", help="Let the group with most false matches set thresholds.")
    ] = False,
    target_fmr: Annotated[
        float, typer.Option(help="Where groups are compared.", show_default=write_rate(TARGET_FMR))
    ] = TARGET_FMR,
    aligned: Aligned = False,
    default: Annotated[
        bool,
        typer.Option("--default", help="Decide by it; the first calibration of a bundle is that anyway."),
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the calibration of this name.")] = False,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    detector: Detector = None,
    device: Device = "auto",
    precision: InPrecision = "auto",
    precision_faces: PrecisionFaces = None,
    as_json: AsJson = False,
) -> None:
    """Measure a recogniser's error rates on photos of your own cameras, for your thresholds."""
    Rule(rate=target_fmr)
    opened = pipeline_for(DataFolder(data, database), bundle, detector, device, precision, precision_faces)
    gallery = DataFolder(data, database).gallery
    with opened as pipeline, report_counts() as progress:
        refuse_name(name, pipeline.embedder.bundle, gallery, replacing=replace)  # before the long work
        embed = choose_embed(pipeline, aligned=aligned)
        faces = read_labelled(folder.expanduser(), embed, pipeline.options.threads, progress)
    recogniser = pipeline.embedder.bundle
    measured = measure(
        recogniser,
        name,
        faces,
        data=folder.expanduser().absolute().name,
        target_fmr=target_fmr,
        groups=read_groups(groups.expanduser(), faces) if groups else (),
        by_worst_group=by_worst_group,
    )
    in_use = save_calibration(measured, recogniser, gallery, default=default, replacing=replace)
    lookalikes = find_lookalikes(faces)
    command = write_serve_line(measured, bundle, data, in_use=in_use)
    if as_json:
        print_json(describe(measured, faces, lookalikes) | {"in_use": in_use, "serve": command})
    else:
        show_calibration(measured, target_fmr)
        show_lookalikes(lookalikes)
        show_next(measured, command, in_use=in_use)


def describe(measured: Calibration, faces: LabelledFaces, lookalikes: list[Lookalikes]) -> dict[str, Any]:
    """The calibration, failed photos and lookalikes, as JSON."""
    decade, pairs, people = need_more(measured.lowest_fmr, measured.evidence.people)
    return {
        **measured.describe(),
        "next_decade": {"fmr": decade, "more_pairs": pairs, "more_people": people},
        "lookalikes": lookalikes,
        "failed": faces.failed,
    }


def show_lookalikes(lookalikes: list[Lookalikes]) -> None:
    """Print the photos of two people who look like one, if there are any."""
    if not lookalikes:
        return
    several = new_table("photo", "of another person", "similarity")
    for pair in lookalikes:
        several.add_row(escape(pair.file), escape(pair.other), f"{pair.similarity:.3f}")
    console.print(
        "\nAs similar as two photos of one person. If they are, correct it: they count as false matches.",
        several,
    )
