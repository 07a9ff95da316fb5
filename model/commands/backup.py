"""The commands that back up a whole gallery and bring it back."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from sameface.model.bundles.bundle import find_folder, load_bundle
from sameface.model.commands.console.options import AsJson, Data, Database, Recognizer
from sameface.model.commands.console.terminal import console, count, print_json, report_bytes, screen
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.errors import BundleRefused
from sameface.model.store.records import Collection, write_time
from sameface.model.store.store import Store
from sameface.model.upkeep.backup import back_up, restore
from sameface.model.upkeep.backup_file import Manifest
from sameface.model.upkeep.errors import BackupRefused

app = typer.Typer()


@app.command("backup")
def backup_gallery(
    file: Annotated[Path, typer.Argument(help="Where to write it.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace the file if it exists.")] = False,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Write the whole gallery into a file, as it is at this moment; servers go on."""
    gallery = DataFolder(data, database).gallery
    if isinstance(gallery, Path) and not gallery.exists():
        raise BackupRefused(f"There is no gallery in {gallery.parent}: name its folder with --data.")
    with closing(Store(gallery)) as store, report_bytes() as progress:
        made = back_up(store, file.expanduser(), progress, replace=replace)
    show_backup(made, f"The gallery is in {file}", [], as_json=as_json)


@app.command("restore")
def restore_gallery(
    file: Annotated[Path, typer.Argument(help="What `sameface backup` wrote.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace the gallery that is there.")] = False,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    recognizer: Recognizer = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup in the place of the gallery: all of it, or nothing changes; no server may run."""
    folder = DataFolder(data)
    if database:
        raise BackupRefused("A gallery in PostgreSQL is restored by its own tools: pg_restore.")
    with report_bytes() as progress:
        restored = restore(file.expanduser(), folder.gallery_file, progress, replace=replace)
    with closing(Store(folder.gallery_file)) as store:  # which brings an older gallery to this version
        warnings = find_foreign(store.collections.page(), folder, recognizer)
    show_backup(
        restored, f"The gallery in {folder.gallery_file.parent} is restored", warnings, as_json=as_json
    )


def find_foreign(collections: list[Collection], folder: DataFolder, recognizer: Path | None) -> list[str]:
    """A warning for each recogniser of a collection that a server with this `recognizer` could not use."""
    try:
        served = load_bundle(
            find_folder(recognizer or folder.recognizer, folder.models), "recogniser"
        ).identity
    except BundleRefused:
        served = None
    foreign: dict[tuple[str, str], list[str]] = {}
    for collection in collections:
        if collection.identity != served:
            foreign.setdefault((collection.bundle, collection.identity), []).append(collection.name)
    return [
        f"{', '.join(names)}: made with the recogniser {bundle} ({identity[:12]}), which "
        f"{recognizer or folder.recognizer} is not. Bring its bundle to {folder.models}, and name it to "
        "`sameface serve --recognizer`."
        for (bundle, identity), names in foreign.items()
    ]


def show_backup(manifest: Manifest, what: str, warnings: list[str], *, as_json: bool) -> None:
    """Print what was backed up or restored, with its counts and the time that it is of."""
    made = write_time(manifest.created_at)
    if as_json:
        shown: dict[str, Any] = manifest.to_dict() | {"created_at": made, "warnings": warnings}
        print_json(shown)
        return
    counts = (
        count(manifest.collections, "collection", "collections"),
        count(manifest.people, "person", "people"),
        count(manifest.faces, "face", "faces"),
    )
    console.print(f"[green]{escape(what)}[/green]: {', '.join(counts)}, as of {made}.", soft_wrap=True)
    for warning in warnings:
        screen.print(f"[yellow]warning[/yellow]: {escape(warning)}", soft_wrap=True)
