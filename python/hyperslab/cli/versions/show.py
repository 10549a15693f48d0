"""`hyperslab versions show` shows the content of one version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hyperslab.cli.archives import Entry, entries
from hyperslab.cli.contents import describe
from hyperslab.cli.output import console, line, plain
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, name_of, opened

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group
    from hyperslab.versions.layout.table import Version


def show(
    file: FileArgument,
    version: Annotated[str | None, typer.Argument(help=VERSION_HELP + " (default: the current one)")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the groups, arrays and attributes of a version.

    Example: hyperslab versions show survey.h5 march
    """
    from hyperslab.versions.inspect.chunk_maps import user_attributes

    with opened(file) as versions:
        chosen_version = versions.table[name_of(versions, version)]
        group = versions[chosen_version.name]
        is_current = chosen_version.name == versions.current_version
        attributes = {name: plain(value) for name, value in user_attributes(group).items()}
        rows = [_row(entry, group) for entry in entries(group)]
    if as_json:
        typer.echo(
            json.dumps({"file": file, **_facts(chosen_version, is_current, attributes), "contents": rows}, indent=1)
        )
    else:
        _print(file, chosen_version, is_current, attributes, rows)


def _facts(version: Version, is_current: bool, attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": version.name,
        "parent": version.parent,
        "time": version.time.isoformat(),
        "is_current": is_current,
        "attributes": attributes,
    }


def _row(entry: Entry, group: Group) -> dict[str, Any]:
    """A row for a name in the version: what `hyperslab info` says about it, and its attributes."""
    from hyperslab.versions.inspect.chunk_maps import user_attributes

    row = {name: value for name, value in describe(entry).items() if name not in ("branch", "again", "advice", "dims")}
    row["name"] = entry.path.removeprefix(group.name.rstrip("/")).lstrip("/")
    if not isinstance(entry.found, Exception):
        row["attributes"] = {name: plain(value) for name, value in user_attributes(entry.found).items()}
    return row


def _print(
    file: str, version: Version, is_current: bool, attributes: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    from hyperslab.quantities import nbytes_text

    out = console()
    parent = f"child of {version.parent}" if version.parent else "without a parent"
    current = ", the current version" if is_current else ""
    out.print(line(f"{file}: {version.name}, {parent}, {version.time:%Y-%m-%d %H:%M:%S} UTC{current}"), soft_wrap=True)
    for name, value in attributes.items():
        out.print(line(f"  {name}: {value}"), soft_wrap=True)
    table = Table("name", "shape", "element", "chunks", "codecs", "in memory", "stored", "attributes", box=None)
    for row in rows:
        said = ", ".join(f"{name}: {value}" for name, value in row.get("attributes", {}).items())
        if row["kind"] != "array":
            cells = [
                f"{row['name']}/" if row["kind"] == "group" else f"{row['name']}: {row['problem']}",
                *[""] * 6,
                said,
            ]
        else:
            cells = [
                row["name"],
                "×".join(map(str, row["shape"] or ())),
                row["element"] or "?",
                "×".join(map(str, row["chunks"])) if row["chunks"] else "–",
                "+".join(row["codecs"]) or "–",
                "?" if row["nbytes"] is None else nbytes_text(row["nbytes"]),
                nbytes_text(row["stored_nbytes"] or 0),
                said,
            ]
        table.add_row(*(line(cell, overflow="fold") for cell in cells))
    out.print(table)
