"""The commands about those who are enrolled: list collections and people, forget a person."""

from typing import Annotated

import typer
from rich.markup import escape

from sameface.model.commands.console.answers import describe_list
from sameface.model.commands.console.options import AsJson, Data, Database, InCollection, faces_in
from sameface.model.commands.console.terminal import console, new_table, print_json
from sameface.model.data_folder import DEFAULT_DATA, DataFolder

app = typer.Typer()


@app.command()
def collections(data: Data = DEFAULT_DATA, database: Database = None, as_json: AsJson = False) -> None:
    """List the collections."""
    with faces_in(DataFolder(data, database), None, None, "auto") as opened:
        found = opened.collections()
    if as_json:
        print_json(describe_list(found))
        return
    table = new_table("collection", "people", "faces", "model", "calibration", "keeps crops")
    for each in found:
        crops = "yes" if each.store_crops else "no"
        counts = f"{each.people:,}", f"{each.faces:,}"
        table.add_row(escape(each.name), *counts, escape(each.model), escape(each.calibration or ""), crops)
    console.print(table if found else "There are no collections yet: `sameface enroll` makes the first.")


@app.command()
def people(
    collection: InCollection, data: Data = DEFAULT_DATA, database: Database = None, as_json: AsJson = False
) -> None:
    """List the people of a collection."""
    with faces_in(DataFolder(data, database), None, None, "auto") as opened:
        everybody = list(opened.collection(collection).people())
    if as_json:
        print_json(describe_list(everybody))
        return
    table = new_table("person", "name", "faces")
    for person in everybody:
        table.add_row(person.person_id, escape(person.name or ""), str(len(person.faces)))
    console.print(table if everybody else f"There is nobody in {escape(collection)}.")


@app.command()
def forget(
    person_id: Annotated[str, typer.Argument(help="The person's id.")],
    collection: InCollection,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Forget a person: gone from every answer once this returns."""
    with faces_in(DataFolder(data, database), None, None, "auto") as opened:
        opened.collection(collection).forget(person_id)
    if as_json:
        print_json({"forgotten": person_id})
    else:
        console.print(f"{escape(person_id)} is forgotten.")
