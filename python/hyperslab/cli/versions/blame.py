"""`hyperslab versions blame` shows which versions last changed the chunks of an array, or all that ever did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from hyperslab.cli.output import console, line
from hyperslab.cli.read import parse_selection
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, name_of, opened, refused
from hyperslab.errors import UsageError
from hyperslab.needed import need

if TYPE_CHECKING:
    from rich.console import Console

    from hyperslab.report.blame_map import BlameMap
    from hyperslab.versions.branching.blaming import Blame, Change
    from hyperslab.versions.branching.element_blame import ElementBlame

MOST_ROWS = 24  # of the map in a terminal
MOST_LISTED = 1_000_000  # elements in JSON


def blame(
    file: FileArgument,
    array: Annotated[str, typer.Argument(help="The path of an array; or its elements after FILE:ARRAY.")],
    selection: Annotated[str, typer.Argument(help="Indices as between NumPy's brackets: '0, ::4, 10:20'.")] = "...",
    version: Annotated[str | None, typer.Option(help=VERSION_HELP + " (default: the current one)")] = None,
    elements: Annotated[
        bool, typer.Option("--elements", help="Look at each element, not only at chunks. This reads chunks.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="All versions that changed these chunks, newest first.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw the map to a .png, .svg or .html file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which versions last changed the chunks of a selection, when, by whom and why; no chunk is read.

    In a terminal this draws a map with one colour for each version.

    Example: hyperslab versions blame survey.h5:depth "[1000:2000]" --elements -o blame.png
    """
    file, array, selection = _asked(file, array, selection)
    if every and (elements or output is not None):
        raise UsageError("--all lists versions: leave out --elements and --output")
    if output is not None:
        need("--output", "matplotlib")
    key = parse_selection(selection)
    found: Blame | ElementBlame | None = None
    with opened(file) as versions, refused():
        name = name_of(versions, version)
        if every:
            changes = versions.history(array, key, name)
        else:
            found = versions.blame_elements(array, key, name) if elements else versions.blame(array, key, name)
            changes = list(reversed(found.changes))
    if output is not None and found is not None:
        _draw(found, output)
    if as_json:
        said = {"file": file, "array": array, "version": name, "changes": [_as_json(one) for one in changes]}
        typer.echo(json.dumps(said | ({} if found is None else _placed(found)), indent=1))
        return
    out = console()
    if found is not None and out.is_terminal:
        _print_map(out, found)
    _print(out, changes, None if found is None else found.changes)
    if output is not None:
        out.print(line(f"figure: {output}"), soft_wrap=True)


def _asked(file: str, array: str, selection: str) -> tuple[str, str, str]:
    """File, array and selection; FILE:ARRAY names the first two together."""
    if not Path(file).exists() and Path(file.rpartition(":")[0]).is_file():
        if selection != "...":
            raise UsageError(f"{file} names the array already: give only the selection after it")
        file, _, path = file.rpartition(":")
        array, selection = path, array
    selection = selection.strip()
    inner = selection[1:-1]
    is_bracketed = selection[:1] == "[" and selection[-1:] == "]" and "[" not in inner and ":" in inner
    return file, array, inner if is_bracketed else selection


def _draw(found: Blame | ElementBlame, target: Path) -> None:
    from hyperslab.report.blame_map import BlameMap, draw_blame

    if not target.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {target.absolute().parent} to write {target.name} to: create it first")
    draw_blame(BlameMap.of(found), target)


def _print_map(out: Console, found: Blame | ElementBlame) -> None:
    from hyperslab.report.blame_map import BlameMap

    try:
        drawn = BlameMap.of(found)
    except UsageError:
        return  # more than two axes: the table says it all
    for row in map_rows(drawn, out.width):
        out.print(row)


def map_rows(found: BlameMap, width: int) -> list[Text]:
    """The rows of a map in a terminal, one blank of a version's colour for each cell."""
    from hyperslab.report.blame_map import colour

    rows = []
    for cells in found.cells(MOST_ROWS, width).tolist() if found.numbers.size else ():
        row = Text()
        for number in cells:
            row.append(" ", None if number < 0 else f"on {colour(number)}")
        rows.append(row)
    return rows


def _print(out: Console, changes: list[Change], coloured: tuple[Change, ...] | None) -> None:
    from hyperslab.report.blame_map import colour

    has_elements = any(one.element_count is not None for one in changes)
    table = Table(
        "version", "time (UTC)", "chunks", *(["elements"] if has_elements else []), "author", "message", box=None
    )
    for row, one in enumerate(changes):
        cells = [one.name, f"{one.version.time:%Y-%m-%d %H:%M:%S}", str(one.chunk_count)]
        cells += [str(one.element_count)] if has_elements else []
        shown = [line(cell, overflow="fold") for cell in (*cells, one.author or "–", one.message or "")]
        if coloured is not None and out.is_terminal:
            shown[0] = Text("  ", f"on {colour(len(coloured) - 1 - row)}").append(" ", "default on default") + shown[0]
        table.add_row(*shown)
    out.print(table)


def _placed(found: Blame | ElementBlame) -> dict[str, Any]:
    """The version of each chunk, or of each element of a selection that is not too large."""
    from hyperslab.versions.branching.blaming import Blame

    if isinstance(found, Blame):
        named = [found.changes[number].name for number in found.numbers.tolist()]
        pairs = zip(found.indices.tolist(), named, strict=True)
        return {"chunks": [{"chunk": index, "version": one} for index, one in pairs]}
    few = found.numbers.size <= MOST_LISTED
    names = [one.name for one in found.changes]
    return {"names": names, "elements": found.numbers.tolist() if few else None}


def _as_json(change: Change) -> dict[str, Any]:
    said = {
        "version": change.name,
        "time": change.version.time.isoformat(),
        "chunk_count": change.chunk_count,
        "author": change.author,
        "message": change.message,
    }
    return said if change.element_count is None else {**said, "element_count": change.element_count}
