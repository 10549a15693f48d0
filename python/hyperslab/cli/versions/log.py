"""`hyperslab versions log` lists all versions and what each changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hyperslab.cli.output import console, line, plain
from hyperslab.cli.progress import live
from hyperslab.cli.versions.graph import drawn
from hyperslab.cli.versions.opening import AsJson, FileArgument, opened

if TYPE_CHECKING:
    from hyperslab.versions import VersionedFile
    from hyperslab.versions.inspect.log import LogEntry
    from hyperslab.versions.layout.refs import Branch, Tag

MOST_CHANGES = 6
SIGNS = {"added": "+", "removed": "−", "changed": "~"}


def log(
    file: FileArgument,
    graph: Annotated[
        bool, typer.Option("--graph", help="Draw the versions with their parents, newest first, without sizes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List all versions, oldest first, with parent, time, size, and the changes relative to the parent.

    `*` marks the current version. `+` marks new arrays, `−` removed arrays, and `~` changed arrays with the number of
    chunks that differ.

    Example: hyperslab versions log survey.h5
    """
    if graph and not as_json:
        _draw(file)
        return
    with opened(file) as versions, live(console(stderr=True), unit="versions") as progress:
        entries = versions.log(progress)
        names = _refs(versions)
        second = {entry.name: versions.merged_into(entry.name) for entry in entries}
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "file": file,
                    "versions": [_as_json(entry, names.get(entry.name, []), second[entry.name]) for entry in entries],
                },
                indent=1,
            )
        )
    else:
        _print(entries, names)


def _draw(file: str) -> None:
    with opened(file) as versions:
        order, parents = versions.graph()
        names, table, current = _refs(versions), versions.table, versions.current_version
    for row, name in drawn(order, parents):
        said = ""
        if name is not None:
            refs = f" ({', '.join(names[name])})" if name in names else ""
            said = f"  {name}{' *' if name == current else ''}{refs}  {table[name].time:%Y-%m-%d %H:%M:%S}"
        console().print(line(row + said), soft_wrap=True)


def _refs(file: VersionedFile) -> dict[str, list[str]]:
    """The branches and tags of each version; none if nobody named any."""
    from hyperslab.versions.layout.refs import MAIN

    names: dict[str, list[str]] = {}
    branches = list(file.branches.values())
    is_plain = not file.tags and [one.name for one in branches] in ([], [MAIN])
    named: list[Branch | Tag] = [] if is_plain else [*branches, *file.tags.values()]
    for one in named:
        if one.version is not None:
            names.setdefault(one.version, []).append(one.name)
    return names


def _as_json(entry: LogEntry, refs: list[str], merged: str | None) -> dict[str, Any]:
    size = entry.size
    return {
        "name": entry.name,
        "parent": entry.version.parent,
        "merged": merged,
        "time": entry.version.time.isoformat(),
        "is_current": entry.is_current,
        "refs": refs,
        "attributes": {name: plain(value) for name, value in entry.attributes.items()},
        "array_count": size.array_count,
        "nbytes": size.nbytes,
        "stored_nbytes": size.stored_nbytes,
        "new_nbytes": size.new_nbytes,
        "changes": [
            {
                "array": change.path,
                "status": change.status,
                "chunk_count": change.chunk_count,
                "shape": plain(change.shape),
                "attributes": list(change.attributes),
            }
            for change in entry.changes
        ],
    }


def _print(entries: list[LogEntry], names: dict[str, list[str]]) -> None:
    from hyperslab.quantities import nbytes_text

    table = Table("version", "parent", "time (UTC)", "arrays", "size", "new chunks", "changes", box=None)
    for entry in entries:
        size = entry.size
        refs = f" ({', '.join(names[entry.name])})" if entry.name in names else ""
        cells = [
            f"{entry.name}{' *' if entry.is_current else ''}{refs}",
            entry.version.parent or "–",
            f"{entry.version.time:%Y-%m-%d %H:%M:%S}",
            str(size.array_count),
            nbytes_text(size.nbytes),
            "?" if size.new_nbytes is None else nbytes_text(size.new_nbytes),
            _changes(entry),
        ]
        table.add_row(*(line(cell, overflow="fold") for cell in cells))
    console().print(table)


def _changes(entry: LogEntry) -> str:
    said = []
    for change in entry.changes[:MOST_CHANGES]:
        count = "?" if change.chunk_count is None else change.chunk_count
        said.append(f"{SIGNS[change.status]}{change.path}" + (f" {count}" if change.status == "changed" else ""))
    more = len(entry.changes) - MOST_CHANGES
    return ", ".join([*said, *([f"{more} more"] if more > 0 else [])])
