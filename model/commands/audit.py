"""The commands about the audit: verify it, export it, delete old entries."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from sameface.model.access.audit.audit_file import check_file, export_audit
from sameface.model.access.audit.check_audit import check_audit
from sameface.model.access.audit.seals import cut_audit, seal_audit
from sameface.model.commands.console.options import AsJson, Data, Database
from sameface.model.commands.console.terminal import console, count, print_json
from sameface.model.data_folder import DEFAULT_DATA, DataFolder, folder_of
from sameface.model.errors import AuditRefused
from sameface.model.store.store import Store

app = typer.Typer()
audit = typer.Typer(help="Verify, export or prune the audit.", no_args_is_help=True)
app.add_typer(audit, name="audit")


@audit.command()
def verify(
    file: Annotated[
        Path | None, typer.Argument(help="What `sameface audit export` wrote, instead of the data folder.")
    ] = None,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Prove that no entry was altered, removed, moved or cut: exit code 0 if so, 1 if not."""
    folder = DataFolder(data, database)
    if file:
        verdict = check_file(file.expanduser(), folder_of(folder.gallery))
    else:
        with closing(Store(folder.gallery)) as store:
            verdict = check_audit(store)
    if as_json:
        print_json(verdict)
    else:
        parts = count(verdict.entries, "entry", "entries"), count(verdict.seals, "seal", "seals")
        for fault in verdict.faults:
            console.print(f"[red]{escape(fault)}[/red]", soft_wrap=True)
        sound = "[red]The audit is not as it was written[/red]" if verdict.faults else "The audit is sound"
        console.print(f"{sound}: {', '.join(parts)}, {verdict.unsealed:,} not sealed yet.")
    raise typer.Exit(1 if verdict.faults else 0)


@audit.command()
def export(
    file: Annotated[Path, typer.Argument(help="Where to write it.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace the file if it exists.")] = False,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Write the audit into a file of JSON lines, which can be verified by itself."""
    if file.expanduser().exists() and not replace:
        raise AuditRefused(f"{file} exists already: choose another name, or --replace.")
    with closing(Store(DataFolder(data, database).gallery)) as store:
        entries = export_audit(store, file.expanduser())
    if as_json:
        print_json({"file": str(file), "entries": entries})
    else:
        console.print(f"{escape(str(file))} has {count(entries, 'entry', 'entries')}.", soft_wrap=True)


@audit.command()
def prune(
    days: Annotated[int, typer.Option(min=0, help="Keep the entries of so many days.")],
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Delete entries that are older than some days; what is left can still be verified."""
    with closing(Store(DataFolder(data, database).gallery)) as store:
        seal_audit(store)
        gone = cut_audit(store, days)
        left = store.seals.count_entries()
    if as_json:
        print_json({"deleted": gone, "kept": left})
    else:
        console.print(f"Deleted {count(gone, 'entry', 'entries')}, kept {left:,}.")
