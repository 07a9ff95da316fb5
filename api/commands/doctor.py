"""`sameface doctor`: one page about the machine, the networks, the data and the settings."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sameface.api.commands.flags import take_settings
from sameface.api.commands.serve import find_unknown_variables, refuse_open_door
from sameface.api.secret_files import SECRETS
from sameface.api.settings import PREFIX, Settings
from sameface.api.traces import find_traces_fault, traces_wanted
from sameface.model.commands.console.terminal import console, count, print_json
from sameface.model.errors import SamefaceError
from sameface.model.store.access.api_key import ApiKey
from sameface.model.store.access.keys import peek_keys
from sameface.model.upkeep.doctor.data import examine_clock, examine_folder, examine_index, examine_store
from sameface.model.upkeep.doctor.observation import Observation
from sameface.model.upkeep.doctor.runtime import examine_engines, examine_machine, examine_networks

HIDDEN = (*SECRETS, "database", "milvus_uri")  # settings that are, or may hold, a password
app = typer.Typer()


@app.command("doctor")
@take_settings
def doctor(settings: Settings, as_json: bool) -> None:
    """Look at all that serving needs, in one page for a report: exit code 1 if something is wrong."""
    found = [shorten(each) for each in examine(settings)]
    healthy = not any(each.fault for each in found)
    if as_json:
        print_json({"healthy": healthy, "observations": found})
    else:
        show(found, console)
    raise typer.Exit(0 if healthy else 1)


def examine(settings: Settings) -> Iterator[Observation]:
    """Everything that the page has, in its order."""
    yield Observation("sameface", "version", version("sameface"))
    yield from examine_machine()
    yield from examine_engines()
    yield from examine_networks(settings.pipeline_options)
    yield from examine_folder(settings.folder)
    yield from examine_store(settings.folder)
    yield from examine_index(settings.folder)
    yield from examine_clock(settings.folder)
    yield from examine_access(settings)
    yield from examine_traces()
    yield from examine_settings(settings)


def examine_access(settings: Settings) -> Iterator[Observation]:
    """The keys by their scopes, and whether the server would be open to strangers."""
    fault, stored = None, []
    try:
        refuse_open_door(settings)
        stored = [key for key in peek_keys(settings.folder.gallery) if key.revoked_at is None]
    except SamefaceError as error:
        fault = error.detail
    places = {f"{PREFIX}API_KEYS": settings.api_keys, "the store": stored}
    kinds = [f"{count_scopes(keys)} in {place}" for place, keys in places.items() if keys]
    yield Observation("access", "keys", "; ".join(kinds) or "none", fault)


def count_scopes(keys: Sequence[ApiKey]) -> str:
    """The number of keys with each set of scopes."""
    scopes = Counter("+".join(sorted(key.scopes)) for key in keys)
    return ", ".join(f"{number} {scope}" for scope, number in sorted(scopes.items()))


def examine_traces() -> Iterator[Observation]:
    """Whether traces are sent; where to is not shown, because an address may hold a password."""
    fault = find_traces_fault() if traces_wanted() else None
    yield Observation("traces", "state", "on" if traces_wanted() else "off: no OTEL_ endpoint is set", fault)


def examine_settings(settings: Settings) -> Iterator[Observation]:
    """The settings that differ from their defaults, and variables that are no settings."""
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        if value != field.default:
            yield Observation("settings", name, "set" if name in HIDDEN else write_value(value))
    for fault in find_unknown_variables():
        yield Observation("settings", fault.partition(" ")[0], "unknown", fault)


def write_value(value: Any) -> str:
    """A setting as it is written in a variable."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def shorten(observation: Observation) -> Observation:
    """The observation with `~` for the home folder, whose name may be somebody's."""
    home = str(Path.home())

    def hide(text: str) -> str:
        return text.replace(home, "~") if home != os.sep else text

    fault = hide(observation.fault) if observation.fault else None
    return replace(observation, value=hide(observation.value), fault=fault)


def show(found: list[Observation], terminal: Console) -> None:
    """Print the page: a line per observation, faults below it, and the verdict."""
    table, part = Table.grid(padding=(0, 2)), None
    for each in found:
        mark = "[red]✗[/red]" if each.fault else "[green]✓[/green]"
        heading = Text(each.part if each.part != part else "", "bold")
        table.add_row(heading, Text(each.name), mark, Text(each.value, "red" if each.fault else ""))
        part = each.part
    terminal.print(table)
    faults = [each for each in found if each.fault]
    verdict = f"{count(len(faults), 'fault', 'faults')}:" if faults else "Nothing was found wrong."
    terminal.print(f"\n{verdict}", style="bold")
    for each in faults:
        terminal.print(Text(f"✗ {each.part}, {each.name}: {each.fault}", "red"))
