"""The commands that keep a gallery well: check it, move it, give it another recogniser."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from sameface.listings import CollectionDescription
from sameface.model.bundles.bundle import find_folder, load_bundle
from sameface.model.commands.console.options import (
    AsJson,
    CollectionName,
    Data,
    Database,
    Device,
    Index,
    MilvusToken,
    MilvusUri,
)
from sameface.model.commands.console.terminal import console, count, new_table, print_json, report_counts
from sameface.model.data_folder import DEFAULT_DATA, DataFolder, choose_milvus
from sameface.model.gallery.index.search_engine import expect_kind
from sameface.model.store.move import move_everything
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from sameface.model.upkeep.check_gallery import Finding, check_gallery
from sameface.model.upkeep.errors import ArchiveRefused
from sameface.model.upkeep.export_import import export_collection, import_collection
from sameface.model.upkeep.reembed import move_collection

app = typer.Typer()
gallery = typer.Typer(help="Check, export, import, move or re-embed a gallery.", no_args_is_help=True)
app.add_typer(gallery, name="gallery")


@gallery.command()
def export(
    collection: CollectionName,
    file: Annotated[Path, typer.Argument(help="Where to write it.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace the file if it exists.")] = False,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Write a collection into a file, as it is at this moment."""
    if file.expanduser().exists() and not replace:
        raise ArchiveRefused(f"{file} exists already: choose another name, or --replace.")
    with closing(Store(DataFolder(data, database).gallery)) as store, report_counts() as progress:
        written = export_collection(store, collection, file.expanduser(), progress)
    show_collection(written, f"is in {file}", as_json=as_json)


@gallery.command("import")
def import_archive(
    file: Annotated[Path, typer.Argument(help="What `sameface gallery export` wrote.")],
    collection: Annotated[str | None, typer.Option(help="Another name than it had.")] = None,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a collection of an exported file: all of it, or nothing."""
    with closing(Store(DataFolder(data, database).gallery)) as store, report_counts() as progress:
        made = import_collection(store, file.expanduser(), collection, progress)
    show_collection(made, "is imported", as_json=as_json)


def show_collection(collection: Collection, what: str, *, as_json: bool) -> None:
    """Print a collection with its numbers of people and faces; `what` says what was done with it."""
    if as_json:
        print_json(CollectionDescription.of(collection, expect_kind(collection)))
        return
    counted = f"{count(collection.people, 'person', 'people')}, {count(collection.faces, 'face', 'faces')}"
    console.print(f"[green]{escape(collection.name)}[/green] {escape(what)}: {counted}.", soft_wrap=True)


@gallery.command()
def move(
    to: Annotated[str, typer.Option(help="The URL of an empty PostgreSQL database, or a new data folder.")],
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Take the whole gallery to PostgreSQL or back, while no server runs; run again, it goes on."""
    place = DataFolder(data, database).gallery
    target = DataFolder(data, to) if "://" in to else DataFolder(Path(to))
    with report_counts() as progress:
        moved = move_everything(place, target.gallery, progress)
    if as_json:
        print_json(moved)
        return
    table = new_table("table", "rows", "SHA-256, the same in both")
    for each in moved:
        table.add_row(each.table, f"{each.rows:,}", each.sha256)
    console.print(table)
    console.print(
        "[green]The gallery is moved.[/green] Give its servers the new place, and the secret key that they"
        " had, which signed the audit. What is left in the old place can no longer be opened: delete it.",
        soft_wrap=True,
    )


@gallery.command()
def check(
    collection: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Make again what can be made again.")] = False,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    index: Index = "faiss",
    milvus_uri: MilvusUri = None,
    milvus_token: MilvusToken = None,
    as_json: AsJson = False,
) -> None:
    """Prove that store and indexes agree: exit code 0 if all is well or repaired, 1 if not."""
    folder = DataFolder(data, database, choose_milvus(index, milvus_uri, milvus_token))
    findings = check_gallery(folder.gallery, collection, repair=repair, milvus=folder.milvus)
    if as_json:
        print_json(findings)
    else:
        show_findings(findings)
    raise typer.Exit(0 if all(finding.repaired for finding in findings) else 1)


def show_findings(findings: list[Finding]) -> None:
    """Print a table with one row per finding."""
    if not findings:
        console.print("Store and indexes agree.")
        return
    table = new_table("collection", "what", "repaired")
    for finding in findings:
        done = "[green]yes[/green]" if finding.repaired else "no"
        table.add_row(escape(finding.collection or ""), escape(finding.detail), done)
    console.print(table)
    if any(finding.repaired and finding.code in ("snapshot", "index") for finding in findings):
        console.print("Restart the servers of this gallery: they hold what they have read.")


@gallery.command()
def reembed(
    collection: CollectionName,
    recognizer: Annotated[Path, typer.Option(help="The new recogniser's bundle, by name or folder.")],
    data: Data = DEFAULT_DATA,
    database: Database = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Move a collection that keeps crops to another recogniser; run again, it goes on."""
    bundle = load_bundle(find_folder(recognizer, DataFolder(data).models), "recogniser")
    with closing(Store(DataFolder(data, database).gallery)) as store, report_counts() as progress:
        before = store.collections.get(collection)
        moved = move_collection(store, collection, bundle, DataFolder(data), device, progress)
    if before.identity == moved.identity:
        show_collection(moved, f"belongs to {moved.bundle} already", as_json=as_json)
        return
    show_collection(moved, f"belongs to {moved.bundle} now", as_json=as_json)
    if not as_json:
        console.print(f"Restart the server with `--recognizer {escape(str(recognizer))}`.", soft_wrap=True)
