"""`hyperslab versions tag` lists, makes and deletes tags."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from hyperslab.cli.output import console, line
from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, Timeout, name_of, opened, refused
from hyperslab.errors import UsageError


def tag(
    file: FileArgument,
    name: Annotated[str | None, typer.Argument(help="A tag. Without it, all tags are listed.")] = None,
    at: Annotated[str | None, typer.Option(help=VERSION_HELP + " Default: the current one.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="Why you tag it.")] = None,
    author: Annotated[str | None, typer.Option(help="Who you are.")] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the tag. Its version stays.")] = False,
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """List the tags of a file, or give a version a name for good.

    Tags never move. `delete` deletes a version that has a tag only with --force.

    Example: hyperslab versions tag survey.h5 paper --at march --message "Figure 3"
    """
    if name is None:
        if (at, message, author, delete) != (None, None, None, False):
            raise UsageError("name the tag")
        _list(file, as_json)
        return
    with as_signalled(), opened(file, "r+", timeout) as versions, refused():
        if delete:
            versions.delete_tag(name)
        else:
            versions.create_tag(name, name_of(versions, at), message=message, author=author)
        found = None if delete else asdict(versions.tags[name])
    if as_json:
        typer.echo(json.dumps({"file": file, "tag": found}, indent=1))
        return
    said = f"tag {name} is {found['version']}" if found is not None else f"tag {name} deleted"
    console().print(line(f"{file}: {said}"), soft_wrap=True)


def _list(file: str, as_json: bool) -> None:
    with opened(file) as versions:
        found = list(versions.tags.values())
    if as_json:
        typer.echo(json.dumps({"file": file, "tags": [asdict(one) for one in found]}, indent=1))
        return
    table = Table("tag", "version", "time (UTC)", "author", "message", box=None)
    for one in found:
        cells = (one.name, one.version or "–", one.time[:19], one.author or "–", one.problem or one.message or "")
        table.add_row(*(line(cell, overflow="fold") for cell in cells))
    console().print(table)
