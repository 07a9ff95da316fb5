"""The commands about API keys: make, list, show, rotate, revoke. They need a data folder and no networks."""

import re
import time
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Column, Table

from sameface.model.access.keys import (
    COMPREFACE_SERVICES,
    GRACE_SECONDS,
    REKOGNITION,
    SCOPES,
    draft_key,
    draw_secret,
    parse_entry,
    read_uuid,
    write_entry,
)
from sameface.model.access.sealed_secrets import rotate_key, seal_secret
from sameface.model.bundles.bundle import load_bundle
from sameface.model.commands.console.answers import describe_key, describe_list
from sameface.model.commands.console.options import AsJson, Data, Database, Recognizer
from sameface.model.commands.console.terminal import console, print_json
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.errors import InvalidArgument
from sameface.model.gallery.gallery import Gallery
from sameface.model.pipeline import PipelineOptions
from sameface.model.store.access.api_key import ApiKey, KeyLimits
from sameface.model.store.records import write_time
from sameface.model.store.store import Store

app = typer.Typer()
keys = typer.Typer(help="Make, list, show, rotate or revoke API keys.", no_args_is_help=True)
app.add_typer(keys, name="keys")

KeyId = Annotated[str, typer.Argument(help="The key's id.")]
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}


def open_store(data: Path, database: str | None) -> closing[Store]:
    """The store of a data folder or in PostgreSQL, closed at the end of the block."""
    return closing(Store(DataFolder(data, database).gallery))


@keys.command()
def create(
    scope: Annotated[list[str], typer.Option(help=f"What it may do: {', '.join(SCOPES)}; repeat it.")],
    name: Annotated[str, typer.Option(help="Whose it is.")] = "",
    collection: Annotated[
        list[str] | None,
        typer.Option(help="A collection, or a prefix with `*`; repeat it; default: all."),
    ] = None,
    expires: Annotated[str | None, typer.Option(help="After how long: 90m, 12h, 30d; or a date.")] = None,
    requests_per_minute: Annotated[int | None, typer.Option(help="Requests a minute.")] = None,
    photos_per_minute: Annotated[int | None, typer.Option(help="Photos a minute.")] = None,
    concurrent: Annotated[int | None, typer.Option(help="Requests at once.")] = None,
    faces: Annotated[int | None, typer.Option(help="Faces enrolled in its collections.")] = None,
    compreface: Annotated[
        str | None,
        typer.Option(help="A collection: the key, a UUID, is for clients of CompreFace, which see it."),
    ] = None,
    service: Annotated[
        Literal["recognition", "detection", "verification"],
        typer.Option(help="What such a key is for."),
    ] = "recognition",
    key: Annotated[str | None, typer.Option(help="The UUID that clients of CompreFace already have.")] = None,
    aws: Annotated[
        bool, typer.Option("--aws", help="The key is for clients of Amazon Rekognition, which sign with it.")
    ] = False,
    environment: Annotated[
        bool, typer.Option("--environment", help="Keep it nowhere; print its entry for SAMEFACE_API_KEYS.")
    ] = False,
    recognizer: Recognizer = None,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a key, and print its secret this once."""
    refuse_mixture(compreface, collection, key, aws=aws, environment=environment)
    scopes = [part for each in scope for part in each.split("+")]
    limits = KeyLimits(
        requests_per_minute=requests_per_minute,
        photos_per_minute=photos_per_minute,
        concurrent=concurrent,
        faces=faces,
    )
    bound = COMPREFACE_SERVICES[service] if compreface else REKOGNITION if aws else None
    secret = read_uuid(key) if key else draw_secret(bound)
    if environment:
        if collection or expires or limits != KeyLimits():
            raise InvalidArgument("In the environment, a key has a name and scopes, and nothing else.")
        show_entry(secret, write_entry(name or "key", secret, scopes), as_json=as_json)
        return
    expires_at = read_expiry(expires, time.time()) if expires else None
    places = [compreface] if compreface else collection
    draft = draft_key(secret, name, scopes, places or None, limits, expires_at, bound)
    if compreface:
        make_collection(compreface, data, database, recognizer)
    with open_store(data, database) as store:
        made = store.keys.add(replace(draft, sealed=seal_secret(store, bound, secret)))
    show_secret(made, secret, as_json=as_json)


def refuse_mixture(
    compreface: str | None, collection: list[str] | None, key: str | None, *, aws: bool, environment: bool
) -> None:
    """Raise for options that do not go together: a key of CompreFace has one collection, and a UUID."""
    if compreface and (collection or environment or aws):
        raise InvalidArgument("A key of CompreFace is in the store, for the one collection it names.")
    if aws and environment:
        raise InvalidArgument("A key for Rekognition is in the store, which keeps its secret encrypted.")
    if key and not compreface:
        raise InvalidArgument("`--key` is for keys of CompreFace: say `--compreface COLLECTION` too.")


def make_collection(name: str, data: Path, database: str | None, recognizer: Path | None) -> None:
    """Make a collection for the recogniser that the server runs, unless there is one."""
    folder = DataFolder(data, database)
    options = PipelineOptions.in_folder(folder, recognizer)
    with closing(Gallery(folder.gallery, load_bundle(options.recognizer, "recogniser"))) as gallery:
        gallery.get_or_create_collection(name)


def read_expiry(said: str, now: float) -> float:
    """The moment that `said` names: a while from `now` on, or a date and perhaps a time."""
    found = re.fullmatch(r"(\d{1,6})([smhd])", said)
    if found:
        return now + int(found[1]) * SECONDS[found[2]]
    try:
        return datetime.fromisoformat(said).timestamp()
    except ValueError:
        raise InvalidArgument(f"{said!r} is no time: say 90m, 12h, 30d, or a date as 2030-12-31.") from None


def show_secret(key: ApiKey, secret: str, *, as_json: bool) -> None:
    """Print a key with its secret."""
    signs = {"access_key_id": key.key_id} if key.service == REKOGNITION else {}
    if as_json:
        print_json(describe_key(key) | signs | {"secret": secret})
        return
    console.print(f"The key {key.key_id} ({escape(key.name)}) may {', '.join(sorted(key.scopes))}.")
    if signs:
        console.print(f"The client signs with    aws_access_key_id {key.key_id}", soft_wrap=True)
        console.print(f"                         aws_secret_access_key {secret}", soft_wrap=True)
        console.print("The secret is shown this once; the store keeps it encrypted.")
        return
    header = "x-api-key:" if key.service else "Authorization: Bearer"
    console.print(f"The client sends    {header} {secret}", soft_wrap=True)
    console.print("The secret is shown this once and kept nowhere.")


def show_entry(secret: str, entry: str, *, as_json: bool) -> None:
    """Print a secret, and the entry by which a server knows it."""
    if as_json:
        print_json({"key_id": parse_entry(entry).key_id, "secret": secret, "entry": entry})
        return
    console.print(f"The client sends    Authorization: Bearer {secret}", soft_wrap=True)
    console.print(f"The server knows    SAMEFACE_API_KEYS={entry}", soft_wrap=True)
    console.print("The secret is shown this once and kept nowhere.")


@keys.command("list")
def list_all(data: Data = DEFAULT_DATA, database: Database = None, as_json: AsJson = False) -> None:
    """List the keys, those that were revoked included."""
    with open_store(data, database) as store:
        found = store.keys.page()
    if as_json:
        print_json(describe_list(map(describe_key, found)))
        return
    table = Table(Column("key", no_wrap=True), "name", "scopes", "collections", "last used", "state")
    for key in found:
        places = "all" if key.collections is None else ", ".join(key.collections)
        used = write_time(key.last_used_at)[:13] if key.last_used_at else "never"
        table.add_row(
            key.key_id, escape(key.name), ", ".join(sorted(key.scopes)), places, used, name_state(key)
        )
    console.print(table if found else "There are no keys yet: `sameface keys create` makes the first.")


def name_state(key: ApiKey) -> str:
    """Whether a key is valid, expired or revoked."""
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= time.time() else "valid"


@keys.command()
def show(
    key_id: KeyId, data: Data = DEFAULT_DATA, database: Database = None, as_json: AsJson = False
) -> None:
    """Show a key."""
    with open_store(data, database) as store:
        described = describe_key(store.keys.get(key_id))
    if as_json:
        print_json(described)
        return
    table = Table(show_header=False)
    for field, value in described.items():
        table.add_row(field.replace("_", " "), escape(write_value(value)))
    console.print(table)


def write_value(value: Any) -> str:
    """A field of a key for people."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {limit}" for name, limit in value.items() if limit is not None)
    return ", ".join(value) if isinstance(value, list) else "" if value is None else str(value)


@keys.command()
def rotate(
    key_id: KeyId,
    grace: Annotated[float, typer.Option(help="Seconds that the old secret works on.")] = GRACE_SECONDS,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Give a key a new secret, and print it this once; the old one works for a while."""
    with open_store(data, database) as store:
        key, secret = rotate_key(store, key_id, grace)
    show_secret(key, secret, as_json=as_json)
    if not as_json:
        until = key.former_until
        console.print(f"The old secret works {f'until {write_time(until)}' if until else 'no more'}.")


@keys.command()
def revoke(
    key_id: KeyId, data: Data = DEFAULT_DATA, database: Database = None, as_json: AsJson = False
) -> None:
    """End a key for good: it stops working in every running server within a second."""
    with open_store(data, database) as store:
        key = store.keys.revoke(key_id)
    if as_json:
        print_json(describe_key(key))
    else:
        console.print(f"{key.key_id} ({escape(key.name)}) is revoked.")
