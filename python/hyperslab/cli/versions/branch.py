"""`hyperslab versions branch` lists, makes, moves and deletes branches."""

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


def branch(
    file: FileArgument,
    name: Annotated[str | None, typer.Argument(help="A branch. Without it, all branches are listed.")] = None,
    at: Annotated[str | None, typer.Option(help=VERSION_HELP + " Default: the current one.")] = None,
    move: Annotated[bool, typer.Option("--move", help="Move the branch if it exists.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the branch. Its versions stay.")] = False,
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """List the branches of a file, or make, move or delete one.

    `*` marks the branch that is checked out.

    Example: hyperslab versions branch survey.h5 recalibrated --at march
    """
    if name is None:
        if at is not None or move or delete:
            raise UsageError("name the branch")
        _list(file, as_json)
        return
    with as_signalled(), opened(file, "r+", timeout) as versions, refused():
        if delete:
            versions.delete_branch(name)
        else:
            versions.create_branch(name, name_of(versions, at), move=move)
        found = None if delete else asdict(versions.branches[name])
    if as_json:
        typer.echo(json.dumps({"file": file, "branch": found}, indent=1))
        return
    said = f"branch {name} is at {found['version']}" if found is not None else f"branch {name} deleted"
    console().print(line(f"{file}: {said}"), soft_wrap=True)


def _list(file: str, as_json: bool) -> None:
    with opened(file) as versions:
        found = list(versions.branches.values())
    if as_json:
        typer.echo(json.dumps({"file": file, "branches": [asdict(one) for one in found]}, indent=1))
        return
    table = Table("branch", "version", "", box=None)
    for one in found:
        cells = (f"{one.name} *" if one.is_checked_out else one.name, one.version or "–", one.problem or "")
        table.add_row(*(line(cell, overflow="fold") for cell in cells))
    console().print(table)
