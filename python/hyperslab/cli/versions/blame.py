"""`hyperslab versions blame` shows which versions last changed the chunks of an array, or all that ever did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hyperslab.cli.output import console, line
from hyperslab.cli.read import parse_selection
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, name_of, opened, refused

if TYPE_CHECKING:
    from hyperslab.versions.branching.blaming import Change


def blame(
    file: FileArgument,
    array: Annotated[str, typer.Argument(help="The path of an array.")],
    selection: Annotated[str, typer.Argument(help="Indices as between NumPy's brackets: '0, ::4, 10:20'.")] = "...",
    version: Annotated[str | None, typer.Option(help=VERSION_HELP + " Default: the current one.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All versions that changed these chunks, newest first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show which versions last changed the chunks of a selection, when, by whom and why. No chunk is read.

    Example: hyperslab versions blame survey.h5 depth "1000:2000"
    """
    key = parse_selection(selection)
    with opened(file) as versions, refused():
        name = name_of(versions, version)
        if every:
            changes, chunks = versions.history(array, key, name), None
        else:
            found = versions.blame(array, key, name)
            changes = list(reversed(found.changes))
            named = [found.changes[number].name for number in found.numbers.tolist()]
            chunks = [
                {"chunk": index, "version": one} for index, one in zip(found.indices.tolist(), named, strict=True)
            ]
    if as_json:
        said = {"file": file, "array": array, "version": name, "changes": [_as_json(one) for one in changes]}
        typer.echo(json.dumps(said if chunks is None else {**said, "chunks": chunks}, indent=1))
        return
    table = Table("version", "time (UTC)", "chunks", "author", "message", box=None)
    for one in changes:
        time = f"{one.version.time:%Y-%m-%d %H:%M:%S}"
        cells = (one.name, time, str(one.chunk_count), one.author or "–", one.message or "")
        table.add_row(*(line(cell, overflow="fold") for cell in cells))
    console().print(table)


def _as_json(change: Change) -> dict[str, Any]:
    return {
        "version": change.name,
        "time": change.version.time.isoformat(),
        "chunk_count": change.chunk_count,
        "author": change.author,
        "message": change.message,
    }
