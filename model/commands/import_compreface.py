"""The command that moves the subjects of a CompreFace in."""

from contextlib import closing
from typing import Annotated

import typer
from rich.markup import escape

from sameface.model.commands.console.options import (
    AsJson,
    Data,
    Detector,
    Device,
    InPrecision,
    PrecisionFaces,
    Recognizer,
    by_name,
    faces_in,
)
from sameface.model.commands.console.terminal import (
    console,
    count,
    describe_warning,
    print_json,
    report_counts,
    show_reasons,
)
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.errors import InvalidArgument
from sameface.model.store.records import refuse_invalid_id
from sameface.model.upkeep.compreface.import_services import import_services
from sameface.model.upkeep.compreface.report import ServiceReport
from sameface.model.upkeep.compreface.rest_api import ComprefaceApi
from sameface.model.upkeep.compreface.source import Source

app = typer.Typer(callback=by_name)


@app.command("import-compreface")
def import_compreface(
    database: Annotated[
        str | None,
        typer.Option(envvar="COMPREFACE_DATABASE", help="URL of CompreFace's own PostgreSQL database."),
    ] = None,
    url: Annotated[str | None, typer.Option(help="Or the address of a running CompreFace.")] = None,
    api_key: Annotated[
        str | None,
        typer.Option(envvar="COMPREFACE_API_KEY", help="With --url: the key of the service to import."),
    ] = None,
    collection: Annotated[
        str, typer.Option(help="With --url: what to call the new collection.")
    ] = "compreface",
    store_crops: Annotated[bool, typer.Option("--store-crops", help="Keep the crops, in new ones.")] = False,
    data: Data = DEFAULT_DATA,
    gallery: Annotated[
        str | None,
        typer.Option(envvar="SAMEFACE_DATABASE", help="URL of your gallery, if it is in PostgreSQL."),
    ] = None,
    recognizer: Recognizer = None,
    detector: Detector = None,
    device: Device = "auto",
    precision: InPrecision = "auto",
    precision_faces: PrecisionFaces = None,
    as_json: AsJson = False,
) -> None:
    """Import from CompreFace; run again, it goes on. Exit code 1 if some is left out."""
    opening = faces_in(DataFolder(data, gallery), recognizer, detector, device, precision, precision_faces)
    reading = closing(open_source(database, url, api_key, collection))
    with reading as source, opening as opened, report_counts() as progress:
        reports = import_services(opened.engine, source, store_crops=store_crops, progress=progress)
    if as_json:
        print_json({"items": reports})
    else:
        show_reports(reports)
    raise typer.Exit(0 if all(report.complete for report in reports) else 1)


def open_source(database: str | None, url: str | None, api_key: str | None, collection: str) -> Source:
    """CompreFace's database, or one service through its REST API."""
    if url and api_key:
        refuse_invalid_id(collection, "collection")
        return ComprefaceApi(url, api_key, collection)
    if url or not database:
        raise InvalidArgument("Say where CompreFace is: `--database URL`, or `--url URL --api-key KEY`.")
    from sameface.model.upkeep.compreface.database import ComprefaceDatabase  # needs the extra `postgres`

    return ComprefaceDatabase(database)


def show_reports(reports: list[ServiceReport]) -> None:
    """Print what became of each service, and the examples to look at."""
    if not reports:
        console.print("This CompreFace has no recognition service.")
    for report in reports:
        service = escape(report.service)
        if report.collection is None:
            console.print(f"[yellow]{service}[/yellow] was left out: {escape(report.refused or '')}")
            continue
        enrolled = count(report.enrolled, "example", "examples")
        console.print(
            f"[green]{service}[/green] is the collection {escape(report.collection)}:"
            f" {count(report.people, 'person', 'people')}; {enrolled} enrolled,"
            f" {report.already_there:,} there already, {report.not_enrolled:,} not enrolled.",
            soft_wrap=True,
        )
        rejected = [(f"{item.subject} {item.image_id}", item.detail) for item in report.items if item.detail]
        show_reasons("not enrolled", "example", rejected)
        odd = [
            (f"{item.subject} {item.image_id}", describe_warning(warning))
            for item in report.items
            for warning in item.warnings
        ]
        show_reasons("enrolled, but look at these", "example", odd)
